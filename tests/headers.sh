#!/bin/bash
# headers.sh: the public headers bring no warnings into programs whose compilers warn about much: each header by itself, and
# strict.c, which uses each kind of macro; in C and C++ of several standards, with each compiler there is.  Run by make
# check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
much=(-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wwrite-strings -Wundef -Wfloat-conversion
  -Wdouble-promotion -Wmissing-declarations -Werror)

# All headers at once, each included first once: a program for each standard would take long.
for header in "$srcdir"/src/starling/*.h; do
  printf '#include <starling/%s>\nextern int declared;\n' "${header##*/}" >"$tmp/${header##*/}.c"
done
printf '#include <starling.h>\n#include <starling/dist.h>\n#include <starling/own.h>\nint main() { return sl_op_find("add") == nullptr; }\n' >"$tmp/all.cc"

# try COMPILER STANDARD FILE...
try() { run 0 $1 "-std=$2" "${much[@]}" -I"$srcdir/src" -fsyntax-only "${@:3}"; }

tried=0
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  for standard in c11 c17 c2x gnu17; do try $compiler $standard "$srcdir/tests/strict.c"; done
  try $compiler c11 "$tmp"/*.c
  tried=$((tried + 1))
done
for compiler in g++ clang++; do
  command -v $compiler >/dev/null || continue
  for standard in c++17 c++20; do try $compiler $standard "$tmp/all.cc"; done
  try $compiler c++20 "$srcdir/tests/cplusplus.cc"
done
[ $tried -gt 0 ] || skip "neither gcc nor clang"
