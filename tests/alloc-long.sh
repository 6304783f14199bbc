#!/bin/bash
# alloc-long.sh: each allocation of test_alloc's programs fails once.  Run by make check-long in the build tree.
. "${srcdir:-.}/tests/expect.sh"
run 0 tests/test_alloc all
grep -E 'have failed$' "$tmp/out" || fail "no allocations have failed"
