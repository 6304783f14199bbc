#!/bin/sh
# graphs.sh: CUDA graphs on emulated GPUs.  Run by make check in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
not_sanitized
tests/emu/test_graphs
