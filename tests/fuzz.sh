#!/bin/sh
# fuzz.sh: the fuzz targets on their seeds; what has ever broken a reader becomes a seed.  Run by make check.
set -eu
srcdir=${srcdir:-.}
status=0
for target in checkpoint csv idx images onnx params symbol text; do
  tests/fuzz/fuzz_$target "$srcdir"/tests/fuzz/seeds/$target/* || { echo "FAIL: fuzz_$target"; status=1; }
done
exit $status
