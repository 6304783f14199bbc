dnl SLP_COMPILER: what the compiler can do, and the flags of our own code.
dnl Sets SLP_CFLAGS (all C files), SLP_CODELET_CFLAGS (numerical C files, on top) and QUICK_LDFLAGS (what only tests use).
AC_DEFUN([SLP_COMPILER], [
AC_REQUIRE([AC_PROG_CC])

AC_ARG_ENABLE([werror],
  [AS_HELP_STRING([--enable-werror], [treat warnings in C files as errors])],
  [], [enable_werror=no])
AC_ARG_ENABLE([sanitizers],
  [AS_HELP_STRING([--enable-sanitizers@<:@=thread@:>@],
    [build with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer (for make check-threads)])],
  [], [enable_sanitizers=no])
AC_ARG_ENABLE([native],
  [AS_HELP_STRING([--enable-native], [compile for this machine's CPU (default: any CPU, with variants chosen at run time)])],
  [], [enable_native=no])

SLP_CFLAGS=
SLP_CODELET_CFLAGS=
for flag in -std=gnu11 -Wall -Wextra -fvisibility=hidden; do
  SLP_CFLAG([$flag], [SLP_CFLAGS])
done
dnl Since gcc 15 the initialiser of a union clears its first member alone.
SLP_CFLAG([-fzero-init-padding-bits=unions], [SLP_CFLAGS])
dnl Messages name places by their paths from the top of the source, wherever that is.
SLP_CFLAG([-fmacro-prefix-map=$srcdir/=], [SLP_CFLAGS])
dnl What is no kernel takes a quarter less time to compile so than with -O3, and is as fast.
AS_IF([test "$slp_optimize" != no], [
  for flag in -O2 -ftree-vectorize -fvect-cost-model=dynamic; do
    SLP_CFLAG([$flag], [SLP_CFLAGS])
  done
  SLP_CODELET_CFLAGS=-O3], [
  dnl Below -O2 clang vectorises nothing, and warns of each loop that asks for it.  (gcc takes any -Wno-x.)
  slp_pass_failed=
  SLP_CFLAG([-Wpass-failed], [slp_pass_failed])
  AS_IF([test -n "$slp_pass_failed"], [SLP_CODELET_CFLAGS=" -Wno-pass-failed"])])
dnl Not -ffast-math: results must not depend on how a compiler reorders sums.
for flag in -fno-math-errno -fno-trapping-math; do
  SLP_CFLAG([$flag], [SLP_CODELET_CFLAGS])
done
AS_IF([test "$enable_werror" != no], [SLP_CFLAGS="$SLP_CFLAGS -Werror"])
AS_IF([test "$enable_native" != no], [SLP_CFLAG([-march=native], [SLP_CFLAGS])])
AS_IF([test "$enable_sanitizers" != no], [
  AS_CASE([$enable_sanitizers],
    [thread], [slp_san="-fsanitize=thread -fno-omit-frame-pointer -DSLP_ONE_THREAD"],
    [slp_san="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
  AC_CACHE_CHECK([whether $CC links with sanitizers], [slp_cv_sanitizers], [
    slp_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $slp_san"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [slp_cv_sanitizers=yes], [slp_cv_sanitizers=no])
    CFLAGS=$slp_save_CFLAGS])
  AS_IF([test "$slp_cv_sanitizers" = no],
    [AC_MSG_ERROR([--enable-sanitizers: $CC cannot link a program with $slp_san])])
  CFLAGS="$CFLAGS $slp_san"
  CXXFLAGS="$CXXFLAGS $slp_san"
  dnl Clang has checks whose functions are C++; what is compiled as C++ is linked as C.  And it objects to NULL + 0, which
  dnl kernels compute of tensors without elements.
  AC_LANG_PUSH([C++])
  AC_MSG_CHECKING([whether $CXX takes -fno-sanitize=function])
  slp_save_CXXFLAGS=$CXXFLAGS
  CXXFLAGS="$CXXFLAGS -fno-sanitize=function"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
    [AC_MSG_RESULT([yes])
     CFLAGS="$CFLAGS -fno-sanitize=pointer-overflow"
     CXXFLAGS="$CXXFLAGS -fno-sanitize=pointer-overflow"],
    [AC_MSG_RESULT([no]); CXXFLAGS=$slp_save_CXXFLAGS])
  AC_LANG_POP([C++])])
AM_CONDITIONAL([SANITIZERS], [test "$enable_sanitizers" != no])

dnl gold takes 0.12 s of processor time for a test program where ld takes 0.29 s, and there are more than a hundred.  Without
dnl debugging information gold takes half as long, and writes 13 instead of 32 MB (measured with CUDA).
QUICK_LDFLAGS=
AS_IF([test "$enable_sanitizers" = no], [
  AC_CACHE_CHECK([whether $CC links with gold], [slp_cv_gold], [
    slp_save_LDFLAGS=$LDFLAGS
    LDFLAGS="$LDFLAGS -fuse-ld=gold"
    AC_LINK_IFELSE([AC_LANG_PROGRAM], [slp_cv_gold=yes], [slp_cv_gold=no])
    LDFLAGS=$slp_save_LDFLAGS])
  AS_IF([test "$slp_cv_gold" = yes], [QUICK_LDFLAGS="-fuse-ld=gold -Wl,-S"])])
AC_SUBST([QUICK_LDFLAGS])

SLP_HARDEN
AC_OPENMP
AC_SUBST([SLP_CFLAGS])
AC_SUBST([SLP_CODELET_CFLAGS])

dnl An instrumented variant resolver would run before the sanitizer's run time is up.
AS_IF([test "$enable_sanitizers" != no], [slp_cv_target_clones=no])
dnl clang up to 17 takes levels but chooses the variant by the maker of the CPU (an illegal instruction at worst); it does not
dnl know them in __builtin_cpu_supports, either.  It chooses right by features, of which AVX512VL implies AVX-512's base, AVX2
dnl and FMA.
AC_CACHE_CHECK([for __attribute__((target_clones))], [slp_cv_target_clones], [
  SLP_TARGET_CLONES([arch=], [x86-64-v4], [x86-64-v3], [slp_cv_target_clones=yes],
    [SLP_TARGET_CLONES([], [avx512vl], [fma], [slp_cv_target_clones=features], [slp_cv_target_clones=no])])])
AH_TEMPLATE([SLP_TARGETS], [Define to the variants in which functions are compiled, if the compiler can choose among them.])
AH_TEMPLATE([SLP_TARGET_512], [Define to the one with AVX-512, as __builtin_cpu_supports names it.])
AH_TEMPLATE([SLP_TARGET_256], [Define to the one with AVX and FMA, as __builtin_cpu_supports names it.])
AS_CASE([$slp_cv_target_clones],
  [yes], [
    AC_DEFINE([SLP_TARGETS], ["arch=x86-64-v4", "arch=x86-64-v3", "default"])
    AC_DEFINE([SLP_TARGET_512], ["x86-64-v4"])
    AC_DEFINE([SLP_TARGET_256], ["x86-64-v3"])],
  [features], [
    AC_DEFINE([SLP_TARGETS], ["avx512vl", "fma", "default"])
    AC_DEFINE([SLP_TARGET_512], ["avx512vl"])
    AC_DEFINE([SLP_TARGET_256], ["fma"])])
])

dnl SLP_TARGET_CLONES(PREFIX, BEST, SECOND, IF-YES, IF-NO): whether functions can be compiled for both and the baseline at once.
AC_DEFUN([SLP_TARGET_CLONES], [
  slp_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror"
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
    __attribute__((target_clones("$1$2", "$1$3", "default")))
    void add(float *y, const float *x, int n);
    __attribute__((target_clones("$1$2", "$1$3", "default")))
    void add(float *y, const float *x, int n) { for (int i = 0; i < n; i++) y[i] += x[i]; }
    int main(void)
    {
      float y[9] = {0}, x[9] = {0};
      add(y, x, 9);
      return __builtin_cpu_supports("$2") && __builtin_cpu_supports("$3") ? 3 : 4;
    }]])],
    [CFLAGS=$slp_save_CFLAGS
     $4],
    [CFLAGS=$slp_save_CFLAGS
     $5])
])

dnl SLP_HARDEN: what makes a fault of memory harder to use, as far as the compiler and the linker know it; sanitizers find
dnl more, and need room for themselves.  Sets SLP_HARDENING (flags of the compiler) and SLP_LDFLAGS, appends to SLP_CFLAGS.
AC_DEFUN([SLP_HARDEN], [
AC_ARG_ENABLE([hardening],
  [AS_HELP_STRING([--disable-hardening], [build without stack protector, checked string functions, protected returns
    and immediate binding])],
  [], [enable_hardening=yes])
SLP_HARDENING=
SLP_LDFLAGS=
AS_IF([test "$enable_hardening" != no && test "$enable_sanitizers" = no], [
  for flag in -fstack-protector-strong -fstack-clash-protection -fcf-protection; do
    SLP_CFLAG([$flag], [SLP_HARDENING])
  done
  SLP_FORTIFY
  for flag in -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack; do
    SLP_LDFLAG([$flag], [SLP_LDFLAGS])
  done])
SLP_CFLAGS=$SLP_CFLAGS$SLP_HARDENING
AC_SUBST([SLP_HARDENING])
AC_SUBST([SLP_LDFLAGS])
])

dnl The highest level that the C library has; it warns where nothing is optimised.
AC_DEFUN([SLP_FORTIFY], [
slp_save_CFLAGS=$CFLAGS
for level in 3 2; do
  AC_MSG_CHECKING([whether $CC checks string functions (_FORTIFY_SOURCE=$level)])
  CFLAGS="$slp_save_CFLAGS $SLP_CFLAGS -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$level"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <string.h>
#ifndef __USE_FORTIFY_LEVEL
#error not glibc
#elif __USE_FORTIFY_LEVEL < $level
#error not this level
#endif]])], [slp_fortify=yes], [slp_fortify=no])
  AC_MSG_RESULT([$slp_fortify])
  AS_IF([test $slp_fortify = yes], [
    SLP_HARDENING="$SLP_HARDENING -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$level"
    break])
done
CFLAGS=$slp_save_CFLAGS
])

dnl SLP_LDFLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if programs can be linked with it.
AC_DEFUN([SLP_LDFLAG], [
  slp_save_LDFLAGS=$LDFLAGS
  LDFLAGS="$LDFLAGS $1"
  AC_MSG_CHECKING([whether $CC links with $1])
  AC_LINK_IFELSE([AC_LANG_PROGRAM], [AC_MSG_RESULT([yes]); $2="$$2 $1"], [AC_MSG_RESULT([no])])
  LDFLAGS=$slp_save_LDFLAGS
])

dnl SLP_CFLAG(FLAG, VARIABLE): appends FLAG to VARIABLE if the C compiler takes it silently.
AC_DEFUN([SLP_CFLAG], [
  slp_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_MSG_CHECKING([whether $CC takes $1])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
    [AC_MSG_RESULT([yes]); $2="$$2 $1"], [AC_MSG_RESULT([no])])
  CFLAGS=$slp_save_CFLAGS
])

dnl SLP_PATH_FLAG(VARIABLE, FLAG, DIR): appends FLAG DIR unless DIR is searched anyway.
AC_DEFUN([SLP_PATH_FLAG], [
  AS_CASE([$3],
    [''|/usr/include|/usr/lib|/usr/lib64|/usr/lib/*-linux-gnu|/usr/lib/*-linux-gnu/], [],
    [$1="$$1 $2$3"])
])
