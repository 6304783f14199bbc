#!/bin/bash
# packaging.sh: the recipes in packaging/ have the version of the tree, can be parsed, and pass options that configure has.
# Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
version=$(sed -n 's/^#define SL_VERSION_[MP][A-Z]* //p' "$srcdir/src/starling/version.h" | paste -sd .)
spack=$srcdir/packaging/spack/packages/starling/package.py conda=$srcdir/packaging/conda
contains "$spack" "^    version\\(\"$version\"\\)\$"
contains "$spack" "starling-$version\\.tar\\.xz"
contains "$conda/recipe.yaml" "^  version: \"$version\"\$"

echo "--- syntax"
bash -n "$conda/build.sh" || fail "build.sh"
if command -v python3 >/dev/null; then
  python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$spack" || fail "package.py"
fi
# What is linked is needed when it runs.
if python3 -c 'import yaml' 2>/dev/null; then
  run 0 python3 - "$conda/recipe.yaml" <<'END'
import sys, yaml
needs = yaml.safe_load(open(sys.argv[1]))["requirements"]
assert needs["run"] == needs["host"], needs
assert all(isinstance(name, str) for names in needs.values() for name in names), needs
END
else
  echo "SKIP: syntax of recipe.yaml: no module yaml of Python"
fi
# As rattler-build reads it, with the C library that conda-forge names (py-rattler-build on PyPI).
if python3 -c 'import rattler_build' 2>/dev/null; then
  run 0 env STARPU_TARBALL=starpu.tar.gz python3 - "$conda/recipe.yaml" <<'END'
import sys
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig
recipe = Stage0Recipe.from_yaml(open(sys.argv[1]).read())
for platform in "linux-64", "linux-aarch64":
    one = PlatformConfig(target_platform=platform, build_platform=platform, host_platform=platform)
    [variant] = recipe.render(VariantConfig({"c_stdlib": ["sysroot"]}), RenderConfig(one))
    recipe_of_one = variant.recipe.to_dict()
    assert recipe_of_one["build"]["script"]["env"] == {"STARPU_TARBALL": "starpu.tar.gz"}, recipe_of_one
    assert f"sysroot_{platform}" in recipe_of_one["requirements"]["build"], recipe_of_one
END
else
  echo "SKIP: rendering of recipe.yaml: no module rattler_build of Python"
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
