#!/bin/bash
# packaging.sh: the recipes in packaging/ have the version of the tree, can be parsed, and pass options that configure has.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
version=$(sed -n 's/^#define SL_VERSION_[MP][A-Z]* //p' "$srcdir/src/starling/version.h" | paste -sd .)
spack=$srcdir/packaging/spack/packages/starling/package.py conda=$srcdir/packaging/conda
contains "$spack" "^    version\\(\"$version\"\\)\$"
contains "$spack" "starling-$version\\.tar\\.xz"
contains "$conda/meta.yaml" "^  version: $version\$"

echo "--- syntax"
bash -n "$conda/build.sh" || fail "build.sh"
if command -v python3 >/dev/null; then
  python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$spack" || fail "package.py"
fi
# With a word in place of each call of conda's; what is linked is needed when it runs.
if python3 -c 'import yaml' 2>/dev/null; then
  run 0 python3 - "$conda/meta.yaml" <<'END'
import re, sys, yaml
recipe = yaml.safe_load(re.sub("{{.*?}}", "x", open(sys.argv[1]).read()))
needs = recipe["requirements"]
assert needs["run"] == needs["host"], needs
assert all(isinstance(name, str) for names in needs.values() for name in names), needs
END
else
  echo "SKIP: syntax of meta.yaml: no module yaml of Python"
fi

echo "--- machines"
mkdir "$tmp/big"
top=$(cd "$srcdir" && pwd)
cd "$tmp/big" || exit
run 1 "$top/configure" -q ac_cv_c_bigendian=yes
complains "this machine is big-endian: Starling's files and messages are little-endian"
cd "$OLDPWD" || exit

echo "--- options"
"$srcdir/configure" --help >"$tmp/help"
# What follows with_or_without( or "for option in", and --with-NAME, --without-NAME
options=$(sed -n 's/.*with_or_without("\([a-z]*\)".*/\1/p; s/.*for option in (\(.*\)).*/\1/p' "$spack" | tr -d '",')
options+=" $(grep -ohE -- '--with(out)?-[a-z]+' "$spack" "$conda/build.sh" | sed -E 's/--with(out)?-//')"
for option in $options; do
  grep -qE -- "--with-$option(\$|[[ =])" "$tmp/help" || fail "configure has no --with-$option"
done
[ "$(wc -w <<<"$options")" -gt 10 ] || fail "options were not found: $options"
