#!/bin/bash
# The reference: each public function is documented above its definition; with doxygen, pages are made without a warning,
# and functions are found in them by the names that programs use.  Run by make check, in the build folder.
set -euo pipefail
export LC_ALL=C
command -v perl >/dev/null || { echo "no perl"; exit 77; }
"${srcdir:-.}/doc/reference/collect" --check

if ! command -v doxygen >/dev/null; then
  echo "SKIP: no doxygen: pages were not made"
  exit
fi
"${MAKE:-make}" --no-print-directory reference
for name in sl_add sl_conv2d sl_init sl_rsub_scalar sl_add_ sl_forward sl_step_run_shards SL_SCOPE SL_ESHAPE; do
  grep -qE ">$name(<|&#160;)" doc/reference/html/*_8h.html || { echo "no $name in the pages"; exit 1; }
done
