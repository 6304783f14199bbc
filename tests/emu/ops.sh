#!/bin/sh
# ops.sh: all operations on an emulated GPU against their references, queued, in the fastest of their ways, and with threads
# and blocks in the reverse order, which finds barriers that are missing; with a sanitizer, at once and with each allocation
# the device's own, so that a kernel that leaves it is found.  Run by make check in the build tree; by ops-long.sh with larger
# cases and in all ways.
set -eu
. "$srcdir/tests/emu/common.sh"
export SL_EMU_DEVICES=1 SLP_GPU_CASES="${OPS_CASES:-5000}"
queued() { SL_GPU_AUTOTUNE=1 SL_EMU_JITTER_US=50 tests/emu/test_ops operation; }
at_once() { SL_EMU_ASYNC=0 STARPU_SUBALLOCATOR=0 SL_EMU_ORDER=$1 tests/emu/test_ops operation; }
if [ -n "${ASAN_OPTIONS-}" ]; then
  SLP_GPU_CASES=${OPS_CASES:-300} at_once forward
else
  queued
  at_once backward
  [ -z "${OPS_CASES-}" ] || for seed in 1 2 3; do at_once "random:$seed"; done
fi
