dnl SLP_WITH_ONNX: protobuf-c, with which ONNX models are written.  Optional, looked for by default.

AC_DEFUN([SLP_WITH_ONNX], [
AC_ARG_WITH([onnx],
  [AS_HELP_STRING([--with-onnx], [write ONNX models, through protobuf-c (default: if found)])],
  [], [with_onnx=auto])
have_onnx=no
AS_IF([test "$with_onnx" != no], [
  PKG_CHECK_MODULES([PROTOBUF_C], [libprotobuf-c >= 1.3], [have_onnx=yes], [have_onnx=no])
  AC_PATH_PROG([PROTOC_C], [protoc-c])
  AS_IF([test -z "$PROTOC_C"], [have_onnx=no])])
AS_IF([test "$with_onnx$have_onnx" = yesno],
  [AC_MSG_ERROR([--with-onnx needs protobuf-c and its compiler (Debian: libprotobuf-c-dev, protobuf-c-compiler)])])
AS_IF([test "$have_onnx" = yes],
  [AC_DEFINE([HAVE_ONNX], [1], [Define to 1 if ONNX models can be written.])],
  [PROTOBUF_C_CFLAGS= PROTOBUF_C_LIBS=])
AC_SUBST([PROTOC_C])
AM_CONDITIONAL([HAVE_ONNX], [test "$have_onnx" = yes])
])
