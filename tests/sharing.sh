#!/bin/bash
# sharing.sh: public functions beside each other, in two threads, on the same objects (tests/sharing/pairs.c): SHARING_PAIRS of
# all pairs, 150 if it is not set, 0: all of them; each for SHARING_MS milliseconds, 10.  The calls are made from the headers.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/misuse/build.sh"

dir=tests/sharing.dir
build_caller "$dir" pairs sharing/pairs sharing/by_hand sharing/pool misuse/values

# Every function that the library exports has its turn, but those that end or free for good what others use, those that end
# what another one began (they are called by its call), and what StarPU calls.
ends='_free$|_end$|_leave$|_close(_at)?$|_pop$|^sl_release$|^sl_op_fail$|^sl_shutdown_at_exit$|^sl_slave_segment$'
if [ -f .libs/libstarling.so ]; then
  "$dir/pairs" --list | sort >"$dir/called"
  $NM -D --defined-only .libs/libstarling.so | awk '$3 ~ /^sl_/ { sub(/@.*/, "", $3); print $3 }' | sort >"$dir/exported"
  left_out=$(comm -13 "$dir/called" "$dir/exported" | grep -vE "$ends" || true)
  [ -z "$left_out" ] || fail "tests/sharing does not call $left_out"
fi

cd $dir
status=0
STARPU_CATCH_SIGNALS=0 STARPU_SILENT=1 ./pairs "${SHARING_MS:-10}" "${SHARING_PAIRS:-150}" "${SHARING_SEED:-1}" >output 2>errors || status=$?
grep -aE '^FAIL|failures$' output || status=1
[ $status = 0 ] || fail "see tests/sharing.dir"
[ "$(sed -n 's/^\([0-9]*\) functions.*/\1/p' output)" -gt 350 ] || fail "too few functions"
