#!/bin/bash
# version.sh: the version is the same everywhere: header, configure, library, pkg-config, CMake, scripts, NEWS.md, Debian's
# changelog; Debian's package has the number of the soname; the macros compare.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
version=$(sed -n 's/^#define SL_VERSION_[MP][A-Z]* //p' "$srcdir/src/starling/version.h" | paste -sd .)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "no version in version.h: $version"

is() { [ "$2" = "$version" ] || fail "$1 has the version $2 instead of $version"; }
is configure "$(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' config.h)"
is starling.pc "$(sed -n 's/^Version: //p' src/starling.pc)"
is starling-config-version.cmake "$(sed -n 's/^set(PACKAGE_VERSION \(.*\))/\1/p' src/starling-config-version.cmake)"
is NEWS.md "$(sed -n '0,/^## /s/^## \([0-9.]*\).*/\1/p' "$srcdir/NEWS.md")"
is debian/changelog "$(sed -n '1s/^starling (\(.*\)).*/\1/p' "$srcdir/debian/changelog")"
is dev/version "$("$srcdir/dev/version" x | sed 's/^x (Starling) //')"

soname=$(objdump -p .libs/libstarling.so | awk '$1 == "SONAME" { print $2 }')
number=${soname#libstarling.so.}
[ -f "$srcdir/debian/libstarling$number.install" ] || fail "$soname: there is no debian/libstarling$number.install"
grep -qx "Package: libstarling$number" "$srcdir/debian/control" || fail "$soname: debian/control has no libstarling$number"

IFS=. read -r major minor patch <<<"$version"
cat >"$tmp/version.c" <<END
#include <starling.h>
#include <stdio.h>
#include <string.h>
#if !SL_VERSION_AT_LEAST($major, $minor, $patch) || SL_VERSION_AT_LEAST($major, $minor, $((patch + 1))) || \\
	SL_VERSION_AT_LEAST($major, $((minor + 1)), 0) || SL_VERSION_AT_LEAST($((major + 1)), 0, 0) || \\
	(SL_VERSION_MINOR > 0 && !SL_VERSION_AT_LEAST($major, $((minor - 1)), 99))
#error "SL_VERSION_AT_LEAST"
#endif
int main(void)
{
	puts(sl_version());
	return strcmp(SL_VERSION, "$version") != 0;
}
END
# shellcheck disable=SC2086
run 0 $CC $CFLAGS -I"$srcdir/src" -c "$tmp/version.c" -o "$tmp/version.o"
# shellcheck disable=SC2086
run 0 $LIBTOOL --quiet --tag=CC --mode=link $CC $CFLAGS $LDFLAGS -no-install -o "$tmp/version" "$tmp/version.o" libstarling.la
run 0 "$tmp/version"
is libstarling.so "$(cat "$tmp/out")"
