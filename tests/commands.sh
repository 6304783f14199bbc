#!/bin/bash
# The commands in README.md, HACKING.md and the book: those in blocks marked sh, and those in the text that have arguments.
# Each is run, training on few images, or stands in the list below with the reason why not and with what tests it instead.
# Run by make check, in the build folder; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
source=$(cd "$srcdir" && pwd)
build=$PWD
ran=0 left=0

# One a line: blocks marked sh, and `code` whose first word is a program and that has arguments.
commands_of() {
  awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside && !/^#/' "$1"
  awk '/^```/ { inside = !inside; next } !inside' "$1" | grep -oE '`[^`]+`' | tr -d '`' |
    grep -E '^([A-Z_]+=[^ ]+ )*(\./|build/|dev/|models/|tools/|tests/|doc/book/)?[a-zA-Z0-9._/-]+ [^ ]' |
    grep -E '^([A-Z_]+=[^ ]+ )*(\./|build/|dev/|models/|tools/|tests/|doc/book/|make |cc |perf |python|gnuplot |cd |man |clang-format )' || true
}

# Why a command is not run, and what does it; nothing if it is to be run.
reason() {
  case $1 in
    "./quickstart --help" | "tools/build-starpu --print-prefix") ;;
    *--plot*) command -v gnuplot >/dev/null || echo "no gnuplot" ;;
    ./quickstart*) echo "installs packages and builds; CI's first stage" ;;
    ./autogen.sh | "mkdir build && cd build" | ../configure* | "make -j2" | "make check" | "make check-long" | "make check-release" | "make recheck" | "make check-threads" | "make install" | "make -C build install")
      echo "make check would run itself; CI builds and checks so, tests/install.sh installs" ;;
    "make check TESTS="*) echo "as make check" ;;
    tests/onnx_cases.py*) echo "needs onnx and onnxruntime, and writes into the source" ;;
    "tests/abi.sh BUILD") echo "make check-release runs it, with the name of a build" ;;
    "make book" | "doc/book/regenerate --listings") echo "writes into the source; tests/book.sh compares instead" ;;
    "make reference") echo "tests/reference.sh runs it, with doxygen" ;;
    cc\ * | c++\ *) echo "needs an installed Starling; tests/install.sh compiles so, tests/book.sh and readme.sh run the programs" ;;
    perf\ *) echo "needs perf" ;;
    clang-format\ *) echo "changes the source" ;;
    man\ *) echo "needs installed pages; tests/man.sh looks at them" ;;
    *"--peer PYTHON"*) echo "needs PyTorch; tests/bench.sh tests it with a stand-in" ;;
    dev/bench-compare*) echo "needs two builds" ;;
    tools/build-starpu*) echo "needs the sources of StarPU; quickstart runs it" ;;
    tools/sl-simulate*) echo "needs a StarPU for simulation; tests/simulate.sh" ;;
    *tests/emu/*) echo "needs emulated GPUs, built for tests/emu/lenet.sh, which runs it" ;;
    *sl-trace*) echo "needs a StarPU with traces; tests/trace.sh" ;;
  esac
}

# The same with less to do, and for the StarPU of this build.
shorten() {
  case $1 in
    "tools/build-starpu --print-prefix") echo "$1$([[ ${STARPU_PREFIX-} != *-cpu ]] || echo " --without-cuda")" ;;
    */lenet* | */mlp* | *devices-*) echo "$1 --limit 256 --epochs 1" ;;
    */resnet18*) echo "$1 --limit 32 --batch-size 16 --epochs 1" ;;
    *) echo "$1" ;;
  esac
}

try() {
  local why command
  why=$(reason "$1")
  if [ -n "$why" ]; then
    echo "not run: $1: $why"
    left=$((left + 1))
    return
  fi
  command=$(shorten "$1")
  case $1 in
    ./quickstart* | tools/build-starpu*) cd "$source" ;;
    make\ *) cd "$build" ;;
    *) cd "$tmp/tree" ;;
  esac
  run 0 timeout 600 bash -c "$command"
  cd "$build"
  ran=$((ran + 1))
}

# Commands are for the build folder, or for the source with the build in build/; here both are one.
mkdir "$tmp/tree"
for name in models tools tests doc; do ln -s "$build/$name" "$tmp/tree/$name"; done
ln -s "$build" "$tmp/tree/build"

needs_images
for page in "$source/README.md" "$source/HACKING.md" "$source"/doc/book/*.md; do commands_of "$page"; done |
  awk '!seen[$0]++' >"$tmp/commands"
while read -r command <&3; do try "$command"; done 3<"$tmp/commands"
echo "$ran commands run, $left not, $failures failed"
[ "$ran" -ge 5 ] || fail "next to no commands: this test does not find them"
