#!/bin/bash
# trace.sh: sl-trace on models/lenet: what StarVZ reads is in the trace and the counts agree, Perfetto's file is complete,
# pictures are drawn, failures reported.  Run by make check; needs a StarPU with FxT, jq, and for parts of it the tools of
# the views.
. "${srcdir:-.}/tests/expect.sh"
needs_images
command -v jq >/dev/null || skip "no jq (Debian: jq)"
trace=$srcdir/tools/sl-trace
# json FILTER TEXT: the filter must give true
json() { [ "$(jq "$1" "$json")" = true ] || fail "$2: $1"; }
count() { grep -c -- "$@" || true; }

if grep -q '^#define SLP_SIMULATION' config.h; then
  traced=("$srcdir/tools/sl-simulate" --machine h100x2 "$PWD/models/lenet" --device gpu:0,gpu:1)
  workers="CPU0 CUDA0_0 CUDA1_0"
else
  traced=(models/lenet)
  workers="CPU0"
fi

echo "--- mistakes"
run 2 "$trace"
run 2 "$trace" --view painting models/lenet
complains 'unknown view: painting'
run 2 "$trace" --iteration x models/lenet
run 1 "$trace" -o "$tmp/none" no-such-program
complains 'no-such-program'
run 0 "$trace" --help

# A folder with every program of this machine but one
without() {
  rm -rf "$tmp/bin"
  mkdir "$tmp/bin"
  local program
  for program in bash sed grep awk cat ldd dirname basename readlink head tail mktemp rm mkdir cp mv ls wc timeout paste \
    env sort sleep; do
    ln -s "$(command -v $program)" "$tmp/bin/$program"
  done
  for program in vite dot pj_dump rec2csv Rscript; do
    [ "$program" = "$1" ] || printf '#!/bin/sh\nexit 0\n' >"$tmp/bin/$program"
  done
  chmod +x "$tmp/bin"/*
}
for view in vite:vite:vite dag:dot:graphviz starvz:pj_dump:pajeng starvz:rec2csv:recutils starvz:Rscript:r-base-core; do
  IFS=: read -r name tool package <<<"$view"
  without "$tool"
  run 1 env PATH="$tmp/bin" bash "$trace" --view "$name" -o "$tmp/none" models/lenet
  complains "--view $name needs $tool \(Debian: $package\)"
done
without nothing
run 1 env PATH="$tmp/bin" bash "$trace" --view starvz -o "$tmp/none" models/lenet
complains 'CRAN'

library=$({ ldd models/.libs/lenet models/lenet 2>/dev/null || true; } | sed -n 's/^.*libstarpu-.* => \(.*\) (.*$/\1/p' | sed -n 1p)
if [ -n "$library" ] && ! grep -q fut_setup "$library"; then
  run 1 "$trace" --view none -o "$tmp/none" models/lenet
  complains 'without FxT'
  skip "this StarPU records no traces"
fi
run 1 "$trace" --view none -o "$tmp/none" true
complains 'wrote no trace'
run 3 "$trace" --view none -o "$tmp/none" bash -c 'exit 3'
run 2 "$trace" --keep=yes --view none -o "$tmp/none" true
complains 'unknown option: --keep=yes'
run 139 "$trace" --view none -o "$tmp/none" bash -c 'kill -SEGV $$'
complains 'bash: exit status 139 \(SEGV\)$'
if grep -q 'sl-trace: line' "$tmp/err"; then fail "a crash shows the script"; fi
# A program that is called like something in the script, which keeps its own locale
mkdir "$tmp/own"
printf '#!/bin/sh\necho "${LC_ALL:-none} $*"\n' >"$tmp/own/usage"
chmod +x "$tmp/own/usage"
run 1 env LC_ALL=C.UTF-8 PATH="$tmp/own:$PATH" "$trace" --view none -o "$tmp/none" usage --help
says '^C\.UTF-8 --help$'
run 1 env -u LC_ALL PATH="$tmp/own:$PATH" "$trace" --view none -o "$tmp/none" usage
says '^none '

echo "--- a trace, where paths have blanks"
dir="$tmp/a trace"
run 0 env TMPDIR="$tmp" "$trace" --keep --view perfetto -o "$dir" "${traced[@]}" --limit 1024 --epochs 1
for title in 'Time per operation' 'Workers' 'Longest gaps' 'Bounds'; do says "^$title"; done
says '^  conv2d  .* %'
says '^  area .* ms: the run took [1-9][0-9]*\.[0-9]* times as long'
[ "${traced[0]}" = models/lenet ] || says '^  RAM +to CUDA0 '
rec=$dir/starpu/tasks.rec
ran=$(count '^EndTime:' "$rec")
[ "$ran" -gt 100 ] || fail "only $ran tasks"
grep -q "^File: .*models/lenet\.c$" "$rec" || fail "no place of the driver"
grep -q '^Iteration: 3$' "$rec" || fail "no iterations"
[ "$(sed -n 's/^Name: //p' "$rec" | count '^segment$')" -eq 0 ] || fail "tasks without a readable name"
[ "$(count '^task' "$dir/starpu/calls.tsv")" -eq "$ran" ] || fail "calls.tsv does not have each task"

echo "--- Perfetto's file"
json=$dir/trace.json
json 'has("traceEvents")' "no Trace Event file"
json "[.traceEvents[] | select(.cat == \"task\")] | length == $ran" "not each task"
json '[.traceEvents[] | select(.cat == "task") | .args.job] | unique | length == '"$ran" "a task twice"
json '[.traceEvents[] | select(.ph == "X") | .dur >= 0 and .ts >= 0] | all' "times out of order"
json '[.traceEvents[] | select(.cat == "task")] | group_by(.tid) | map(sort_by(.ts) | [range(1; length) as $i
  | .[$i - 1].ts + .[$i - 1].dur <= .[$i].ts + 0.01] | all) | all' "tasks of a track overlap"
json '[.traceEvents[] | select(.ph == "s") | .id] | sort == ([range(1; length + 1)])' "arrows without numbers"
json '([.traceEvents[] | select(.ph == "s") | .id] | sort) == ([.traceEvents[] | select(.ph == "f") | .id] | sort)' \
  "arrows without an end"
json '([.traceEvents[] | select(.ph == "s") | {key: (.id | tostring), value: .ts}] | from_entries) as $begin
  | [.traceEvents[] | select(.ph == "f") | .ts >= $begin[.id | tostring] - 0.01] | all' "arrows into the past"
json '[.traceEvents[] | select(.name == "conv2d") | .args.calls | test("conv2d\\(float32\\([0-9]+, ")] | all' "no shapes"
json '[.traceEvents[] | select(.name == "conv2d") | .args["asked for at"] | test("lenet\\.c:[0-9]+$")] | all' "no places"
json '[.traceEvents[] | select(.name == "conv2d_grad_data") | .args.block == "backward"] | all' "no phases"
json '[.traceEvents[] | select(.ph == "C") | .name] | index("ready tasks") != null' "no counters"
for worker in $workers; do
  json "[.traceEvents[] | select(.name == \"thread_name\") | .args.name] | index(\"$worker\") != null" "no track $worker"
done

echo "--- what StarVZ reads"
if command -v pj_dump >/dev/null && command -v rec2csv >/dev/null; then
  # As StarVZ does: pj_dump takes no empty names, and events in the order of time only.
  sed 's/""/"x"/g' "$dir/starpu/paje.trace" >"$tmp/full"
  { grep -E '^(%|[0-7][[:space:]])' "$tmp/full"; grep -vE '^(%|[0-7][[:space:]])' "$tmp/full" | sort -s -V --key=2,2; } |
    pj_dump -o -n --user-defined >"$tmp/paje.csv" 2>"$tmp/err" || fail "pj_dump"
  # Nature, ResourceId, Type, Start, End, Duration, Depth, Value, Size, Params, Footprint, Tag, JobId, SubmitOrder, GFlop,
  # X, Y, Iteration, Subiteration, NumaNodes
  awk -F', ' '$3 == "Worker State" && NF > 8' "$tmp/paje.csv" >"$tmp/states.csv"
  [ "$(wc -l <"$tmp/states.csv")" -eq "$ran" ] || fail "$(wc -l <"$tmp/states.csv") states of workers for $ran tasks"
  awk -F', ' 'NF != 20 || $2 !~ /^(CPU[0-9]+|CUDA[0-9]+_[0-9]+)$/ || $5 < $4 || $13 !~ /^[0-9]+$/ || $18 !~ /^-?[0-9]+$/ ||
    $15 !~ /^[0-9.]+$/ { print; bad = 1 } END { exit bad }' "$tmp/states.csv" >"$tmp/out" || fail "fields of a state"
  [ "$(awk -F', ' '{ print $18 }' "$tmp/states.csv" | sort -u | paste -sd' ')" = "-1 0 1 2 3" ] || fail "iterations"
  awk -F', ' '{ print $13 }' "$tmp/states.csv" | sort >"$tmp/a"
  rec2csv "$rec" | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) { gsub(/"/, "", $i); print $i } }' >"$tmp/fields"
  for field in JobId SubmitOrder SubmitTime StartTime EndTime Handles Modes Sizes MPIRank Name Model Priority WorkerId \
    MemoryNode Tag Footprint Parameters; do
    grep -qx "$field" "$tmp/fields" || fail "tasks.rec has no $field"
  done
  recsel -e '#EndTime > 0' -P JobId "$rec" | grep . | sort >"$tmp/b"
  cmp -s "$tmp/a" "$tmp/b" || fail "not the same tasks in paje.trace and tasks.rec"
  for variable in 'Number of Ready Tasks' 'Number of Submitted Uncompleted Tasks' GFlops 'Used \(MB\)' \
    'Bandwidth In \(MB/s\)' 'Bandwidth Out \(MB/s\)'; do
    grep -Eq "^Variable, [^,]*, $variable," "$tmp/paje.csv" || fail "paje.trace has no variable $variable"
  done
else
  echo "SKIP: fields: no pj_dump or rec2csv (Debian: pajeng, recutils)"
fi

echo "--- blocks"
if [ "${traced[0]}" = models/lenet ]; then
  run 0 "$trace" --view perfetto -o "$tmp/blocks" models/mlp --mode eager --limit 512 --epochs 1
  says '^  backward/[a-z]+0/dense[01] '
  says '^  update '
  says '^  run-ahead|^  all: sl_wait_all at '
  json=$tmp/blocks/trace.json
  json '[.traceEvents[] | select(.cat == "block") | .name] | unique | contains(["backward", "dense0", "update"])' "no blocks"
fi

echo "--- layers of compiled steps"
if [ "${traced[0]}" = models/lenet ]; then stepped=(models/mlp --mode step --limit 1024); else
  stepped=("$srcdir/tools/sl-simulate" --machine h100x2 "$PWD/models/resnet18" --device gpu:0,gpu:1 --batch-size 64 --limit 256)
fi
run 0 "$trace" --keep --view perfetto,picture -o "$tmp/step" "${stepped[@]}" --epochs 1
# Its blocks have most of the time, and together all of it
awk '/^Time per layer/ { on = 1; next } /^$/ { on = 0 }
  on && match($0, /[0-9.]+ %/) { share = substr($0, RSTART, RLENGTH - 2); all += share; if (/in no block/) none = share + 0 }
  END { exit !(all > 98 && all < 102 && none < 40) }' "$tmp/out" || fail "the layers do not have the steps' time"
json=$tmp/step/trace.json
if [ "${traced[0]}" = models/lenet ]; then
  says '^  backward/sequential0/dense0 '
  # What the layers of each task took is no more than the task did.
  awk -F'\t' 'FNR == NR { if (/^spent/) for (i = 3; i <= NF; i++) spent[$2] += $i; next }
    /^JobId: / { id = substr($0, 8) } /^StartTime: / { start = substr($0, 12) } /^EndTime: / { took[id] = substr($0, 10) - start }
    END { for (id in spent) { n++; if (spent[id] > 1e3 * took[id] + 50) { print id, spent[id], took[id]; bad = 1 } }
          exit bad || n < 4 }' "$tmp/step/starpu/calls.tsv" "$tmp/step/starpu/tasks.rec" >"$tmp/out" || fail "times of layers"
  contains "$tmp/step/starpu/data.rec" '^Name: dense0_weight$'
  contains "$tmp/step/starpu/data.rec" '^Name: input0$'
fi
json '[.traceEvents[] | select(.cat == "block") | .name] | unique | contains(["backward"])' "no layers within steps"

echo "--- the program, and the picture"
json '[.traceEvents[] | select(.cat == "issue")] | length > 20' "no tasks issued"
json '[.traceEvents[] | select(.cat == "wait") | .args.at | test("^sl_[a-z_]+ at ")] | length > 1 and all' "no waits"
json '[.traceEvents[] | select(.cat == "wait") | .dur >= 0 and .ts > -1e6] | all' "waits out of order"
picture=$tmp/step/trace.svg
if command -v python3 >/dev/null; then
  run 0 python3 -c "import sys, xml.etree.ElementTree as x; x.parse(sys.argv[1])" "$picture"
fi
for worker in $workers program iterations 'tasks in flight' 'ready tasks'; do
  grep -q ">$worker<" "$picture" || fail "the picture has no row $worker"
done
[ "$(wc -c <"$picture")" -lt 1000000 ] || fail "the picture is large"

if [ "${traced[0]}" = models/lenet ]; then
  echo "--- names of all kinds"
  mkdir "$tmp/my 'dir"
  cat >"$tmp/my 'dir/names.c" <<'END'
#include <starling.h>
#include <string.h>

static sl_tensor *twice(sl_tensor *x)
{
	return sl_mul_scalar(x, 2);
}

int main(int argc, char **argv)
{
	(void)argv;
	char lengthy[400] = "z";
	for (int i = 0; i < 199; i++) strcat(lengthy, "\xc3\xa9"); /* is cut amid a character */
	const char *names[] = {"quo\"te,com\\ma%s", "line\nbreak", "latin\xe9", lengthy};
	for (int i = 0; i < 4; i++) SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3));
		sl_block *b = sl_lambda(names[i], twice);
		sl_wait(x); /* a task of its own, as it is in no block */
		sl_iteration_push(1700000000000 + i);
		sl_wait(sl_forward(b, x));
		sl_iteration_pop();
		sl_block_free(b);
		if (argc > 1) sl_shutdown();
	}
	sl_shutdown();
	return sl_error() != SL_OK;
}
END
  # shellcheck disable=SC2086
  $CC $CFLAGS -std=gnu11 -I"$srcdir/src" -c "$tmp/my 'dir/names.c" -o "$tmp/names.o"
  # shellcheck disable=SC2086
  $QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$tmp/names" "$tmp/names.o" $CORE_LIBS
  run 0 "$trace" --view perfetto -o "$tmp/names.trace" "$tmp/names"
  json=$tmp/names.trace/trace.json
  for block in 'quo\"te,com\\ma%s0' 'line break0' 'latin?0'; do
    json "[.traceEvents[] | select(.cat == \"task\") | .args.block] | index(\"$block\") != null" "no block $block"
  done
  json "[.traceEvents[] | select(.cat == \"task\") | .args[\"asked for at\"] | test(\"/my 'dir/names.c:[0-9]+\$\")] | all" \
    "no places"
  json '[.traceEvents[] | select(.cat == "iteration" and .ph == "b") | .name] | unique
    == [range(4) | "iteration \(1700000000000 + .)"]' "other iterations"
  run 0 "$trace" --view none -o "$tmp/names.trace" "$tmp/names" again
  complains 'started again'
fi

echo "--- pictures"
if command -v vite >/dev/null && command -v dot >/dev/null; then
  run 0 "$trace" --view vite,dag --iteration 2 -o "$tmp/pictures" "${traced[@]}" --limit 1024 --epochs 1
  for picture in gantt dag; do
    [ "$(wc -c <"$tmp/pictures/$picture.svg")" -gt 10000 ] || fail "$picture.svg is empty"
  done
  grep -q 'sgd<' "$tmp/pictures/dag.svg" || fail "the task graph has no sgd"
  grep -q -- '&#45;&gt;' "$tmp/pictures/dag.svg" || fail "the task graph has no arrows"
  mkdir -p "$tmp/slow"
  printf '#!/bin/sh\nexit 124\n' >"$tmp/slow/dot" # as timeout ends it
  chmod +x "$tmp/slow/dot"
  run 1 env PATH="$tmp/slow:$PATH" "$trace" --view dag -o "$tmp/nothing" "${traced[@]}" --limit 64 --epochs 1
  grep -q 'dot did not draw the [1-9][0-9]* tasks of an iteration within 120 s' "$tmp/err" || fail "not said why there is no graph"
  run 1 "$trace" --view dag --iteration 99 -o "$tmp/nothing" "${traced[@]}" --limit 64 --epochs 1
  complains 'no tasks in iteration 99'
  if grep -q '^ls' "$tmp/err"; then fail "a message of ls"; fi
else
  echo "SKIP: ViTE and task graph: no vite or dot (Debian: vite, graphviz)"
fi
if [ -n "$(Rscript -e 'cat(system.file("tools/starvz", package = "starvz"))' 2>/dev/null)" ] &&
  command -v pj_dump >/dev/null && command -v rec2csv >/dev/null; then
  run 0 "$trace" --view starvz -o "$tmp/pictures" "${traced[@]}" --limit 1024 --epochs 1
  [ "$(wc -c <"$tmp/pictures/starvz.png")" -gt 20000 ] || fail "starvz.png is empty"
else
  echo "SKIP: StarVZ's picture: no StarVZ (CRAN) or its tools"
fi
