#!/bin/bash
# chaos.sh: runs that are killed, at moments of a save and at random, whose files cannot be written or are damaged: they go on
# with the last sound checkpoint and end with the bits of a run that was never stopped.  Run by make check with a few trials;
# CHAOS_KILLS=1000 tests/chaos.sh does so many random kills, and every fault (make check-long: chaos-long.sh).
. "${srcdir:-.}/tests/expect.sh"
train=tests/chaos/train
kills=${CHAOS_KILLS:-0}
export TMPDIR=$tmp STARPU_WORKERS_NOBIND=1
steps=8

# reference NETWORK DEVICES: the bits of a run that nothing happens to, and the milliseconds it takes
declare -A bits duration
reference() {
  local status=0 begin=${EPOCHREALTIME/[^0-9]/}
  rm -rf "$tmp/whole"
  "$train" "$tmp/whole" "$1" "$2" $steps >"$tmp/out" 2>"$tmp/err" || status=$?
  [ $status -ne 77 ] || { echo "SKIP: $1 on $2 devices: too few cores"; return 1; }
  [ $status -eq 0 ] || fail "$1 on $2 devices: exit status $status"
  bits[$1$2]=$(cat "$tmp/out")
  duration[$1$2]=$(((${EPOCHREALTIME/[^0-9]/} - begin) / 1000))
  echo "$1 on $2 devices: ${bits[$1$2]}"
}

# ends NETWORK DEVICES TEXT: the run in $tmp/run goes on to its end, with the right bits; more arguments are train's
ends() {
  run 0 "$train" "$tmp/run" "$1" "$2" $steps "${@:4}"
  [ "$(cat "$tmp/out")" = "${bits[$1$2]}" ] || fail "$1 on $2 devices, $3: $(cat "$tmp/out") instead of ${bits[$1$2]}"
  [ -z "$(find "$tmp/run" -name '.*.part')" ] || fail "$3 leaves files: $(ls -A "$tmp/run")"
}

killed_at() {
  rm -rf "$tmp/run"
  run 137 "$train" "$tmp/run" "$1" "$2" $steps kill "$3" "$4"
  ends "$1" "$2" "killed at $3 $4"
}

failing_at() {
  rm -rf "$tmp/run"
  run 0 "$train" "$tmp/run" "$1" "$2" $steps 5 "$3" "$4" # EIO
  complains 'no checkpoint: .*Input/output error'
  [ "$(cat "$tmp/out")" = "${bits[$1$2]}" ] || fail "a call that fails changes the run"
}

# The newest files of a complete run are damaged: what was before them is taken, and that is said.
damaged() {
  local files newest
  rm -rf "$tmp/run"
  run 0 "$train" "$tmp/run" "$1" "$2" $((steps - 2))
  mapfile -t files < <(find "$tmp/run" -name 'checkpoint-*' | sort)
  [ ${#files[@]} -eq 3 ] || fail "${#files[@]} checkpoints are kept instead of 3"
  newest=${files[2]}
  truncate -s -100 "$newest"
  printf x | dd of="${files[1]}" bs=1 seek=$(($(stat -c %s "${files[1]}") - 1000)) conv=notrunc 2>/dev/null
  ends "$1" "$2" "damaged checkpoints"
  complains "$(basename "$newest"): .*"
  complains "$(basename "${files[0]}"), the checkpoint before it, is used instead"
  complains "from step $((steps - 4))"
}

full_disk() {
  rm -rf "$tmp/run"
  run 0 "$train" "$tmp/run" "$1" "$2" $steps full write 7
  complains 'No space left on device'
  [ "$(cat "$tmp/out")" = "${bits[$1$2]}" ] || fail "a full disk changes the run"
  ends "$1" "$2" "a full disk before"
  rm -rf "$tmp/run"
}

slow_disk() {
  rm -rf "$tmp/run"
  ends "$1" "$2" "a slow disk" slow 20000
}

parts() { find "$tmp/run" -name '.*.part' 2>/dev/null || true; }

# killed_randomly NETWORK DEVICES COUNT: again and again, in the middle of anything, until it has come to its end; so
# often.  On a disk that is slow every other time: then most moments are those of a save.
killed_randomly() {
  local left=$3 pid status moment before during=0 slow=()
  rm -rf "$tmp/run"
  while [ "$left" -gt 0 ]; do
    if [ $((left % 2)) -eq 0 ]; then slow=(slow 5000); else slow=(); fi
    before=$(parts)
    "$train" "$tmp/run" "$1" "$2" $steps "${slow[@]}" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    moment=$((RANDOM % duration[$1$2]))
    sleep "$(printf '%d.%03d' $((moment / 1000)) $((moment % 1000)))"
    status=0
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || status=$?
    if [ $status -eq 137 ]; then
      left=$((left - 1))
      case $(parts) in "" | "$before") ;; *) during=$((during + 1)) ;; esac
    elif [ $status -eq 0 ] && [ "$(cat "$tmp/out")" = "${bits[$1$2]}" ]; then rm -rf "$tmp/run"
    else fail "$1 on $2 devices: exit status $status, $(cat "$tmp/out") instead of ${bits[$1$2]}"; return; fi
  done
  ends "$1" "$2" "$3 random kills"
  echo "$1 on $2 devices: $3 random kills, $during during a save, ${bits[$1$2]}"
}

if reference lenet 1; then
  killed_at lenet 1 rename 3
  killed_at lenet 1 write 4
  killed_at lenet 1 fsync 1
  failing_at lenet 1 fsync 3
  damaged lenet 1
  full_disk lenet 1
fi
if reference resnet 1; then killed_at resnet 1 rename 4; fi
if reference lenet 2; then killed_at lenet 2 rename 5; fi
[ "$kills" -gt 0 ] || exit 0

reference resnet 2 || true
for which in "${!bits[@]}"; do
  network=${which%[0-9]}
  devices=${which##*[a-z]}
  for call in open write fsync rename; do
    for k in 1 2 3 5 8; do
      killed_at "$network" "$devices" $call $k
      failing_at "$network" "$devices" $call $k
    done
  done
  damaged "$network" "$devices"
  full_disk "$network" "$devices"
  slow_disk "$network" "$devices"
  killed_randomly "$network" "$devices" $((kills / ${#bits[@]}))
done
