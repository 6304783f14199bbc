#!/bin/bash
# gpt-params.sh: models/gpt loads parameters as Hugging Face's transformers and nanoGPT write them, and gives the scores that
# gpt-params.py computes by hand in double precision; what does not fit is reported.  Run by make check, in the build folder.
. "${srcdir:-.}/tests/expect.sh"
command -v python3 >/dev/null || skip "needs Python"
by_hand() { python3 "$srcdir/tests/gpt-params.py" "$@"; }

gpt=(models/gpt --iterations 0 --heads 3)
for layout in transformers plain nanogpt; do
  echo "--- $layout"
  file=$tmp/$layout.safetensors
  by_hand write $layout "$file"
  for tokens in 7 3,1,4,1,5 1,2,3,4,5,6,7,8,22 9,9,9,1,2,3,4,5,6,7,8,22; do
    for way in --quiet --no-cache; do
      run 0 "${gpt[@]}" --params "$file" --prompt-tokens $tokens --scores "$tmp/scores.npy" $way
      by_hand check $layout "$tmp/scores.npy" $tokens || fail "other scores"
    done
  done
  # Beyond the window of 9, with a cache and without
  run 0 "${gpt[@]}" --params "$file" --prompt-tokens 3,1 --generate 20
  says '^3 1 ([0-9]+ ){20}$'
  cp "$tmp/out" "$tmp/written"
  run 0 "${gpt[@]}" --params "$file" --prompt-tokens 3,1 --generate 20 --no-cache
  cmp "$tmp/out" "$tmp/written" || fail "without a cache it writes other words"
done

echo "--- mistakes"
run 1 models/gpt --iterations 0 --generate 1 --params "$tmp/plain.safetensors"
complains 'the width, 12, is not a multiple of 64: give the number of heads with --heads'
run 1 models/gpt --iterations 0 --generate 1 --params "$tmp/plain.safetensors" --heads 5
complains '5 heads do not divide the width, 12'
run 1 "${gpt[@]}" --params "$tmp/plain.safetensors" --prompt-tokens 23 --generate 1
complains 'the prompt has the word 23, and the vocabulary 23 words'
run 1 "${gpt[@]}" --params "$tmp/plain.safetensors" --iterations 1
complains 'too small for a text of bytes'
run 2 models/gpt --params x.safetensors --width 12
complains 'the file determines the size'
run 2 models/gpt --prompt-tokens 1,,2
complains "'1,,2' is not a list"
run 0 "${gpt[@]}" --words 23 --width 12 --prompt-tokens 1 --scores "$tmp/scores.npy" --save "$tmp/own.safetensors"
run 1 "${gpt[@]}" --params "$tmp/own.safetensors" --prompt-tokens 1 --generate 1
complains 'this is not a GPT-2 of at most 64 layers: wte.weight is not there'
# A matrix that is as in the other layout: both names are in the message.
sed 's/"h.1.attn.c_attn.weight": {"dtype": "F32", "shape": \[12, 36\]/"h.1.attn.c_attn.weight": {"dtype": "F32", "shape": [36, 12]/' \
  "$tmp/plain.safetensors" >"$tmp/turned.safetensors"
run 1 "${gpt[@]}" --params "$tmp/turned.safetensors" --prompt-tokens 1 --generate 1
complains 'layers.1.0.body.1.in_proj_weight \(h.1.attn.c_attn.weight, transposed\) is float32 \(12, 36\) in the file, float32 \(36, 12\) expected'
