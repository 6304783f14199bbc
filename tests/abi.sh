#!/bin/bash
# abi.sh BUILD: whether the public interface is still that of tests/interface.list: functions with their types, structures,
# enumerations, and the soname.  A difference is no fault, but a decision: version_info in Makefile.am and NEWS.md say what it
# means for programs, and --update writes the new list.  With ABI_OLD, the library of an earlier build, abidiff (Debian:
# abigail-tools) compares all that debuggers know of both.  Part of make check-release.
set -euo pipefail
export LC_ALL=C
usage() {
  echo "Usage: tests/abi.sh BUILD [--update]"
}
case ${1-} in
  --help) usage; exit 0 ;;
  '' | -*) usage >&2; exit 2 ;;
esac
build=$1
source=$(cd "$(dirname "$0")/.." && pwd)
list=$source/tests/interface.list
library=$build/.libs/libstarling.so
[ -f "$library" ] || { echo "no $library" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for python in "${PYTHON:-python3}" /usr/bin/python3 none; do
  ! "$python" -c 'import pycparser' 2>/dev/null || break
done
[ "$python" != none ] || { echo "SKIP: needs Python with pycparser (Debian: python3-pycparser)"; exit 77; }
objdump -p "$library" | awk '$1 == "SONAME" { print "soname " $2 }' >"$tmp/new"
"$python" "$source/tests/abi.py" "$source" >>"$tmp/new"
[ "$(grep -c '^function ' "$tmp/new")" -gt 400 ] || { echo "too few functions: this test does not find them"; exit 1; }

if [ "${2-}" = --update ]; then
  cp "$tmp/new" "$list"
  echo "$list: $(wc -l <"$list") lines"
  exit 0
fi
status=0
comm -23 <(sort "$list") <(sort "$tmp/new") >"$tmp/gone"
comm -13 <(sort "$list") <(sort "$tmp/new") >"$tmp/come"
if [ -s "$tmp/gone" ] || [ -s "$tmp/come" ]; then
  sed 's/^/- /' "$tmp/gone"
  sed 's/^/+ /' "$tmp/come"
  status=1
  if [ ! -s "$tmp/gone" ]; then echo "new: raise current and age of version_info in Makefile.am, then tests/abi.sh $build --update"
  elif grep -q '^soname' "$tmp/gone"; then echo "another soname: tests/abi.sh $build --update"
  else echo "changed or gone: raise current of version_info in Makefile.am, make age 0, say it in NEWS.md, then tests/abi.sh $build --update"; fi
fi
if [ -n "${ABI_OLD-}" ]; then
  abidiff --headers-dir1 "$source/src" --headers-dir2 "$source/src" "$ABI_OLD" "$library" || status=1
fi
[ $status != 0 ] || echo "the interface is that of $(sed -n 's/^soname //p' "$list"): $(wc -l <"$list") lines"
exit $status
