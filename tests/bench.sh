#!/bin/bash
# The benchmark lists its cases, measures two cheap ones into JSON, and refuses what it does not know.
. "${srcdir:-.}/tests/expect.sh"
bench=tools/bench

"$bench" --list >"$tmp/list"
for name in op-chain op-chain-bulk dot2000 lenet-step plus-one-async plus-one-sync queue-dot run-ahead-memory \
	row-mlp-eager row-mlp-hybrid row-mlp-latency mlp5-step lenet-step-hybrid compile-resnet18; do
	grep -q "^$name  *[^ ]" "$tmp/list" || fail "--list lacks $name"
done

"$bench" --quick --json "$tmp/json" plus-one-async queue-dot >"$tmp/table"
sed 's/^/  /' "$tmp/table"
[ "$(wc -l <"$tmp/json")" -eq 2 ] || fail "two cases should give two JSON objects"
for key in case value unit floor floor_ratio peer peer_ratio runs; do
	[ "$(grep -c "\"$key\": " "$tmp/json")" -eq 2 ] || fail "$key is not in both JSON objects"
done
grep -q '"case": "queue-dot", "value": [0-9.e-]*, "unit": "ms"' "$tmp/json" || fail "queue-dot has no value"
grep -q '"error"' "$tmp/json" && fail "a case failed"

# Compiled programs: a network hybridised and a whole step, in few tasks.
run 0 "$bench" --quick --runs 1 --markdown --json "$tmp/json" row-mlp-hybrid mlp5-step
says '^\| row-mlp-hybrid \| [0-9.]* [^ ]*/forward \|'
[ "$(grep -c '"rate_unit": "tasks"' "$tmp/json")" -eq 2 ] || fail "tasks are not reported"
sed -n 's/.*"rate": \([0-9.]*\).*/\1/p' "$tmp/json" | awk '$1 > 10 { exit 1 }' || fail "more than 10 tasks a repetition"
grep -q '"error"' "$tmp/json" && fail "a case failed"

# With several numbers of threads, and beside busy loops: a row and an object each.
run 0 "$bench" --quick --runs 1 --scaling=1,1 --json "$tmp/json" softmax
says '^softmax +1 +[0-9.]+ [^ ]+ +1.00 +1.00 '
[ "$(grep -c '"threads": 1, "speed_up": ' "$tmp/json")" -eq 2 ] || fail "not two objects with threads"
run 0 "$bench" --quick --runs 1 --beside 1 --json "$tmp/json" softmax
says '^softmax +0 +[0-9.]+ [^ ]+ +1.00 '
says '^softmax +1 +[0-9.]+ '
[ "$(grep -c '"beside": [01], "times_alone": ' "$tmp/json")" -eq 2 ] || fail "not two objects with busy loops"
for counts in 0 1,x 1,,2 100000; do
	run 2 "$bench" "--scaling=$counts" softmax
	complains 'takes numbers of threads up to'
done
run 2 "$bench" --beside no softmax

run 2 "$bench" no-such-case
complains no-such-case
run 1 "$bench" --json "$tmp/no/such/folder" queue-dot

# gpu-check, which takes it to a machine with a GPU, says what is missing; the report lies where the caller wants it.
mkdir -p "$tmp/bundle/bin" "$tmp/none" "$tmp/one"
cp "$srcdir/dev/gpu-check" "$tmp/bundle"
echo no >"$tmp/bundle/emulated"
echo test_ops test_step >"$tmp/bundle/tests"
echo product dot matmul >"$tmp/bundle/families"
printf '#!/bin/sh\nexit 9\n' >"$tmp/none/nvidia-smi"
printf '#!/bin/sh\necho GPU 0\n' >"$tmp/one/nvidia-smi"
printf '#!/bin/sh\nexit 9\n' >"$tmp/one/compute-sanitizer"
printf '#!/bin/sh\n[ "$1" != "$BROKEN" ] && [ "$1" != cublas ] || { echo "FAILED: the $1"; exit 1; }\n' >"$tmp/bundle/bin/gpu_probe"
chmod +x "$tmp/none/nvidia-smi" "$tmp/one/nvidia-smi" "$tmp/one/compute-sanitizer" "$tmp/bundle/bin/gpu_probe"
run 1 "$srcdir/dev/gpu-check" run
complains 'is not an unpacked bundle'
run 1 "$srcdir/dev/gpu-check" bundle --build-dir "$tmp/nowhere"
complains 'no build in'
run 1 env PATH="$tmp/none:$PATH" "$tmp/bundle/gpu-check" run
complains 'no NVIDIA GPU here'
cd "$tmp"
# A bundle without programs but a probe: each step fails by itself, and the results are continued.
run 1 env PATH="$tmp/one:$PATH" bundle/gpu-check run --stage probe,operations --results here
complains 'driver: passed'
complains 'cublas: FAILED'
complains 'product-matmul: FAILED'
run 1 env PATH="$tmp/one:$PATH" bundle/gpu-check run --stage engine,sanitizer --results here
complains 'test_step: FAILED'
complains 'sanitizer-launch: FAILED'
contains here/gpu.md '^## Operations'
contains here/gpu.md '^. the rest . not run'
contains here/gpu.md '^. Operations . 0 . 3 . 0 .$'
contains here/gpu.md '^1\. Probe.*, cublas: FAILED .*: `FAILED: the cublas`'
contains here/logs.txt '^==== product-dot: FAILED'
# The second time only what has not passed.
run 1 env PATH="$tmp/one:$PATH" bundle/gpu-check run --stage probe --missing --results here
complains 'cublas: FAILED'
! grep -q 'driver: passed' "$tmp/err" || fail "what had passed ran again"
# Without a launch nothing makes sense.
run 1 env PATH="$tmp/one:$PATH" BROKEN=launch bundle/gpu-check run --results there
! grep -q 'product: ' "$tmp/err" || fail "tests ran on a GPU that runs no kernel"
contains there/gpu.md '^Not run, because launch failed: operations'
run 2 bundle/gpu-check run --stage probe,nothing
complains 'no such stage: nothing'
