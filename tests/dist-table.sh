#!/bin/bash
# dist-table.sh: what happens to rank 1 of three, and what the other two say and after how many seconds, as a table: over TCP, and over
# MPI if it is there.  Each must say the rank, or what differs, and end with status 1; nobody may be left.  Run by make check-long in the
# build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/leaked_processes.sh"
export STARPU_HOME=$tmp STARPU_SILENT=1 STARPU_WORKERS_NOBIND=1 OMP_NUM_THREADS=1 STARPU_NCPU=1
export MPIRUN=${MPIRUN:-mpirun}
unset SL_DIST RANK WORLD_SIZE MASTER_ADDR MASTER_PORT SL_DIST_SECRET SL_DIST_WIRE SL_DIST_ORDER SL_DIST_TIMEOUT
patience=60 # seconds: the deadline is 10, and machines are busy

# row TRANSPORT WHAT SURVIVORS TEXT COMMAND-OF-RANK-1 [COMMAND-OF-OTHERS]
row() {
  local launch=tools/sl-launch rank said after
  [ "$1" = tcp ] || launch=$srcdir/tests/mpi-launch
  run 1 "$launch" --no-bind -n 3 sh -c "if [ \"\$RANK\" = 1 ]; then exec $5; else exec ${6:-tests/dist}; fi" >/dev/null
  for rank in $3; do
    said=$(sed -n "/^\[$rank\] error: /{s///p;q}" "$tmp/err")
    after=$(sed -n "/^\[$rank\] after \([0-9.]*\) seconds\$/{s//\1/p;q}" "$tmp/err")
    printf '| %s | %s | %s | %s | %s |\n' "$1" "$2" "$rank" "$after" "$(sed 's: at /[^ ]*: at test.c\::; s:|:/:g' <<<"$said")"
    grep -Eq -- "$4" <<<"$said" || fail "$1, $2: rank $rank does not say $4"
    awk -v most=$patience '{ exit !($1 != "" && $1 <= most) }' <<<"${after:-}" || fail "$1, $2: rank $rank after ${after:-no} seconds"
  done
  end_left 60
}

# What is the same over both.  NaN and faults are told to the rank itself, too.
rows() {
  row "$1" 'stopped (SIGSTOP)' '0 2' 'rank 1 did not take part' 'tests/dist fault=stop@2@1'
  row "$1" 'other network' '0 1 2' 'rank 1: parameter 2.weight: .* where rank 0 has' 'tests/dist units=25'
  row "$1" 'other batch' '0 1 2' 'rank 1: rows of a batch: 5, where rank 0 has rows of a batch: 4' 'tests/dist rows=5'
  row "$1" 'other batch later' '0 1 2' 'rank 1 has 5( rows in a batch|$)' 'tests/dist fault=rows@2@1'
  row "$1" 'NaN' '0 1 2' 'rank 1: the gradient of [0-9a-z.]* is not finite' 'tests/dist fault=nan@2@1'
  row "$1" 'failed kernel' '0 1 2' 'label' 'tests/dist fault=label@2@1'
  row "$1" 'ends its part' '0 2' 'rank 1 has ended its part' 'tests/dist fault=quit@2@1'
}

echo "| transport | rank 1 | who reports | after seconds | what |"
echo "|---|---|---|---|---|"
row tcp 'killed (SIGKILL)' '0 2' 'lost the connection to rank 1' 'tests/dist fault=kill@2@1'
row tcp 'late' '0 2' 'rank 1 has not come' 'sleep 600'
row tcp 'wrong world size' '0 1 2' 'rank 1 was started for 4 processes' 'env WORLD_SIZE=4 tests/dist'
row tcp 'wrong secret' '0 1 2' 'different .*SECRET|different secret' 'env SL_DIST_SECRET=other tests/dist'
rows tcp
if [ ! -f .libs/libstarling-mpi.so ] || ! command -v "$MPIRUN" >/dev/null; then skip "MPI: built without it, or no $MPIRUN"; fi
# mpirun ends the others when one is killed, or has ended badly: then not all may be left to say something.
row mpi 'killed (SIGKILL)' '' '' 'tests/dist fault=kill@2@1'
complains '^mpirun: .*(rank 1 .*signal 9|KILLED BY SIGNAL: 9|signal 9)'
printf '| mpi | killed (SIGKILL) | mpirun | | %s |\n' "$(grep -Eo -m 1 '(mpirun noticed|rank 1).*signal 9[^.]*|KILLED BY SIGNAL: 9.*' "$tmp/err")"
row mpi 'late' '0 2' 'rank 1 has not called sl_init' 'tests/dist fault=late@0@1'
rows mpi
exit $((failures > 0))
