#!/bin/bash
# gpt.sh: models/gpt learns a text, goes on from a checkpoint with the bits of a run that was not interrupted, and writes the same
# text again; mistakes are reported.  Run by make check, in the build folder; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/language.sh"
small=(models/gpt --layers 1 --heads 2 --width 16 --context 16 --batch-size 4 --lr 0.01 --text "$tmp/text")
for _ in $(seq 100); do echo "abcdefghijklmnopqrstuvwxyz"; done >"$tmp/text"

echo "--- learning"
run 0 "${small[@]}" --iterations 60 --every 20 --json "$tmp/json" --save "$tmp/whole.safetensors"
says '^step 20: loss [0-9.]+, held out [0-9.]+, [0-9]+ bytes/sec$'
values "$tmp/json" held_out_loss | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR == 3 && last < 0.7 * first) }' ||
  fail "it does not learn: $(values "$tmp/json" held_out_loss | tr '\n' ' ')"

goes_on 60 60
keeps_checkpoints
writes

echo "--- writing without a cache"
# 8 bytes of prompt and 40 more go far beyond the window of 16: the same text there, too.
run 0 "${write[@]}" --no-cache
cmp "$tmp/out" "$tmp/written" || fail "without a cache it writes another text"
run 0 "${write[@]}" --json "$tmp/json" --quiet
awk '{ exit !($1 > 0) }' < <(values "$tmp/json" written_per_second) || fail "no speed"

learns_in bf16 60 0.05
learns_in fp16 60 0.05

echo "--- mistakes"
run 2 models/gpt --dtype fp8
complains '"fp8" must be fp32, tf32, bf16 or fp16'
run 2 models/gpt --width 10 --heads 4
complains 'multiple of --heads'
run 2 models/gpt --resume
complains 'needs --checkpoint'
run 1 models/gpt --text "$tmp/none"
complains "$tmp/none: cannot be opened: No such file"
run 1 models/gpt --text "$tmp"
complains "$tmp: "
head -c 100 "$tmp/text" >"$tmp/short"
run 1 models/gpt --text "$tmp/short"
complains 'short: is too short for a context of 64 bytes: a tenth of it is held out'
run 1 "${small[@]}" --width 32 --load "$tmp/whole.safetensors"
complains 'embedding'
