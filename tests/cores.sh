#!/bin/bash
# cores.sh: teams on machines that hwloc is told to describe, and under variables that change them: which cores and how many
# threads sl-info reports, and why; masks under LLVM's OpenMP; how sl-launch divides such machines.  Run by make check in the
# build tree.
. "${srcdir:-.}/tests/expect.sh"
unset STARPU_WORKERS_NOBIND OMP_NUM_THREADS
export STARPU_NCUDA=0 STARPU_SILENT=1

# info NAME=VALUE...: sl-info under these
info() { run 0 env "$@" tools/sl-info; }
# team I CPUS NUMA THREADS CORES: a row of the table of devices
team() {
  says "^  cpu:$1 +CPU team .* $2 +$3 +$4 +$5 *\$"
}

two='HWLOC_SYNTHETIC=pack:2 numa:1 core:32 pu:2'
echo "--- synthetic machines"
info "$two"
team 0 0-127 0-1 64 64
says '^  machine +64 cores, 128 hardware threads$'
says '^  for teams +64 cores, 2 NUMA nodes$'
says '^  left out +64 hardware threads'
says '^  STARPU_NCPU +2 gives each NUMA node a team of its own'
info "$two" STARPU_NCPU=2
team 0 0-63 0 32 32
team 1 64-127 1 32 32
info "$two" STARPU_NCPU=4
team 1 32-63 0 16 16
team 2 64-95 1 16 16
info 'HWLOC_SYNTHETIC=pack:2 numa:1 core:64 pu:2'
team 0 0-255 0-1 128 128
info 'HWLOC_SYNTHETIC=pack:4 numa:2 core:16 pu:2' STARPU_NCPU=16
team 0 0-15 0 8 8
team 15 240-255 7 8 8
info HWLOC_SYNTHETIC=pu:8
team 0 0-7 0 8 8
info 'HWLOC_SYNTHETIC=pack:2 numa:1 core:128 pu:1' STARPU_NCPU=64
team 63 252-255 1 4 4

echo "--- variables"
info "$two" OMP_NUM_THREADS=3,2
team 0 0-127 0-1 3 64
says '^  OMP_NUM_THREADS +3$'
says '^  OMP_NUM_THREADS +leaves 61 of 64 cores idle$'
info "$two" OMP_THREAD_LIMIT=3
team 0 0-127 0-1 3 64
says '^  OMP_THREAD_LIMIT +3$'
says '^  OMP_THREAD_LIMIT +leaves 61 of 64 cores idle$'
info "$two" OMP_NUM_THREADS=3 SL_TEAM_THREADS=100
team 0 0-127 0-1 100 64
says '^  teams +100 threads on 64 cores: they wait for each other$'
info "$two" STARPU_WORKERS_COREID=32-35,2
team 0 4-5,64-71 0-1 5 5
says '^  named +5: STARPU_WORKERS_COREID$'
info "$two" STARPU_WORKERS_COREID='40 3 41 2' STARPU_NCPU=2
says '^  for teams +4 cores, 2 NUMA nodes$'
says '^  left out +4 hardware threads'
team 0 80-83 1 2 2
team 1 4-7 0 2 2
# What other programs have left of a node may be too little for its teams.
info "$two" STARPU_WORKERS_COREID=0-33 STARPU_NCPU=2
team 0 0-33 0 17 17
team 1 34-67 0-1 17 17
info "$two" STARPU_WORKERS_COREID=0-47 STARPU_NCPU=2
team 1 64-95 1 16 16
run 1 env "$two" STARPU_WORKERS_COREID=5-3 tools/sl-info
complains 'STARPU_WORKERS_COREID=5-3 in the environment is no list of numbers'
info "$two" STARPU_WORKERS_CPUID='0 1 127'
team 0 0-1,126-127 0-1 2 2
info "$two" STARPU_RESERVE_NCPU=2
team 0 0-123 0-1 62 62
says '^  reserved +2: STARPU_RESERVE_NCPU$'
info "$two" OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1
team 0 64-127 1 32 32
says '^  shared +with the 2 unbound processes of this job on this machine$'
info "$two" STARPU_WORKERS_NOBIND=1
team 0 0-127 0-1 64 64

echo "--- this machine"
cores=$(tools/sl-info | sed -n 's/^  for teams *\([0-9]*\) cores.*/\1/p')
for how in true close spread; do
  info OMP_PROC_BIND=$how
  team 0 '[0-9,-]+' '[0-9-]+' "$cores" "$cores"
  says '^  masks +OpenMP binds threads .OMP_PROC_BIND.'
  if [ "$cores" -gt 1 ]; then
    info OMP_PROC_BIND=$how OMP_PLACES=cores STARPU_NCPU=2
    team 1 '[0-9,-]+' '[0-9-]+' $(((cores + 1) / 2)) $(((cores + 1) / 2))
  fi
done
info STARPU_RESERVE_NCPU=1 STARPU_MAIN_THREAD_BIND=1
if [ "$cores" -gt 1 ] && command -v taskset >/dev/null; then
  first=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
  run 0 taskset -c "$first" tools/sl-info
  team 0 "$first" '[0-9]+' 1 1
  says '^  of these +1: the mask of this process'
fi
# With LLVM's OpenMP in libgomp's place, as in conda's environments.
llvm=$(clang -print-file-name=libomp.so 2>/dev/null || true)
if [ -f "$llvm" ] && [[ ${CFLAGS:-} != *-fsanitize* ]]; then
  run 0 env LD_PRELOAD="$llvm" tests/test_teams masks
  says passed
  run 0 env LD_PRELOAD="$llvm" tests/test_throttle
  says '^ *asserts .* 0 +n/a'
fi
# Both variables: what Starling measures goes where the first one says.
mkdir "$tmp/home" "$tmp/cache"
info STARPU_HOME="$tmp/home" XDG_CACHE_HOME="$tmp/cache"
[ -d "$tmp/home/.starpu" ] && [ ! -e "$tmp/cache/.starpu" ] || fail "StarPU does not use STARPU_HOME beside XDG_CACHE_HOME"

echo "--- processes"
run 0 env "$two" tools/sl-launch -n 2 --show-cpus
says '^0: 0-63$'
says '^1: 64-127$'
run 0 env 'HWLOC_SYNTHETIC=core:4 pu:1' tools/sl-launch -n 8 --show-cpus
says '^7: 0-3$'
