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

# Functions that write a file take the object first, then the path; the other way round they do not compile, in C and C++,
# without any flag for warnings.  sl_save_npy had the other order in 0.1, which still works.
# ordered STATUS COMPILER CALL
ordered() {
  local name=$tmp/order.c
  [[ $2 != *++* ]] || name=$tmp/order.cc
  printf '#include <starling.h>\nvoid f(sl_tensor *t, sl_block *b, sl_trainer *r, const char *path);\n%s\n{\n\t(void)t, (void)b, (void)r, (void)path;\n\t%s;\n}\n' \
    'void f(sl_tensor *t, sl_block *b, sl_trainer *r, const char *path)' "$3" >"$name"
  # shellcheck disable=SC2086
  run "$1" $2 -fsyntax-only -I"$srcdir/src" "$name"
  [ ! -s "$tmp/err" ] || [ "$1" != 0 ] || [[ $3 == *npy\(*path* || $3 == *npy\(\"* ]] || fail "warnings"
}
for compiler in "${CC:-cc}" "${CXX:-c++} -std=c++20"; do
  command -v "$(awk '{ print $1 }' <<<"$compiler")" >/dev/null || continue
  for call in 'sl_save_npy(t' 'sl_save_params(b' 'sl_export(b' 'sl_export_onnx(b' 'sl_trainer_save(r'; do
    ordered 0 "$compiler" "$call, \"file\")"
    for path in '"file"' path; do
      ordered "$([[ $call == *npy* ]] && echo 0 || echo 1)" "$compiler" "${call%(*}($path, ${call#*(})"
    done
  done
done

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
