#!/bin/bash
# bits.sh: a seed decides all bits of a training run, whatever the scheduling policy, with one CPU team or two, with
# small operations bulked or not, and near the bounds of run-ahead; another seed gives others.  Run by make check in
# the build tree.
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
