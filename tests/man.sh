#!/bin/bash
# Manual pages and --help: each program has a page, which names the options that the program names, is well-formed and
# keeps examples line by line; --help fits into 80 columns, and what goes on in the next line is indented there.
# Run by make check, in the build folder; srcdir, PROGRAMS come from there.
. "${srcdir:-.}/tests/expect.sh"

page_of() {
  local place
  for place in . "$srcdir"; do
    [ ! -f "$place/doc/man/$1.1" ] || { echo "$place/doc/man/$1.1"; return; }
  done
}

options() { grep -oE '(^|[^a-z-])--[a-z0-9][a-z0-9-]*' | grep -oE -- '--.*' | sort -u; }

# What groff and man's lexer complain of.
well_formed() {
  ! command -v groff >/dev/null || [ -z "$(groff -man -ww -Tutf8 "$1" 2>&1 >/dev/null)" ] || fail "groff: $1"
  ! command -v lexgrog >/dev/null || lexgrog "$1" >/dev/null || fail "$1: NAME is not what man wants"
}

# What --help prints, to $tmp/help, at 80 columns: nothing is longer, no line is blank but not empty; what goes on with
# an option's text is below the text, and a row of a table does not go on in column 1.
fits() {
  local name=$1 wrong
  shift
  env -u XDG_CACHE_HOME COLUMNS=80 HOME=/root "$@" --help >"$tmp/help" || { fail "$name --help"; return; }
  wrong=$(awk '
    length($0) > 80 || /^ +$/ { print; next }
    /^$/ { option = table = 0; next }
    /^(  |      )-/ { option = 1; next }
    /^  [^ ]+  / { table = 1; next }
    table && !/^  / { print }
    option && substr($0, 1, 19) ~ /[^ ]/ { print }' "$tmp/help")
  [ -z "$wrong" ] || fail "$name --help: these lines do not fit, or are not indented: $wrong"
}

# Lines that --help indents, examples, stand in the page as they are; of a table, help2man makes a list.
as_is() {
  local line page=$1 kept
  kept=$(sed 's/\\-/-/g; s/\\&//g; s/\\f[A-Z]//g; s/starling-//g' "$page" | awk '/^\.nf/ { on = 1 } /^\.fi/ { on = 0 } on' | sed -E 's/ +/ /g; s/^ //')
  while IFS= read -r line; do
    line=$(sed -E 's/ +/ /g; s/^ //' <<<"$line" | cut -c1-40)
    grep -qF -- "$line" <<<"$kept" || fail "$page: not on a line of its own: $line"
  done < <(awk '/^  [a-z.]/ && !/tools\/|models\// && !/^  [^ ]+  / { print }' "$tmp/help" | grep -vE "^  (${2#starling-}) ")
}

check() {
  local program=$1 name page said written
  name=$(basename "$program")
  page=$(page_of "$name")
  [ -n "$page" ] || { fail "$program has no page"; return; }
  [ -x "$program" ] || program=$srcdir/$program
  fits "$name" "$program"
  said=$(options <"$tmp/help")
  written=$(sed 's/\\-/-/g; s/\\f[A-Z]//g' "$page" | grep -v '^\.TH' | options)
  [ "$said" = "$written" ] || fail "$name: options differ: $(diff <(echo "$said") <(echo "$written") | tr '\n' ' ')"
  [[ $name = sl-* ]] || name=starling-$name # as it is installed
  grep -qE "^$name - " < <(sed 's/\\-/-/g' "$page") || fail "$page does not name $name"
  ! grep -q "$HOME/" "$page" || fail "$page has a path of this machine"
  well_formed "$page"
  as_is "$page" "$name"
  echo "$name: $(wc -w <<<"$written") options"
}

fits quickstart "$srcdir/quickstart"
fits build-starpu "$srcdir/tools/build-starpu"
[ -n "$(page_of lenet)" ] || skip "no pages: built from git without help2man"
for program in $PROGRAMS; do check "$program"; done
