#!/bin/bash
# tensorboard.sh: the events of --tensorboard have right checksums and the figures of --json, and are written while training
# runs; --watch, which is gone, names it.  Run by make check; needs python3, which reads the events in its own way.
. "${srcdir:-.}/tests/expect.sh"
needs_images
command -v python3 >/dev/null || skip "no python3"

cat >"$tmp/events.py" <<'END'
# The format, from its description: https://www.tensorflow.org/tutorials/load_data/tfrecord and tensorflow's event.proto.
import glob, json, struct, sys
def crc(data):
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for _ in range(8): c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    return c ^ 0xffffffff
def masked(data):
    c = crc(data)
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff
def records(data):
    while data:
        head, (length, check) = data[:8], struct.unpack("<QI", data[:12])
        assert masked(head) == check, "checksum of a length"
        body = data[12:12 + length]
        assert struct.unpack("<I", data[12 + length:16 + length])[0] == masked(body), "checksum of a record"
        yield body
        data = data[16 + length:]
def varint(data, i):
    value = shift = 0
    while True:
        value |= (data[i] & 127) << shift
        shift += 7
        i += 1
        if data[i - 1] < 128: return value, i
def fields(data):
    i, found = 0, {}
    while i < len(data):
        key, i = varint(data, i)
        if key & 7 == 0: value, i = varint(data, i)
        elif key & 7 == 1: value, i = struct.unpack("<d", data[i:i + 8])[0], i + 8
        elif key & 7 == 5: value, i = struct.unpack("<f", data[i:i + 4])[0], i + 4
        else:
            size, i = varint(data, i)
            value, i = data[i:i + size], i + size
        found[key >> 3] = value
    assert i == len(data)
    return found
assert crc(b"123456789") == 0xe3069283
(path,) = glob.glob(sys.argv[1] + "/events.out.tfevents.*")
events = [fields(r) for r in records(open(path, "rb").read())]
assert events[0][3] == b"brain.Event:2" and events[0][1] > 1.6e9
scalars = {}
for event in events[1:]:
    value = fields(fields(event[5])[1])
    scalars.setdefault(value[1].decode(), []).append((event.get(2, 0), value[2]))
epochs = json.load(open(sys.argv[2]))["epochs"]
for tag, key in ("loss/train", "train_loss"), ("accuracy/train", "train_accuracy"), ("accuracy/test", "test_accuracy"):
    got = [v for _, v in scalars[tag]]
    assert len(got) == len(epochs) and all(abs(g - e[key]) < 1e-6 for g, e in zip(got, epochs)), (tag, got)
steps = [s for s, _ in scalars["loss/train"]]
assert steps == [int(sys.argv[3]) * (i + 1) for i in range(len(epochs))], steps
assert all(0 <= v <= 101 for _, v in scalars["machine/cpu_of_all_programs_percent"])
print(len(scalars), "scalars")
END

echo "--- each training driver"
for driver in lenet mlp resnet18; do
  run 0 "models/$driver" --limit 16 --batch-size 4 --epochs 2 --tensorboard "$tmp/runs/$driver" \
    --json "$tmp/$driver.json"
  run 0 python3 "$tmp/events.py" "$tmp/runs/$driver" "$tmp/$driver.json" 4
done

echo "--- while it runs"
written() { grep -qsa live/loss "$tmp"/live/events.*; }
models/lenet --limit 2000 --epochs 100000 --quiet --tensorboard "$tmp/live" >"$tmp/driver" 2>&1 &
driver=$!
within 300 written || fail "no event is written while training runs"
kill -TERM $driver
status=0
wait $driver || status=$?
[ $status -eq 143 ] || fail "exit status $status after SIGTERM"

echo "--- what cannot be written"
run 2 models/mlp --watch "$tmp/page.html"
complains "--tensorboard=DIR"
: >"$tmp/file"
run 1 models/mlp --tensorboard "$tmp/file/runs"
complains "$tmp/file/runs"
