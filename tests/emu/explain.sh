#!/bin/sh
# explain.sh: what sl_explain says about emulated GPUs.  Run by make check in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
SL_EMU_DEVICES=2 tests/emu/test_explain
