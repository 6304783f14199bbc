#!/bin/bash
# cplusplus.sh: C++ programs include the public headers: cplusplus.cc compiles without warnings, with each C++ compiler
# that is there, as C++17 and C++20, and computes what it should.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"

# try COMPILER STANDARD
try() {
  # shellcheck disable=SC2086
  run 0 $1 "-std=c++$2" -Wall -Wextra -Werror -I"$srcdir/src" -c "$srcdir/tests/cplusplus.cc" -o "$tmp/program.o"
  # shellcheck disable=SC2086
  run 0 $LIBTOOL --quiet --tag=CXX --mode=link $1 $LDFLAGS -no-install -o "$tmp/program" "$tmp/program.o" libstarling.la
  run 0 "$tmp/program"
  says '^ok: an error names its place$'
}

tried=0
for compiler in "${CXX:-g++}" g++ clang++; do
  command -v "${compiler##* }" >/dev/null || continue
  [ "${compiler##* }" != "${done:-}" ] || continue # CXX may be g++ by another name
  done=${compiler##* }
  for standard in 17 20; do
    try "$compiler" $standard
    tried=$((tried + 1))
  done
done
[ $tried -gt 0 ] || skip "no C++ compiler"
