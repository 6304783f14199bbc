dnl SLP_WITH_STARPU: finds StarPU 1.4, or 1.3 from 1.3.10 on.
dnl Sets STARPU_CFLAGS, STARPU_LIBS, STARPU_PREFIX, starpu_module, starpu_version and starpu_cuda,
dnl starpu_simgrid, starpu_maxbuffers from starpu_config.h.
AC_DEFUN([SLP_WITH_STARPU], [
AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_ARG_WITH([starpu],
  [AS_HELP_STRING([--with-starpu=DIR], [use the StarPU installed in DIR (default: what pkg-config finds; tools/build-starpu builds one)])],
  [], [with_starpu=yes])
AS_CASE([$with_starpu],
  [no], [AC_MSG_ERROR([StarPU is what Starling runs on: it cannot be left out])],
  [yes], [],
  [AS_IF([test ! -d "$with_starpu"], [AC_MSG_ERROR([--with-starpu: no directory $with_starpu])])
   with_starpu=$(cd "$with_starpu" && pwd)
   slp_dir=
   for dir in "$with_starpu"/lib/pkgconfig "$with_starpu"/lib64/pkgconfig "$with_starpu"/lib/*/pkgconfig; do
     ls "$dir"/starpu-1.[[34]].pc >/dev/null 2>&1 && slp_dir=$dir && break
   done
   AS_IF([test -z "$slp_dir"], [AC_MSG_ERROR([--with-starpu: $with_starpu holds no StarPU (no lib/pkgconfig/starpu-1.4.pc)])])
   PKG_CONFIG_PATH=$slp_dir${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
   export PKG_CONFIG_PATH])

AC_MSG_CHECKING([for StarPU])
starpu_module=
for module in starpu-1.4 starpu-1.3; do
  AS_IF([$PKG_CONFIG --exists "$module >= 1.3.10"], [starpu_module=$module; break])
done
AS_IF([test -z "$starpu_module"], [
  AC_MSG_RESULT([no])
  AC_MSG_ERROR([no StarPU 1.4 (nor 1.3.10 or later).
  Build one with tools/build-starpu and give its prefix: --with-starpu=DIR.
  Or install Debian's libstarpu-dev (1.3.10: few CPUs, no CUDA).])])
starpu_version=$($PKG_CONFIG --modversion $starpu_module)
STARPU_PREFIX=$($PKG_CONFIG --variable=prefix $starpu_module)
AC_MSG_RESULT([$starpu_version in $STARPU_PREFIX])

dnl The include paths, as system headers, because StarPU's and CUDA's warnings are not ours; and HIP's macros, without which
dnl its headers are errors (Debian's 1.4.10).  Not the other flags: with OpenCL they carry a quoted define.
STARPU_CFLAGS=
for dir in $($PKG_CONFIG --cflags-only-I $starpu_module | $SED 's/-I//g'); do
  SLP_PATH_FLAG([STARPU_CFLAGS], [-isystem ], [$dir])
done
for flag in $($PKG_CONFIG --cflags-only-other $starpu_module); do
  AS_CASE([$flag], [-D__HIP_*], [STARPU_CFLAGS="$STARPU_CFLAGS $flag"])
done
STARPU_LIBS=$($PKG_CONFIG --libs $starpu_module)
starpu_libdir=$($PKG_CONFIG --variable=libdir $starpu_module)
SLP_PATH_FLAG([STARPU_LIBS], [-Wl,-rpath,], [$starpu_libdir])

slp_save_CPPFLAGS=$CPPFLAGS
slp_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS"
LIBS="$STARPU_LIBS $LIBS"
AC_MSG_CHECKING([whether StarPU links])
AC_LINK_IFELSE([AC_LANG_PROGRAM([[#define DISABLE_CUSPARSE_DEPRECATED
#include <starpu.h>]], [[return starpu_init(0);]])],
  [AC_MSG_RESULT([yes])],
  [AC_MSG_RESULT([no])
   AC_MSG_ERROR([the StarPU in $STARPU_PREFIX cannot be used: see config.log])])
SLP_STARPU_HAS([STARPU_USE_CUDA], [starpu_cuda])
SLP_STARPU_HAS([STARPU_SIMGRID], [starpu_simgrid])
AC_COMPUTE_INT([starpu_maxbuffers], [STARPU_NMAXBUFS], [#include <starpu_config.h>], [starpu_maxbuffers=unknown])
CPPFLAGS=$slp_save_CPPFLAGS
LIBS=$slp_save_LIBS
dnl A StarPU that simulates brings a main of its own, which starts the program's under that name: it must be visible.
SIMULATION_CFLAGS=
AS_IF([test "$starpu_simgrid" = yes], [
  AC_DEFINE([SLP_SIMULATION], [1], [Define to 1 if StarPU simulates machines (SimGrid): kernels do not run.])
  SIMULATION_CFLAGS=-Dmain=starpu_main
  SLP_CFLAGS="$SLP_CFLAGS -fvisibility=default"])
AM_CONDITIONAL([SIMULATION], [test "$starpu_simgrid" = yes])
AC_SUBST([SIMULATION_CFLAGS])
AC_SUBST([STARPU_CFLAGS])
AC_SUBST([STARPU_LIBS])
AC_SUBST([STARPU_PREFIX])
])

dnl SLP_STARPU_HAS(MACRO, VARIABLE)
AC_DEFUN([SLP_STARPU_HAS], [
AC_MSG_CHECKING([for $1 in starpu_config.h])
AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <starpu_config.h>
#ifndef $1
#error not defined
#endif]])], [$2=yes], [$2=no])
AC_MSG_RESULT([$$2])
])
