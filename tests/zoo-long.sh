#!/bin/sh
# zoo-long.sh: a network of each family of the zoo learns.  Run by make check-long in the build tree.
set -eu
ZOO_LONG=yes exec tests/test_zoo
