#!/bin/bash
# The reference: each public function is documented above its definition, and has a manual page that is well-formed and
# shows how it is called; with doxygen, HTML is made without a warning, and functions are found in it by the names that
# programs use.  Run by make check, in the build folder.
set -euo pipefail
export LC_ALL=C
command -v perl >/dev/null || { echo "no perl"; exit 77; }
"${srcdir:-.}/doc/reference/collect" --check

# Manual pages: all functions that headers declare, by the names that programs use
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir "$made/headers"
"$srcdir/doc/reference/collect" "$made/headers" >/dev/null
"$srcdir/doc/reference/manual" "$made/headers" "$made" 1.2.3
for name in $(sed -nE 's/^SL_API.*\b(sl_\w+)\(.*/\1/p' "$srcdir"/src/starling/*.h | sed -E 's/_at$//; s/_inplace$/_/') SL_SCOPE; do
  page=$made/$name.3
  [ -f "$page" ] || { echo "$name has no manual page"; exit 1; }
  grep -q "^\.SH SYNOPSIS" "$page" && grep -q "\b$name\b" <(sed '1,/SYNOPSIS/d; /DESCRIPTION/q' "$page") ||
    { echo "$page does not show how $name is called"; exit 1; }
  [ "$(sed '1,/DESCRIPTION/d; /SEE ALSO/,$d' "$page" | grep -c '[a-z]')" -gt 0 ] || { echo "$page says nothing"; exit 1; }
done
grep -qF 'sl_save_npy(sl_tensor *t, const char *path)' "$made/sl_save_npy.3"
if command -v groff >/dev/null; then
  said=$(groff -k -man -ww -Tutf8 "$made"/*.3 2>&1 >/dev/null)
  [ -z "$said" ] || { echo "groff: $said"; exit 1; }
fi
echo "$(find "$made" -name '*.3' | wc -l) manual pages"

if ! command -v doxygen >/dev/null; then
  echo "SKIP: no doxygen: pages were not made"
  exit
fi
"${MAKE:-make}" --no-print-directory reference
for name in sl_add sl_conv2d sl_init sl_rsub_scalar sl_add_ sl_forward sl_step_run SL_SCOPE SL_ESHAPE; do
  grep -qE ">$name(<|&#160;)" doc/reference/html/*_8h.html || { echo "no $name in the pages"; exit 1; }
done
