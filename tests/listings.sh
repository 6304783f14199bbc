#!/bin/sh
# The programs in doc/*.md that have a main: cut out, compiled against the library, run.  The lines of the text block after
# a program must be among what it prints, in that order.
# Run by make check, in the build folder; srcdir, CC, CFLAGS, CORE_LIBS, QUICK_LINK come from there.
set -eu

dir=tests/listings.dir
rm -rf "$dir"
mkdir -p "$dir"

# Programs NAME-1.c, NAME-2.c, ... and the texts after them, NAME-1.text, ...
cut_out() {
	awk -v base="$dir/$(basename "$1" .md)" '
		/^```c$/ { out = base "-" ++n ".c"; next }
		/^```text$/ { out = base "-" n ".text"; next }
		/^```/ { out = ""; next }
		out { print > out }' "$1"
}

for page in "$srcdir"/doc/*.md; do cut_out "$page"; done
count=0
for source in "$dir"/*.c; do
	grep -q '^int main(' "$source" || continue
	name=${source%.c}
	# shellcheck disable=SC2086
	$CC $CFLAGS -std=gnu11 -Wall -Wextra -Werror -I"$srcdir/src" -c "$source" -o "$name.o"
	# shellcheck disable=SC2086
	$QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$name" "$name.o" $CORE_LIBS
	"$name" >"$name.output"
	echo "--- $name"
	cat "$name.output"
	test -f "$name.text" || { echo "$name: no text block tells what it prints" >&2; exit 1; }
	awk 'NR == FNR { want[++n] = $0; next }
		next_line < n && $0 == want[next_line + 1] { next_line++ }
		END { if (next_line < n) { print "not printed: " want[next_line + 1]; exit 1 } }' \
		"$name.text" "$name.output" >&2
	count=$((count + 1))
done
echo "$count programs"
test "$count" -ge 5
