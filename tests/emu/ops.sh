#!/bin/sh
# ops.sh: all operations on an emulated GPU, queued and at once, against their references.  Each allocation is the
# device's own where StarPU's suballocator is off: a kernel that leaves it is found by AddressSanitizer.
# Run by make check in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
export SLP_GPU_CASES=5000 SL_EMU_DEVICES=1
[ -n "${ASAN_OPTIONS-}" ] || SL_EMU_JITTER_US=50 tests/emu/test_ops operation
SL_EMU_ASYNC=0 STARPU_SUBALLOCATOR=0 SLP_GPU_CASES=1000 tests/emu/test_ops operation
