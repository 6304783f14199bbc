#!/bin/bash
# Sources have the form that .clang-format describes.  Releases of clang-format differ: Debian 12's is asked.  Run by make
# check; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
cd "$srcdir"

format=$(command -v clang-format-14 || command -v clang-format) || skip "no clang-format (Debian: clang-format)"
grep -q ' version 14\.' < <("$format" --version) || skip "clang-format is not version 14"

mapfile -t sources < <(find codelets dev doc/book models python src tests tools \
  -name build -prune -o -name '*.[ch]' -print -o -name '*.cu' -print -o -name '*.cuh' -print -o -name '*.cc' -print)
[ ${#sources[@]} -gt 500 ] || fail "only ${#sources[@]} sources were found"
"$format" --dry-run -Werror "${sources[@]}" || fail "clang-format -i changes these sources"
