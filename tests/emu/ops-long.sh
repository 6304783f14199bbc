#!/bin/sh
# ops-long.sh: ops.sh with larger cases.  Run by make check-long in the build tree.
OPS_CASES=40000 exec "$srcdir/tests/emu/ops.sh"
