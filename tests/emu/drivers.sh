#!/bin/bash
# drivers.sh: models/parallel and models/hybrid on an emulated GPU.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized
export SL_EMU_DEVICES=1 SL_EMU_STATS=1
number='[0-9.]+'
# launches: of all kernels that the last run had on gpu:0
launches() { sed -n 's/^emulated gpu:0: launches=\([0-9]*\).*/\1/p' "$tmp/err"; }
used_the_gpu() { [ "$(launches)" -gt 0 ] || fail "no kernel ran on the GPU"; }

echo "--- parallel"
run 0 tests/emu/parallel --size 64 --repeat 3 --products 2 --json "$tmp/parallel.json"
used_the_gpu
says "^Run on (CPU|cpu:0)\\. time: $number sec\$"
says "^Then run on (GPU|gpu:0)\\. time: $number sec\$"
says "^Run on both (CPU|cpu:0) and (GPU|gpu:0) in parallel\\. time: $number sec\$"
says "^Run and copy in parallel\\. time: $number sec\$"
run 0 tests/emu/parallel --size 16 graphs
says '^diamond: the serial result'
says '^random: the serial result'

echo "--- hybrid"
run 0 tests/emu/hybrid --device gpu:0 --repeat 5 --output "$tmp" --json "$tmp/hybrid.json"
used_the_gpu
says "^after hybridizing: $number sec\$"
contains "$tmp/hybrid.json" '"difference": 0\.0'
