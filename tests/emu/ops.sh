#!/bin/sh
# ops.sh: all operations on an emulated GPU, queued and at once, against their references.  Each allocation is the
# device's own where StarPU's suballocator is off: a kernel that leaves it is found by AddressSanitizer.
# Run by make check in the build tree; by ops-long.sh with larger cases.
set -eu
. "$srcdir/tests/emu/common.sh"
export SL_EMU_DEVICES=1
if [ -z "${ASAN_OPTIONS-}" ]; then
  SLP_GPU_CASES=${OPS_CASES:-1000} SL_EMU_JITTER_US=50 tests/emu/test_ops operation
  at_once=300
fi
SL_EMU_ASYNC=0 STARPU_SUBALLOCATOR=0 SLP_GPU_CASES=${OPS_CASES:-${at_once:-1000}} tests/emu/test_ops operation
