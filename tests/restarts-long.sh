#!/bin/bash
# restarts-long.sh: drivers in two processes that are killed at random moments, whichever rank, also while they write a checkpoint, and
# are started again by sl-launch, end with the bits of a run that was left alone.  RESTARTS_SEED chooses the moments.  Run by make
# check-long in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/leaked_processes.sh"
export STARPU_HOME=$tmp STARPU_SILENT=1 STARPU_WORKERS_NOBIND=1 OMP_NUM_THREADS=1 STARPU_NCPU=1 SL_DIST_TIMEOUT=60
unset SL_DIST RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SL_DIST_SECRET SL_DIST_WIRE SL_DIST_ORDER
RANDOM=${RESTARTS_SEED:-$(date +%s)}
echo "RESTARTS_SEED=$RANDOM"

# What the newest checkpoint in a folder keeps, without the text before it, which has times in it.
values_of() {
  local file length
  file=$(find "$1" -name 'checkpoint-*' | sort -V | tail -n 1)
  length=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
  tail -c +"$((9 + length))" "$file" | cksum
}
newest() { { find "$1" -name 'checkpoint-*' 2>/dev/null || true; } | sort -V | tail -n 1; }
goes_on() { ! kill -0 "$pid" 2>/dev/null || [ "$(newest "$tmp/$name")" != "$before" ]; }
ranks_of() {
  local p
  for p in $(pgrep -P "$pid" || true); do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = sl-launch ] || echo "$p"
  done
}

# disturb NAME COMMAND...: kills a rank three times, each at a random moment after another checkpoint was written.
disturb() {
  local victims
  name=$1
  tools/sl-launch --no-bind -n 2 --restarts 3 "${@:2}" --checkpoint "$tmp/$name" --resume=auto >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  for _ in 1 2 3; do
    before=$(newest "$tmp/$name")
    within 300 goes_on || fail "$name: no checkpoint"
    sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", r / 32768 }')"
    mapfile -t victims < <(ranks_of)
    [ ${#victims[@]} -gt 0 ] || break
    kill -KILL "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null || true
  done
  status=0
  wait $pid || status=$?
  [ $status = 0 ] || fail "$name: exit status $status"
  complains 'sl-launch: restart 1 of 3'
  says '^\[0\] continuing '
}

# compare NAME COMMAND...
compare() {
  echo "--- $1"
  run 0 tools/sl-launch --no-bind -n 2 "${@:2}" --checkpoint "$tmp/$1-whole"
  disturb "$@"
  [ "$(values_of "$tmp/$1-whole")" = "$(values_of "$tmp/$1")" ] || fail "$1: killed and started again, not the bits of a run that was left alone"
}

for _ in $(seq 200); do echo "abcdefghijklmnopqrstuvwxyz"; done >"$tmp/text"
compare gpt models/gpt --distributed --layers 1 --heads 2 --width 16 --context 16 --batch-size 4 --text "$tmp/text" --iterations 4000 --every 200
compare lstm models/lstm --distributed --steps 8 --layers 1 --width 8 --hidden 24 --batch-size 4 --text "$tmp/text" --iterations 4000 --every 200
needs_images
compare mlp models/mlp --distributed --limit 2000 --batch-size 50 --epochs 12 --every 20steps
compare resnet18 models/resnet18 --distributed --limit 64 --batch-size 8 --epochs 2 --every 3steps
exit $((failures > 0))
