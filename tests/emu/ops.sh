#!/bin/sh
# ops.sh: all operations on an emulated GPU against their references; with a sanitizer, at once and with each allocation the
# device's own, so that a kernel that leaves it is found.  Run by make check in the build tree; by ops-long.sh with larger cases
# and in both ways.
set -eu
. "$srcdir/tests/emu/common.sh"
export SL_EMU_DEVICES=1
queued() { SLP_GPU_CASES=${OPS_CASES:-300} SL_EMU_JITTER_US=50 tests/emu/test_ops operation; }
at_once() { SL_EMU_ASYNC=0 STARPU_SUBALLOCATOR=0 SLP_GPU_CASES=$1 tests/emu/test_ops operation; }
if [ -n "${ASAN_OPTIONS-}" ]; then
  at_once "${OPS_CASES:-300}"
else
  queued
  [ -z "${OPS_CASES-}" ] || at_once "$OPS_CASES"
fi
