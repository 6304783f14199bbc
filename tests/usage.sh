#!/bin/bash
# The command line of each program and script, installed or in tools/: --help and --version print something and succeed, an
# option that there is not fails with 2 and names --help.
# Run by make check, in the build folder; srcdir, PROGRAMS, HELPERS come from there.
. "${srcdir:-.}/tests/expect.sh"
version=$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' config.h)

try() {
  local program=$1 name
  name=$(basename "$program")
  run 0 "$program" --help
  says '^Usage: |^usage: '
  ! grep -qE '.{81}' "$tmp/out" || fail "$program --help is wider than 80 columns"
  run 0 "$program" --version
  [ "$(<"$tmp/out")" = "$name (Starling) $version" ] || fail "$program --version"
  run 2 "$program" --no-such-option
  complains "Try .*--help|try .*--help|^usage: .*$name"
  [ ! -s "$tmp/out" ] || fail "$program --no-such-option printed what is no message"
}

for program in $PROGRAMS $HELPERS; do
  [ -x "$program" ] || program=$srcdir/$program
  try "$program"
done

# Those that stay in the source.
tried=0
for script in "$srcdir"/quickstart "$srcdir"/python/make-wheel "$srcdir"/dev/* "$srcdir"/tools/*; do
  case ${script##*/} in
    version | sl-simulate | sl-trace | *.*) continue ;; # no options; tried above; not to be started by a user
  esac
  if [ ! -f "$script" ] || [ ! -x "$script" ]; then continue; fi
  tried=$((tried + 1))
  if grep -q python3 < <(head -n 1 "$script") && ! command -v python3 >/dev/null; then
    echo "SKIP: $script: no python3"
    continue
  fi
  try "$script"
done
[ "$tried" -ge 10 ] || fail "only $tried scripts were found"
