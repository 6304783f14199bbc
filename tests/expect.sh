# shellcheck shell=bash
# expect.sh: what test scripts begin with: a folder $tmp, commands that are run, what they must print, how failures are
# counted.  A script goes on after a failure; its exit status is 1 then, however it ends.
set -euo pipefail
export LC_ALL=C
srcdir=${srcdir:-.}
tmp=$(mktemp -d)
shown=("$tmp/out" "$tmp/err") # what a failure shows
failures=0
: >"$tmp/out"
: >"$tmp/err"

at_end() { :; } # for scripts that start something
finish() {
  local status=$?
  at_end
  rm -rf "$tmp"
  case $status in
    0 | 77) [ "$failures" -eq 0 ] || { echo "$failures failures"; status=1; } ;;
    *) echo "FAIL: exit status $status" ;;
  esac
  exit $status
}
trap finish EXIT

fail() {
  local file
  echo "FAIL: $*"
  for file in "${shown[@]}"; do
    [ ! -s "$file" ] || tail -n 50 "$file" | sed "s/^/  ${file##*/} | /"
  done
  failures=$((failures + 1))
}

# The script ends here; what failed before still counts.
skip() {
  echo "SKIP: $*"
  exit 77
}

fashion_mnist=/usr/share/datasets/fashion-mnist
have_images() { [ -f $fashion_mnist/train-images-idx3-ubyte.gz ]; }
needs_images() { have_images || skip "no $fashion_mnist (Debian: dataset-fashion-mnist)"; }

# run STATUS COMMAND...: standard output to $tmp/out, standard error to $tmp/err
run() {
  local expected=$1 status=0
  shift
  "$@" >"$tmp/out" 2>"$tmp/err" || status=$?
  if [ "$status" -eq "$expected" ]; then echo "ok: $*"; else fail "$*: exit status $status instead of $expected"; fi
}

# within SECONDS COMMAND...: tries until the command succeeds.
within() {
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# A line of the output, of the messages, of a file must match.
says() { grep -Eq -- "$1" "$tmp/out" || fail "nothing printed matches: $1"; }
complains() { grep -Eq -- "$1" "$tmp/err" || fail "no message matches: $1"; }
contains() { grep -Eq -- "$2" "$1" || fail "nothing in $1 matches: $2"; }

# needs_space COMMAND...: a command that writes into the file named last says when there is no space left.
needs_space() {
  [ -c /dev/full ] || { echo "SKIP: no space left: no /dev/full"; return; }
  run 1 "$@" /dev/full
  complains '/dev/full: No space left'
}

valid_json() {
  if command -v python3 >/dev/null; then python3 -m json.tool "$1" >/dev/null || fail "$1 is not JSON"
  elif command -v jq >/dev/null; then jq . "$1" >/dev/null || fail "$1 is not JSON"
  else echo "SKIP: validity of JSON: neither python3 nor jq"; fi
}

# values FILE KEY: the values of one key in JSON that a driver has written, a line each
values() { [ ! -f "$1" ] || sed -n "s/^ *\"$2\": \\([^,]*\\),*\$/\\1/p" "$1"; }

# Results of a driver but for what depends on the clock; and but for what a resumed run does not do again
timeless() { grep -Ev '"(date|seconds|images_per_second|stalls|stall_seconds|tasks|tasks_per_batch|peak_tasks|peak_bytes)":' "$1"; }
computed() { timeless "$1" | grep -v '"ops":'; }

# alike FILE FILE COUNT TOLERANCE TEXT: so many figures each, a line each, that differ by no more than this part of the first
alike() {
  paste "$1" "$2" | awk -v n="$3" -v tolerance="$4" \
    '!/^[-+.0-9e]+\t[-+.0-9e]+$/ || ($1 - $2) ^ 2 > tolerance ^ 2 * $1 ^ 2 { bad = 1 } END { exit bad || NR != n }' ||
    fail "$5: $(paste "$1" "$2" | tr '\n\t' '; ')"
}
