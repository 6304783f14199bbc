#!/bin/bash
# mpi.sh: dist.sh over MPI, in the short runs without what the transport has no part in, for the mpirun on PATH or in MPIRUN,
# Open MPI's or MPICH's.  Run by make check in the build tree.
srcdir=${srcdir:-.}
export MPIRUN=${MPIRUN:-mpirun}
if [ ! -f .libs/libstarling-mpi.so ]; then echo "SKIP: built without MPI"; exit 77; fi
if ! command -v "$MPIRUN" >/dev/null; then echo "SKIP: no $MPIRUN"; exit 77; fi
DIST_LAUNCH=$srcdir/tests/mpi-launch exec "$srcdir/tests/dist.sh"
