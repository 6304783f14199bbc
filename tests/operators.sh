#!/bin/bash
# The table of ONNX operators in doc/files.md is that of the rows in src/onnx/operators.def.  --update writes it.
set -euo pipefail
export LC_ALL=C
srcdir=${srcdir:-$(cd "$(dirname "$0")/.." && pwd)}
page=$srcdir/doc/files.md
begin='<!-- operators: tests/operators.sh --update -->' end='<!-- end of operators -->'
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A line for each file of operators: its topic, from its first line, and the names of its rows.
table() {
  echo
  echo "| topic | operators |"
  echo "|---|---|"
  awk '
    /^\/\* ---- export/ { exit }
    /^\/\* import\/[a-z_]*\.c/ { file = $2; sub(/:$/, "", file) }
    /^OP\(/ { name = $0; sub(/^OP\(/, "", name); sub(/,.*/, "", name); names[file] = names[file] (names[file] ? ", " : "") name
              if (!seen[file]++) order[++n] = file }
    END { for (i = 1; i <= n; i++) print order[i] "|" names[order[i]] }
  ' "$srcdir/src/onnx/operators.def" | while IFS='|' read -r file names; do
    topic=$(tr '\n' ' ' <"$srcdir/src/onnx/$file" | sed -E 's/^\/\* ONNX operators(, computed)?: *//; s/[.;:,(] .*//; s/\*\/.*//; s/ \* / /g; s/\. *$//')
    echo "| $topic | $names |"
  done
  echo
}

between() {
  awk -v begin="$begin" -v end="$end" '$0 == end { on = 0 } on { print } $0 == begin { on = 1 }' "$page"
}

table >"$tmp/new"
[ "$(wc -l <"$tmp/new")" -gt 15 ] || { echo "too few lines: this test does not find the rows"; exit 1; }
if [ "${1-}" = --update ]; then
  awk -v begin="$begin" -v end="$end" -v file="$tmp/new" '
    $0 == end { on = 0 }
    !on { print }
    $0 == begin { on = 1; while ((getline line <file) > 0) print line }' "$page" >"$tmp/page"
  cp "$tmp/page" "$page"
  exit 0
fi
between >"$tmp/old"
if ! diff -u "$tmp/old" "$tmp/new"; then
  echo "doc/files.md lists other operators than src/onnx/operators.def: tests/operators.sh --update"
  exit 1
fi
echo "ok: $(grep -c '^OP(' "$srcdir/src/onnx/operators.def") operators"
