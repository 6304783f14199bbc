#!/bin/bash
# zoo.sh: models/zoo trains on the three kinds of folders, keeps parameters, says what is in an image, exports; mistakes are
# reported.  tests/test_zoo.c compares its networks with MXNet's.  Run by make check, in the build folder; srcdir comes
# from there.
. "${srcdir:-.}/tests/expect.sh"
zoo=models/zoo
number='[0-9]+\.[0-9]+'

echo "--- what there is"
run 0 "$zoo" --list
[ "$(wc -l <"$tmp/out")" -eq 35 ] || fail "not 34 networks"
says '^resnet50_v1 +224 '
run 2 "$zoo" --network lenet
complains 'there is no "lenet"'
run 2 "$zoo" --image cat.jpg
complains '--image: needs --params'
run 2 "$zoo" --network vgg11 --size 31
complains 'vgg11 takes images of at least 32 x 32'
run 1 "$zoo" --data "$tmp/nowhere"
complains "$tmp/nowhere"

echo "--- CIFAR-10: ten images for each file, class by class one colour"
mkdir "$tmp/cifar"
for name in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
  for class in 0 1 2 3 4 5 6 7 8 9; do
    # shellcheck disable=SC2059 # the format is the bytes
    { printf "\\$(printf %03o $class)"; head -c 3072 /dev/zero | tr '\0' "\\$(printf %03o $((class * 25)))"; }
  done >"$tmp/cifar/$name.bin"
done
small=("$zoo" --network mobilenet0.25 --data "$tmp/cifar" --batch-size 10 --device cpu:0 --lr 0.02)
run 0 "${small[@]}" --epochs 4 --json "$tmp/whole.json" --save "$tmp/whole.params"
says "^epoch 4, time $number sec, test acc $number\$"
values "$tmp/whole.json" train_loss | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < first) }' || fail "learns nothing"
run 0 "${small[@]}" --epochs 1 --params "$tmp/whole.params" --json "$tmp/more.json"
{ values "$tmp/whole.json" train_loss; values "$tmp/more.json" train_loss; } >"$tmp/losses"
awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.95 * first) }' "$tmp/losses" || fail "--params begins anew"
# A run that goes on from a checkpoint ends with the bits of one that was never stopped.
run 0 "${small[@]}" --epochs 2 --checkpoint "$tmp/kept"
run 0 "${small[@]}" --epochs 4 --checkpoint "$tmp/kept" --resume --save "$tmp/resumed.params"
cmp -s "$tmp/whole.params" "$tmp/resumed.params" || fail "a resumed run ends with other parameters"
run 1 "$zoo" --network mobilenet0.5 --params "$tmp/whole.params" --data "$tmp/cifar" --epochs 1
complains 'does not fit the network'

echo "--- exported: sl-run reads it"
run 0 "$zoo" --network mobilenet0.25 --classes 10 --size 32 --params "$tmp/whole.params" --export "$tmp/net"
[ -s "$tmp/net-symbol.json" ] && [ -s "$tmp/net-0000.params" ] || fail "not exported"
run 1 "$zoo" --network mobilenet0.25 --classes 10 --size 32 --export "$tmp/nowhere/net"
complains "$tmp/nowhere"

# A PNG image of one colour, 40 x 30, without libraries.
png() {
  python3 - "$@" <<'PY'
import struct, sys, zlib
path, value, w, h = sys.argv[1], int(sys.argv[2]), 40, 30
def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = (b"\0" + bytes([value]) * 3 * w) * h
open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) +
                       chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
}
if command -v python3 >/dev/null && grep -q '^#define HAVE_PNG 1' config.h; then
  echo "--- images"
  for part in train test; do
    mkdir -p "$tmp/photos/$part/dark" "$tmp/photos/$part/light"
    for i in 1 2 3 4; do
      png "$tmp/photos/$part/dark/$i.png" $((i * 5))
      png "$tmp/photos/$part/light/$i.png" $((255 - i * 5))
    done
  done
  photos=("$zoo" --network squeezenet1.1 --size 48 --device cpu:0)
  run 0 "${photos[@]}" --data "$tmp/photos" --batch-size 4 --epochs 8 --lr 0.01 --save "$tmp/photos.safetensors"
  printf 'darkness\nlight\n' >"$tmp/labels"
  run 0 "${photos[@]}" --classes 2 --params "$tmp/photos.safetensors" --image "$tmp/photos/test/dark/1.png" --labels "$tmp/labels" \
    --json "$tmp/said.json"
  says '^[01]\.[0-9]{4}  darkness$'
  says '^[01]\.[0-9]{4}  light$'
  valid_json "$tmp/said.json"
  contains "$tmp/said.json" '"class": [01]'
  run 1 env TMPDIR="$tmp/photos" "${photos[@]}" --classes 2 --params "$tmp/photos.safetensors" --image "$tmp/none.png"
  complains 'none.png: No such file'
  [ -z "$(find "$tmp/photos" -maxdepth 1 -name 'starling-zoo*')" ] || fail "a folder is left behind"
else
  echo "SKIP: images: no python3, or no libpng"
fi

if have_images; then
  echo "--- Fashion-MNIST, in shards"
  run 0 "$zoo" --network resnet18_v2 --device cpu:0,cpu:1 --limit 32 --batch-size 16 --epochs 1
  says '^split: 8 on cpu:0, 8 on cpu:1$'
else
  echo "SKIP: Fashion-MNIST: no images"
fi
