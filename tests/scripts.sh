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

# What a script runs is built for it: make check TESTS=SCRIPT builds nothing else.
grep -ohE '^(check_programs =.*|[[:space:]]+(models|tools|tests)/[a-zA-Z0-9_/-]+( \\)?)$' Makefile.am ./*/*.mk ./*/*/*.mk | tr ' \t' '\n\n' |
  grep -E '^(models|tools|tests)/[a-zA-Z0-9_/-]+$' | sort -u | while read -r program; do
    if [ ! -e "$program" ]; then echo "$program"; fi
  done >"$tmp/programs"
[ "$(wc -l <"$tmp/programs")" -gt 150 ] || fail "only $(wc -l <"$tmp/programs") programs were found"
# The text of a script and of those that it goes on as or reads
whole() {
  local other
  grep -v '^ *#' "$1"
  for other in $(grep -v '^ *#' "$1" | grep -oE '/tests/[a-z/-]+\.sh' | sort -u); do
    [ ".$other" = "./$1" ] || [ ! -f ".$other" ] || whole "${other#/}"
  done
}
for script in tests/*.sh tests/emu/*.sh; do
  case $script in # a project of its own; by hand; read by others
    tests/quickstart.sh | tests/emu/goals.sh | tests/emu/trains.sh) continue ;;
  esac
  # shellcheck disable=SC2016
  needs=" $(sed -nE "s#^${script%.sh}\.\\\$\(log\): (.*)#\1#p" tests/needs.mk tests/emu/local.mk | tr '\n' ' ') "
  whole "$script" | grep -oP '\b(models|tools|tests)/[a-zA-Z0-9_/-]+(?![a-zA-Z0-9_/.-])' | sort -u | comm -12 - "$tmp/programs" >"$tmp/named" || true
  while read -r program; do
    [[ $needs == *" $program "* ]] || [[ $needs == *'$(installed_targets)'* && $program != tests/* ]] ||
      [[ $needs == *'$(emulated_'* && $program == tests/emu/* ]] ||
      fail "$script names $program, which tests/needs.mk does not build for it"
  done <"$tmp/named"
done

if command -v shellcheck >/dev/null; then
  run 0 shellcheck --severity=error "${scripts[@]}"
else
  echo "SKIP: no shellcheck (Debian: shellcheck)"
fi
