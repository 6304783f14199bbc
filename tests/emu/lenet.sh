#!/bin/sh
# lenet.sh: LeNet trained on 1, 2 and 4 emulated GPUs, with and without CPUs, under several policies, synchronously and
# asynchronously: always the losses that a CPU gives; and what is said when something fails.  Run by make check in the build tree.
set -eu
export LC_ALL=C
. "$srcdir/tests/emu/common.sh"
not_sanitized
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

# fails FAILURES TEXT: the driver ends with a message, and in time
fails()
{
  status=0
  SL_EMU_FAIL=$1 SL_EMU_DEVICES=2 timeout 120 tests/emu/lenet --device gpu:0,gpu:1 --limit 48 --batch-size 24 --epochs 1 \
    --quiet >"$tmp/out" 2>&1 || status=$?
  if [ "$status" -eq 1 ] && grep -q "$2" "$tmp/out"; then echo "ok: $1"; else
    echo "FAIL: $1: exit status $status"
    sed 's/^/  | /' "$tmp/out"
    failures=$((failures + 1))
  fi
}

fails launch:50 'failed on CUDA'
fails copy:-20 'a copy of .* failed: CUDA'
exit $((failures > 0))
