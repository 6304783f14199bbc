dnl SLP_WITH_ONEDNN, SLP_WITH_OPENBLAS: the CPU libraries.  Both are optional and looked for by default.

dnl SLP_CHECK_LINK(NAME, INCLUDES, BODY, VARIABLE-OF-RESULT) with the CFLAGS and LIBS of NAME
AC_DEFUN([SLP_CHECK_LINK], [
slp_save_CPPFLAGS=$CPPFLAGS
slp_save_LIBS=$LIBS
CPPFLAGS="$CPPFLAGS $$1_CFLAGS"
LIBS="$$1_LIBS $LIBS"
AC_LINK_IFELSE([AC_LANG_PROGRAM([$2], [$3])], [$4=yes], [$4=no])
CPPFLAGS=$slp_save_CPPFLAGS
LIBS=$slp_save_LIBS
])

AC_DEFUN([SLP_WITH_ONEDNN], [
AC_ARG_WITH([onednn],
  [AS_HELP_STRING([--with-onednn@<:@=DIR@:>@], [use oneDNN 2.6 or later on CPUs (default: if found)])],
  [], [with_onednn=auto])
have_onednn=no
ONEDNN_CFLAGS=
ONEDNN_LIBS=
AS_IF([test "$with_onednn" != no], [
  AC_MSG_CHECKING([for oneDNN 2.6 or later])
  ONEDNN_LIBS=-ldnnl
  AS_CASE([$with_onednn], [yes|auto], [], [
    ONEDNN_CFLAGS="-isystem $with_onednn/include"
    for dir in "$with_onednn/lib64" "$with_onednn/lib"; do
      AS_IF([test -d "$dir"], [ONEDNN_LIBS="-L$dir -Wl,-rpath,$dir $ONEDNN_LIBS"])
    done])
  SLP_CHECK_LINK([ONEDNN], [[#include <dnnl.h>
#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6)
#error too old
#endif]], [[return dnnl_version() == 0;]], [have_onednn])
  AS_IF([test "$have_onednn" = yes], [
    slp_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $ONEDNN_CFLAGS"
    AC_COMPUTE_INT([slp_v], [DNNL_VERSION_MAJOR * 1000000 + DNNL_VERSION_MINOR * 1000 + DNNL_VERSION_PATCH],
      [#include <dnnl.h>], [slp_v=0])
    CPPFLAGS=$slp_save_CPPFLAGS
    onednn_version=$((slp_v / 1000000)).$((slp_v / 1000 % 1000)).$((slp_v % 1000))
    AC_MSG_RESULT([$onednn_version])
    AC_DEFINE([HAVE_ONEDNN], [1], [Define to 1 if oneDNN (dnnl.h) can be used.])], [
    AC_MSG_RESULT([no])
    ONEDNN_CFLAGS= ONEDNN_LIBS=
    AS_IF([test "$with_onednn" != auto], [AC_MSG_ERROR([--with-onednn: no usable dnnl.h and libdnnl (see config.log)])])])])
AC_SUBST([ONEDNN_CFLAGS])
AC_SUBST([ONEDNN_LIBS])
])

AC_DEFUN([SLP_WITH_OPENBLAS], [
AC_ARG_WITH([openblas],
  [AS_HELP_STRING([--with-openblas], [use OpenBLAS on CPUs (default: if found)])],
  [], [with_openblas=auto])
have_openblas=no
AS_IF([test "$with_openblas" != no], [
  PKG_CHECK_MODULES([OPENBLAS], [openblas], [openblas_version=$($PKG_CONFIG --modversion openblas)],
    [OPENBLAS_CFLAGS= OPENBLAS_LIBS=-lopenblas openblas_version="(version unknown)"])
  dnl Debian has several flavours of OpenBLAS, each in a folder of its own that pkg-config names.
  OPENBLAS_CFLAGS=$(echo "$OPENBLAS_CFLAGS" | $SED 's/-I */-isystem /g')
  AC_MSG_CHECKING([whether OpenBLAS links])
  SLP_CHECK_LINK([OPENBLAS], [[#include <cblas.h>]],
    [[openblas_set_num_threads(1); return cblas_sdot(0, 0, 1, 0, 1) != 0;]], [have_openblas])
  AC_MSG_RESULT([$have_openblas])
  AS_IF([test "$have_openblas" = yes],
    [AC_DEFINE([HAVE_OPENBLAS], [1], [Define to 1 if OpenBLAS (cblas.h) can be used.])],
    [test "$with_openblas" != auto], [AC_MSG_ERROR([--with-openblas: no usable cblas.h and libopenblas (see config.log)])],
    [OPENBLAS_CFLAGS= OPENBLAS_LIBS=])])
AC_SUBST([OPENBLAS_CFLAGS])
AC_SUBST([OPENBLAS_LIBS])
])
