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

echo "--- graphs under each policy"
for policy in lws eager dmda dmdas prio; do
  run 0 env STARPU_SCHED="$policy" models/parallel --size 64 graphs
  says '^diamond: the serial result'
  says '^random: the serial result'
done
