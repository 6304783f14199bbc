#!/bin/bash
# sl-run.sh: sl-run on a network that MXNet has exported: what it computes, prints and writes, and how it fails.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
data=$srcdir/tests/data

run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy"
says '^\[\[-1\.0590 -0\.6120\]'
says 'float32 \(3, 2\)'
run 0 tools/sl-run "$data/mlp-symbol.json" "$data/mlp-0000.params" -i "data=$data/mlp-x.npy" -o "$tmp/y.npy" --repeat 3 --device cpu:0
says '^3 runs: median [0-9.]+ sec'

# Each layer of the network, its calls and places, and all of the time
run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --profile --repeat 5
says '^operation +calls +time +share +GFlop/s +where$'
says "^linear +5 +[0-9.]+ ms +[0-9.]+ % +[0-9.]+  .*mlp-symbol\.json, node mlp_dense0_fwd"
says '^all +[0-9.]+ ms$'
awk '/^operation/ { on = 1; next } /^all/ { exit } on { all += $5 } END { exit !(all > 99 && all < 101) }' "$tmp/out" ||
  fail "the shares of a profile are not 100 %"

# The same from raw elements, to raw elements: .npy files of that size have 128 bytes before theirs.
tail -c +129 "$data/mlp-x.npy" >"$tmp/x.raw"
run 0 tools/sl-run "$data/mlp" -i "$tmp/x.raw" -s 3,32 -o "$tmp/y.raw" --imperative
run 0 tools/sl-run "$data/mlp" -i "data=$tmp/x.raw" -s data=3,32 -t data=float32 -o "$tmp/y2.npy"
tail -c +129 "$tmp/y2.npy" | cmp - "$tmp/y.raw" || fail "raw and .npy differ"
cmp "$tmp/y.npy" "$tmp/y2.npy" || fail "two runs differ"

run 1 tools/sl-run "$tmp/none" -i "$data/mlp-x.npy"
complains 'none-symbol\.json: cannot be opened'
run 1 tools/sl-run "$data/mlp" -i "$data/lenet-x.npy"
complains 'mlp-symbol\.json, node mlp_dense0_fwd'
run 1 tools/sl-run "$data/mlp" -i "$tmp/x.raw"
complains 'needs --shape'
run 1 tools/sl-run "$data/mlp" -i "$tmp/x.raw" -s 3,31
complains 'has 384 bytes, float32 \(3, 31\) needs 372'
run 1 tools/sl-run "$data/mlp" -i "nobody=$data/mlp-x.npy"
complains 'no variable "nobody"'
run 2 tools/sl-run "$data/mlp"
complains 'no input'
run 2 tools/sl-run
run 2 tools/sl-run "$data/mlp" -i "$data/mlp-x.npy" --type half
complains 'half'
run 0 tools/sl-run --help
says 'MODEL'
