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
