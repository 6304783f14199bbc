#!/bin/bash
# Scripts: bash can read them, shellcheck (where installed) finds no error, and no pipeline ends in a command that stops
# reading early: with pipefail, what writes to it then fails, now and then.  Run by make check; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
cd "$srcdir"

mapfile -t scripts < <(grep -rlE -s --exclude='*~' \
  '^#!/bin/(ba)?sh|^# shellcheck shell=bash' .ci quickstart autogen.sh build-aux debian dev doc models python tests tools | grep -v '\.md$')
mapfile -t bash < <(grep -lE '^#!/bin/bash|^# shellcheck shell=bash' "${scripts[@]}")
[ ${#bash[@]} -gt 30 ] || fail "only ${#bash[@]} scripts were found"

for script in "${bash[@]}"; do
  bash -n "$script" || fail "$script cannot be read"
done

# One that is longer than a line is looked at as one line.  What head -c reads stands in a subshell without pipefail.
found=$(awk '
  { line = line $0 }
  /[^|]\|$/ { next }
  line !~ /^ *#/ && line ~ /[^|][|] *(head -n|grep -[a-zA-Z]*q|sed [^|]*[0-9;\/]q)/ { print FILENAME ":" FNR ": " line }
  { line = "" }' "${bash[@]}")
[ -z "$found" ] || fail "these pipelines may fail by chance (grep -q PATTERN < <(COMMAND) does not): $found"

if command -v shellcheck >/dev/null; then
  run 0 shellcheck --severity=error "${scripts[@]}"
else
  echo "SKIP: no shellcheck (Debian: shellcheck)"
fi
