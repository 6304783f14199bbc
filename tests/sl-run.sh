#!/bin/sh
# sl-run.sh: sl-run on a network that MXNet has exported: what it computes, prints and writes, and how it fails.
# Run by make check in the build tree.
set -eu
export LC_ALL=C
data=${srcdir:-.}/tests/data
run=tools/sl-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

fail()
{
  echo "FAIL: $*"
  sed 's/^/  | /' "$tmp/out" "$tmp/err"
  failures=$((failures + 1))
}

# try STATUS ARGUMENTS...
try()
{
  expected=$1
  shift
  status=0
  "$run" "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
  if [ "$status" -eq "$expected" ]; then echo "ok: sl-run $*"; else fail "sl-run $*: exit status $status, not $expected"; fi
}
says() { grep -Eq -- "$1" "$tmp/out" || fail "nothing printed matches: $1"; }
complains() { grep -Eq -- "$1" "$tmp/err" || fail "no message matches: $1"; }

try 0 "$data/mlp" --input "$data/mlp-x.npy"
says '^\[\[-1\.0590 -0\.6120\]'
says 'float32 \(3, 2\)'
try 0 "$data/mlp-symbol.json" "$data/mlp-0000.params" -i "data=$data/mlp-x.npy" -o "$tmp/y.npy" --repeat 3 --device cpu:0
says '^3 runs: median [0-9.]+ sec'

# The same from raw elements, to raw elements: .npy files of that size have 128 bytes before theirs.
tail -c +129 "$data/mlp-x.npy" >"$tmp/x.raw"
try 0 "$data/mlp" -i "$tmp/x.raw" -s 3,32 -o "$tmp/y.raw" --imperative
try 0 "$data/mlp" -i "data=$tmp/x.raw" -s data=3,32 -t data=float32 -o "$tmp/y2.npy"
tail -c +129 "$tmp/y2.npy" | cmp - "$tmp/y.raw" || fail "raw and .npy differ"
cmp "$tmp/y.npy" "$tmp/y2.npy" || fail "two runs differ"

try 1 "$tmp/none" -i "$data/mlp-x.npy"
complains 'none-symbol\.json: cannot be opened'
try 1 "$data/mlp" -i "$data/lenet-x.npy"
complains 'mlp-symbol\.json, node mlp_dense0_fwd'
try 1 "$data/mlp" -i "$tmp/x.raw"
complains 'needs --shape'
try 1 "$data/mlp" -i "$tmp/x.raw" -s 3,31
complains 'has 384 bytes, float32 \(3, 31\) needs 372'
try 1 "$data/mlp" -i "nobody=$data/mlp-x.npy"
complains 'no variable "nobody"'
try 2 "$data/mlp"
complains 'no input'
try 2
try 2 "$data/mlp" -i "$data/mlp-x.npy" --type half
complains 'half'
try 0 --help
says 'MODEL'
exit $((failures > 0))
