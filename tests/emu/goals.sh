#!/bin/bash
# goals.sh: rows of the table in doc/parallel.md that emulated GPUs give; called by dev/parallel-goals in a build tree,
# with srcdir set.
set -euo pipefail
export LC_ALL=C EMULATION=yes STARPU_WORKERS_NOBIND=1 OMP_WAIT_POLICY=passive
make --silent tests/emu/lenet tests/emu/test_steps >&2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export STARPU_HOME=$tmp
failed=0

# row WHAT GOAL MEASURED STATUS
row()
{
  verdict=met
  [ "$4" -eq 0 ] || { verdict='**not met**'; failed=1; }
  printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$verdict"
}

copies() { sed -n "s/^ *whole steps, 4 shards on $1 GPUs, dmdas, .*: \(.*\)/\1/p" "$tmp/steps"; }

status=0
tests/emu/test_steps transfers >"$tmp/steps" || status=$?
row 'ResNet-18 in 4 shards on emulated GPUs: transfers a step (`tests/emu/steps.sh`)' \
  'each parameter moves at most once to and once from each device' "2 GPUs: $(copies 2); 4 GPUs: $(copies 4)" $status
status=0
"$srcdir/tests/emu/memory.sh" >"$tmp/memory" || status=$?
row 'LeNet on 2 emulated GPUs with 60 % of the memory that it takes (`tests/emu/memory.sh`)' 'the same losses' \
  "$(tail -n 1 "$tmp/memory")" $status
exit $failed
