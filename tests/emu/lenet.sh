#!/bin/bash
# lenet.sh: LeNet trained on one and two emulated GPUs, with and without CPUs: always the losses that a CPU gives; and what
# is said when something fails.  lenet-long.sh has more of both.  Run by make check in the build tree.
. "${srcdir:-.}/tests/emu/trains.sh"

train cpu:0 SL_EMU_DEVICES=0
train gpu:0,gpu:1 SL_EMU_DEVICES=2 SL_EMU_KERNEL_US=200 SL_EMU_COPY_US=500
train auto SL_EMU_DEVICES=2 STARPU_SCHED=dmdas SL_EMU_JITTER_US=300

# The driver ends with a message, and in time.
run 1 env SL_EMU_DEVICES=2 SL_EMU_FAIL=launch:50 timeout 600 tests/emu/lenet --device gpu:0,gpu:1 "${few[@]}" --epochs 1
complains 'failed on CUDA'
