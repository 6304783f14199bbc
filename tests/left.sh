# shellcheck shell=bash
# left.sh: sourced behind expect.sh by scripts that start processes which start others: none may outlive the test.
export TEST_LEFT=$$
# left: ids of processes that this script has started, however far away, and that are still there.
left() {
  local file id
  for file in /proc/[0-9]*/environ; do
    id=${file#/proc/}
    id=${id%/environ}
    if [ "$id" != $$ ] && [ "$id" != "$BASHPID" ] && grep -qsaz "^TEST_LEFT=$$\$" "$file" && kill -0 "$id" 2>/dev/null; then echo "$id"; fi
  done
}
none_left() { [ -z "$(left)" ]; }
# What is left is reported, and ended.
end_left() {
  local id
  within "$1" none_left && return
  echo "FAIL: processes are left:"
  failures=$((failures + 1))
  for id in $(left); do
    tr '\0' ' ' <"/proc/$id/cmdline" 2>/dev/null || true
    echo
    kill -KILL "$id" 2>/dev/null || true
  done
}
at_end() { end_left 60; }
