#!/bin/sh
# exports.sh: the library must export what the public headers declare with SL_API, and nothing else; and it must not be
# linked with what takes long to load and only GPUs need.
# Run by make check in the build tree, which sets srcdir, CC and NM.
set -eu
export LC_ALL=C
srcdir=${srcdir:-.}
lib=.libs/libstarling.so
[ -f "$lib" ] || { echo "no $lib: built without shared libraries"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The preprocessor, not a pattern over the text: declarations may come from tables.
for header in "$srcdir"/src/starling.h "$srcdir"/src/starling/*.h; do
  ${CC:-cc} -E -I"$srcdir/src" "$header"
done | awk -v ours="^\"$srcdir/src/" '
  /^# [0-9]+ "/ { keep = $3 ~ ours; next }
  keep && !/^#/ { text = text " " $0 }
  END {
    n = split(text, decl, ";")
    for (i = 1; i <= n; i++)
      if (decl[i] ~ /visibility *\( *"default" *\)/) {
        d = decl[i]
        gsub(/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)/, "", d)
        sub(/.*[{}]/, "", d)
        if (match(d, /[A-Za-z_][A-Za-z0-9_]* *\(/))
          name = substr(d, RSTART, RLENGTH - 1)
        else {
          sub(/ *(\[|=).*/, "", d)
          match(d, /[A-Za-z_][A-Za-z0-9_]* *$/)
          name = substr(d, RSTART, RLENGTH)
        }
        gsub(/ /, "", name)
        print name
      }
  }' | sort -u >"$tmp/declared"
${NM:-nm} -D --defined-only "$lib" | awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/exported"

missing=$(comm -23 "$tmp/declared" "$tmp/exported")
extra=$(comm -13 "$tmp/declared" "$tmp/exported")
# shellcheck disable=SC2086
[ -z "$missing" ] || echo "declared with SL_API but not in the library:" $missing
# shellcheck disable=SC2086
[ -z "$extra" ] || echo "exported but not declared with SL_API:" $extra
heavy=$(objdump -p "$lib" | grep -E 'NEEDED +lib(cublas|cudnn)' || true)
[ -z "$heavy" ] || echo "loaded at each start: $heavy"
echo "$(wc -l <"$tmp/declared") names declared, $(wc -l <"$tmp/exported") exported"
[ -s "$tmp/declared" ] && [ -z "$missing$extra$heavy" ]
