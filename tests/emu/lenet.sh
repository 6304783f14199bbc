#!/bin/bash
# lenet.sh: LeNet trained on 1, 2 and 4 emulated GPUs, with and without CPUs, under several policies, synchronously and
# asynchronously: always the losses that a CPU gives; and what is said when something fails.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized
needs_images
few=(--limit 48 --batch-size 24 --quiet)

# train DEVICES [VARIABLE=VALUE]...: two epochs; the losses must be the first run's, but for rounding
train()
{
  rm -f "$tmp/run.json"
  run 0 env "${@:2}" timeout 120 tests/emu/lenet --device "$1" "${few[@]}" --epochs 2 --lr 2 --json "$tmp/run.json"
  values "$tmp/run.json" train_loss >"$tmp/run"
  [ -s "$tmp/first" ] || cp "$tmp/run" "$tmp/first"
  alike "$tmp/first" "$tmp/run" 2 3.16e-5 "$*"
}

train cpu:0 SL_EMU_DEVICES=0
train gpu:0 SL_EMU_DEVICES=1
train gpu:0,gpu:1 SL_EMU_DEVICES=2 SL_EMU_KERNEL_US=200 SL_EMU_COPY_US=500
train gpu:0-3 SL_EMU_DEVICES=4 SL_EMU_JITTER_US=1000
train gpu:0,cpu:0 SL_EMU_DEVICES=1 SL_EMU_JITTER_US=500
for policy in lws eager dmda dmdas; do
  train auto SL_EMU_DEVICES=2 STARPU_SCHED=$policy SL_EMU_JITTER_US=300
done
train auto SL_EMU_DEVICES=2 STARPU_NCPU=0
train gpu:0,gpu:1 SL_EMU_DEVICES=2 STARPU_SCHED=dmda SL_EMU_ASYNC=0
train gpu:0,gpu:1 SL_EMU_DEVICES=2 SL_EMU_PEER=0 SL_EMU_COPY_US=300

# The driver ends with a message, and in time.
export SL_EMU_DEVICES=2
run 1 env SL_EMU_FAIL=launch:50 timeout 120 tests/emu/lenet --device gpu:0,gpu:1 "${few[@]}" --epochs 1
complains 'failed on CUDA'
run 1 env SL_EMU_FAIL=copy:-20 timeout 120 tests/emu/lenet --device gpu:0,gpu:1 "${few[@]}" --epochs 1
complains 'a copy of .* failed: CUDA'
