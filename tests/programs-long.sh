#!/bin/sh
# programs-long.sh: test programs with the cases that make check leaves out: every network of the zoo, large cases of integer
# operations.  Run by make check-long in the build tree.
set -eu
export SLP_LONG=1
for program in test_types test_zoo; do tests/$program; done
