#!/bin/sh
# lenet.sh: LeNet trained on 1, 2 and 4 emulated GPUs, with and without CPUs, under several policies, synchronously and
# asynchronously, with little memory: always the losses that a CPU gives.  Run by make check in the build tree.
set -eu
export LC_ALL=C
. "$srcdir/tests/emu/common.sh"
[ -f /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] || { echo "no Fashion-MNIST"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

losses() { sed -n 's/^ *"train_loss": \([^,]*\),*$/\1/p' "$1"; }

# train DEVICES [VARIABLE=VALUE]...: two epochs; the losses must be the first run's, but for rounding
train()
{
  devices=$1
  shift
  if ! env "$@" timeout 120 tests/emu/lenet --device "$devices" --limit 48 --batch-size 24 --epochs 2 --lr 2 --quiet \
    --json "$tmp/run.json" >"$tmp/out" 2>&1; then
    echo "FAIL: $devices $*"
    sed 's/^/  | /' "$tmp/out"
    failures=$((failures + 1))
    return
  fi
  losses "$tmp/run.json" >"$tmp/run"
  [ -f "$tmp/first" ] || cp "$tmp/run" "$tmp/first"
  if paste "$tmp/first" "$tmp/run" |
    awk 'NF != 2 || ($1 - $2) ^ 2 > 1e-9 * $1 ^ 2 { bad = 1 } END { exit bad || NR != 2 }'; then
    echo "ok: $devices $*"
  else
    echo "FAIL: $devices $*: $(tr '\n' ' ' <"$tmp/run")instead of $(tr '\n' ' ' <"$tmp/first")"
    failures=$((failures + 1))
  fi
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
# Memory for a part of what is in use: StarPU must put data out and bring it back.  With prefetching it does not find
# its way out when almost all memory is taken (README.md).
train gpu:0,gpu:1 SL_EMU_DEVICES=2 SL_EMU_MEMORY=72 STARPU_SUBALLOCATOR=0 STARPU_PREFETCH=0 SL_EMU_STATS=1
awk -F'[ =]' '/link gpu:0 -> host/ { bytes = $NF } END { exit bytes < 1e7 }' "$tmp/out" || {
  echo "FAIL: nothing was put out of memory"
  failures=$((failures + 1))
}
exit $((failures > 0))
