#!/bin/sh
# larger.sh: networks larger than an emulated GPU's memory, or than a limit.  Run by make check-long in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
not_sanitized
tests/emu/test_gpt
tests/emu/test_larger
STARPU_NCPU=0 tests/emu/test_limit
