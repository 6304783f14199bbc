#!/bin/sh
# The example of doc/adding-an-operation.md: its listings are cut out, compiled, linked with the library and run.
# Run by make check, in the build folder; srcdir, CC, CFLAGS come from there.
set -eu

doc=$srcdir/doc/adding-an-operation.md
dir=tests/example-op.dir
rm -rf "$dir"
mkdir -p "$dir"

# The listing of a file: what lies between ```LANGUAGE file=NAME and ```.
listing() {
	awk -v mark="file=$1" '/^```/ { inside = $2 == mark; next } inside' "$doc" >"$dir/$1"
	test -s "$dir/$1" || { echo "no listing of $1 in $doc" >&2; exit 1; }
}
for f in bound.c bound.cu bound.h cases.c main.c expected; do listing "$f"; done

# A list names further ones by their folders, which are looked for beside itself first: hence the copies.
mkdir "$dir/elementwise"
{ cat "$srcdir/codelets/elementwise/binary_ops.def"; echo 'X(bound)'; } >"$dir/elementwise/binary_ops.def"
cp "$srcdir/codelets/ops.def" "$dir/ops.def"
cp "$srcdir/codelets/ops.c" "$dir/ops.c"

flags="-std=gnu11 -Wall -Wextra -Werror -DHAVE_CONFIG_H -I$dir -I. -I$srcdir/src -I$srcdir/codelets -I$srcdir/tests"
compile() {
	# shellcheck disable=SC2086
	$LIBTOOL --quiet --tag=CC --mode=compile $CC $CFLAGS $flags -c "$dir/$1" -o "$dir/${1%.c}.lo"
}
sed -i '1i #include "bound.h"' "$dir/bound.c"
sed -i '1i #include "starling.h"' "$dir/bound.h"
sed -i '1i #include "cases.h"' "$dir/cases.c"
# Without CUDA: the kernel of the example is compiled below, where there is a compiler for it.
grep -q 'define HAVE_CUDA 1' config.h && flags="$flags -UHAVE_CUDA" && sed '/define HAVE_CUDA 1/d' config.h >"$dir/config.h"
for f in bound.c ops.c main.c cases.c; do compile "$f"; done
# shellcheck disable=SC2086
$QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$dir/main" \
	"$dir/bound.lo" "$dir/ops.lo" "$dir/main.lo" $CORE_LIBS

"$dir/main" >"$dir/output"
diff "$dir/expected" "$dir/output"

if [ -n "${NVCC-}" ]; then
	# shellcheck disable=SC2086
	$NVCC -std=c++17 -arch=sm_80 -DHAVE_CUDA -I"$srcdir/src" -I"$srcdir/codelets" -c "$dir/bound.cu" -o "$dir/bound.cu.o"
fi
