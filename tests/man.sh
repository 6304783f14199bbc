#!/bin/bash
# Manual pages: each program has one, which names the options that the program names, and is well-formed.
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

check() {
  local program=$1 name page said written
  name=$(basename "$program")
  page=$(page_of "$name")
  [ -n "$page" ] || { fail "$program has no page"; return; }
  [ -x "$program" ] || program=$srcdir/$program
  said=$("$program" --help | options)
  written=$(sed 's/\\-/-/g; s/\\f[A-Z]//g' "$page" | grep -v '^\.TH' | options)
  [ "$said" = "$written" ] || fail "$name: options differ: $(diff <(echo "$said") <(echo "$written") | tr '\n' ' ')"
  [[ $name = sl-* ]] || name=starling-$name # as it is installed
  sed 's/\\-/-/g' "$page" | grep -qE "^$name - " || fail "$page does not name $name"
  ! grep -q "$HOME/" "$page" || fail "$page has a path of this machine"
  well_formed "$page"
  echo "$name: $(wc -w <<<"$written") options"
}

[ -n "$(page_of lenet)" ] || skip "no pages: built from git without help2man"
for program in $PROGRAMS; do check "$program"; done
