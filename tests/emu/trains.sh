# trains.sh: what lenet.sh and lenet-long.sh begin with: LeNet on emulated GPUs, which must have the losses of a CPU.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/emu/common.sh"
not_sanitized
needs_images
few=(--limit 48 --batch-size 24 --quiet)

# train DEVICES [VARIABLE=VALUE]...: two epochs; the losses must be the first run's, but for rounding
train()
{
  rm -f "$tmp/run.json"
  run 0 env "${@:2}" timeout 600 tests/emu/lenet --device "$1" "${few[@]}" --epochs 2 --lr 2 --json "$tmp/run.json"
  values "$tmp/run.json" train_loss >"$tmp/run"
  [ -s "$tmp/first" ] || cp "$tmp/run" "$tmp/first"
  alike "$tmp/first" "$tmp/run" 2 3.16e-5 "$*"
}
