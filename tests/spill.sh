#!/bin/bash
# spill.sh: LeNet and a GPT train with --spill in half of the address space that they take without it (ulimit -v), beside that of
# the engine, its libraries and threads, with the same losses and the same parameters bit by bit; faults end a driver with a
# message that names them.  Run by make check, in the build folder; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
case ${CFLAGS:-} in
  *-fsanitize*) skip "sanitizers take address space as they please" ;;
esac
if grep -q '^#define SLP_SIMULATION' config.h; then skip "a simulation spills nothing"; fi
export STARPU_NCUDA=0
file=./spill-$$.bin # on a disk, if the build is: /tmp may be memory
at_end() { rm -f "$file"; }

# within_kib KIB COMMAND...: with so much address space
within_kib() { (ulimit -v "$1" && exec "${@:2}"); }

# Of a program that runs: the most address space so far, or what it was before.
peak_of() {
  local now
  now=$(awk '/^VmPeak/ { print $2 }' "/proc/$1/status" 2>/dev/null) || true
  echo "${now:-$2}"
}

# takes COMMAND...: runs it; $kib is the most address space that it has taken
takes() {
  local status=0 pid
  kib=0
  "$@" >"$tmp/out" 2>"$tmp/err" &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    kib=$(peak_of $pid "$kib")
    sleep 0.02
  done
  wait $pid || status=$?
  [ $status -eq 0 ] || fail "$*: exit status $status"
}

# What a run prints, without times
results() { sed -n 's/, [0-9]* bytes.sec$//; s/time [0-9.]* sec//; /^step\|^epoch/p' "$1"; }

# The values in the newest checkpoint of a folder: all but the head of the file, which has times
state() {
  local newest
  newest=$(printf '%s\n' "$1"/*.safetensors | tail -n 1)
  tail -c +$(($(od -An -tu8 -N8 "$newest") + 9)) "$newest"
}

# trains_in_half NAME BASE COMMAND...: in half of what it takes beside BASE KiB, with a file
trains_in_half() {
  local name=$1 base=$2 room
  shift 2
  rm -rf "$tmp/whole" "$tmp/half"
  takes "$@" --checkpoint "$tmp/whole"
  results "$tmp/out" >"$tmp/results"
  [ -s "$tmp/results" ] || fail "$name: no results"
  room=$((base + (kib - base) / 2))
  echo "$name: takes $((kib / 1024)) MiB of address space; trains in $((room / 1024)), of which $((base / 1024)) are the engine's"
  run 0 within_kib $room "$@" --checkpoint "$tmp/half" --spill "$file" --stats
  results "$tmp/out" | diff "$tmp/results" - || fail "$name: other results in half"
  state "$tmp/whole" >"$tmp/whole.state"
  state "$tmp/half" | cmp "$tmp/whole.state" - || fail "$name: other parameters or states in half"
  sed -n '/^spill file/p' "$tmp/err"
}

for _ in $(seq 2000); do echo "abcdefghijklmnopqrstuvwxyz"; done >"$tmp/text"
gpt=(models/gpt --device cpu:0 --layers 6 --heads 4 --width 512 --words 4096 --context 32 --batch-size 2 --iterations 2
  --every 2 --text "$tmp/text")
takes "${gpt[@]}" --layers 1 --width 16
base=$kib
trains_in_half GPT $base "${gpt[@]}"
complains '^spill file: [1-9][0-9.]* MiB written .*, [1-9][0-9.]* MiB read'
run 1 within_kib $((base + (kib - base) / 4)) "${gpt[@]}"
complains 'out of memory'


# images NAME COUNT: images and labels in the form of MNIST's files
images() {
  local n=$2 head
  head=$(printf '\\x%02x\\x%02x' $((n >> 8)) $((n & 255)))
  { printf "\\0\\0\\10\\3\\0\\0$head\\0\\0\\0\\34\\0\\0\\0\\34"; seq 1000000 | head -c $((n * 784)) || true; } |
    gzip >"$tmp/data/$1-images-idx3-ubyte.gz"
  { printf "\\0\\0\\10\\1\\0\\0$head"; seq 1000000 | tr '0-9' '\0-\11' | tr -d '\n' | head -c "$n" || true; } |
    gzip >"$tmp/data/$1-labels-idx1-ubyte.gz"
}
mkdir "$tmp/data"
images train 1024
images t10k 256
trains_in_half LeNet $base models/lenet --device cpu:0 --data "$tmp/data" --batch-size 512 --epochs 1 --every 1

echo "--- faults"
small=(models/gpt --device cpu:0 --layers 4 --heads 4 --width 256 --context 32 --batch-size 2 --iterations 2 --every 2
  --text "$tmp/text" --spill-memory 24M)
run 1 "${small[@]}" --spill "$tmp/none/file"
complains "$tmp/none/file: No such file or directory"
run 1 "${small[@]}" --spill /proc
complains '/proc: '
: >"$file"
run 1 "${small[@]}" --spill "$file"
complains 'name a new file'
rm "$file"
# A disk that is full: files may have a MiB.
full() { (trap '' XFSZ && ulimit -f 1024 && exec "$@"); }
run 1 full "${small[@]}" --spill "$file"
complains "the spill file .*${file##*/}: writing [0-9]+ bytes at [0-9]+: File too large"
run 1 "${small[@]}" --spill "$file" --spill-memory 1M
complains 'uses [0-9]+ bytes at once, and spilled values may take 1048576 of memory'
run 2 "${gpt[@]}" --spill-memory 1M
complains '--spill-memory needs --spill'
