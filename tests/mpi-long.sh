#!/bin/bash
# mpi-long.sh: all of dist.sh over MPI.  Run by make check-long in the build tree.
DIST_LONG=yes exec "${srcdir:-.}/tests/mpi.sh"
