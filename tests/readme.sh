#!/bin/sh
# The program in README.md: cut out, compiled against the library, run; it must find the hidden numbers.  The figures of
# README.md are those of doc/performance.md.
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

# | what it is (`case`) | Starling | PyTorch | ...: the median and the peer's time of the case, units left out
awk -F ' *[|] *' '
	FNR == NR { if (!($2 in value)) { value[$2] = $3; peer[$2] = $8 } next } # the first table has the figures
	/^\|.*\(`[a-z0-9-]+`\) *\|/ {
		match($2, /`[a-z0-9-]+`/)
		name = substr($2, RSTART + 1, RLENGTH - 2)
		split($3, own, " "); split(value[name], measured, " ")
		split($4, other, " "); split(peer[name], theirs, " ")
		if (own[1] != measured[1] || other[1] != theirs[1]) {
			print "README.md: " name ": " $3 ", " $4 "; doc/performance.md: " value[name] ", " peer[name]
			wrong = 1
		}
		rows++
	}
	END { print rows " rows of figures"; exit wrong || rows < 5 }' "$srcdir/doc/performance.md" "$srcdir/README.md"

# Each time of README.md is in doc/performance.md, in whatever sentence.
grep -oE '[0-9][0-9.]* (ms|µs)' "$srcdir/README.md" | sort -u >tests/readme.dir/times
while read -r time; do
	grep -qF "$time" "$srcdir/doc/performance.md" || awk -v t="${time% *}" -F ' *[|] *' '{ split($8, w, " ") } w[1] == t { found = 1 }
		END { exit !found }' \
		"$srcdir/doc/performance.md" || { echo "README.md: $time is not in doc/performance.md" >&2; exit 1; }
done <tests/readme.dir/times
