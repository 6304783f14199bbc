dnl SLP_WITH_MPI: MPI, for libstarling-mpi.so, which is loaded where SL_DIST=mpi asks for it.  Nothing else links MPI.
dnl Optional, looked for by default: MPI_CFLAGS and MPI_LIBS, else what pkg-config knows.

AC_DEFUN([SLP_WITH_MPI], [
AC_ARG_WITH([mpi],
  [AS_HELP_STRING([--with-mpi], [several processes over MPI (default: if found)])],
  [], [with_mpi=auto])
have_mpi=no
mpi_name=no
AS_IF([test "$with_mpi" != no], [
  AS_IF([test -n "$MPI_CFLAGS$MPI_LIBS"], [have_mpi=yes mpi_name='as MPI_LIBS says'], [
    for package in mpi-c ompi-c mpich; do
      AS_IF([test $have_mpi = no && $PKG_CONFIG --exists $package],
        [have_mpi=yes mpi_name="$package $($PKG_CONFIG --modversion $package)"
         MPI_CFLAGS=$($PKG_CONFIG --cflags $package) MPI_LIBS=$($PKG_CONFIG --libs $package)])
    done])])
AS_IF([test "$with_mpi$have_mpi" = yesno],
  [AC_MSG_ERROR([--with-mpi needs Open MPI or MPICH (Debian: libopenmpi-dev or libmpich-dev)])])
AC_ARG_VAR([MPI_CFLAGS], [C compiler flags for MPI])
AC_ARG_VAR([MPI_LIBS], [linker flags for MPI])
AM_CONDITIONAL([HAVE_MPI], [test "$have_mpi" = yes])
])
