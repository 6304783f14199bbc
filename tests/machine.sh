#!/bin/bash
# machine.sh: sl-machine does not measure a machine that others use.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
pids=()
at_end() { [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}"; }
for _ in $(seq "$(nproc)"); do
  (while :; do :; done) &
  pids+=($!)
done
run 1 tools/sl-machine --output "$tmp/here"
complains 'other programs use [0-9]+ % of the CPUs'
[ ! -e "$tmp/here" ] || fail "a description though the machine is busy"
