#!/bin/bash
# lstm.sh: models/lstm learns a text better than the frequencies of its letters allow, which takes what it carries from step to
# step; it goes on from a checkpoint with the bits of a run that was not interrupted, and writes the same text again; mistakes
# are reported.  Run by make check, in the build folder; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/language.sh"
small=(models/lstm --steps 8 --layers 1 --width 8 --hidden 24 --batch-size 4 --lr 0.05 --dropout 0 --text "$tmp/text")
for _ in $(seq 60); do echo "abcdefghijklmnopqrstuvwxyz"; done >"$tmp/text"

echo "--- learning: 27 letters, each as often as the others, have a loss of ln 27 = 3.296 if they do not depend on what is before"
run 0 "${small[@]}" --iterations 400 --every 200 --json "$tmp/json" --save "$tmp/whole.safetensors"
says '^step 200: loss [0-9.]+, held out [0-9.]+ \(perplexity [0-9.]+\), [0-9]+ bytes/sec$'
values "$tmp/json" held_out_loss | awk '{ last = $1 } END { exit !(NR == 2 && last < 1.5) }' ||
  fail "it does not learn: $(values "$tmp/json" held_out_loss | tr '\n' ' ')"

goes_on 400 120
keeps_checkpoints
writes

learns_in bf16 120 0.05
learns_in fp16 120 0.05

echo "--- words: what follows \"to\" depends on the word two before it, which is in another step: only the carried state has it"
for i in $(seq 150); do echo "one goes to market two goes to heaven rare$i"; done >"$tmp/text"
run 0 "${small[@]}" --words 8 --steps 2 --iterations 400 --every 400 --json "$tmp/json" --generate 8 --temperature 0.001 \
  --prompt $'two goes to heaven rare\none goes to '
says '^step 400: .* words/sec$'
says '^one goes to market two goes to heaven <unk> $'
# Without it, the perplexity is 1.16.
values "$tmp/json" perplexity | awk '{ exit !($1 < 1.07) }' || fail "perplexity of words: $(values "$tmp/json" perplexity)"

echo "--- mistakes"
run 2 models/lstm --dtype fp8
complains '"fp8" must be fp32, tf32, bf16 or fp16'
run 2 models/lstm --dropout 1
complains -- '--dropout'
run 2 models/lstm --resume
complains 'needs --checkpoint'
run 1 models/lstm --text "$tmp/none"
complains "$tmp/none: cannot be read: No such file"
run 1 models/lstm --text "$tmp"
complains "$tmp: "
head -c 200 "$tmp/text" >"$tmp/short"
run 1 models/lstm --text "$tmp/short"
complains 'short: is too short for 20 rows of 35 steps: a tenth of it is held out'
run 1 "${small[@]}" --hidden 32 --load "$tmp/whole.safetensors"
complains 'lstm.weight'
