#!/bin/bash
# drivers.sh: the drivers from end to end, on a few real images: what they print and write, how they fail, how they
# stop, and that several devices and equal seeds compute the same; drivers-long.sh has the rest.  Run by make check in the
# build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
lenet=models/lenet
async=models/async
hybrid=models/hybrid
mlp=models/mlp

number='[0-9]+\.[0-9]+'

echo "--- help, usage (tests/usage.sh tries more)"
for driver in "$lenet" "$async" "$hybrid" "$mlp"; do
  run 0 "$driver" --help
  says '--device=LIST'
  says 'Exit status'
done
for mistake in --epochs=0 --batch-size=1x --lr=nan --plot=curve.gif; do
  run 2 "$mlp" "$mistake"
  complains "${mistake%%=*}"
done
run 2 "$mlp" --mode=lazy
complains 'must be eager, hybrid or step'
run 2 "$mlp" --dtype=fp8
complains 'must be fp32, tf32, bf16 or fp16'
run 2 "$lenet" --dtype=fp16
complains 'scales losses, which --hybrid has'
run 2 "$lenet" --device cpu:0,cpu:1 --batch-size 255
complains '255 rows cannot be split equally over 2 devices'
run 2 "$lenet" --device cpu:0,cpu:1 --hybrid
complains 'name one device only'

echo "--- errors at run time"
run 1 "$lenet" --data "$tmp/nowhere"
complains "$tmp/nowhere"
run 1 "$lenet" --device gpu:99
complains 'gpu:99 does not exist'
run 1 "$lenet" --device cpu:0,cpu:1 --limit 1
complains 'too few for 2 devices'
run 1 "$lenet" --json "$tmp/nowhere/results.json"
complains "$tmp/nowhere/results.json"
needs_space "$lenet" --limit 8 --epochs 1 --quiet --json

echo "--- the parts"
run 0 "$lenet" --demo --device cpu:0,cpu:1
for title in 'b1 weight:' 'b1 grad:' 'before allreduce:' 'after allreduce:' 'load into \[cpu:0, cpu:1\]' 'output:'; do
  says "$title"
done
[ "$(grep -Ec '^\[\[3\.?,? *3\.?\]\]' "$tmp/out")" -eq 2 ] || fail "allreduce of 1 and 2 is not 3 on both devices"
says '\(?3, 4\)?'
run 1 "$lenet" --demo --device cpu:0-3
complains '6 rows cannot be split equally over 4 devices'

echo "--- training"
run 0 "$lenet" --device cpu:0 --limit 600 --batch-size 100 --epochs 2 --json "$tmp/one.json"
says '^running on: \[cpu:0\]$'
says "^epoch 1, time $number sec, test acc 0\\.[0-9][0-9]\$"
says "^epoch 2, time $number sec, test acc 0\\.[0-9][0-9]\$"
says "^test acc: 0\\.[0-9][0-9], $number sec/epoch on \[cpu:0\]\$"
[ "$(wc -l <"$tmp/out")" -eq 4 ] || fail "not four lines"
[ ! -s "$tmp/err" ] || fail "messages though all went well"
valid_json "$tmp/one.json"
contains "$tmp/one.json" '"train_samples": 600'
contains "$tmp/one.json" '"interrupted": false'
[ "$(values "$tmp/one.json" train_loss | wc -l)" -eq 2 ] || fail "not two losses"
run 0 "$lenet" --device cpu:0 --limit 64 --epochs 1 --json -
cp "$tmp/out" "$tmp/stdout.json"
valid_json "$tmp/stdout.json"
complains '^running on: \[cpu:0\]$'
run 0 "$lenet" --limit 64 --epochs 1 --quiet
if [ -s "$tmp/out" ] || [ -s "$tmp/err" ]; then fail "not quiet"; fi
run 0 "$lenet" --limit 64 --epochs 1 --stats
complains 'ops [0-9]+ in [0-9]+ tasks'

echo "--- equal seeds, equal bits; two devices, equal curves"
run 0 "$lenet" --device cpu:0 --limit 600 --batch-size 100 --epochs 2 --quiet --json "$tmp/again.json"
timeless "$tmp/one.json" >"$tmp/a"
timeless "$tmp/again.json" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "the same seed gives other numbers: $(diff "$tmp/a" "$tmp/b")"
run 0 "$lenet" --device cpu:0,cpu:1 --limit 600 --batch-size 100 --epochs 2 --json "$tmp/two.json"
says '^running on: \[cpu:0, cpu:1\]$'
values "$tmp/one.json" train_loss >"$tmp/a"
values "$tmp/two.json" train_loss >"$tmp/b"
alike "$tmp/a" "$tmp/b" 2 1e-4 "two devices learn otherwise than one"

echo "--- a half type: almost the same curves, after steps that overflow"
for dtype in fp32 fp16; do
  run 0 "$mlp" --device cpu:0 --limit 600 --batch-size 100 --epochs 3 --lr 0.05 --dtype $dtype --json "$tmp/$dtype.json"
  contains "$tmp/$dtype.json" "\"dtype\": \"$dtype\""
  values "$tmp/$dtype.json" train_loss | sed 1d >"$tmp/$dtype"
done
says '^products in float16, parameters and sums in float32$'
grep -q '"overflows": [1-9]' "$tmp/fp16.json" || fail "no step in float16 has overflowed"
alike "$tmp/fp32" "$tmp/fp16" 2 0.5 "float16 does not learn"

echo "--- curves"
mkdir "$tmp/bin"
printf '#!/bin/sh\nexit 127\n' >"$tmp/bin/gnuplot"
chmod +x "$tmp/bin/gnuplot"
run 1 env PATH="$tmp/bin:$PATH" "$lenet" --limit 64 --epochs 1 --plot "$tmp/curve.svg"
complains 'gnuplot-nox'
[ ! -s "$tmp/out" ] || fail "training began though nothing can be drawn"
if command -v gnuplot >/dev/null; then
  run 0 "$lenet" --limit 64 --epochs 2 --plot "$tmp/curve.svg"
  contains "$tmp/curve.svg" 'train loss'
  contains "$tmp/curve.svg" 'test acc'
else
  echo "SKIP: curves: no gnuplot"
fi

echo "--- on a terminal"
if script -qec true "$tmp/terminal" </dev/null >"$tmp/out" 2>&1; then
  # Long enough on the fastest machine: progress is drawn every tenth of a second.
  TERM=xterm script -qec "$lenet --limit 2400 --batch-size 4 --lr 0.01 --epochs 1" "$tmp/terminal" </dev/null >"$tmp/out" 2>&1
  contains "$tmp/terminal" 'epoch 1/1.*images/s.*loss [0-9.]+.*left'
  contains "$tmp/terminal" '\[32m'
else
  echo "SKIP: progress: no script(1)"
fi

echo "--- SIGINT"
"$lenet" --limit 600 --batch-size 50 --epochs 100000 --json "$tmp/stopped.json" >"$tmp/out" 2>"$tmp/err" &
pid=$!
within 300 grep -q '^epoch 2' "$tmp/out" || fail "no second epoch"
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 130 ] || fail "exit status $status after SIGINT instead of 130"
complains 'interrupted after [0-9]+ complete epoch'
valid_json "$tmp/stopped.json"
contains "$tmp/stopped.json" '"interrupted": true'

echo "--- checkpoints: what goes on computes what was never stopped"
train() { local status=$1; shift; run "$status" "$lenet" --device cpu:0 --limit 600 --batch-size 100 "$@"; }
train 0 --epochs 1 --checkpoint "$tmp/run" --every 2steps --keep 2
[ "$(find "$tmp/run" -name 'checkpoint-*.safetensors' | wc -l)" -eq 2 ] || fail "not two checkpoints: $(ls "$tmp/run")"
train 0 --epochs 2 --checkpoint "$tmp/run" --resume --json "$tmp/resumed.json"
says 'continuing from .*checkpoint-00000[0-9].safetensors: epoch 2, step 6'
computed "$tmp/one.json" >"$tmp/a"
computed "$tmp/resumed.json" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "going on gives other numbers: $(diff "$tmp/a" "$tmp/b")"
train 1 --epochs 3 --checkpoint "$tmp/run"
complains 'has checkpoints of an earlier run'
train 1 --epochs 3 --checkpoint "$tmp/empty" --resume
complains 'has no checkpoints'
run 2 "$lenet" --resume
complains 'needs --checkpoint'
run 2 "$lenet" --checkpoint "$tmp/run" --every soon
complains '30s, 100steps'
run 1 "$lenet" --device cpu:0 --limit 600 --batch-size 50 --checkpoint "$tmp/run" --resume
complains 'batch size: 100 in the file, 50 here'
run 1 "$mlp" --limit 600 --checkpoint "$tmp/run" --resume
complains 'is a checkpoint of lenet, this is mlp'
train 1 --dtype bf16 --checkpoint "$tmp/run" --resume
complains 'is a checkpoint in fp32, this run is in bf16: --dtype fp32 continues it'
rate() { run 0 "$mlp" --device cpu:0 --limit 200 --batch-size 100 --checkpoint "$tmp/rate" --json "$tmp/rate.json" "$@"; }
rate --epochs 1 --lr 0.3
rate --epochs 2 --resume --lr 0.1
says '^learning rate 0.1 from now on, it was 0.3$'
run 1 "$lenet" --hybrid --limit 600 --batch-size 100 --checkpoint "$tmp/run" --resume
complains 'there is no network in the file'
run 0 "$lenet" --device cpu:0,cpu:1 --limit 600 --batch-size 100 --epochs 3 --checkpoint "$tmp/run" --resume=auto
says 'split into 2 parts, before into 1'
: >"$tmp/out" # else what the last one printed could be seen before this one has begun
"$mlp" --limit 600 --batch-size 20 --epochs 100000 --checkpoint "$tmp/mlp" --every 1s >"$tmp/out" 2>"$tmp/err" &
pid=$!
within 300 grep -q '^epoch 2' "$tmp/out" || fail "no second epoch"
"$mlp" --limit 600 --checkpoint "$tmp/mlp" --resume >"$tmp/second" 2>&1 || true # while the first one runs
contains "$tmp/second" 'another run is writing checkpoints to'
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 143 ] || fail "exit status $status after SIGTERM"
epochs=$(($(sed -n 's/.*interrupted after \([0-9]*\) complete epoch.*/\1/p' "$tmp/err") + 1))
run 0 "$mlp" --limit 600 --batch-size 20 --epochs $epochs --checkpoint "$tmp/mlp" --resume --quiet --json "$tmp/resumed.json"
run 0 "$mlp" --limit 600 --batch-size 20 --epochs $epochs --quiet --json "$tmp/whole.json"
computed "$tmp/whole.json" >"$tmp/a"
computed "$tmp/resumed.json" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "an interrupted run gives other numbers: $(diff "$tmp/a" "$tmp/b")"
mkdir "$tmp/pipe"
mkfifo "$tmp/pipe/checkpoint-000009.safetensors" # opened without waiting for a writer
run 1 "$mlp" --limit 600 --checkpoint "$tmp/pipe" --resume
complains 'checkpoint-000009.safetensors: is not a regular file'

echo "--- async"
run 0 "$async" --repeat 50 --batches 4 --json "$tmp/async.json"
says "^waiting after each operation, as NumPy does: $number sec\$"
says "^Workloads are queued: $number sec\$"
says '^sum = [0-9.e+]+$'
says "^Workloads are finished: $number sec\$"
says "^asscalar .*: $number sec\$"
says "^synchronous: $number sec\$"
says "^asynchronous: $number sec\$"
says "^batch 4, time $number sec\$"
says "^increased memory: -?$number MB\$"
valid_json "$tmp/async.json"
[ "$(values "$tmp/async.json" queued | wc -l)" -eq 4 ] || fail "not all figures are in the JSON"
run 0 "$async" plus-one --repeat 10
if grep -q Workloads "$tmp/out"; then fail "experiments that were not asked for"; fi
for dtype in bf16 fp16; do
  run 0 "$async" memory --batches 2 --dtype $dtype --json "$tmp/async.json"
  says '^products in b?float16, parameters and sums in float32$'
  contains "$tmp/async.json" "\"dtype\": \"$dtype\""
done
run 2 "$async" --dtype fp8
complains 'must be fp32, tf32, bf16 or fp16'

echo "--- hybrid"
run 0 "$hybrid" --repeat 50 --output "$tmp" --json "$tmp/hybrid.json"
[ "$(grep -c '^10$' "$tmp/out")" -eq 2 ] || fail "fancy_func(1, 2, 3, 4) is not 10, imperatively and symbolically"
says '^e = add\(1, 2\)'
says '^(const )?g: float32 \(\) = 10$'
says "^before hybridizing: $number sec\$"
says "^after hybridizing: $number sec\$"
says '^<Symbol data>$'
says '^<Symbol dense[0-9]+_fwd>$'
[ "$(grep -c '^forward is given values$' "$tmp/out")" -eq 2 ] || fail "forward did not run at each imperative call"
[ "$(grep -c '^forward is given a symbol$' "$tmp/out")" -eq 1 ] || fail "a hybridized forward did not run just once"
[ "$(grep '^result: ' "$tmp/out" | sort -u | wc -l)" -eq 1 ] || fail "results differ once hybridized"
says "^sl_item of a symbol: .*hybrid\.c:[0-9]+: the symbol 'data' has no values"
says "in place on a symbol: .*hybrid\.c:[0-9]+: the symbol '.*' cannot be changed in place"
says 'hybridized: .*hybrid\.c:[0-9]+: cannot be traced: sl_item at .*hybrid\.c:[0-9]+ reads values'
says 'with \.fallback = true: runs$'
complains 'runs imperatively: '
[ -s "$tmp/my_mlp-symbol.json" ] && [ -s "$tmp/my_mlp-0000.params" ] || fail "not exported"
valid_json "$tmp/my_mlp-symbol.json"
valid_json "$tmp/hybrid.json"
contains "$tmp/hybrid.json" '"difference": 0\.0'
contains "$tmp/hybrid.json" '"dtype": "fp32"'
cp "$tmp/my_mlp-symbol.json" "$tmp/fp32-symbol.json"
run 0 "$hybrid" --repeat 10 --output "$tmp" --dtype bf16 --json "$tmp/hybrid.json" network export
says '^<bfloat16 \(1, 2\)'
contains "$tmp/hybrid.json" '"difference": 0\.0'
[ "$(grep -c '"op"' "$tmp/my_mlp-symbol.json")" -eq "$(grep -c '"op"' "$tmp/fp32-symbol.json")" ] ||
  fail "the exported network depends on --dtype"
run 0 "$hybrid" --help
sed '1,/^Experiments/d' "$tmp/out" | grep -v '^  ' && fail "the list of experiments wraps"
run 0 env TMPDIR="$tmp/bin" "$hybrid" export symbolic
if [ -n "$(find "$tmp/bin" -name 'starling-hybrid*')" ]; then fail "files are left behind"; fi
if grep -q hybridizing "$tmp/out"; then fail "experiments that were not asked for"; fi
run 1 "$hybrid" export --output "$tmp/nowhere"
complains "$tmp/nowhere/my_mlp-symbol.json"
run 1 env TMPDIR="$tmp/nowhere" "$hybrid" export

echo "--- networks of blocks: the same by calls, hybridized, in whole steps"
for mode in eager hybrid step; do
  run 0 "$mlp" --mode "$mode" --limit 600 --batch-size 100 --epochs 2 --json "$tmp/$mode.json"
  says "^epoch 2, time $number sec, test acc 0\\.[0-9][0-9]\$"
  says "^$mode: $number tasks per step\$"
  values "$tmp/$mode.json" train_loss >"$tmp/$mode"
  alike "$tmp/eager" "$tmp/$mode" 2 1e-3 "$mode learns otherwise than eager"
done
values "$tmp/step.json" tasks_per_batch | awk '$1 > 10 { exit 1 }' || fail "a step takes more than 10 tasks"

echo "--- ResNet-18 on several devices"
resnet=models/resnet18
run 2 "$resnet" --device cpu:0,cpu:1 --shards 1
complains 'too few for 2 devices'
run 0 "$resnet" --demo --device cpu:0,cpu:1
for title in 'load into \[cpu:0, cpu:1\]' 'output:' 'first kernel on cpu:0:' 'first kernel on cpu:1:'; do says "$title"; done
run 0 "$resnet" --device cpu:0 --shards 2 --limit 16 --batch-size 8 --epochs 1 --json "$tmp/one.json"
says '^split: 4 on cpu:0, 4 on cpu:0$'
run 0 "$resnet" --device cpu:0,cpu:1 --limit 16 --batch-size 8 --epochs 1 --json "$tmp/two.json"
says '^running on: \[cpu:0, cpu:1\]$'
says '^split: 4 on cpu:0, 4 on cpu:1$'
says "^test acc: 0\\.[0-9][0-9], $number sec/epoch on \[cpu:0, cpu:1\]\$"
says "^epoch 1, time $number sec, test acc 0\\.[0-9][0-9]\$"
values "$tmp/one.json" train_loss >"$tmp/a"
values "$tmp/two.json" train_loss >"$tmp/b"
alike "$tmp/a" "$tmp/b" 1 1e-4 "two devices learn otherwise than one"
run 2 "$resnet" --sync-norm --hybrid
complains 'not with --hybrid'

echo "--- automatic parallelism"
parallel=models/parallel
run 2 "$parallel" --device cpu:0
run 2 "$parallel" --products 0
run 0 "$parallel" --size 64 --repeat 50 --products 3 --json "$tmp/parallel.json"
says "^Run on (CPU|cpu:0)\\. time: $number sec\$"
says "^Then run on (GPU|cpu:1)\\. time: $number sec\$"
says "^Run on both (CPU|cpu:0) and (GPU|cpu:1) in parallel\\. time: $number sec\$"
says "^Then copy to (CPU|cpu:0)\\. time: $number sec\$"
says "^Run and copy in parallel\\. time: $number sec\$"
valid_json "$tmp/parallel.json"
for dtype in fp16 bf16; do
  run 0 "$parallel" --size 64 --dtype $dtype graphs
  says '^diamond: the serial result'
  says '^random: the serial result'
done
run 0 "$parallel" --size 64 graphs
says '^diamond: the serial result'
says '^random: the serial result'
