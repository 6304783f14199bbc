#!/bin/bash
# misuse.sh: every public function is called with anything for its arguments, in many places (tests/misuse/run.c); the calls
# are made from the headers.  Run by make check-long in the build tree; MISUSE_ROUNDS and MISUSE_SEED make more and others,
# MISUSE_TOGETHER=1 gives each function a process of its own.
. "${srcdir:-.}/tests/expect.sh"
source=$(cd "$srcdir" && pwd)

for python in "$PWD/python/venv/bin/python" "${PYTHON:-python3}" /usr/bin/python3 none; do
  ! "$python" -c 'import pycparser' 2>/dev/null || break
done
[ "$python" != none ] || skip "needs Python with pycparser (Debian: python3-pycparser)"

dir=tests/misuse.dir
rm -rf $dir
mkdir -p $dir
"$python" "$source/tests/misuse/generate" "$source" >$dir/calls.c || fail "the calls could not be made from the headers"
objects=()
for file in "$dir/calls" "$source/tests/misuse/run" "$source/tests/misuse/values" "$source/tests/misuse/objects"; do
  object=$dir/$(basename "$file").o
  objects+=("$object")
  # shellcheck disable=SC2086
  run 0 $CC $CFLAGS -std=gnu11 -w -I"$source/src" -I"$source/tests/misuse" -c "$file.c" -o "$object"
done
# shellcheck disable=SC2086
run 0 $QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o $dir/misuse "${objects[@]}" $CORE_LIBS

cd $dir
status=0
STARPU_CATCH_SIGNALS=0 STARPU_SILENT=1 ./misuse "${MISUSE_ROUNDS:-16}" >output 2>errors || status=$?
grep -aE '^FAIL|failures$' output || status=1
[ $status = 0 ] || fail "see tests/misuse.dir"
[ "$(sed -n 's/^\([0-9]*\) functions.*/\1/p' output)" -gt 350 ] || fail "too few functions"
