#!/bin/sh
# install.sh: what make install puts down is enough to build and run programs that know nothing but
# pkg-config --cflags --libs starling, or find_package(starling); nothing of it names the build tree or the folder of
# StarPU, and another user runs it with both out of sight.  Run by make check in the build tree, which sets CC and CFLAGS.
set -eu
tmp=$(mktemp -d)
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT
dest=$tmp/dest
log=$tmp/install.log

# Libtool cannot install into a prefix with spaces: configure says so.
configure=$(cd "$srcdir" && pwd)/configure
mkdir "$tmp/spaces"
if (cd "$tmp/spaces" && "$configure" -q --prefix="$tmp/a b") 2>"$tmp/err" || ! grep -q 'names have spaces' "$tmp/err"; then
  cat "$tmp/err"
  echo "configure takes a prefix with spaces"
  exit 1
fi

# installed TARGET: by a user whose files are closed to others
installed() {
  (umask 077; exec "${MAKE:-make}" "$1" DESTDIR="$dest" MAKEFLAGS= MFLAGS=) >"$log" 2>&1 && return
  tail -n 30 "$log"
  echo "make $1 failed"
  exit 1
}
installed install
closed=$(find "$dest" '(' ! -type l ! -perm -o=r ')' -o '(' -type d ! -perm -o=x ')')
[ -z "$closed" ] || { echo "other users cannot read:"; echo "$closed"; exit 1; }
# Nothing stays but folders that other packages use, too; the prefix itself may be in a folder of that name.
gone() {
  installed uninstall
  prefix=$(dirname "$libdir")
  left=$(find "$dest" ! -type d; [ ! -d "$prefix" ] || find "$prefix" -type d -path "$prefix/*starling*")
  [ -z "$left" ] || { echo "make uninstall leaves:"; echo "$left"; exit 1; }
}
# A page for each program, unless help2man was not there to make them.
if [ -n "$(find "$dest" -name '*.1')" ]; then
  for program in $(find "$dest" -path '*/bin/*' -type f); do
    [ -n "$(find "$dest" -path "*/man1/$(basename "$program").1")" ] || { echo "$program has no manual page"; exit 1; }
  done
fi
# And one for each function.
if command -v perl >/dev/null; then
  [ -f "$(find "$dest" -path '*/man3/sl_save_npy.3')" ] || { echo "sl_save_npy has no manual page"; exit 1; }
fi
pc=$(find "$dest" -name starling.pc)
[ -n "$pc" ] || { echo "no starling.pc was installed"; exit 1; }
# It says where it is, whatever configure was told.
(umask 077; exec "${MAKE:-make}" say-where INSTALL='install -D' DESTDIR="$tmp/other" prefix=/some/where MAKEFLAGS= MFLAGS=) >"$log" 2>&1
other=$(find "$tmp/other" -name starling.pc)
if ! grep -qx 'prefix=/some/where' "$other" || grep -q '^prefix=/some' "$pc"; then
  cat "$other"
  echo "make install prefix=DIR does not say DIR in starling.pc"
  exit 1
fi
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
bin=$(find "$dest" -type d -name bin)
libdir=$(dirname "$(find "$dest" -name 'libstarling.so.?')")
said=$(LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$tmp/program")
version=$(${PKG_CONFIG:-pkg-config} --modversion starling)
[ "$said" = "starling $version" ]

set +x

# An operation of a program's own, from its page; and in a shared library, for sl-info.
awk '/^```c$/ { text = ""; out = 1; next } /^```/ { if (text ~ /int main\(/) printf "%s", text; text = ""; out = 0 } out { text = text $0 "\n" }' \
  "$srcdir/doc/own-operations.md" >"$tmp/own.c"
sed 's/^int main(void)/__attribute__((constructor)) static int run(void)/; /SL_SCOPE/,/sl_shutdown/d' "$tmp/own.c" >"$tmp/mine.c"
# shellcheck disable=SC2046,SC2086
${CC:-cc} $sanitize -o "$tmp/own" "$tmp/own.c" $(${PKG_CONFIG:-pkg-config} --cflags --libs starling) -lm
LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$tmp/own" 2>"$log" | grep -F -- -0.75
# Nothing but what StarPU prints when it measures a machine for the first time.
if grep -vE 'calibrating|\.\.\. done' "$log"; then
  echo "an installed program prints this to standard error"
  exit 1
fi
# shellcheck disable=SC2046,SC2086
${CC:-cc} $sanitize -shared -fPIC -w -o "$tmp/mine.so" "$tmp/mine.c" $(${PKG_CONFIG:-pkg-config} --cflags --libs starling) -lm
env LD_LIBRARY_PATH="$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$bin"/*sl-info --ops --load "$tmp/mine.so" | grep -A1 -F 'softsign(x)'

# The same through CMake.
if command -v cmake >/dev/null; then
  mkdir "$tmp/cmake"
  cat >"$tmp/cmake/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(starling ${version%.*} REQUIRED)
add_executable(program ../program.c)
target_link_libraries(program starling::starling)
END
  cmake -S "$tmp/cmake" -B "$tmp/cmake/build" -DCMAKE_C_COMPILER="${CC##* }" -DCMAKE_C_FLAGS="$sanitize" \
    -Dstarling_DIR="$(dirname "$(find "$dest" -name starling-config.cmake)")" >"$log"
  cmake --build "$tmp/cmake/build" >>"$log" || { cat "$log"; exit 1; }
  [ "$(LD_LIBRARY_PATH=$libdir "$tmp/cmake/build/program")" = "starling $version" ]
  echo "CMake finds it"
else
  echo "SKIP: CMake: not there"
fi

# The static library, if there is one.
if [ -n "$(find "$dest" -name libstarling.a)" ]; then
  # shellcheck disable=SC2046,SC2086
  ${CC:-cc} $sanitize -o "$tmp/static" "$tmp/program.c" -Wl,-Bstatic $(${PKG_CONFIG:-pkg-config} --cflags --libs-only-L starling) \
    -lstarling -Wl,-Bdynamic $(${PKG_CONFIG:-pkg-config} --static --libs starling | sed 's/-lstarling//')
  ! ldd "$tmp/static" | grep libstarling || { echo "not linked statically"; exit 1; }
  [ "$("$tmp/static")" = "starling $version" ]
  echo "the static library links"
fi

# The library is small: 9.5 MB of code for CPUs, debugging information beside it, and for each architecture of GPUs as
# much as compressed code takes.
library=$(readlink -f "$libdir/libstarling.so")
sections=$(size -A "$library" 2>/dev/null | awk '$1 == ".nv_fatbin" { gpu = $2 } /^\.debug/ { debug += $2 }
  END { print gpu + 0, debug + 0 }')
bytes=$(stat -c %s "$library") gpu=${sections% *} debug=${sections#* }
echo "libstarling.so: $bytes bytes, of them $gpu for GPUs and $debug for debuggers"
if [ -z "$sanitize" ]; then
  [ $((bytes - gpu - debug)) -le 9500000 ] || { echo "more than 9.5 MB for CPUs"; exit 1; }
  [ "$gpu" -le 13000000 ] || { echo "more than 13 MB for GPUs: not compressed?"; exit 1; }
fi

# Programs and libraries are hardened as configure found that they can be, and search libraries beside themselves only;
# what they load is listed.
if command -v readelf >/dev/null; then
  flags=$(sed -nE 's/^S\["(SLP_HARDENING|SLP_LDFLAGS)"\]="(.*)"$/\2/p' config.status)
  # shellcheck disable=SC2086
  "$srcdir/tests/hardened" "$dest" "$(echo $flags)" "${libdir#"$dest"}"
fi
sbom=$(find "$dest" -name '*.cdx.json')
[ -n "$sbom" ] && grep -q '"libc6\|libc\.so' $sbom || { echo "no bill of materials, or an empty one: $sbom"; exit 1; }

# Each program brings its completion.
for program in "$(find "$dest" -type d -name bin)"/*; do
  name=$(basename "$program")
  file=$(find "$dest" -path "*/bash-completion/completions/$name")
  [ -n "$file" ] || { echo "no completion for $name"; exit 1; }
  bash -c '. "$1" && complete -p "$2"' bash "$file" "$name"
done

# Nothing but debugging information says where this was built, or where StarPU was.
for place in "$PWD" "${STARPU_PREFIX:-}"; do
  case $place in '' | /usr) continue ;; esac
  if found=$(grep -rlF --exclude-dir=.debug -- "$place" "$dest"); then
    echo "these name $place:"
    echo "$found"
    exit 1
  fi
done

# Another user, who does not see the build tree, nor the folder of StarPU.
case $sanitize$(id -u) in
  0) ;;
  *) echo "SKIP: as another user: needs root, and no sanitizers"; gone; exit ;;
esac
mkdir "$tmp/home"
chown nobody "$tmp/home"
cat >"$tmp/elsewhere" <<END
for place in "$PWD" "${STARPU_PREFIX:-}"; do
  case \$place in '' | /usr) ;; *) mount -t tmpfs -o mode=755 none "\$place" || exit 99 ;; esac
done
cd /
exec setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin HOME="$tmp/home" \
  STARPU_WORKERS_NOBIND=1 OMP_WAIT_POLICY=passive LD_LIBRARY_PATH="\$LIBRARIES" "\$@"
END
# elsewhere COMMAND...: exit status 99 where mounting is not allowed; then the user alone is another.
elsewhere() {
  status=0
  unshare --mount sh "$tmp/elsewhere" "$@" 2>"$tmp/err" || status=$?
  case $status in
    0) echo "ran as nobody, with the build out of sight: $*"; return ;;
    99 | 1) grep -qE 'unshare|mount' "$tmp/err" || { cat "$tmp/err"; return 1; } ;;
    *) cat "$tmp/err"; return 1 ;;
  esac
  sed -i '/^for place/,/^done/d' "$tmp/elsewhere"
  sh "$tmp/elsewhere" "$@"
  echo "ran as nobody: $*"
}
export LIBRARIES=
elsewhere "$bin"/*lenet --version
for script in sl-simulate sl-trace; do
  elsewhere "$bin"/*$script --version >"$tmp/version"
  grep -qF "$script (Starling) $version" "$tmp/version" || { cat "$tmp/version"; exit 1; }
done
[ ! -d /usr/share/datasets/fashion-mnist ] || elsewhere "$bin"/*lenet --limit 64 --epochs 1
elsewhere "$bin"/*sl-info >"$tmp/info"
LIBRARIES=$libdir
elsewhere "$tmp/program"
gone
