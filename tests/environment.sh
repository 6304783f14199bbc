#!/bin/bash
# Environment variables: those that the code reads are documented, each once, and those that are documented are read.
# Run by make check; srcdir comes from there.
. "${srcdir:-.}/tests/expect.sh"
cd "$srcdir"
page=doc/environment.md
emulation=tests/emu/README.md

# Names of ours in quotes, outside of comments, are variables: statuses and options are never spelled out.
read_by() {
  grep -rhE '"SL_[A-Z0-9_]*[A-Z0-9]"' --include='*.c' --include='*.h' --include='*.cu' --include='*.cuh' --include='*.cc' "$@" |
    grep -vE '^(/\*| \*)' | grep -oE '"SL_[A-Z0-9_]*[A-Z0-9]"' | tr -d '"' | sort -u
}
# The first column of the tables.
documented() { grep -oE '^\| `[A-Z0-9_]+`' "$page" | tr -d '|` '; }

# And of scripts: ${SL_NAME:-…}.
ours=$({ read_by src codelets models tools; grep -rhoE '\$\{SL_[A-Z0-9_]+' tools | cut -c3-; } | sort -u)
[ "$(wc -w <<<"$ours")" -ge 5 ] || fail "the code reads next to no variables: this test does not find them"
for name in $ours NO_COLOR; do
  grep -q "^| \`$name\`" "$page" || fail "$name is read, and not in $page"
done
for name in $(read_by tests/emu | grep -vxF "$ours"); do
  grep -q "$name" "$emulation" || fail "$name is read, and not in $emulation"
done
for name in $(documented | sort | uniq -d); do fail "$name is in $page twice"; done
for name in $(documented | grep '^SL_'); do
  grep -qx "$name" <<<"$ours" || fail "$name is in $page, and nothing reads it"
done
# The list by which the engine knows them.
listed=$(sed -nE 's/^X\((.*)\)$/\1/p' src/runtime/settings/variables.def)
[ "$listed" = "$(sort -u <<<"$listed")" ] || fail "src/runtime/settings/variables.def is not in order"
[ "$listed" = "$ours" ] || fail "src/runtime/settings/variables.def: $(diff <(echo "$listed") <(echo "$ours"))"
echo "$(wc -w <<<"$ours") variables of Starling"
