#!/bin/bash
# sharing.sh: public functions beside each other, in two threads, on the same objects (tests/sharing/pairs.c): SHARING_PAIRS of
# all pairs, 150 if it is not set, 0: all of them; each for SHARING_MS milliseconds, 10.  The calls are made from the headers.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
source=$(cd "$srcdir" && pwd)

for python in "$PWD/python/venv/bin/python" "${PYTHON:-python3}" /usr/bin/python3 none; do
  ! "$python" -c 'import pycparser' 2>/dev/null || break
done
[ "$python" != none ] || skip "needs Python with pycparser (Debian: python3-pycparser)"

dir=tests/sharing.dir
rm -rf $dir
mkdir -p $dir
"$python" "$source/tests/misuse/generate" "$source" >$dir/calls.c || fail "the calls could not be made from the headers"
objects=()
for file in "$dir/calls" "$source/tests/sharing/pairs" "$source/tests/sharing/pool" "$source/tests/misuse/values"; do
  object=$dir/$(basename "$file").o
  objects+=("$object")
  # shellcheck disable=SC2086
  run 0 $CC $CFLAGS -std=gnu11 -w -I"$source/src" -I"$source/tests/misuse" -I"$source/tests/sharing" -c "$file.c" -o "$object"
done
# shellcheck disable=SC2086
run 0 $QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o $dir/pairs "${objects[@]}" $CORE_LIBS

cd $dir
status=0
STARPU_CATCH_SIGNALS=0 STARPU_SILENT=1 ./pairs "${SHARING_MS:-10}" "${SHARING_PAIRS:-150}" "${SHARING_SEED:-1}" >output 2>errors || status=$?
grep -aE '^FAIL|failures$' output || status=1
[ $status = 0 ] || fail "see tests/sharing.dir"
[ "$(sed -n 's/^\([0-9]*\) functions.*/\1/p' output)" -gt 350 ] || fail "too few functions"
