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
  says '^going on after step [0-9]+$'
  cmp "$tmp/whole.safetensors" "$tmp/parts.safetensors" || fail "a run that was interrupted ends with other parameters"
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
  says '^going on after step [0-9]+$'
  cmp "$tmp/$1.safetensors" "$tmp/parts.safetensors" || fail "a run in $1 that goes on ends with other parameters"
}
