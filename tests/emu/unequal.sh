#!/bin/bash
# unequal.sh: ResNet-18 on an emulated GPU and a CPU, which is many times as fast: rows go over to it, and that is said;
# the first batch has the losses of one device; many small shards where a dm* policy likes them.  Run by make check-long in the
# build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized
needs_images
export SL_EMU_DEVICES=1

# train OPTION...: an epoch in batches of four
train() {
  rm -f "$tmp/run.json"
  run 0 timeout 600 tests/emu/resnet18 --batch-size 4 --epochs 1 --lr 0.001 --json "$tmp/run.json" "$@"
}

train --device gpu:0,cpu --limit 12
says '^split: 2 on gpu:0, 2 on cpu$'
says '^split: 1 on gpu:0, 3 on cpu$'

train --device gpu:0 --sync-norm --limit 4
values "$tmp/run.json" train_loss >"$tmp/alone"
contains "$tmp/alone" '[1-9]'
train --device gpu:0,cpu --sync-norm --limit 4
values "$tmp/run.json" train_loss >"$tmp/shared"
alike "$tmp/alone" "$tmp/shared" 1 1e-5 "another loss than on one device"

export STARPU_SCHED=dmda
train --device auto --shards 4 --limit 12
says '^split: 1 on auto, 1 on auto, 1 on auto, 1 on auto$'
