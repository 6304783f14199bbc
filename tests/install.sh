#!/bin/sh
# install.sh: what make install puts down is enough to build and run a program that knows nothing but
# pkg-config --cflags --libs starling.  Run by make check in the build tree, which sets CC and CFLAGS.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
dest=$tmp/dest
log=$tmp/install.log

if ! "${MAKE:-make}" install DESTDIR="$dest" MAKEFLAGS= MFLAGS= >"$log" 2>&1; then
  tail -n 30 "$log"
  echo "make install failed"
  exit 1
fi
# A page for each program, unless help2man was not there to make them.
if [ -n "$(find "$dest" -name '*.1')" ]; then
  for program in $(find "$dest" -path '*/bin/*' -type f); do
    [ -n "$(find "$dest" -path "*/man1/$(basename "$program").1")" ] || { echo "$program has no manual page"; exit 1; }
  done
fi
pc=$(find "$dest" -name starling.pc)
[ -n "$pc" ] || { echo "no starling.pc was installed"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
PKG_CONFIG_SYSROOT_DIR=$dest
# With --prefix=/usr these paths would be taken for granted, which below $dest they are not.
PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_ALLOW_SYSTEM_CFLAGS PKG_CONFIG_ALLOW_SYSTEM_LIBS

cat >"$tmp/program.c" <<'END'
#include <starling.h>
#include <stdio.h>

int main(void)
{
	printf("starling %s\n", sl_version());
	return 0;
}
END
# CFLAGS only for what must match the library: sanitizers.
# shellcheck disable=SC2086
sanitize=$(printf '%s\n' ${CFLAGS:-} | grep '^-fsanitize=' || true)
set -x
# shellcheck disable=SC2046,SC2086
${CC:-cc} $sanitize -o "$tmp/program" "$tmp/program.c" $(${PKG_CONFIG:-pkg-config} --cflags --libs starling)
libdir=$(dirname "$(find "$dest" -name 'libstarling.so.?')")
said=$(LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$tmp/program")
version=$(${PKG_CONFIG:-pkg-config} --modversion starling)
[ "$said" = "starling $version" ]

# Each program brings its completion.
set +x
for program in "$(find "$dest" -type d -name bin)"/*; do
  name=$(basename "$program")
  file=$(find "$dest" -path "*/bash-completion/completions/$name")
  [ -n "$file" ] || { echo "no completion for $name"; exit 1; }
  bash -c '. "$1" && complete -p "$2"' bash "$file" "$name"
done
