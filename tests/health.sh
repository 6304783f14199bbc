#!/bin/bash
# health.sh: --health of the training drivers, and the job script of doc/running.md.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"

# value KEY FILE: a number or a string of a flat JSON object
value() { sed -nE 's/^ *"'"$1"'": "?([^",]*)"?,?$/\1/p' "$2"; }

gpt=(models/gpt --text "$srcdir/LICENSE" --layers 1 --heads 1 --width 16 --context 16 --batch-size 4 --quiet)
run 0 "${gpt[@]}" --iterations 20 --every 10 --health "$tmp/health.json" --checkpoint "$tmp/run"
valid_json "$tmp/health.json"
[ "$(value state "$tmp/health.json")" = finished ] || fail "a run that has ended well is not finished"
[ "$(value step "$tmp/health.json")" = 20.0 ] || fail "not 20 steps"
[ "$(value errors "$tmp/health.json")" = 0.0 ] || fail "errors where there were none"
awk -v loss="$(value loss "$tmp/health.json")" 'BEGIN { exit !(loss > 0 && loss < 10) }' || fail "no loss"
awk -v bytes="$(value resident_bytes "$tmp/health.json")" 'BEGIN { exit !(bytes > 1e6) }' || fail "no memory"
age=$(($(date +%s) - $(value checkpoint_time "$tmp/health.json" | cut -d. -f1)))
[ "$age" -ge 0 ] && [ "$age" -lt 3600 ] || fail "the last checkpoint is said to be $age s old"

run 0 "${gpt[@]}" --iterations 3 --health "$tmp/health.prom"
grep -q '^starling_step{program="gpt"} 3$' "$tmp/health.prom" || fail "Prometheus' file does not have 3 steps"
grep -q '^starling_up{program="gpt"} 0$' "$tmp/health.prom" || fail "Prometheus' file says that the run goes on"
awk '/^#/ { next } !/^starling_[a-z_]+\{program="gpt"\} -?[0-9.e+-]+$/ { bad = 1 } END { exit bad }' "$tmp/health.prom" ||
  fail "not Prometheus' text format"

# A run that fails, one that is interrupted, one that is killed.
run 1 "${gpt[@]}" --iterations 1 --load "$tmp/nothing" --health "$tmp/failed.json"
[ "$(value state "$tmp/failed.json")" = failed ] || fail "a failed run is not called so"
grep -q '"last_error": ".*nothing' "$tmp/failed.json" || fail "the error is not told"
run 1 "${gpt[@]}" --iterations 1 --health "$tmp/no/folder"
complains '--health: .*no/folder'

has_steps() { [ -s "$1" ] && [ "$(value state "$1")" = running ]; }
for signal in TERM KILL; do
  "${gpt[@]}" --iterations 100000000 --health "$tmp/$signal.json" >/dev/null 2>&1 &
  pid=$!
  within 300 has_steps "$tmp/$signal.json"
  kill -$signal $pid
  wait $pid || true
done
[ "$(value state "$tmp/TERM.json")" = interrupted ] || fail "an interrupted run is not called so"
[ "$(value state "$tmp/KILL.json")" = running ] || fail "a killed run cannot have said so"

# The script for Slurm, with stand-ins: SIGTERM leads to a checkpoint and to another try, which goes on.
awk '/^```sh$/ { inside++; next } /^```$/ { if (inside == 2) exit; next } inside == 2' "$srcdir/doc/running.md" >"$tmp/job"
[ -s "$tmp/job" ] || fail "no job script in doc/running.md"
mkdir -p "$tmp/bin" "$tmp/job.d"
printf '#!/bin/sh\necho "$@" >>"%s"\n' "$tmp/queued" >"$tmp/bin/scontrol"
printf '#!/bin/sh\nexec %s "$@" --layers 1 --heads 1 --width 16 --context 16 --batch-size 4\n' "$PWD/models/gpt" >"$tmp/bin/starling-gpt"
chmod +x "$tmp/bin/"*
cp "$srcdir/LICENSE" "$tmp/job.d/corpus.txt"
(cd "$tmp/job.d" && PATH=$tmp/bin:$PATH SLURM_JOB_ID=7 SLURM_TMPDIR=$tmp/job.d exec sh "$tmp/job") >"$tmp/job.out" 2>&1 &
pid=$!
mkdir -p "$tmp/job.d/run"
within 300 has_steps "$tmp/job.d/run/health.json"
kill -TERM $pid
wait $pid || true
grep -qx 'requeue 7' "$tmp/queued" || fail "the job was not queued again: $(cat "$tmp/job.out")"
