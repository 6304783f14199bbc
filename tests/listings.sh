#!/bin/sh
# The programs in doc/*.md that have a main: cut out, compiled against the library, run.  The lines of the text block after
# a program must be among what it prints, in that order.  Parts of programs are compiled in a function that has the
# variables which they use.  Examples in the comments above functions are read by the preprocessor: macros get as many
# arguments as they take.
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

compile() {
	# shellcheck disable=SC2086
	$CC $CFLAGS -std=gnu11 -Wall -Wextra -Werror -I"$srcdir/src" "$@"
}

# Its functions and headers, then all else as the body of one.
whole() {
	cat <<-'END'
		#include <starling.h>
		#include <starling/dist.h>
		#include <starling/own.h>
	END
	awk '/^static .*\)$/ { inside = 1 } inside || /^#/; /^}/ { inside = 0 }' "$1"
	cat <<-'END'
		void part(void)
		{
			static sl_dataset *train;
			static sl_block *net, *lstm, *layer[2];
			static sl_trainer *trainer;
			static sl_step *step;
			static struct sl_batch b;
			static sl_device devices[2];
			static sl_tensor *x, *y, *state, *cell, *lengths, *image, *text, *box, *label, *out[2], *xs[2], *ys[2], *losses[2];
			static double weight;
			static int batch_size, layers;
	END
	grep -q '^static .* \**loss(' "$1" || echo "static sl_tensor *loss;"
	echo "{"
	awk '/^static .*\)$/ { inside = 1 } !inside && !/^(#|…|\.\.\.)/; /^}/ { inside = 0 }' "$1"
	printf '}\n}\n'
}

parts=0
for source in "$dir"/*.c; do
	case $source in
	*/adding-*) continue ;; # of the library itself; tests/example-op.sh has one of them
	esac
	if grep -q '^int main(' "$source"; then continue; fi
	whole "$source" >"$source.part"
	compile -Wno-unused -Wno-unused-parameter -Wno-missing-field-initializers -x c -c "$source.part" -o "$source.o"
	parts=$((parts + 1))
done
echo "$parts parts of programs"
test "$parts" -ge 5

examples() {
	for header in "$srcdir"/src/starling/*.h; do echo "#include <starling/${header##*/}>"; done
	awk '/\/\*/ { inside = 1 }
		inside && /^ \*     / {
			line = substr($0, 8)
			sub(/\*\/.*/, "", line)
			printf "#line %d \"%s\"\n%s\n", FNR, FILENAME, line
		}
		/\*\// { inside = 0 }' "$srcdir"/src/*/*.c "$srcdir"/src/*/*/*.c "$srcdir"/codelets/*/*.c
}
examples >"$dir/examples"
# shellcheck disable=SC2086
$CC -I"$srcdir/src" -E -w -x c "$dir/examples" >"$dir/examples.i"
count=$(grep -c '^#line' "$dir/examples")
echo "$count lines of examples"
test "$count" -ge 200

count=0
for source in "$dir"/*.c; do
	grep -q '^int main(' "$source" || continue
	name=${source%.c}
	compile -c "$source" -o "$name.o"
	# shellcheck disable=SC2086
	$QUICK_LINK --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$name" "$name.o" $CORE_LIBS
	"$name" >"$name.output"
	echo "--- $name"
	cat "$name.output"
	test -f "$name.text" || { echo "$name: no text block says what it prints" >&2; exit 1; }
	awk 'NR == FNR { want[++n] = $0; next }
		next_line < n && $0 == want[next_line + 1] { next_line++ }
		END { if (next_line < n) { print "not printed: " want[next_line + 1]; exit 1 } }' \
		"$name.text" "$name.output" >&2
	count=$((count + 1))
done
echo "$count programs"
test "$count" -ge 5
