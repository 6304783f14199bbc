#!/bin/bash
# alloc.sh: the library asks for memory in src/runtime/alloc.c only, where tests can have it fail.
# Run by make check in the build tree, which sets srcdir and NM.
. "${srcdir:-.}/tests/expect.sh"
archive=.libs/libcore.a
[ -f "$archive" ] || skip "no $archive"
functions='malloc|calloc|realloc|reallocarray|strn?dup|v?asprintf|__v?asprintf_chk|open_memstream'
functions+='|aligned_alloc|posix_memalign|memalign|getline|getdelim|fmemopen|mmap'

# shellcheck disable=SC2086 # NM may have options
${NM:-nm} -A -u "$archive" | awk '{ print $1, $NF }' | sed 's/@.*//' >"$tmp/used"
grep -E "[/:]alloc\.o: malloc$" "$tmp/used" >/dev/null || fail "alloc.o does not ask for memory: this test does not find it"
# durable.c is compiled into tools that have no library, too, and reports with errno that there is no memory.
grep -E " ($functions)$" "$tmp/used" | grep -vE '[/:](alloc|durable)\.o: ' >"$tmp/out" || true
[ ! -s "$tmp/out" ] || fail "these ask for memory themselves; src/alloc.h has slp_malloc and its like"
