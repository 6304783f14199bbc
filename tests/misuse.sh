#!/bin/bash
# misuse.sh: every public function is called with anything for its arguments, in many places (tests/misuse/run.c); the calls
# are made from the headers.  Run by make check-long in the build tree; MISUSE_ROUNDS and MISUSE_SEED make more and others,
# MISUSE_TOGETHER=1 gives each function a process of its own.
. "${srcdir:-.}/tests/expect.sh"
. "$srcdir/tests/misuse/build.sh"

dir=tests/misuse.dir
build_caller "$dir" misuse misuse/run misuse/values misuse/objects

cd $dir
status=0
STARPU_CATCH_SIGNALS=0 STARPU_SILENT=1 ./misuse "${MISUSE_ROUNDS:-16}" >output 2>errors || status=$?
grep -aE '^FAIL|failures$' output || status=1
[ $status = 0 ] || fail "see tests/misuse.dir"
[ "$(sed -n 's/^\([0-9]*\) functions.*/\1/p' output)" -gt 350 ] || fail "too few functions"
