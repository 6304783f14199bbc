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
"$bench" --quick --json "$tmp/json" row-mlp-hybrid mlp5-step >"$tmp/table"
sed 's/^/  /' "$tmp/table"
[ "$(grep -c '"rate_unit": "tasks"' "$tmp/json")" -eq 2 ] || fail "tasks are not told"
sed -n 's/.*"rate": \([0-9.]*\).*/\1/p' "$tmp/json" | awk '$1 > 10 { exit 1 }' || fail "more than 10 tasks a repetition"
grep -q '"error"' "$tmp/json" && fail "a case failed"

run 0 "$bench" --quick --markdown queue-dot
says '^\| queue-dot \| [0-9.]* ms \|'

run 2 "$bench" no-such-case
complains no-such-case
run 1 "$bench" --json "$tmp/no/such/folder" queue-dot
