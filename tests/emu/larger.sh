#!/bin/sh
# larger.sh: a network larger than an emulated GPU's memory.  Run by make check-long in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
not_sanitized
tests/emu/test_larger
