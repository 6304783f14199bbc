# build.sh: sourced by misuse.sh and sharing.sh. Builds a program that calls every public function; the calls are made from
# the headers.
source=$(cd "$srcdir" && pwd)

# build_caller DIR PROGRAM FILE...: from sources in tests/, without .c; includes come from the folders of these files, too
build_caller() {
  local dir=$1 program=$2 python file object objects=()
  shift 2
  for python in "$PWD/python/venv/bin/python" "${PYTHON:-python3}" /usr/bin/python3 none; do
    ! "$python" -c 'import pycparser' 2>/dev/null || break
  done
  [ "$python" != none ] || skip "needs Python with pycparser (Debian: python3-pycparser)"
  rm -rf "$dir"
  mkdir -p "$dir"
  "$python" "$source/tests/misuse/generate" "$source" >"$dir/calls.c" || fail "the calls could not be made from the headers"
  for file in "$dir/calls" "${@/#/$source/tests/}"; do
    object=$dir/$(basename "$file").o
    objects+=("$object")
    # shellcheck disable=SC2086
    run 0 $CC $CFLAGS -std=gnu11 -w -I"$source/src" -I"$source/tests/misuse" -I"$source/tests/${1%/*}" -c "$file.c" -o "$object"
  done
  # shellcheck disable=SC2086
  run 0 $QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$dir/$program" "${objects[@]}" $CORE_LIBS
}
