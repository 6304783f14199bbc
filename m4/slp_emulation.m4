dnl SLP_EMULATION: whether make check can run the CUDA kernels on emulated GPUs (tests/emu).
dnl Needs SLP_WITH_STARPU and SLP_WITH_CUDA.  Sets have_emulation, EMU_CFLAGS and EMU_SONAMES: the CUDA libraries that
dnl StarPU is linked with.
AC_DEFUN([SLP_EMULATION], [
have_emulation=no
EMU_CFLAGS=
EMU_SONAMES=
AC_MSG_CHECKING([whether GPUs can be emulated for the tests])
AS_IF([test "$starpu_cuda" = no || test "$starpu_simgrid" = yes || test "$starpu_module" != starpu-1.4],
  [emulation_why="it needs a StarPU 1.4 with CUDA"],
  [SLP_EMULATION_HEADERS
   EMU_SONAMES=$(objdump -p "$starpu_libdir/lib$starpu_module.so" 2>/dev/null |
     $SED -n 's/^ *NEEDED  *\(libcu@<:@^ @:>@*\)$/\1/p' | tr '\n' ' ')
   AS_IF([test -z "$EMU_SONAMES"], [emulation_why="the StarPU in $starpu_libdir needs no CUDA libraries"],
     [test -n "$emulation_why"], [],
     [have_emulation=yes])])
AC_MSG_RESULT([$have_emulation${emulation_why:+: $emulation_why}])
AM_CONDITIONAL([EMULATION], [test "$have_emulation" = yes])
AC_SUBST([EMU_CFLAGS])
AC_SUBST([EMU_SONAMES])
])

dnl The headers alone will do: no nvcc, no CUDA libraries.
AC_DEFUN([SLP_EMULATION_HEADERS], [
AC_LANG_PUSH([C++])
slp_save_CPPFLAGS=$CPPFLAGS
slp_save_CXXFLAGS=$CXXFLAGS
emulation_why="no cuda_runtime_api.h, cublas_v2.h and cudnn.h for $CXX -std=c++17"
for dir in '' "${cuda_dir:-/usr/local/cuda}/include"; do
  EMU_CFLAGS=
  AS_IF([test -n "$dir"], [SLP_PATH_FLAG([EMU_CFLAGS], [-isystem ], [$dir])])
  CPPFLAGS="$slp_save_CPPFLAGS $STARPU_CFLAGS $CUDA_CFLAGS $EMU_CFLAGS"
  CXXFLAGS="$slp_save_CXXFLAGS -std=c++17"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
#include <cublas_v2.h>
#include <cudnn.h>]])], [emulation_why=; break])
done
CPPFLAGS=$slp_save_CPPFLAGS
CXXFLAGS=$slp_save_CXXFLAGS
AC_LANG_POP([C++])
])
