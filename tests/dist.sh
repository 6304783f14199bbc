#!/bin/bash
# dist.sh: several processes train together: the bits are those of as many shards in one, and what goes wrong on one rank is
# an error on all, which names it.  Run by make check in the build tree, over TCP; by mpi.sh over MPI; by
# dist-long.sh and mpi-long.sh with more networks, optimisers and numbers of ranks.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/leaked_processes.sh"
export STARPU_HOME=$tmp STARPU_SILENT=1 STARPU_WORKERS_NOBIND=1 OMP_NUM_THREADS=1 SL_DIST_TIMEOUT=60
unset SL_DIST RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SL_DIST_SECRET SL_DIST_WIRE SL_DIST_ORDER
launch=${DIST_LAUNCH:-tools/sl-launch}
tcp=$([ "$launch" = tools/sl-launch ] && echo yes || true)
# Processes and teams of one core: what oneDNN computes depends on their number.
core=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
alone() { run 0 taskset -c "$core" "$@"; }
ranks() { run "$2" "$launch" --no-bind -n "$1" taskset -c "$core" "${@:3}"; }

# more COMMAND...: in the long runs only.
more() { [ -z "${DIST_LONG-}" ] || "$@"; }
# Whether to try what the transport has no part in: not over MPI in the short runs, whose processes take long to start.
whole() { [ "$tcp" ] || [ "${DIST_LONG-}" ]; }

hashes() { sed -n 's/^\[[0-9]*\] hash //p' "$tmp/out"; }
# Both ranks came to the end with these bits.  Rank 0 may have come there the first time, too, before its launcher ended it.
both_have() { [ "$(sed -n 's/^\(\[[0-9]*\]\) hash /\1 /p' "$tmp/out" | sort -u)" = "[0] $1"$'\n'"[1] $1" ]; }

# same RANKS SHARDS OPTION...: so many ranks of so many shards have the bits of all shards in one process.
same() {
  local n=$1 m=$2 hash
  shift 2
  STARPU_NCPU=$teams alone tests/dist "shards=$((n * m))" "$@"
  hash=$(sed -n 's/^hash //p' "$tmp/out")
  [ ${#hash} = 16 ] || fail "no hash"
  STARPU_NCPU=$((teams > 1 ? m : 1)) ranks "$n" 0 tests/dist "shards=$m" "$@"
  [ "$(grep -c "^\[[0-9]*\] hash $hash$" "$tmp/out")" = "$n" ] || fail "$n ranks of $m shards ($*): not the bits $hash of one process"
}

teams=1
same 2 2 optimizer=adam
more same 2 1 optimizer=sgd
more same 2 2 optimizer=sgd
more same 2 1 optimizer=adam
more same 3 1
same 4 1 optimizer=clip
# Call by call, gradients of shards are added in the tree if these are on devices of their own.
teams=2 && more same 2 1 mode=eager dropout=0
teams=3 && same 3 1 mode=eager dropout=0 optimizer=adam
teams=4 && more same 2 2 mode=eager dropout=0
# Gradients travel together, in buckets call by call as in whole steps; where all are clipped, in as few.
teams=2 && same 2 1 mode=eager dropout=0 optimizer=clip
if whole; then # up to what is sent
exchanges() { sed -n 's/^\[1\] sent .* in \([0-9]*\) exchanges$/\1/p' "$tmp/out"; }
several=(deep=9 units=96 dropout=0)
for mode in step eager; do
  for optimizer in sgd clip; do
    ranks 2 0 tests/dist "${several[@]}" steps=1 mode=$mode optimizer=$optimizer
    first=$(exchanges)
    ranks 2 0 tests/dist "${several[@]}" steps=3 mode=$mode optimizer=$optimizer
    each=$((($(exchanges) - first) / 2))
    if [ "$each" -lt 1 ] || [ "$each" -gt 3 ]; then fail "$each exchanges a step (mode=$mode optimizer=$optimizer), of 350 KB"; fi
  done
done

# A latency that tests put in changes nothing but the time: a sum of two ranks is a message each way, of more it is two messages, one
# after the other.
teams=1
SL_DIST_LATENCY=3000 same 2 1
for ranks in 2 3; do
  began=$(date +%s%N)
  SL_DIST_LATENCY=100000 ranks $ranks 0 tests/dist mode=sums
  [ $((($(date +%s%N) - began) / 1000000)) -ge $((600 * (ranks - 1))) ] || fail "six sums of $ranks ranks do not take their latency"
done
for latency in 1e7 -1 x; do
  run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=1 SL_DIST_LATENCY=$latency tests/dist
  complains "SL_DIST_LATENCY=$latency: it must be a number of microseconds"
done

# Ranks that begin with other values: gradients are those of rank 0's from the first on, however they are computed, and whether
# shapes are known before or not.
teams=1
same 2 1 other_values=1 dropout=0
for order in first warm; do
  teams=2 && same 2 1 other_values=1 mode=eager dropout=0 order=$order
  teams=2 && more same 2 1 other_values=1 mode=eager hybrid=1 dropout=0 order=$order optimizer=adam
  teams=2 && more same 2 1 other_values=1 together=1 dropout=0 order=$order
done
teams=3 && more same 3 1 other_values=1 mode=eager hybrid=1 dropout=0
teams=2 && more same 2 1 other_values=1 mode=eager together=1 dropout=0
teams=2 && more same 2 1 other_values=1 mode=eager dropout=0 dtype=bfloat16 optimizer=adam
same 2 1 other_values=1 mode=eager order=late dropout=0
# A gradient that was computed by other values cannot be mended: that is an error.
ranks 2 1 tests/dist mode=eager order=changed dropout=0
for rank in 0 1; do complains "^\[$rank\] error: .*rank 1: values of 0.weight are not rank 0's, .* make the trainer before"; done
teams=1

# Masters of half types stay exact when parameters are brought together.
same 2 1 optimizer=adam dtype=bfloat16 dropout=0

# A batch that is normalised over all ranks, running statistics among the bits.
teams=2 && more same 2 1 together=1 dropout=0
teams=3 && same 3 1 together=1 dropout=0 optimizer=adam mode=eager
teams=4 && more same 2 2 together=1 dropout=0
both_batches() { run 1 "$launch" --no-bind -n 2 sh -c 'exec tests/dist together=1 mode=eager rows=$((4 + RANK))'; }
both_batches
for rank in 0 1; do complains "^\[$rank\] error: .*rows 4.*rows 5|^\[$rank\] error: .*rows 5.*rows 4"; done

# Ranks share the optimiser's state: the bits of one process, and of averages, which stand in and go again.
more same 2 1 shared=1
same 3 1 shared=1 optimizer=adam deep=2
more same 2 2 shared=1 optimizer=adam
more same 2 1 shared=1 optimizer=adam accumulate=2 steps=4
more same 2 1 shared=1 optimizer=adam dtype=bfloat16 dropout=0
teams=2 && more same 2 1 shared=1 mode=eager dropout=0
teams=1
same 2 1 shared=1 optimizer=average deep=1
then=$(sed -n 's/^\[[01]\] then //p' "$tmp/out" | sort -u)
alone tests/dist shards=2 optimizer=average deep=1
says "^then $then$"
# Clipped by the norm of all gradients, which each rank computes.
same 3 1 shared=1 optimizer=clip deep=1
more same 2 2 shared=1 optimizer=clip
more same 2 1 shared=1 optimizer=adam clip=0.5 dtype=bfloat16 dropout=0
more same 2 1 shared=1 clip=0.5 groups=1
teams=2 && more same 2 1 shared=1 optimizer=clip mode=eager dropout=0
teams=1

# What is kept: of Adam's two states of ten layers each of two ranks has half, to half a layer; both together have all.
kept() { sed -n 's/^\(\[[0-9]\] \)\?keeps \([0-9]*\) bytes.*/\2/p' "$tmp/out" | sort -n; }
big=(optimizer=adam deep=9 units=96 dropout=0 steps=2)
alone tests/dist "${big[@]}"
full=$(kept)
ranks 2 0 tests/dist "${big[@]}" shared=1
{ read -r less; read -r more; } < <(kept)
[ $((less + more)) = "$full" ] || fail "two ranks keep $less and $more bytes of state, one $full"
[ $((20 * more)) -le $((11 * full)) ] || fail "a rank keeps $more bytes of state of $full"

# Checkpoints have all of it, whoever goes on with them: four ranks, one process; and the other way round.
cp=$tmp/shared.safetensors
one() { alone tests/dist optimizer=adam "checkpoint=$cp" "$@"; }
some() { ranks "$1" 0 tests/dist optimizer=adam shared=1 "checkpoint=$cp" "${@:2}"; }
hash() { sed -n 's/^\(\[[0-9]\] \)\?hash //p' "$tmp/out" | sort -u; }
one shards=2 steps=3
cp "$cp" "$tmp/one.safetensors"
one shards=4
four=$(hash)
cp "$tmp/one.safetensors" "$cp"
some 4
[ "$(hash)" = "$four" ] || fail "four ranks do not go on as one process does"
rm "$cp"
some 2 steps=3
cp "$cp" "$tmp/two.safetensors"
one shards=4
[ "$(hash)" = "$four" ] || fail "one process does not go on as four ranks do"
cp "$tmp/two.safetensors" "$cp"
some 4
[ "$(hash)" = "$four" ] || fail "four ranks do not go on as two began"
fi

# What is sent: as much as by a ring, and little more.
ranks 2 0 tests/dist units=4000 steps=6 dropout=0
bytes=$(sed -n 's/^\[1\] sent \([0-9]*\) bytes.*/\1/p' "$tmp/out")
parameters=$((4 * (4 * 9 + 4 + 4 * 9 * 4000 + 4000 + 2 * 4000 + 4000 * 5 + 5)))
if [ "${bytes:-0}" -eq 0 ] || [ $((100 * bytes / 6)) -gt $((101 * parameters)) ]; then
  fail "$bytes bytes in 6 steps of $parameters"
fi

# In half the bytes: other bits, the same on both; what differs is found out.
full=$bytes
SL_DIST_WIRE=bfloat16 ranks 2 0 tests/dist units=4000 steps=6 dropout=0
bytes=$(sed -n 's/^\[1\] sent \([0-9]*\) bytes.*/\1/p' "$tmp/out")
if [ "${bytes:-0}" -eq 0 ] || [ $((100 * bytes)) -gt $((51 * full)) ]; then fail "$bytes bytes in bfloat16, $full in float32"; fi
[ "$(sed -n 's/^\[[01]\] hash //p' "$tmp/out" | sort -u | wc -l)" = 1 ] || fail "bfloat16 gives two ranks other parameters"
run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=1 SL_DIST_WIRE=int8 tests/dist
complains 'SL_DIST_WIRE=int8: it must be float32 or bfloat16'

# Sums are right, in the order of the tree or in another, which MPI has; then all have the same bits still.
right() { [ "$(grep -c '^\[[0-2]\] 0 wrong sums$' "$tmp/out")" = 3 ] || fail "wrong sums"; }
for threads in 1 3; do SL_DIST_THREADS=$threads ranks 3 0 tests/dist mode=sums && right; done
run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=1 SL_DIST_THREADS=many tests/dist
complains 'SL_DIST_THREADS=many: it must be a number of threads up to 16'
alone tests/dist shards=3
fixed=$(sed -n 's/^hash //p' "$tmp/out")
export SL_DIST_ORDER=fast
ranks 3 0 tests/dist mode=sums && right
ranks 3 0 tests/dist
[ "$(hashes | wc -l)$(hashes | sort -u | wc -l)" = 31 ] || fail "in the fast order three ranks have not one set of parameters"
[ ! "$tcp" ] || [ "$(hashes | sort -u)" = "$fixed" ] || fail "TCP has another order than the tree"
export SL_DIST_ORDER=fixed
run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=1 SL_DIST_ORDER=any tests/dist
complains 'SL_DIST_ORDER=any: it must be fixed or fast'

# Dropout has other masks on each rank, call by call and compiled; what initialises has the same numbers on all.
ranks 3 0 tests/dist mode=masks
masks() { sed -n "s/^\[[0-2]\] $1 //p" "$tmp/out" | sort -u | wc -l; }
[ "$(masks eager) $(masks compiled) $(masks uniform)" = "3 3 1" ] || fail "three ranks do not draw as they should"

# What overflows on one rank is no fault with loss scaling: all leave the step out, and all scale less.
scaled() {
  ranks 2 0 tests/dist optimizer=scaled dropout=0 fault=nan@2@1 "$@"
  [ "$(grep -c '^\[[01]\] scale 32 after 1 overflows$' "$tmp/out")" = 2 ] || fail "loss scaling ($*): not one overflow on each rank"
  [ "$(hashes | wc -l)$(hashes | sort -u | wc -l)" = 21 ] || fail "loss scaling ($*): not one set of parameters"
}
scaled
scaled shared=1 dtype=float16
scaled mode=eager shared=1
more scaled mode=eager dtype=float16

# A trainer that the others do not matter to: ranks do what they like; the one exchange is the metric's.
ranks 2 0 tests/dist mode=local
[ "$(grep -c 'in 1 exchanges' "$tmp/out")" = 2 ] || fail "a local trainer takes part in exchanges"

# fault KIND STEP TEXT: it happens to rank 1, and ranks 0 and 2 say so, within the timeout.
fault() {
  local rank
  ranks 3 1 tests/dist "fault=$1@$2@1"
  for rank in 0 2; do complains "^\[$rank\] error: .*$3"; done
}
[ ! "$tcp" ] || fault kill 2 'lost the connection to rank 1'
fault nan 2 'rank 1: the gradient of [0-9a-z.]* is not finite'
if [ ! "$tcp" ]; then
  SL_DIST_ORDER=fast fault nan 2 'rank 1: the gradient of [0-9a-z.]* is not finite'
  SL_DIST_ORDER=fast fault rows 2 'rank 1 has 5 rows in a batch'
fi
ranks 3 1 tests/dist fault=nan@2@1 mode=eager dropout=0
complains '^\[0\] error: .*rank 1: the gradient of [0-9a-z.]* is not finite'
fault rows 0 'rank 1: rows of a batch: 5, where rank 0 has rows of a batch: 4'
fault rows 2 'rank 1 has 5 rows in a batch'
fault rate 2 'rank 1 has the learning rate 0.25, rank [02] has 0.1'
fault quit 2 'rank 1 has ended its part'
export SL_DIST_TIMEOUT=10 # how long each of these takes; a busy machine needs some of it until ranks have begun
fault stop 2 'rank 1 did not take part'
[ "$tcp" ] || SL_DIST_ORDER=fast fault stop 2 'rank 1 did not take part'
if [ "$tcp" ]; then
  fault late 0 'rank 1 has not come'
else # as soon as one has ended, MPICH's mpirun ends the others, perhaps before they have said it
  ranks 3 1 tests/dist fault=late@0@1
  complains '^\[[02]\] error: .*rank 1 has not called sl_init'
fi
export SL_DIST_TIMEOUT=60

# both TEXT COMMAND-OF-0 COMMAND-OF-1: both fail, and say it.
both() {
  run 1 "$launch" --no-bind -n 2 sh -c "if [ \"\$RANK\" = 0 ]; then exec $2; else exec $3; fi"
  complains "^\[0\] error: .*$1"
  complains "^\[1\] error: .*$1"
}
# What rank 0 cannot write, no rank takes for written.
both 'sl_checkpoint_save .*nowhere/run.safetensors: cannot be written: No such file' \
  "tests/dist checkpoint=$tmp/nowhere/run.safetensors" "tests/dist checkpoint=$tmp/nowhere/run.safetensors"
both 'sl_dist_sum \((2, 3|3, 2)\)' 'tests/dist mode=shapes' 'tests/dist mode=shapes'
both 'parameter 2.weight: .* where rank 0 has parameter 2.weight' 'tests/dist' 'tests/dist units=25'
both 'optimiser: 1, where rank 0 has optimiser: 0' 'tests/dist' 'tests/dist optimizer=adam'
both 'power of the schedule: [12], where rank 0 has' 'tests/dist optimizer=linear' 'tests/dist optimizer=power'
both 'steps: whole, .* by the sum .*, where rank 0 has .* by the mean' 'tests/dist' 'tests/dist reduction=sum'
both 'steps: whole, of 2 runs' 'tests/dist' 'tests/dist accumulate=2'
both 'elements of type (bfloat16|float32) on rank [01]' 'tests/dist' 'env SL_DIST_WIRE=bfloat16 tests/dist'
[ "$tcp" ] || both 'have different values of SL_DIST_ORDER' 'tests/dist' 'env SL_DIST_ORDER=fast tests/dist'
if [ "$tcp" ]; then
  both 'started for 3 processes' 'tests/dist' 'env WORLD_SIZE=3 tests/dist'
  export SL_DIST_TIMEOUT=10
  both '(different SL_DIST_SECRET|different secret)' 'env SL_DIST_SECRET=a tests/dist' 'env SL_DIST_SECRET=b tests/dist'
  run 1 env SL_DIST=tcp tests/dist
  complains 'need WORLD_SIZE, which is not set'
  for rank in 2 -1 x; do
    run 1 env SL_DIST=tcp RANK=$rank WORLD_SIZE=2 tests/dist
    complains "RANK=$rank: "
  done
  both 'two processes have rank 1' 'env WORLD_SIZE=3 tests/dist' 'env WORLD_SIZE=3 sh -c "RANK=1 tests/dist & RANK=1 exec tests/dist"'
  SL_DIST_TIMEOUT=60
  for address in ::1 '[::1]' localhost; do
    [ "$address" = localhost ] || [ -s /proc/net/if_inet6 ] || continue
    run 0 "$launch" --no-bind -n 2 env MASTER_ADDR="$address" tests/dist steps=1
  done
  # Strangers at the port: 1,000 say nothing, 1,000 send random bytes, and all keep their connections.  They hold nobody up, nor
  # where rank 0 may open few files.
  if command -v python3 >/dev/null; then
    strangers=1000
    [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -gt 2200 ] || strangers=200
    for files in "$(ulimit -Sn)" 60; do
      # shellcheck disable=SC2016
      run 0 "$launch" --no-bind -n 2 sh -c 'if [ "$RANK" = 0 ]; then ulimit -Sn "$2"; exec tests/dist steps=1; fi
exec python3 "$0" "$MASTER_ADDR" "$MASTER_PORT" "$1" "$1" tests/dist steps=1' "$srcdir/tests/rogue_clients.py" "$strangers" "$files"
      [ "$(grep -c '^\[[01]\] hash ' "$tmp/out")" = 2 ] || fail "ranks have not trained among strangers"
    done
  fi
  for port in 99999 http 0 12x; do # at once, not after a wait for the others
    run 1 timeout 300 env SL_DIST=tcp SL_DIST_TIMEOUT=600 RANK=0 WORLD_SIZE=2 MASTER_PORT=$port tests/dist
    complains "MASTER_PORT=$port: it must be from 1 to 65535"
  done
  # What cannot be begun says what to do.
  run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=2 MASTER_ADDR=no.such.name.invalid tests/dist
  complains 'MASTER_ADDR=no.such.name.invalid: .*: give a name or an address of the machine of rank 0'
  run 1 env SL_DIST=tcp RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 tests/dist
  complains 'MASTER_ADDR=192.0.2.1 can be reached from other machines, and SL_DIST_SECRET is not set'
  run 1 env SL_DIST=tcp SL_DIST_SECRET=mine RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 tests/dist
  complains 'rank 0 cannot listen at 192.0.2.1:29500: .*: this machine has no such address'
  run 1 env SL_DIST=tcp SL_DIST_TIMEOUT=3 RANK=1 WORLD_SIZE=2 MASTER_PORT=1 tests/dist
  complains 'rank 0 cannot be reached at 127.0.0.1:1 within 3 seconds .*: is it running there'
  if command -v python3 >/dev/null; then # where somebody listens already
    run 1 python3 -c 'import os, socket, subprocess, sys
s = socket.create_server(("127.0.0.1", 0))
sys.exit(subprocess.call("tests/dist", env=dict(os.environ, SL_DIST="tcp", RANK="0", WORLD_SIZE="2", MASTER_PORT=str(s.getsockname()[1]))))'
    complains 'rank 0 cannot listen at 127.0.0.1:[0-9]*: .*: another program listens there; give all ranks another MASTER_PORT'
  fi
  run 1 env SL_DIST=pigeon tests/dist
  complains 'no transport "pigeon"'
  # A program's own choice comes before the environment's.
  run 1 env SL_DIST=tcp tests/dist dist=pigeon
  complains 'no transport "pigeon"'
  run 0 env SL_DIST=pigeon taskset -c "$core" tests/dist dist=none shards=3
  says "^hash $fixed$"
  run 0 "$launch" --no-bind -n 3 env SL_DIST=pigeon taskset -c "$core" tests/dist dist=tcp
  [ "$(hashes | sort -u)" = "$fixed" ] || fail "processes that a program asked for: not the bits of one"
fi

# Each rank has measured other times: all decide by their sums, for the way that is best for all.
ranks 2 0 tests/dist mode=trial
decided=$(sed -n 's/^\[[01]\] way //p' "$tmp/out")
[ "$(wc -l <<<"$decided")" = 2 ] || fail "not two decisions"
[ "$(sort -u <<<"$decided" | wc -l)" = 1 ] || fail "ranks decide differently"
awk 'NR == 1 { exit !($3 > 0 && $4 > 0 && ($1 == 0 ? $3 <= $4 : $4 < $3)) }' <<<"$decided" || fail "not the best way"

# Metrics are of all ranks; loaders share the samples as shards do.
ranks 3 0 tests/dist steps=1
[ "$(grep -c '^\[[0-2]\] mean 1.3333$' "$tmp/out")" = 3 ] || fail "a metric is not the mean of all ranks"
if have_images; then
  alone tests/dist rows=8 data=$fashion_mnist
  grep '^batch' "$tmp/out" >"$tmp/whole"
  ranks 2 0 tests/dist rows=4 data=$fashion_mnist
  paste -d' ' <(sed -n 's/^\[0\] batch/batch/p' "$tmp/out") <(sed -n 's/^\[1\] batch [0-9]* //p' "$tmp/out") >"$tmp/parts"
  cmp "$tmp/whole" "$tmp/parts" || fail "two ranks do not have the batches of one process"
  [ "$(wc -l <"$tmp/parts")" = 3 ] || fail "not three batches"
fi

if [ ! "$tcp" ]; then # mpirun ends the others, and says which rank was killed
  ranks 3 1 tests/dist fault=kill@2@1
  complains '^mpirun: .*(rank 1 .*signal 9|KILLED BY SIGNAL: 9|signal 9)'
  exit $((failures > 0))
fi

has_checkpoint() { ls "$tmp/driver"/*.safetensors >/dev/null 2>&1; }

# Drivers: losses of one process; all stop at the same step, rank 0 writes for all.
if have_images; then
  few=(--limit 96 --batch-size 32 --quiet --seed 3)
  alone models/lenet --hybrid "${few[@]}" --epochs 2 --json "$tmp/one.json"
  ranks 2 0 models/lenet --hybrid "${few[@]}" --epochs 2 --distributed --json "$tmp/two.json"
# To four digits: half the rows are other blocks of a product.
  figures() { grep -oE '"(train_loss|train_accuracy|test_accuracy)": [0-9.]{1,6}' "$1"; }
  cmp <(figures "$tmp/one.json") <(figures "$tmp/two.json") || fail "two processes have other losses than one"
  ranks 2 1 models/lenet --hybrid "${few[@]}" --batch-size 31
  complains 'batch-size: 31 rows cannot be split equally over 2 processes'
  mkdir "$tmp/driver"
  "$launch" --no-bind -n 2 models/lenet --hybrid "${few[@]}" --epochs 100000 --checkpoint "$tmp/driver" --every 2steps \
    >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  within 300 has_checkpoint || fail "no checkpoint"
  kill -INT $pid
  status=0
  wait $pid || status=$?
  [ $status = 130 ] || fail "interrupted: exit status $status"
  complains '^\[0\] lenet: interrupted after'
  ranks 2 0 models/lenet --hybrid --limit 96 --batch-size 32 --seed 3 --epochs 1 --checkpoint "$tmp/driver" --resume
  says '^\[0\] continuing from .*checkpoint-'
fi

# What optimisers and trainers can.  Call by call, shards are on devices of their own.
teams=1
same 2 1 optimizer=rmsprop groups=1 freeze=1 recompute=1
same 2 2 optimizer=adamw clip=0.5 accumulate=2 steps=4 autocast=bfloat16 dropout=0
for what in optimizer=rmsprop optimizer=adamw optimizer=lion optimizer=nadam optimizer=lamb groups=1 freeze=1 recompute=1 accumulate=2 "optimizer=average" \
  "clip=0.1 groups=1" autocast=bfloat16 "autocast=float16 optimizer=scaled" "freeze=1 groups=1 recompute=1 optimizer=adamw"; do
  for shared in 0 1; do
    # shellcheck disable=SC2086
    teams=1 && more same 2 2 $what shared=$shared steps=4 dropout=0
    [[ $what = *accumulate* ]] && continue
    # shellcheck disable=SC2086
    teams=2 && more same 2 1 $what shared=$shared steps=4 mode=eager dropout=0
  done
done
teams=1
# What overflows in float16 on one rank alone leaves the step out on all.
for mode in step eager; do
  ranks 2 0 tests/dist optimizer=scaled autocast=float16 dropout=0 fault=large@2@1 mode=$mode
  [ "$(grep -c '^\[[01]\] scale 32 after 1 overflows$' "$tmp/out")" = 2 ] || fail "float16 ($mode): not one overflow on each rank"
  [ "$(hashes | wc -l)$(hashes | sort -u | wc -l)" = 21 ] || fail "float16 ($mode): not one set of parameters"
done

# A rank is killed; started again, the run goes on with the checkpoint, to the bits of one that was never stopped.
ranks 2 0 tests/dist optimizer=adam
hash=$(sed -n 's/^\[0\] hash //p' "$tmp/out")
run 0 "$launch" --no-bind -n 2 --restarts 1 taskset -c "$core" tests/dist optimizer=adam "checkpoint=$tmp/run.safetensors" fault=kill@3@1
complains 'rank 1 was ended by signal 9'
both_have "$hash" || fail "after a restart: not the bits $hash"

# A rank is killed while rank 0 writes the checkpoint: rank 0 itself, or another.
for rank in 0 1; do
  for async in 0 1; do
    rm -f "$tmp/run.safetensors"
    run 0 "$launch" --no-bind -n 2 --restarts 1 taskset -c "$core" tests/dist optimizer=adam "checkpoint=$tmp/run.safetensors" \
      async=$async fault=write@3@$rank
    complains "rank $rank was ended by signal 9"
    both_have "$hash" || fail "killed while a checkpoint was written: not the bits $hash"
  done
done
# Half types go on with their masters.
rm -f "$tmp/run.safetensors"
ranks 2 0 tests/dist optimizer=adam dtype=bfloat16 dropout=0
half=$(hashes | sort -u)
run 0 "$launch" --no-bind -n 2 --restarts 1 taskset -c "$core" tests/dist optimizer=adam dtype=bfloat16 dropout=0 \
  "checkpoint=$tmp/run.safetensors" fault=kill@3@1
both_have "$half" || fail "after a restart in bfloat16: not the bits $half"

# A program that fails the first time.
cat >"$tmp/again" <<END
#!/bin/sh
[ "\$RANK" = 0 ] || exit 0
[ -e "$tmp/tried" ] || { : >"$tmp/tried"; exit 3; }
echo went well
END
chmod +x "$tmp/again"
run 0 $launch -n 2 --restarts 1 "$tmp/again"
says '^\[0\] went well$'
complains 'rank 0 ended with status 3'
run 2 $launch -n 0 true

# What cannot be started is reported once, and not tried again; output is whole, input is rank 0's; nothing is left behind.
for program in "$tmp/none" "$tmp"; do
  run 127 $launch -n 2 --restarts 3 "$program"
  [ "$(wc -l <"$tmp/err")" = 1 ] || fail "$program: not one message"
done
run 0 $launch -n 1 printf 'a\0b\nend'
cmp -s "$tmp/out" <(printf '[0] a\0b\n[0] end\n') || fail "bytes are lost"
run 0 $launch -n 2 cat <<<here
[ "$(cat "$tmp/out")" = '[0] here' ] || fail "not rank 0 alone has read"
is_gone() { ! kill -0 "$(cat "$tmp/child")" 2>/dev/null; }
run 1 $launch -n 2 sh -c "[ \$RANK = 0 ] || exit 0; sleep 600 & echo \$! >'$tmp/child'; exit 3"
within 300 is_gone || fail "what a rank has started is left"
has_child() { [ -s "$tmp/child" ]; }
rm "$tmp/child"
$launch -n 1 sh -c "sleep 600 & echo \$! >'$tmp/child'; wait" >/dev/null 2>&1 &
pid=$!
within 300 has_child || fail "no process"
kill -KILL $pid
wait $pid || true
within 300 is_gone || fail "sl-launch was killed, and what it has started is left"
exit $((failures > 0))
