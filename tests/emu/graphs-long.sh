#!/bin/sh
# graphs-long.sh: CUDA graphs on emulated GPUs whose kernels are late, ResNet-18 too.  Run by make check-long in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
not_sanitized
SLP_LONG=1 SL_EMU_JITTER_US=200 tests/emu/test_graphs bits
SLP_LONG=1 tests/emu/test_graphs launch
