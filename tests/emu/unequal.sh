#!/bin/bash
# unequal.sh: ResNet-18 on an emulated GPU and a CPU, which is many times as fast: rows go over to it, and that is said;
# the first batch has the losses of one device; many small shards where a dm* policy likes them.  Run by make check in the
# build tree.
set -euo pipefail
export LC_ALL=C
. "$srcdir/tests/emu/common.sh"
not_sanitized
[ -f /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz ] || { echo "no Fashion-MNIST"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SL_EMU_DEVICES=1

fail()
{
  echo "FAIL: $*"
  sed 's/^/  | /' "$tmp/out" "$tmp/err"
  exit 1
}

# train OPTION...: an epoch in batches of four
train()
{
  timeout 300 tests/emu/resnet18 --batch-size 4 --epochs 1 --lr 0.001 --json "$tmp/run.json" "$@" >"$tmp/out" 2>"$tmp/err" ||
    fail "$*"
  echo "ok: $*"
}

says() { grep -q "^$1\$" "$tmp/out" || fail "nothing said \"$1\""; }
loss() { sed -n 's/^ *"train_loss": \([^,]*\),*$/\1/p' "$tmp/run.json"; }

train --device gpu:0,cpu --limit 12
says 'split: 2 on gpu:0, 2 on cpu'
says 'split: 1 on gpu:0, 3 on cpu'

train --device gpu:0 --sync-norm --limit 4
alone=$(loss)
train --device gpu:0,cpu --sync-norm --limit 4
awk -v a="$alone" -v b="$(loss)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 <= 1e-10 * a * a) }' ||
  fail "a loss of $(loss), not $alone"

export STARPU_SCHED=dmda
train --device auto --shards 4 --limit 12
says 'split: 1 on auto, 1 on auto, 1 on auto, 1 on auto'
