#!/bin/bash
# bombs.sh: files that are small and ask for much (tests/fuzz/bombs.py): each of a sample is an error, soon and with little
# memory; BOMBS=1 tries all, BOMBS=n each n-th; sl-run gives up some, too.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"

command -v python3 >/dev/null || skip "no python3"
python3 "$srcdir/tests/fuzz/bombs.py" "$tmp" "${BOMBS:-12}" >"$tmp/count" || fail "bombs.py"
mapfile -t files < <(find "$tmp" -maxdepth 1 -type f -name '*.*' | sort)
[ "${#files[@]}" -ge 10 ] || fail "there are ${#files[@]} files only"
run 0 tests/bombs "${files[@]}"
if ! grep -q ' 0 wrong$' "$tmp/out"; then
  grep -E 'NO ERROR|LATE|SIGNAL|MEMORY' "$tmp/out" || fail "no summary"
fi
