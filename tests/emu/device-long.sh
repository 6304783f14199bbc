#!/bin/sh
# device-long.sh: what device.sh leaves out: steps of ResNet-18 without waits, threads in other orders, failures on GPUs that
# work synchronously.  Run by make check-long in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
not_sanitized
SLP_LONG=1 tests/emu/test_waits
for order in backward random; do
  export SL_EMU_ORDER=$order
  tests/emu/test_convolutions
  tests/emu/test_halves
done
unset SL_EMU_ORDER
SL_EMU_ASYNC=0 tests/emu/test_parallel
