#!/bin/sh
# device.sh: the emulated GPUs themselves, and the engine on two of them: transfers that are counted, failures; caches
# of attention and the edges of types on one.
# Run by make check in the build tree.
set -eu
. "$srcdir/tests/emu/common.sh"
tests/emu/test_device
for order in forward backward random; do SL_EMU_ORDER=$order tests/emu/test_threads; done
tests/emu/test_convolutions
tests/emu/test_counts
SL_EMU_DEVICES=1 tests/emu/test_edges
SL_NVML=$PWD/tests/emu/.libs/libnvml.so tests/emu/test_energy
tests/emu/test_gather
tests/emu/test_halves
tests/emu/test_heads
tests/emu/test_kernels
tests/emu/test_last
tests/emu/test_lt
tests/emu/test_norms
tests/emu/test_compiled
STARPU_NCPU=0 SL_EMU_DEVICES=1 tests/emu/test_cache
tests/emu/test_parallel
tests/emu/test_state_device
[ -n "${ASAN_OPTIONS-}" ] || tests/emu/test_waits
