#!/bin/bash
# home.sh: where StarPU's measurements lie, whatever HOME is: nothing is read from a folder that others can write.  Run by make
# check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
needs_images
unset STARPU_HOME STARPU_PERF_MODEL_DIR XDG_CACHE_HOME
export STARPU_SILENT=1 STARPU_NCPU=1 TMPDIR=$tmp/tmp
mkdir "$TMPDIR"
sum() { run 0 env "$@" models/mlp --limit 100 --epochs 1 --quiet; }

left() { find "$TMPDIR" -mindepth 1 -print -quit; }

# No HOME, or one that is not there: no error, and what was made is removed.  A file: an error that says what to do.
for home in "" "$tmp/none/of/these"; do
  sum HOME="$home"
  [ -z "$(left)" ] || fail "HOME=$home leaves $(left)"
done
sum -u HOME
[ -z "$(left)" ] || fail "without HOME it leaves $(left)"

touch "$tmp/file"
run 1 env HOME="$tmp/file" models/mlp --limit 100 --epochs 1 --quiet
complains "file/.starpu/sampling/bus, which cannot be created: .*; set STARPU_HOME to a folder that can be written"

# StarPU ends the program for files like these.
plant() {
  local file
  mkdir -p "$1/.starpu/sampling/bus" "$1/.starpu/sampling/codelets/45"
  for file in config affinity bandwidth latency platform.xml; do
    head -c 3000 /dev/urandom >"$1/.starpu/sampling/bus/$(hostname).$file"
  done
}
plant "$tmp/planted"
chmod 777 "$tmp/planted/.starpu"
sum HOME="$tmp/planted"
complains "planted/.starpu can be written by every user: .*STARPU_HOME"
sum XDG_CACHE_HOME="$tmp/planted"
complains "planted/.starpu can be written by every user"
[ -z "$(left)" ] || fail "a planted folder leaves $(left)"
if [ "$(id -u)" = 0 ]; then # another user's folder, or a link of another user's to one
  chmod 755 "$tmp/planted/.starpu"
  chown -R 1 "$tmp/planted/.starpu"
  sum HOME="$tmp/planted"
  complains "planted/.starpu belongs to another user"
  mkdir -p "$tmp/linked" "$tmp/target/sampling"
  ln -s "$tmp/target" "$tmp/linked/.starpu"
  chown -h 1 "$tmp/linked/.starpu"
  sum HOME="$tmp/linked"
  complains "linked/.starpu belongs to another user"
fi

# One's own is used, and made.
mkdir "$tmp/own"
sum HOME="$tmp/own"
[ -d "$tmp/own/.starpu/sampling" ] || fail "no measurements in one's own HOME"
! grep -q 'are not read' "$tmp/err" || fail "one's own HOME is refused"
