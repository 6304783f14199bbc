#!/bin/bash
# bits.sh: a seed decides all bits of a training run, whatever the scheduling policy, with one CPU team or two, with
# small operations bulked or not, and near the bounds of run-ahead; another seed gives others.  With SL_FIXED_SUMS the
# number of threads of a team changes no bits, of the drivers' networks neither.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
bits=tests/bits

# same NAME=VALUE...: seed 1 under these variables gives the bits expected
same()
{
  got=$(env "$@" "$bits" 1) || got="exit status $?"
  if [ "$got" = "$expected" ]; then
    echo "ok: $*"
  else
    fail "$*: $got instead of $expected"
  fi
}

heteroprio=heteroprio
! grep -q "needs StarPU 1.4" < <(STARPU_SCHED=heteroprio "$bits" 1 2>&1) || heteroprio=

for teams in 1 2; do
  expected=$(env STARPU_NCPU=$teams "$bits" 1)
  echo "STARPU_NCPU=$teams: $expected"
  for policy in lws eager dmda dmdas prio $heteroprio random; do
    same STARPU_NCPU=$teams STARPU_SCHED=$policy
  done
  same STARPU_NCPU=$teams STARPU_SCHED=starling-fuzz SL_FUZZ_SEED=7
  same STARPU_NCPU=$teams SL_BULK=1
  same STARPU_NCPU=$teams SL_BULK=5 SL_RUNAHEAD_TASKS=3
  same STARPU_NCPU=$teams SL_BULK=1 SL_RUNAHEAD_BYTES=1000
done

other=$("$bits" 2)
[ "$other" != "$expected" ] || fail "another seed gives the same bits"

export SL_FIXED_SUMS=1
# same_threads COUNT... NETWORK: teams of so many threads have the bits of one thread; '': the small net
same_threads()
{
  local network=${*: -1} threads
  expected=$(SL_TEAM_THREADS=1 "$bits" 1 $network) || fail "no bits with one thread: $network"
  echo "one thread, ${network:-the small net}: $expected"
  for threads in "${@:1:$#-1}"; do
    got=$(SL_TEAM_THREADS=$threads "$bits" 1 $network) || got="exit status $?"
    [ "$got" = "$expected" ] || fail "$threads threads, ${network:-the small net}: $got instead of $expected"
  done
}
same_threads 3 8 16 ''
for network in lenet resnet18 gpt; do same_threads 3 8 16 $network; done
