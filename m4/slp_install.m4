dnl SLP_INSTALL: how what is installed finds its libraries, without this build tree and without the folder that StarPU was
dnl built in.  Needs LT_INIT and SLP_WITH_STARPU.  Programs look beside themselves, so that an install can be moved; a
dnl StarPU that the system does not search for is installed with the library, in a folder of its own.
AC_DEFUN([SLP_INSTALL], [
AC_ARG_ENABLE([debug-split],
  [AS_HELP_STRING([--disable-debug-split], [install libraries and programs with their debugging information in them])],
  [], [enable_debug_split=yes])
AC_CHECK_TOOL([OBJCOPY], [objcopy], [:])
AC_SUBST([DEBUG_SPLIT], [$enable_debug_split])

slp_libdir=$(SLP_EXPAND([$libdir]))
slp_bindir=$(SLP_EXPAND([$bindir]))
BIN_TO_LIB=$(realpath -m --relative-to="$slp_bindir" "$slp_libdir" 2>/dev/null || echo ../lib)
AC_SUBST([BIN_TO_LIB])
LIB_TO_INCLUDE=$(realpath -m --relative-to="$slp_libdir" "$(SLP_EXPAND([$includedir]))" 2>/dev/null || echo ../include)
AC_SUBST([LIB_TO_INCLUDE])

dnl Programs of a distribution have no run paths.
INSTALL_RUNPATH=
AS_CASE([$slp_libdir], [/usr/lib|/usr/lib64|/usr/lib/*-linux-gnu|/lib|/lib/*], [],
  [INSTALL_RUNPATH="-Wl,-rpath,'\$\$ORIGIN/$BIN_TO_LIB'"])
AC_SUBST([INSTALL_RUNPATH])

dnl Where the dynamic linker does not look, programs that use the library are told where it is.
PC_RUNPATH=
SLP_DEFAULT_LIBDIR=yes
AS_CASE([" $sys_lib_dlsearch_path_spec "], [*" $slp_libdir "*], [],
  [PC_RUNPATH=' -Wl,-rpath,${libdir}' SLP_DEFAULT_LIBDIR=no])
AC_SUBST([PC_RUNPATH])
AC_SUBST([SLP_DEFAULT_LIBDIR])

STARPU_SONAME=
AS_CASE([$starpu_libdir], [/usr/lib|/usr/lib64|/usr/lib/*-linux-gnu], [],
  [AS_IF([test -f "$starpu_libdir/lib$starpu_module.so"],
    [STARPU_SONAME=$(${OBJDUMP-objdump} -p "$starpu_libdir/lib$starpu_module.so" | $SED -n 's/^ *SONAME *//p')])])
AC_SUBST([STARPU_SONAME])
STARPU_LIBDIR=$starpu_libdir
AC_SUBST([STARPU_LIBDIR])
AC_SUBST([starpu_module])
])

dnl A folder of configure, as the Makefile will have it; in a command substitution
AC_DEFUN([SLP_EXPAND], [test "$prefix" != NONE || prefix=$ac_default_prefix
  test "$exec_prefix" != NONE || exec_prefix=$prefix
  slp_folder=$1
  eval "slp_folder=\"$slp_folder\""
  eval "echo \"$slp_folder\""])
