#!/bin/bash
# memory.sh: LeNet on two emulated GPUs that have 60 % of the memory which it takes without a limit: StarPU drops or
# evicts data and brings them back, and the losses are the same.  Prints what that costs in one line, for doc/parallel.md.
# Run by make check-long in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized
needs_images
export SL_EMU_DEVICES=2 SL_EMU_STATS=1 STARPU_SUBALLOCATOR=0

# train NAME MIB: files NAME.json, NAME.err
train()
{
  SL_EMU_MEMORY=$2 timeout 600 tests/emu/lenet --device gpu:0,gpu:1 --limit 192 --batch-size 96 --epochs 2 --lr 2 --quiet \
    --json "$tmp/$1.json" 2>"$tmp/$1.err" || { echo "FAIL: $1: exit status $?"; cat "$tmp/$1.err"; exit 1; }
  values "$tmp/$1.json" seconds | awk '{ s += $1 } END { print s }' >>"$tmp/$1.seconds"
}
losses() { values "$tmp/$1.json" train_loss | paste -sd' '; }
# The least of all runs; the machine may be busy.
seconds() { sort -g "$tmp/$1.seconds" | sed -n 1p; }
peak() { awk -F= '/ peak=/ { if ($NF > most) most = $NF } END { print int(most / 1048576) }' "$tmp/$1.err"; }
# megabytes NAME LINKS: over all links that match
megabytes() { awk -F= -v links="$2" '$0 ~ links { n += $NF } END { printf "%.0f", n / 1e6 }' "$tmp/$1.err"; }

train free 512
need=$(peak free)
train limited $((need * 6 / 10))
for _ in 1 2; do
  train free 512
  train limited $((need * 6 / 10))
done
[ "$(losses free)" = "$(losses limited)" ] || fail "losses $(losses limited) instead of $(losses free)"
out=$(megabytes limited '-> host')
echo "device memory of $((need * 6 / 10)) MiB where $need were taken: the same losses," \
  "$(awk -v a="$(seconds limited)" -v b="$(seconds free)" 'BEGIN { printf "%.1f", a / b }') times as long;" \
  "$out MB evicted, $(megabytes limited 'host ->') MB brought in ($(megabytes free 'host ->') MB without the limit)"
