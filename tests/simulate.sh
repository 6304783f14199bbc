#!/bin/bash
# simulate.sh: simulated machines: the same run twice gives the same times, more and faster devices are faster, the
# bound is one, mistakes are reported.  Run by make check; needs a build with a StarPU with SimGrid.
. "${srcdir:-.}/tests/expect.sh"
grep -q '^#define SLP_SIMULATION' config.h || skip "this build does not simulate: its StarPU has no SimGrid"
needs_images
: >"$tmp/report"
shown+=("$tmp/report")

# simulate STATUS ARGUMENT...
simulate() {
  : >"$tmp/report"
  run "$1" "$srcdir/tools/sl-simulate" --report "$tmp/report" "${@:2}"
}

# The milliseconds of a batch in the last epoch
batch() { sed -n 's/.* sec, \([0-9.]*\) ms a batch (simulated)$/\1/p' "$tmp/out" | tail -n 1; }
field() { sed -n "s/^simulated $1: \\([0-9.]*\\).*/\\1/p" "$tmp/report"; }
# holds EXPRESSION TEXT
holds() { awk "BEGIN { exit !($1) }" || fail "$2: $1"; }

lenet=(models/lenet --epochs 2 --limit 2048)

echo "--- one machine"
simulate 0 --machine laptop "${lenet[@]}"
laptop=$(batch)
cp "$tmp/report" "$tmp/first"
simulate 0 --machine laptop "${lenet[@]}"
holds "$(batch) == $laptop" "two runs give different times"
cmp -s "$tmp/report" "$tmp/first" || fail "two runs give different reports"
holds "$(field distance) >= 1" "a run is faster than its bound"
holds "$(field distance) < 1.1" "one device has nothing to wait for, yet the run is far from its bound"
grep -q '^simulated device cpu:0: [1-9][0-9]* tasks, busy [0-9.]* s, share 0\.9' "$tmp/report" || fail "no busy CPU"

echo "--- a machine twice as fast takes half the time"
awk '/^cpu\.g(flops|bytes)/ { $2 *= 2 } /_us/ { $2 /= 2 } { print }' "$srcdir/tools/machines/laptop" >"$tmp/faster"
simulate 0 --machine "$tmp/faster" "${lenet[@]}"
holds "$(batch) > 0.49 * $laptop && $(batch) < 0.51 * $laptop" "not half the time"

echo "--- blanks before a key change nothing"
sed 's/^/ \t/' "$srcdir/tools/machines/laptop" >"$tmp/indented"
simulate 0 --machine "$tmp/indented" "${lenet[@]}"
holds "$(batch) == $laptop" "a description with blanks before its keys gives other times"

echo "--- GPUs"
simulate 0 --machine h100 "${lenet[@]}"
holds "$(batch) < $laptop / 10" "a GPU is hardly faster than a laptop"
holds "$(field distance) >= 1" "a run is faster than its bound"
grep -q '^simulated link ram to gpu:0: [0-9.]* MiB' "$tmp/report" || fail "nothing went to the GPU"
grep -q '^simulated memory gpu:0: at most [1-9]' "$tmp/report" || fail "no memory of the GPU was used"
! grep -q Warning "$tmp/err" || fail "StarPU is not content with the machine"
wide=("models/lenet" --epochs 2 --limit 16384 --batch-size 8192)
simulate 0 --machine h100x2 "${wide[@]}" --device gpu:0
one=$(batch)
simulate 0 --machine h100x2 "${wide[@]}" --device gpu:0,gpu:1
holds "$(batch) < 0.8 * $one" "two GPUs are hardly faster than one with large batches"
grep -q '^simulated link gpu:0 to gpu:1: [0-9.]* MiB' "$tmp/report" || fail "nothing went between the GPUs"

echo "--- the pages show what the programs print"
# documented PAGE START: of the block that begins like this, each line with a figure stands in what was printed
documented() {
  local line lines=0 places='s/ [^ ]*\/[^ :]*\.c:[0-9]*//; s/ ([^ ]*)//'
  while IFS= read -r line; do
    grep -qF -- "$line" < <(sed "$places" "$tmp/out") || fail "$1 shows another run (make it anew): $line"
    lines=$((lines + 1))
  done < <(awk -v start="$2" '$0 ~ start { on = 1 } /^```/ { on = 0 } on && /[0-9]/' "$srcdir/$1" | sed "$places")
  [ $lines -gt 1 ] || fail "$1: no block begins like this: $2"
}
simulate 0 --machine h100x2 models/lenet --epochs 2 --limit 5120 --device gpu:0,gpu:1
documented doc/simulation.md '^running on: '
resnet=(models/resnet18 --device "gpu:0,gpu:1" --limit 1536 --batch-size 256 --epochs 1)
run 0 "$srcdir/tools/sl-trace" --view none --output "$tmp/trace" "$srcdir/tools/sl-simulate" --machine h100x2 "${resnet[@]}"
documented doc/traces.md '^[0-9]+ tasks on'

echo "--- a trace lists all copies, by value and reason"
run 0 "$srcdir/tools/sl-trace" --view none --output "$tmp/limited" "$srcdir/tools/sl-simulate" --machine h100 --memory 300M models/gpt \
  --layers 4 --heads 8 --width 512 --context 128 --batch-size 16 --iterations 4 --every 4 --device gpu:0
mib_of() { cat "$tmp/out" "$tmp/err" | awk -v start="$1" -v end="$2" -v field="$3" '
  $0 ~ start { on = 1; if (end) next } end && !NF { on = 0 } on { sum += $(NF - field); if (!end) on = 0 } END { printf "%.1f", sum }'; }
[ "$(mib_of '^Copies' 1 4)" = "$(mib_of '^simulated link' '' 1)" ] ||
  fail "copies of $(mib_of '^Copies' 1 4) MiB instead of $(mib_of '^simulated link' '' 1)"
for reason in fetch offload; do
  grep -qE "^  dense[0-9]+_weight_(mean|var) +$reason +4 " "$tmp/out" || fail "no state of the optimiser with the reason $reason"
done

echo "--- several devices bring what they must"
"$srcdir/dev/parallel-goals" --simulation . --images 16384 >"$tmp/out" 2>"$tmp/err" || fail "a goal is not met"
cat "$tmp/out"

[ -x tests/priorities ] || "${MAKE:-make}" --no-print-directory tests/priorities >/dev/null
echo "--- priorities: what is on the critical path begins first; heteroprio runs"
products() {
  simulate 0 --machine h100x2 --sched "$1" tests/priorities >&2
  sed -n 's/ ms$//p' "$tmp/out"
}
sorted=$(products dmdas)
unsorted=$(SL_PRIORITIES=0 products dmdas)
echo "a chain of products behind others: $sorted ms by priorities, $unsorted ms without"
holds "$sorted < 0.9 * $unsorted" "the chain does not begin first"
holds "$(products heteroprio) < 2 * $sorted" "heteroprio gives CPUs what holds all up"
for policy in dmdasd pheft modular-heteroprio; do holds "$(products $policy) > 0" "no time under $policy"; done

[ -x tests/placement ] || "${MAKE:-make}" --no-print-directory tests/placement >/dev/null
echo "--- auto: at most 5 % slower than the best devices that a user could name"
# as_fast MACHINE TEAMS NETWORK SHARDS
as_fast() {
  run 0 "$srcdir/dev/auto-goals" --simulation . --machines "$1" --teams "$2" --networks "$3" --shards "$4"
  tail -n 1 "$tmp/out"
}
as_fast h100 1 lenet 1
as_fast h100x2 1 lenet 1,2
as_fast h100x2 1 resnet18 2
as_fast pcie2 1 gpt 2
as_fast laptop 4 resnet18 4
as_fast xeon2x32 2 gpt 2
run 1 "$srcdir/dev/auto-goals" --simulation . --machines h100 --networks lenet --shards 1 --at-most 0.5
says 'not met'

echo "--- several numbers of teams: one of all cores is not the best for small shards"
simulate 0 --machine xeon2x32 --teams 1,8 tests/placement lenet 16 auto
grep -q '^simulated teams: 1: 0\.[0-9]* s$' "$tmp/report" || fail "no time with one team"
grep -q '^simulated best: 8 teams$' "$tmp/report" || fail "one team of 64 cores is the best"
holds "$(sed -n 's/ ms$//p' "$tmp/out") > 0" "no output of the fastest run"
simulate 2 --machine laptop --teams 1,x tests/placement lenet 2 auto
complains 'teams: not a number: 1,x'

# And some on top: what was evicted or is read again.
echo "--- what travels: half of 42.6 MiB of gradients and of values in each step, and once the first values"
simulate 0 --machine h100x2 models/resnet18 --device gpu:0,gpu:1 --batch-size 512 --limit 3072 --epochs 1
for way in 'gpu:0 to gpu:1' 'gpu:1 to gpu:0'; do
  holds "$(field "link $way") <= 42.6 * (6 + 2.5)" "too much went from $way"
done

echo "--- a GPU that has no room for all: a step in parts; what travels is what is still needed"
sed 's/^gpu.memory_gib.*/gpu.memory_gib 1/' "$srcdir/tools/machines/h100" >"$tmp/small"
batches=(models/resnet18 --device gpu:0 --batch-size 512 --limit 1024 --epochs 1)
simulate 0 --machine h100 "${batches[@]}"
ample=$(batch)
simulate 0 --machine "$tmp/small" "${batches[@]}"
holds "$(batch) > $ample" "eviction costs nothing"
holds "$(field 'link gpu:0 to ram') > 1000" "nothing was put out"
holds "$(field 'link gpu:0 to ram') < 1.3 * $(field 'link ram to gpu:0')" "what nobody reads was put out"

echo "--- nodes"
several=(models/lenet --hybrid --epochs 1 --limit 4096 --batch-size 1024)
simulate 0 --machine h100 --nodes 1 "${several[@]}"
! grep -q 'nodes' "$tmp/report" || fail "one node has a network"
efficiency() { sed -n 's/^simulated nodes: 4, efficiency \([0-9.]*\): .*/\1/p' "$tmp/report"; }
simulate 0 --machine h100 --nodes 4 "${several[@]}"
near=$(efficiency)
cp "$tmp/report" "$tmp/first"
grep -q '^simulated network: 4 nodes, [1-9][0-9]* exchanges, ' "$tmp/report" || fail "no network in the report"
grep -q '^simulated cost of 4 nodes: sums on a GPU -\?[0-9.]* s, network -\?[0-9.]* s$' "$tmp/report" || fail "no cost"
simulate 0 --machine h100 --nodes 4 --sums memory "${several[@]}"
grep -q '^simulated cost of 4 nodes: sums go through main memory -\?[0-9.]* s, network -\?[0-9.]* s$' "$tmp/report" || fail "no cost of main memory"
holds "$(efficiency) < $near" "sums through main memory cost nothing"
simulate 2 --machine h100 --nodes 4 --sums disk "${several[@]}"
complains '--sums: neither gpu nor memory: disk'
sed 's/^node.gbytes.*/node.gbytes 0.5/; $a node.count 4' "$srcdir/tools/machines/h100" >"$tmp/far"
simulate 0 --machine "$tmp/far" "${several[@]}"
holds "0 < $(efficiency) && $(efficiency) < 0.9 * $near && $near <= 1" "a slow network does not show"
simulate 0 --machine h100 --nodes 4 "${several[@]}"
cmp -s "$tmp/report" "$tmp/first" || fail "two runs on nodes give different reports"
simulate 2 --machine laptop --nodes 2 "${several[@]}"
complains 'node.gbytes is missing'
simulate 2 --machine h100 --nodes 0 "${several[@]}"
complains 'nodes: not a number up to 9999: 0'
SL_DIST=tcp simulate 0 --machine laptop "${lenet[@]}"

echo "--- recorded times replace estimates"
mkdir -p "$tmp/home/codelets/45"
simulate 2 --machine laptop --models "$tmp/nowhere" "${lenet[@]}"
simulate 0 --machine laptop --models "$tmp/home" "${lenet[@]}"
holds "$(batch) == $laptop" "an empty folder of times changes them"

echo "--- mistakes"
simulate 2 --machine nonesuch "${lenet[@]}"
simulate 2 "${lenet[@]}"
simulate 2 --machine laptop
simulate 2 --machine laptop /bin/true
echo "cpu.corse 4" >"$tmp/wrong"
simulate 2 --machine "$tmp/wrong" "${lenet[@]}"
grep -q 'unknown: cpu.corse' "$tmp/err" || fail "the wrong key is not named"
grep -q 'cpu.gflops is missing' "$tmp/err" || fail "what is missing is not named"
{
  sed 's/^/\t/; s/^\tgpu.count.*/gpu.count 1.5/' "$srcdir/tools/machines/h100"
  echo "gpu.count 2"
  echo "cpu.gflops.dot 0"
} >"$tmp/wrong"
simulate 2 --machine "$tmp/wrong" "${lenet[@]}"
complains 'wrong: gpu.count must be a whole number'
complains 'gpu.count is there twice'
complains 'must not be 0: cpu.gflops.dot'
printf '\0' >"$tmp/wrong"
simulate 2 --machine "$tmp/wrong" "${lenet[@]}"
complains 'is not a text'
simulate 2 --machine "$tmp" "${lenet[@]}"
complains 'is not a file'
sed 's/^gpu.count.*/gpu.count 9/' "$srcdir/tools/machines/h100x8" >"$tmp/wrong"
simulate 2 --machine "$tmp/wrong" "${lenet[@]}"
complains 'gpu.count must be a whole number, at most 8'
simulate 2 --machine laptop models/lenet --device gpu:0,gpu:0
complains 'gpu:0 is named twice'
simulate 1 --machine laptop --teams 17 "${lenet[@]}"
complains '17 CPU devices on [0-9]+ cores of the machine'
run 2 "$srcdir/tools/sl-simulate" --report "$tmp/nowhere/report" --machine laptop "${lenet[@]}"
complains "cannot write $tmp/nowhere/report"
if [ -c /dev/full ]; then
  run 1 "$srcdir/tools/sl-simulate" --report /dev/full --machine laptop "${lenet[@]}"
  complains 'No space left'
fi
simulate 1 --machine laptop models/lenet --device gpu:0
grep -q 'gpu:0 does not exist' "$tmp/err" || fail "the device that is not there is not named"
goals=$srcdir/dev/parallel-goals
check=$srcdir/dev/sim-check
run 2 "$goals" --simulation . --images x
complains 'images: not a number: x'
run 2 "$goals" --build-dir .
complains 'was built with a StarPU with SimGrid'
run 2 "$srcdir/dev/auto-goals" --simulation . --shards 1,x
complains 'not numbers: 1 x'
run 2 "$check" --build-dir . --simulation . --rounds 0
complains 'rounds: not a number: 0'
run 2 "$check" --build-dir . --simulation .
complains '--build-dir: . was built with a StarPU with SimGrid'
