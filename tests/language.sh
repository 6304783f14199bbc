# shellcheck shell=bash disable=SC2154
# Sourced by gpt.sh and lstm.sh: what both language models do.  small: the command line; $tmp/whole.safetensors: what it learns.

# goes_on STEPS SECONDS: a run that is interrupted after 20 steps and goes on ends with the bits of one that was not.  The schedule's
# end belongs to a run: both parts name the whole run's.
goes_on() {
  echo "--- going on"
  "${small[@]}" --iterations "$1" --every 5 --checkpoint "$tmp/run" >"$tmp/first" 2>"$tmp/err" &
  driver=$!
  within "$2" grep -q '^step 20:' "$tmp/first" || fail "20 steps take more than $2 seconds"
  kill -INT $driver 2>/dev/null || true
  wait $driver || true
  run 0 "${small[@]}" --iterations "$1" --checkpoint "$tmp/run" --resume --save "$tmp/parts.safetensors"
  says '^continuing after step [0-9]+$'
  cmp "$tmp/whole.safetensors" "$tmp/parts.safetensors" || fail "a run that was interrupted ends with other parameters"
}

# keeps_checkpoints: in whose folder a run writes, and what becomes of checkpoints that cannot be written; $tmp/run has a run's.
keeps_checkpoints() {
  echo "--- checkpoints of others, and none"
  local two=("${small[@]}" --iterations 4 --every 2)
  find "$tmp/run" -type f -exec cksum {} + >"$tmp/before"
  run 1 "${two[@]}" --checkpoint "$tmp/run"
  complains 'has checkpoints of an earlier run'
  find "$tmp/run" -type f -exec cksum {} + | cmp - "$tmp/before" || fail "a run that is refused changes the folder"
  run 1 "${two[@]}" --checkpoint "$tmp/new" --resume
  complains 'has no checkpoints; --resume=auto'
  run 0 "${two[@]}" --checkpoint "$tmp/new" --resume=auto --keep 1
  [ "$(find "$tmp/new" -name 'checkpoint-*' | wc -l)" -eq 1 ] || fail "not one checkpoint: $(ls "$tmp/new")"
  run 1 "${two[@]}" --checkpoint "$tmp/text"
  complains 'text cannot be a folder'
  run 1 "${two[@]}" --checkpoint "$tmp/new" --resume --dtype bf16
  complains 'is a checkpoint in fp32, this run is in bf16'
  run 0 "${two[@]}" --checkpoint "$tmp/new" --resume --iterations 6 --lr 0.125 --json "$tmp/json"
  says '^learning rate 0.125 from now on, it was [0-9.]+$'
  contains "$tmp/json" '"lr": 0.125'

  echo "--- no space for checkpoints: training goes on, and its results are written"
  run 1 bash -c "ulimit -f 4; exec \"\$@\"" - "${two[@]}" --checkpoint "$tmp/full" --json -
  complains 'no checkpoint: .*File too large'
  [ "$(grep -c 'no checkpoint' "$tmp/err")" -eq 2 ] || fail "not two checkpoints that could not be written"
  [ "$(values "$tmp/out" step | tail -n 1)" = 4 ] || fail "training ends when a checkpoint cannot be written"
  [ -z "$(ls -A "$tmp/full")" ] || fail "files are left: $(ls -A "$tmp/full")"
}

# writes: the alphabet was learnt; leaves the command line in `write`, and what it wrote in $tmp/written.
writes() {
  echo "--- writing"
  write=("${small[@]}" --iterations 0 --load "$tmp/whole.safetensors" --generate 40 --prompt abcdefgh)
  run 0 "${write[@]}"
  says '^abcdefgh'
  cp "$tmp/out" "$tmp/written"
  [ "$(wc -c <"$tmp/out")" -eq 49 ] || fail "40 bytes were asked for, and a prompt of 8"
  run 0 "${write[@]}"
  cmp "$tmp/out" "$tmp/written" || fail "the same seed writes another text"
  run 0 "${write[@]}" --temperature 0.001 --generate 4
  says '^abcdefghijkl$'
}

# learns_in TYPE STEPS DIFFERENCE: the same in a half type: other bits, nearly the same losses; a run that was interrupted ends with
# the bits of one that was not.
learns_in() {
  echo "--- products in $1"
  run 0 "${small[@]}" --iterations "$2" --every "$(($2 / 4))" --quiet --json "$tmp/whole.json" --save "$tmp/fp32.safetensors"
  run 0 "${small[@]}" --iterations "$2" --every "$(($2 / 4))" --dtype "$1" --json "$tmp/json" --save "$tmp/$1.safetensors"
  says '^products in [a-z]*float16, parameters and sums in float32$'
  contains "$tmp/json" "\"dtype\": \"$1\""
  contains "$tmp/whole.json" '"dtype": "fp32"'
  ! cmp -s "$tmp/fp32.safetensors" "$tmp/$1.safetensors" || fail "--dtype $1 computes what fp32 does"
  paste <(values "$tmp/whole.json" held_out_loss) <(values "$tmp/json" held_out_loss) |
    awk -v most="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (d > most) bad = 1 } END { exit bad || NR != 4 }' ||
    fail "losses in $1: $(values "$tmp/json" held_out_loss | tr '\n' ' ')"
  run 0 "${small[@]}" --iterations "$2" --every "$(($2 / 4))" --dtype "$1" --checkpoint "$tmp/$1" --save "$tmp/again.safetensors"
  rm "$tmp/$1/$(ls "$tmp/$1" | sort -V | tail -n 1)"
  run 0 "${small[@]}" --iterations "$2" --dtype "$1" --checkpoint "$tmp/$1" --resume --save "$tmp/parts.safetensors"
  says '^continuing after step [0-9]+$'
  cmp "$tmp/$1.safetensors" "$tmp/parts.safetensors" || fail "a run in $1 that goes on ends with other parameters"
}
