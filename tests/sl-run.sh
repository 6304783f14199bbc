#!/bin/bash
# sl-run.sh: sl-run on a network that MXNet has exported: what it computes, prints and writes, and how it fails.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
data=$srcdir/tests/data

run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy"
says '^\[\[-1\.0590 -0\.6120\]'
says 'float32 \(3, 2\)'
run 0 tools/sl-run "$data/mlp-symbol.json" "$data/mlp-0000.params" -i "data=$data/mlp-x.npy" -o "$tmp/y.npy" --repeat 3 --device cpu:0
says '^3 runs: median [0-9.]+ sec, shortest [0-9.]+ sec, 90 % within [0-9.]+ sec, 99 % within [0-9.]+ sec$'

# Each layer of the network, its calls and places, and all of the time
run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --profile --repeat 5
says '^operation +calls +time +share +GFlop/s +GB/s +of floor +where$'
says "^linear +5 +[0-9.]+ ms +[0-9.]+ %( +[0-9.]+){3}  .*mlp-symbol\.json, node mlp_dense0_fwd"
says '^all +[0-9.]+ ms +[0-9.]+$'
awk '/^operation/ { on = 1; next } /^all/ { exit } on { all += $5 } END { exit !(all > 99 && all < 101) }' "$tmp/out" ||
  fail "the shares of a profile are not 100 %"

# Percentiles for batches of several sizes, from several threads: each makes the runs that are asked for.
run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --benchmark=1,8 --threads 3 --repeat 20 --json "$tmp/json"
says '^ +batch +threads +runs +p50, ms +p90, ms +p99, ms +rows/s$'
says '^ +1 +3 +60( +[0-9.]+){4}$'
says '^ +8 +3 +60( +[0-9.]+){4}$'
valid_json "$tmp/json"
awk '/^ +[0-9]/ { if (!($4 > 0 && $4 <= $5 && $5 <= $6)) exit 1 }' "$tmp/out" || fail "percentiles are not in order"
run 0 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --benchmark --seconds 0.1
says '^ +3 +1 +[0-9]+( +[0-9.]+){4}$'
run 0 tools/sl-run "$data/mlp" --shape 2,32 --benchmark --repeat 3
says '^ +2 +1 +3( +[0-9.]+){4}$'
run 0 tools/sl-run "$data/mlp" --shape 2,32 --profile
run 2 tools/sl-run "$data/mlp" --shape 2,32
complains '--input is missing'
run 2 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --benchmark=1,x
complains 'x'
run 2 tools/sl-run "$data/mlp" --input "$data/mlp-x.npy" --threads 2
complains 'belong to --benchmark'
run 1 tools/sl-run "$data/mlp" --input "$data/lenet-x.npy" --benchmark
complains 'mlp-symbol\.json, node mlp_dense0_fwd'

# The same from raw elements, to raw elements: .npy files of that size have 128 bytes before theirs.
tail -c +129 "$data/mlp-x.npy" >"$tmp/x.raw"
run 0 tools/sl-run "$data/mlp" -i "$tmp/x.raw" -s 3,32 -o "$tmp/y.raw" --imperative
run 0 tools/sl-run "$data/mlp" -i "data=$tmp/x.raw" -s data=3,32 -t data=float32 -o "$tmp/y2.npy"
tail -c +129 "$tmp/y2.npy" | cmp - "$tmp/y.raw" || fail "raw and .npy differ"
cmp "$tmp/y.npy" "$tmp/y2.npy" || fail "two runs differ"

# Of an ONNX model: any of its results and of the values within it, by their names, to files of both kinds.
if grep -q '^#define HAVE_ONNX 1$' config.h; then
  model=$srcdir/tests/fuzz/seeds/onnx/conv.onnx
  given=(-i "x=$tmp/x.raw" -s x=1,2,6,8)
  run 0 tools/sl-run "$model" "${given[@]}" -o "$tmp/one.raw"
  run 0 tools/sl-run "$model" "${given[@]}" -o "y=$tmp/y.raw" -o "d=$tmp/d.npy"
  cmp "$tmp/one.raw" "$tmp/y.raw" || fail "a result by its name is another one"
  [ "$(stat -c %s "$tmp/y.raw")" = 12 ] || fail "y is not the mean of each of 3 channels"
  [ "$(stat -c %s "$tmp/d.npy")" = 344 ] || fail "d is not what y is the mean of, 3 channels of 3 by 6"
  run 1 tools/sl-run "$model" "${given[@]}" -o "z=$tmp/z.npy"
  complains 'has no node or value "z"'
  run 2 tools/sl-run "$model" "${given[@]}" -o "y=$tmp/y.raw" -o "$tmp/d.npy"
  complains 'and their names'
  run 2 tools/sl-run "$model" "${given[@]}" -o "y=$tmp/y.raw" --node c
  complains 'exclude each other'

  # l = SequenceConstruct(x, x), y = Neg(x): the name l is one file for two tensors.
  base64 -d >"$tmp/list.onnx" <<<'CAg6ZQocCgF4CgF4EgFsIhFTZXF1ZW5jZUNvbnN0cnVjdAoLCgF4EgF5IgNOZWcSAWdaDwoBeBIKCggIARIECgIIAmITCgFsEg4iDAoKCggIARIECgIIAmIPCgF5EgoKCAgBEgQKAggCQgQKABAR'
  head -c 8 "$tmp/x.raw" >"$tmp/two.raw"
  run 1 tools/sl-run "$tmp/list.onnx" -i "x=$tmp/two.raw" -s x=2 -o "l=$tmp/l.raw" -o "y=$tmp/y.raw"
  complains '2 results are named, the network gives 3 tensors: a sequence is one for each element'
  run 0 tools/sl-run "$tmp/list.onnx" -i "x=$tmp/two.raw" -s x=2 -o "$tmp/l.raw"
  cmp "$tmp/two.raw" "$tmp/l.raw" || fail "the first element is another one"

  # As a model of eight-bit numbers, which gives nearly the same.
  run 0 tools/sl-run "$model" "${given[@]}" --quantize "$tmp/bytes.onnx"
  run 0 tools/sl-run "$tmp/bytes.onnx" "${given[@]}" -o "y=$tmp/q.raw"
  [ "$(stat -c %s "$tmp/q.raw")" = 12 ] || fail "the quantised model gives another shape"
  run 1 tools/sl-run "$tmp/bytes.onnx" "${given[@]}" --quantize "$tmp/again.onnx"
  complains 'is quantised already'
  run 2 tools/sl-run "$model" "${given[@]}" --quantize "$tmp/bytes.onnx" --benchmark
  complains 'neither runs nor measures'
  run 2 tools/sl-run "$model" "${given[@]}" --quantize "$tmp/bytes.onnx" --calibration most
  complains 'most'
fi

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
run 1 tools/sl-run "$tmp/none"
complains 'none-symbol\.json: No such file'
run 2 tools/sl-run
run 2 tools/sl-run "$data/mlp" -i "$data/mlp-x.npy" --type half
complains 'half'
run 0 tools/sl-run --help
says 'MODEL'
