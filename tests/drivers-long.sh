#!/bin/bash
# drivers-long.sh: what takes long of the drivers from end to end; drivers.sh has the rest.  Run by make check-long in the
# build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
lenet=models/lenet
async=models/async
hybrid=models/hybrid
mlp=models/mlp

echo "--- usage"
for driver in "$lenet" "$async" "$hybrid" "$mlp"; do
  for mistake in --bogus --device=tpu --device=cpu:0,cpu:0 --device= --seed=x nonsense; do
    run 2 "$driver" "$mistake"
    [ -s "$tmp/err" ] || fail "no message"
  done
done
for driver in "$lenet" "$mlp"; do
  for mistake in --epochs=0 --batch-size=-1 --batch-size=1x --lr=nan --limit=0 --plot=curve.gif; do
    run 2 "$driver" "$mistake"
    complains "${mistake%%=*}"
  done
done

echo "--- learning"
run 0 "$lenet" --limit 3000 --batch-size 50 --epochs 10 --lr 0.3 --json "$tmp/learn.json"
values "$tmp/learn.json" train_loss | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.8 * first) }' ||
  fail "the loss does not fall: $(values "$tmp/learn.json" train_loss | tr '\n' ' ')"
run 0 "$lenet" --hybrid --limit 3000 --batch-size 50 --epochs 10 --lr 0.3 --json "$tmp/blocks.json"
says '^step: [0-9.]+ tasks per step$'
losses=$(for run in learn blocks; do values "$tmp/$run.json" train_loss | sed -n '$p'; done | paste -sd' ')
awk '{ exit NF != 2 || $2 >= 1.15 * $1 }' <<<"$losses" || fail "LeNet of blocks learns worse: $losses"

echo "--- equal seeds, equal bits, under another schedule, too"
six() { run 0 env STARPU_SCHED="$1" "$lenet" --device cpu:0 --limit 600 --batch-size 100 --epochs 2 --quiet "${@:2}"; }
six lws --json "$tmp/one.json"
six eager --json "$tmp/eager.json"
six lws --seed 1 --json "$tmp/seed.json"
timeless "$tmp/one.json" >"$tmp/a"
timeless "$tmp/eager.json" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "another schedule gives other numbers: $(diff "$tmp/a" "$tmp/b")"
[ "$(values "$tmp/one.json" train_loss)" != "$(values "$tmp/seed.json" train_loss)" ] || fail "another seed changes nothing"

echo "--- half types: other numbers, almost the same curves"
half() { run 0 "$mlp" --device cpu:0 --limit 600 --batch-size 100 --lr 0.05 --quiet "$@"; }
for dtype in fp32 bf16 fp16; do
  half --epochs 3 --dtype $dtype --json "$tmp/$dtype.json"
  values "$tmp/$dtype.json" train_loss | sed 1d >"$tmp/$dtype"
done
! grep -q '"overflows"' "$tmp/bf16.json" || fail "losses are scaled in bfloat16"
cmp -s "$tmp/fp32" "$tmp/bf16" && fail "bfloat16 computes what float32 does"
alike "$tmp/fp32" "$tmp/bf16" 2 0.02 "bfloat16 learns otherwise than float32"
half --epochs 3 --dtype fp16 --mode eager --json "$tmp/eager.json"
values "$tmp/eager.json" train_loss | sed 1d >"$tmp/a"
alike "$tmp/fp16" "$tmp/a" 2 1e-3 "call by call float16 computes otherwise than in whole steps"
half --epochs 1 --dtype fp16 --checkpoint "$tmp/half" --every 4steps
half --epochs 3 --dtype fp16 --checkpoint "$tmp/half" --resume --json "$tmp/half.json"
values "$tmp/half.json" train_loss | sed 1d | cmp -s - "$tmp/fp16" || fail "a resumed run in float16 gives other numbers"

if command -v gnuplot >/dev/null; then
  run 0 "$lenet" --limit 64 --epochs 2 --plot "$tmp/curve.png"
  [ -s "$tmp/curve.png" ] || fail "no curve.png"
fi

echo "--- checkpoints: a run keeps its rate, unless --lr changes it"
for driver in "$lenet" "$mlp"; do
  rm -rf "$tmp/rate"
  rate() { run 0 "$driver" --device cpu:0 --limit 200 --batch-size 100 --checkpoint "$tmp/rate" --json "$tmp/rate.json" "$@"; }
  rate --epochs 1 --lr 0.3
  rate --epochs 2 --resume
  contains "$tmp/rate.json" '"lr": 0\.3'
  rate --epochs 3 --resume --lr 0.1
  says '^learning rate 0.1 from now on, it was 0.3$'
done
run 0 "$mlp" --device cpu:0 --limit 200 --batch-size 100 --epochs 2 --lr 0.3 --json "$tmp/again.json"
run 0 "$mlp" --device cpu:0 --limit 200 --batch-size 100 --epochs 3 --lr 0.1 --json "$tmp/else.json"
[ "$(values "$tmp/rate.json" train_loss | sed 3d)" = "$(values "$tmp/again.json" train_loss)" ] || fail "the saved rate does not go on"
[ "$(values "$tmp/rate.json" train_loss)" != "$(values "$tmp/else.json" train_loss)" ] || fail "another rate changes nothing"

echo "--- checkpoints: each signal, limits"
for signal in INT:130 TERM:143 HUP:129; do
  : >"$tmp/out" # else what the first one printed could be seen before the second one has begun
  "$mlp" --limit 600 --batch-size 20 --epochs 100000 --checkpoint "$tmp/mlp" --every 1s --resume auto >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  within 300 grep -q '^epoch [0-9]*[02468]' "$tmp/out" || fail "no second epoch"
  "$mlp" --limit 600 --checkpoint "$tmp/mlp" --resume >"$tmp/second" 2>&1 || true # while the first one runs
  contains "$tmp/second" 'another run is writing checkpoints to'
  kill "-${signal%:*}" "$pid"
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq "${signal#*:}" ] || fail "exit status $status after SIG${signal%:*}"
done
epochs=$(($(sed -n 's/.*interrupted after \([0-9]*\) complete epoch.*/\1/p' "$tmp/err") + 1))
run 0 "$mlp" --limit 600 --batch-size 20 --epochs $epochs --checkpoint "$tmp/mlp" --resume --quiet --json "$tmp/resumed.json"
run 0 "$mlp" --limit 600 --batch-size 20 --epochs $epochs --quiet --json "$tmp/whole.json"
computed "$tmp/whole.json" >"$tmp/a"
computed "$tmp/resumed.json" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "an interrupted run gives other numbers: $(diff "$tmp/a" "$tmp/b")"

case ${CFLAGS:-} in
  *-fsanitize*) ;; # their main thread needs more
  *) run 0 bash -c "ulimit -s 256; exec $mlp --limit 200 --epochs 1" ;; # workers have larger stacks
esac
status=0
(ulimit -S -t 3; exec "$mlp" --limit 600 --batch-size 20 --epochs 100000 --checkpoint "$tmp/time") >"$tmp/out" 2>"$tmp/err" || status=$?
[ "$status" -eq 152 ] || fail "exit status $status after SIGXCPU"
[ -n "$(ls "$tmp/time")" ] || fail "no checkpoint after SIGXCPU"
mkfifo "$tmp/fifo"
head -n 1 <"$tmp/fifo" >"$tmp/line" & # and then nobody reads
status=0
"$mlp" --limit 600 --batch-size 20 --epochs 100000 --checkpoint "$tmp/pipe" >"$tmp/fifo" 2>"$tmp/err" || status=$?
[ "$status" -eq 141 ] || fail "exit status $status after SIGPIPE"
complains 'interrupted after [0-9]+ complete epoch'
contains "$tmp/line" '^running on'
[ -n "$(ls "$tmp/pipe")" ] || fail "no checkpoint after SIGPIPE"

echo "--- one device or two, whichever is faster"
run 0 "$lenet" --device cpu:0 --limit 600 --batch-size 20 --epochs 2 --quiet --json "$tmp/one20.json"
run 0 "$lenet" --device cpu:0,cpu:1 --fastest --limit 600 --batch-size 20 --epochs 2 --json "$tmp/fastest.json"
says "^(one device: cpu:0|all devices), because a batch takes [0-9.]+ ms on cpu:0, [0-9.]+ ms on 2 devices\$"
values "$tmp/one20.json" train_loss >"$tmp/a"
values "$tmp/fastest.json" train_loss >"$tmp/b"
alike "$tmp/a" "$tmp/b" 2 1e-4 "changing the number of devices changes the losses"
run 0 "$lenet" --device cpu:0-2 --limit 100 --batch-size 48 --epochs 1
says '^running on: \[cpu:0, cpu:1, cpu:2\]$'

echo "--- on a terminal"
if script -qec true "$tmp/terminal" </dev/null >"$tmp/out" 2>&1; then
  NO_COLOR=1 TERM=xterm script -qec "$lenet --limit 6000 --batch-size 4 --lr 0.01 --epochs 1" "$tmp/terminal" </dev/null >"$tmp/out" 2>&1
  if grep -q '\[32m' "$tmp/terminal"; then fail "colours though NO_COLOR is set"; fi
  # A narrow one: what would wrap is cut
  TERM=xterm script -qec "stty cols 20; $lenet --limit 6000 --batch-size 4 --lr 0.01 --epochs 1" "$tmp/terminal" </dev/null >"$tmp/out" 2>&1
  contains "$tmp/terminal" 'epoch 1/1 +[0-9]+%'
  tr '\r' '\n' <"$tmp/terminal" | sed -n 's/\x1b\[K.*//p' | awk 'length > 19 { exit 1 }' || fail "lines of more than 20 columns"
else
  echo "SKIP: progress: no script(1)"
fi

echo "--- ResNet-18 in small shards, with synchronised norms"
resnet=models/resnet18
run 0 "$resnet" --device cpu:0 --shards 8 --limit 16 --batch-size 16 --epochs 1 --quiet --json "$tmp/one.json"
for policy in dmda dmdas; do # small shards that the policy places
  run 0 env STARPU_NCPU=2 STARPU_SCHED=$policy "$resnet" --device auto --shards 8 --limit 16 --batch-size 16 --epochs 1 --json "$tmp/auto.json"
  says '^split: 2 on auto(, 2 on auto){7}$'
  values "$tmp/one.json" train_loss >"$tmp/a"
  values "$tmp/auto.json" train_loss >"$tmp/b"
  alike "$tmp/a" "$tmp/b" 1 1e-4 "shards on auto learn otherwise"
done
for devices in cpu:0 cpu:0,cpu:1; do # cut or not: the same, before rounding is amplified by updates
  run 0 "$resnet" --sync-norm --device "$devices" --limit 8 --batch-size 8 --epochs 1 --json "$tmp/sync.json"
  values "$tmp/sync.json" train_loss >"$tmp/$devices"
done
alike "$tmp/cpu:0" "$tmp/cpu:0,cpu:1" 1 1e-3 "synchronised norms learn otherwise on two devices"
run 0 "$resnet" --device cpu:0 --shards 4 --limit 6 --batch-size 4 --epochs 1 # the last batch has two rows
says '^split: 1 on cpu:0(, 1 on cpu:0){3}$'
run 0 env STARPU_SCHED=dmda "$resnet" --device auto --shards 3 --limit 6 --batch-size 6 --epochs 1 --eager
says '^split: 2 on auto, 2 on auto, 2 on auto$'

run 0 "$resnet" --device cpu:0,cpu:1 --by-speed --hybrid --limit 21 --batch-size 7 --epochs 1
says '^split: [34] on cpu:0, [34] on cpu:1$'

echo "--- graphs under each policy"
for policy in lws eager dmda dmdas prio; do
  run 0 env STARPU_SCHED="$policy" models/parallel --size 64 graphs
  says '^diamond: the serial result'
  says '^random: the serial result'
done
