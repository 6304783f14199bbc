#!/bin/bash
# lenet-long.sh: LeNet trained on 1, 2 and 4 emulated GPUs, with and without CPUs, under several policies, synchronously and
# asynchronously: always the losses that a CPU gives; and what is said when a copy fails.  Run by make check-long in the
# build tree.
. "${srcdir:-.}/tests/emu/trains.sh"

train cpu:0 SL_EMU_DEVICES=0
train gpu:0 SL_EMU_DEVICES=1
train gpu:0-3 SL_EMU_DEVICES=4 SL_EMU_JITTER_US=1000
train gpu:0,cpu:0 SL_EMU_DEVICES=1 SL_EMU_JITTER_US=500
for policy in lws eager dmda; do
  train auto SL_EMU_DEVICES=2 STARPU_SCHED=$policy SL_EMU_JITTER_US=300
done
train auto SL_EMU_DEVICES=2 STARPU_NCPU=0
train gpu:0,gpu:1 SL_EMU_DEVICES=2 STARPU_SCHED=dmda SL_EMU_ASYNC=0
train gpu:0,gpu:1 SL_EMU_DEVICES=2 SL_EMU_PEER=0 SL_EMU_COPY_US=300

# The driver ends with a message, and in time.
run 1 env SL_EMU_DEVICES=2 SL_EMU_FAIL=copy:-20 timeout 600 tests/emu/lenet --device gpu:0,gpu:1 "${few[@]}" --epochs 1
complains 'a copy of .* failed: CUDA'
