#!/bin/bash
# build-starpu.sh: where tools/build-starpu looks for StarPU's source, with stubs of apt: suite by suite, the newest first,
# until one has it; on Ubuntu in the release's own.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
mkdir "$tmp/bin"

# stub NAME: a program, from standard input
stub() {
  cat >"$tmp/bin/$1"
  chmod +x "$tmp/bin/$1"
}

# There is no StarPU, and what building it needs is there.
printf '#!/bin/sh\ncase "$*" in *hwloc*) ;; *) exit 1 ;; esac\n' | stub pkg-config
for name in gcc g++ make xz patch; do stub "$name" </dev/null; done
stub apt-get <<END
#!/bin/bash
list=\$(printf '%s\n' "\$@" | sed -n 's/^-oDir::Etc::sourcelist=//p')
case "\$*" in
  *indextargets*) echo "Debian|any|http://mirror.example/" ;;
  *update) cat "\$list" >>"$tmp/asked" ;;
  *source*) grep -q forky "\$list" && [ ! -e "$tmp/broken" ] && touch starpu_1.4.10.dsc ;;
esac
END
stub apt-cache <<'END'
#!/bin/bash
grep -qE 'forky|noble' "$(printf '%s\n' "$@" | sed -n 's/^-oDir::Etc::sourcelist=//p')" || exit 0
printf 'Package: starpu\nVersion: 1.3.11-1\nVersion: 1.4.10+dfsg-2\n'
END
# The source is empty, so that building ends after it.
printf '#!/bin/sh\nmkdir src\n' | stub dpkg-source

# looked_in SUITE...: these, in this order
looked_in() {
  local found
  found=$(sed 's/.*mirror.example[^ ]* //' "$tmp/asked" | tr '\n' ' ')
  [ "$found" = "$(printf '%s ' "$@")" ] || fail "looked in: $found"
}

# try ID CODENAME
try() {
  printf 'ID=%s\nVERSION_CODENAME=%s\n' "$1" "$2" >"$tmp/os"
  rm -f "$tmp/asked"
  run 1 env HOME="$tmp/home" XDG_CACHE_HOME="$tmp/cache" BUILD_STARPU_OS="$tmp/os" PATH="$tmp/bin:$PATH" "$srcdir/tools/build-starpu" --force
}

echo "--- Debian: the first suite that has one"
try debian bookworm
complains 'fetching StarPU 1\.4\.10'
if grep -q '1\.3\.11' "$tmp/err"; then fail "an older StarPU is fetched"; fi
looked_in "sid main" "forky main"

echo "--- Debian: a source that cannot be downloaded"
touch "$tmp/broken"
try debian trixie
complains 'StarPU 1\.4\.10.* cannot be downloaded'
complains 'no source of StarPU 1\.4 was found'
looked_in "sid main" "forky main" "trixie main" "testing main" "unstable main"

echo "--- Ubuntu: its own release"
try ubuntu noble
looked_in "noble universe"
