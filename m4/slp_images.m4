dnl SLP_WITH_IMAGES: libpng and libjpeg, with which folders of images are read.  Optional, looked for by default.

AC_DEFUN([SLP_WITH_IMAGES], [
AC_ARG_WITH([png],
  [AS_HELP_STRING([--with-png], [read PNG images, through libpng (default: if found)])], [], [with_png=auto])
have_png=no
AS_IF([test "$with_png" != no], [PKG_CHECK_MODULES([PNG], [libpng >= 1.6], [have_png=yes], [have_png=no])])
AS_IF([test "$with_png$have_png" = yesno], [AC_MSG_ERROR([--with-png needs libpng (Debian: libpng-dev)])])
AS_IF([test "$have_png" = yes],
  [AC_DEFINE([HAVE_PNG], [1], [Define to 1 if PNG images can be read.])], [PNG_CFLAGS= PNG_LIBS=])
AC_ARG_WITH([jpeg],
  [AS_HELP_STRING([--with-jpeg], [read JPEG images, through libjpeg (default: if found)])], [], [with_jpeg=auto])
have_jpeg=no
AS_IF([test "$with_jpeg" != no], [PKG_CHECK_MODULES([JPEG], [libjpeg], [have_jpeg=yes], [have_jpeg=no])])
AS_IF([test "$with_jpeg$have_jpeg" = yesno], [AC_MSG_ERROR([--with-jpeg needs libjpeg (Debian: libjpeg-dev)])])
AS_IF([test "$have_jpeg" = yes],
  [AC_DEFINE([HAVE_JPEG], [1], [Define to 1 if JPEG images can be read.])], [JPEG_CFLAGS= JPEG_LIBS=])
AM_CONDITIONAL([HAVE_PNG], [test "$have_png" = yes])
AM_CONDITIONAL([HAVE_JPEG], [test "$have_jpeg" = yes])
])
