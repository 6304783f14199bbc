dnl SLP_WITH_CUDA: nvcc, the CUDA run time, cuBLAS and cuDNN, all of them or none.
dnl Needs SLP_WITH_STARPU.  Sets have_cuda, NVCC, NVCCFLAGS, CUDA_ARCHS, CUDA_GENCODE, CUDA_CFLAGS, CUDA_LIBS,
dnl CUBLAS_LIBS.
AC_DEFUN([SLP_WITH_CUDA], [
AC_ARG_WITH([cuda],
  [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@], [build the CUDA kernels with the CUDA toolkit in DIR (default: if nvcc, cuBLAS, cuDNN and a StarPU with CUDA are found)])],
  [], [with_cuda=auto])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [CUDA compiler flags])
AC_ARG_VAR([CUDA_ARCHS], [compute capabilities to compile for, e.g. "80 90"])
: ${NVCCFLAGS="-O3 -g"}
have_cuda=no
cuda_why=
CUDA_CFLAGS=
CUDA_LIBS=
CUBLAS_LIBS=
CUDA_GENCODE=
AS_CASE([$with_cuda],
  [no], [cuda_why="--without-cuda"],
  [AS_IF([test "$starpu_cuda" = no], [cuda_why="the StarPU in $STARPU_PREFIX has no CUDA"])
   AS_IF([test -z "$cuda_why"], [SLP_CUDA_COMPILER])
   AS_IF([test -z "$cuda_why"], [SLP_CUDA_LIBRARIES])
   AS_IF([test -z "$cuda_why"], [SLP_CUDA_ARCHITECTURES])
   AS_IF([test -z "$cuda_why"], [have_cuda=yes],
     [test "$with_cuda" != auto], [AC_MSG_ERROR([--with-cuda: $cuda_why])])])
AS_IF([test "$have_cuda" = yes], [
  AC_DEFINE([HAVE_CUDA], [1], [Define to 1 if there are CUDA kernels, cuBLAS and cuDNN.])],
  [CUDA_CFLAGS= CUDA_LIBS= CUBLAS_LIBS=])
AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([CUDA_LIBS])
AC_SUBST([CUBLAS_LIBS])
AC_SUBST([CUDA_GENCODE])
])

dnl Where nvcc is, and from it the toolkit's folder.
AC_DEFUN([SLP_CUDA_COMPILER], [
AS_CASE([$with_cuda],
  [yes|auto], [slp_path=$PATH:${CUDA_HOME:+$CUDA_HOME/bin:}${CUDA_PATH:+$CUDA_PATH/bin:}/usr/local/cuda/bin],
  [slp_path=$with_cuda/bin])
AC_PATH_PROG([NVCC], [nvcc], [], [$slp_path])
AS_IF([test -z "$NVCC"], [cuda_why="no nvcc in $slp_path"], [
  dnl nvcc itself knows its toolkit, also when it is reached through a link or a wrapper.
  cuda_dir=$("$NVCC" -dryrun -E -x cu /dev/null 2>&1 | $SED -n 's,^#\$ TOP=,,p')
  cuda_dir=$(cd "${cuda_dir:-$(dirname "$NVCC")/..}" 2>/dev/null && pwd -P)
  cuda_version=$("$NVCC" --version | $SED -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p')])
])

dnl SLP_SONAME(NAME, LIBRARY): the name under which the program just linked finds the library.
AC_DEFUN([SLP_SONAME], [
slp_soname=$(objdump -p "conftest$ac_exeext" | $SED -n 's/^ *NEEDED  *\($2\.so@<:@^ @:>@*\)$/\1/p')
AC_DEFINE_UNQUOTED([$1], ["${slp_soname:-$2.so}"], [What $2 is loaded as.])
])

AC_DEFUN([SLP_CUDA_LIBRARIES], [
for dir in "$cuda_dir/include" "$cuda_dir"/targets/*-linux/include; do
  AS_IF([test -f "$dir/cuda_runtime_api.h"], [
    SLP_PATH_FLAG([CUDA_CFLAGS], [-isystem ], [$dir])
    break])
done
for dir in "$cuda_dir/lib64" "$cuda_dir/lib" "$cuda_dir"/targets/*-linux/lib; do
  AS_IF([test -f "$dir/libcudart.so"], [
    SLP_PATH_FLAG([CUDA_LIBS], [-L], [$dir])
    SLP_PATH_FLAG([CUDA_LIBS], [-Wl,-rpath,], [$dir])
    break])
done
dnl libstdc++ because kernels are C++ and we link as C.
dnl cuBLAS and cuDNN are loaded at run time.
CUBLAS_LIBS=-lcublas
CUDA_LIBS="$CUDA_LIBS -lcudart -lstdc++"
slp_save_CPPFLAGS=$CPPFLAGS
slp_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"
LIBS="-lcudnn -lcublas $CUDA_LIBS $LIBS"
AC_MSG_CHECKING([for cudart, cuBLAS and cuDNN])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
#include <cublas_v2.h>
#include <cudnn.h>]], [[int n; cublasHandle_t b; cudnnHandle_t d;
  return cudaGetDeviceCount(&n) + cublasCreate(&b) + cudnnCreate(&d);]])],
  [AC_MSG_RESULT([yes])
   SLP_SONAME([SLP_CUBLAS_SONAME], [libcublas])
   SLP_SONAME([SLP_CUDNN_SONAME], [libcudnn])
   AC_COMPUTE_INT([slp_cudnn], [CUDNN_VERSION], [#include <cudnn.h>], [slp_cudnn=0])
   AS_IF([test "$slp_cudnn" -ge 90000],
     [cudnn_version=$((slp_cudnn / 10000)).$((slp_cudnn / 100 % 100)).$((slp_cudnn % 100))],
     [cudnn_version=$((slp_cudnn / 1000)).$((slp_cudnn / 100 % 10)).$((slp_cudnn % 100))])],
  [AC_MSG_RESULT([no])
   cuda_why="no working cudart, cuBLAS and cuDNN under $cuda_dir (see config.log)"])
CPPFLAGS=$slp_save_CPPFLAGS
LIBS=$slp_save_LIBS
])

dnl PTX of the oldest architecture of CUDA_ARCHS that nvcc knows, for all devices from that one on, and machine code for
dnl each of them, assembled from that PTX: compiling the kernels once for each took a quarter longer.
AC_DEFUN([SLP_CUDA_ARCHITECTURES], [
AC_MSG_CHECKING([which CUDA architectures to compile for])
: ${CUDA_ARCHS="80 90"}
slp_known=$("$NVCC" --list-gpu-arch 2>/dev/null | $SED 's/compute_//')
slp_archs=
slp_oldest=
for arch in $CUDA_ARCHS; do
  AS_IF([test -z "$slp_known" || echo "$slp_known" | $GREP -qx "$arch"], [
    slp_archs="$slp_archs $arch"
    AS_IF([test -z "$slp_oldest" || test "${arch%%@<:@a-z@:>@*}" -lt "${slp_oldest%%@<:@a-z@:>@*}"], [slp_oldest=$arch])])
done
CUDA_ARCHS=${slp_archs# }
AC_MSG_RESULT([${CUDA_ARCHS:-none}])
AS_IF([test -z "$CUDA_ARCHS"], [cuda_why="$NVCC knows none of the architectures asked for"], [
  for code in $(printf 'sm_%s ' $CUDA_ARCHS) compute_$slp_oldest; do
    CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$slp_oldest,code=$code"
  done])
])
