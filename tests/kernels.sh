#!/bin/bash
# kernels.sh: what CUDA kernels take of a GPU, as its assembler says (build-aux/nvcc-lt): registers for a whole block, or
# the GPU would refuse the launch, which emulated GPUs do not; shared memory that needs no permission; and what is
# spilled.  Run by make check in the build tree, which sets srcdir; left out of builds without nvcc.
. "$srcdir/tests/expect.sh"

mapfile -t said < <(find codelets -name '*.cu.o.ptxas')
[ ${#said[@]} -gt 0 ] || skip "no CUDA kernels in this build"

# Emulated GPUs refuse larger blocks (tests/emu/emu.h).
block=$(sed -n 's/.*SLP_MOST_THREADS = \([0-9]*\).*/\1/p' "$srcdir/codelets/common/gpu.cuh")
[ -n "$block" ] || fail "codelets/common/gpu.cuh does not say how large blocks are"

# A GPU gives a warp its registers in steps of 256, eight for each thread; a multiprocessor has 65536.
awk -v block="$block" '
  /Compiling entry function/ { kernel = $7 " for " $9; kernels++ }
  /Function properties for/ { inner = $NF }
  /bytes spill stores/ && $5 + $9 > 0 { print "spilled: " inner " " $5 " bytes" }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    registers = substr($0, RSTART + 5, RLENGTH - 5) + 0
    shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
    if (int((registers + 7) / 8) * 8 * block > 65536) print "FAIL: " kernel ": " registers " registers a thread"
    if (shared > 48 * 1024) print "FAIL: " kernel ": " shared " bytes of shared memory"
    if (registers > most) most = registers
    if (shared > largest) largest = shared
  }
  END { print kernels " kernels: at most " most " registers a thread, " largest " bytes of shared memory" }' \
  "${said[@]}" >"$tmp/out"
cat "$tmp/out"
! grep -q '^FAIL' "$tmp/out" || fail "a GPU would not launch these"
grep -q '^[1-9][0-9]* kernels' "$tmp/out" || fail "nothing is known of any kernel"
