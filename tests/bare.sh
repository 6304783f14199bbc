#!/bin/bash
# bare.sh: a system of which much is missing computes what any other does, or says what to do: no /proc, no /sys, no /dev/shm,
# a HOME that cannot be written, a locale that is not installed.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
unset STARPU_HOME STARPU_PERF_MODEL_DIR XDG_CACHE_HOME
export STARPU_SILENT=1 STARPU_NCPU=1 OMP_NUM_THREADS=1 HOME=$tmp/home
mkdir "$HOME"

train() { echo models/mlp --limit 100 --epochs 1 --quiet "--json=$tmp/$1"; }

# same NAME: that run had the losses of the first.
same() {
  values "$tmp/$1" train_loss >"$tmp/loss"
  [ -s "$tmp/loss" ] && cmp -s "$tmp/loss" "$tmp/expected" || fail "$1: losses $(cat "$tmp/loss"), not $(cat "$tmp/expected")"
}

# shellcheck disable=SC2046
run 0 $(train whole)
values "$tmp/whole" train_loss >"$tmp/expected"

echo "--- locale"
# shellcheck disable=SC2046
run 0 env LC_ALL=xx_YY.UTF-8 $(train locale)
same locale

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "folders of the system can be hidden by root only"

# without FOLDERS COMMAND...: the command where these folders are empty and cannot be written
without() {
  # shellcheck disable=SC2016
  unshare -m sh -c 'for dir in $0; do mount -n -t tmpfs -o ro none "$dir" || exit 99; done; exec "$@"' "$@"
}

# /proc is the last, as mount looks there.
for folders in /dev/shm /proc "/dev/shm /sys /proc"; do
  echo "--- without $folders"
  # shellcheck disable=SC2046
  run 0 without "$folders" $(train "without-${folders##*/}")
  same "without-${folders##*/}"
done
run 0 without "/dev/shm /sys /proc" tools/sl-info
says '^  topology +[1-9]'

echo "--- a HOME that cannot be written"
# shellcheck disable=SC2046
run 1 without "$HOME" $(train unwritable)
complains 'home/.starpu/sampling/bus, which cannot be created: Read-only file system; set STARPU_HOME to a folder that can be written'
# shellcheck disable=SC2046
STARPU_HOME=$tmp/other run 0 without "$HOME" $(train unwritable)
same unwritable
