#!/bin/sh
# The program in README.md: cut out, compiled against the library, run; what it finds must be what was hidden.
# Run by make check, in the build folder; srcdir, CC, CFLAGS, CORE_LIBS, QUICK_LINK come from there.
set -eu

dir=tests/readme.dir
rm -rf "$dir"
mkdir -p "$dir"
awk '/^```c$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$srcdir/README.md" >"$dir/example.c"
test -s "$dir/example.c" || { echo "README.md has no program" >&2; exit 1; }

# shellcheck disable=SC2086
$CC $CFLAGS -std=gnu11 -Wall -Wextra -Werror -I"$srcdir/src" -c "$dir/example.c" -o "$dir/example.o"
# shellcheck disable=SC2086
$QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$dir/example" "$dir/example.o" $CORE_LIBS
"$dir/example" >"$dir/output"
cat "$dir/output"

# w = (2, -3.4) and b = 4.2, to one digit.
tr -d '[]' <"$dir/output" | awk '
	/^ *-?[0-9]/ { v[n++] = $1 }
	END { if (n != 3 || (v[0] - 2)^2 > 0.01 || (v[1] + 3.4)^2 > 0.01 || (v[2] - 4.2)^2 > 0.01) exit 1 }'
