# shellcheck shell=bash
# leaked_processes.sh: sourced after expect.sh by scripts whose processes start others: none may outlive the test.
export TEST_LEFT=$$
# left: the ids of processes that this script started, directly or not, and that still run.
left() {
  local file id
  for file in /proc/[0-9]*/environ; do
    id=${file#/proc/}
    id=${id%/environ}
    if [ "$id" != $$ ] && [ "$id" != "$BASHPID" ] && grep -qsaz "^TEST_LEFT=$$\$" "$file" && kill -0 "$id" 2>/dev/null; then echo "$id"; fi
  done
}
none_left() { [ -z "$(left)" ]; }
# Reports processes that still run, and ends them.
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
