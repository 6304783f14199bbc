#!/bin/bash
# dist-long.sh: all of dist.sh.  Run by make check-long in the build tree.
DIST_LONG=yes exec "$srcdir/tests/emu/dist.sh"
