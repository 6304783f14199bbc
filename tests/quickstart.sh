#!/bin/bash
# quickstart.sh: quickstart itself, on a project that is none: it waits for another apt, counts what is compiled, takes
# ccache, and ends with the status of what it ran.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
tree=$tmp/tree
srcdir=$(cd "$srcdir" && pwd)
touch "$tmp/file"
mkdir -p "$tree/dev" "$tree/tools" "$tree/m4" "$tree/src/starling" "$tmp/bin"
cp "$srcdir/quickstart" "$tree"
cp "$srcdir/dev/counted-make" "$tree/dev"
touch -d '1 hour ago' "$tree"/{Makefile.am,configure.ac,m4/slp_none.m4,src/starling/version.h}
touch "$tree/Makefile.in"

# stub PLACE: a program, from standard input
stub() {
  cat >"$1"
  chmod +x "$1"
}

stub "$tree/tools/build-starpu" <<'END'
#!/bin/sh
case "$*" in *--print-prefix) echo /usr ;; esac
exit 0
END
stub "$tree/autogen.sh" </dev/null
stub "$tree/configure" <<'END'
#!/bin/bash
printf '%s\n' "$@" >configured
echo "$0" >place
echo "Starling 0.0.0"
touch config.status
mkdir -p models
printf '#!/bin/sh\necho "trained: $*"\n' >models/lenet.in
cat >Makefile <<'MAKE'
all: models/lenet one two
one two:
	@echo "  CC      " $@
	@[ ! -e ../broken ] || { echo "$@.c:1: error: broken"; exit 1; }
	@touch $@
models/lenet: models/lenet.in
	@echo "  CCLD    " $@
	@cp $< $@ && chmod +x $@
MAKE
END
# The lock is held twice.
stub "$tmp/bin/apt-get" <<END
#!/bin/sh
echo "\$*" >>"$tmp/apt"
case "\$*" in *install*) ;; *) exit 0 ;; esac
[ \$(grep -c install "$tmp/apt") -gt 2 ] || { echo "E: Could not get lock /var/lib/dpkg/lock-frontend." >&2; exit 100; }
END
for name in dpkg-query ccache nvcc sudo; do printf '#!/bin/sh\n[ "${0##*/}" != dpkg-query ] || exit 1\n[ "${0##*/}" = ccache ] || exec "$@"\n' | stub "$tmp/bin/$name"; done
mkdir "$tmp/dev"
export QUICKSTART_PAUSE=1 QUICKSTART_DEV=$tmp/dev
# quickstart_of TREE ARGUMENT...
quickstart_of() { env -u CC -u CXX -u MAKEFLAGS -u MFLAGS PATH="$tmp/bin:$PATH" "$1/quickstart" "${@:2}"; }
quickstart() { quickstart_of "$tree" "$@"; }

echo "--- packages, training"
run 0 quickstart --epochs 1
complains 'to do: [0-9]+ packages, Starling, training: about [0-9]+ min with [0-9]+ jobs'
complains 'another apt is at work: waiting'
[ "$(grep -c install "$tmp/apt")" -eq 3 ] || fail "not three attempts: $(cat "$tmp/apt")"
contains "$tmp/apt" 'DPkg::Lock::Timeout=[0-9]+ install'
complains 'quickstart: compiling LeNet: 1 of 1$'
says '^trained: --hybrid --epochs 1$'
complains 'quickstart: compiling the rest: 2 of 2$'
contains "$tree/build/configured" '^CC=ccache gcc$'
contains "$tree/build/configured" '^--with-starpu=/usr$'

complains 'no NVIDIA GPU here'
contains "$tree/build/configured" '^--without-cuda$'

echo "--- with CUDA"
run 0 quickstart build --no-install -- --with-cuda
contains "$tree/build/configured" '^--with-cuda$'
if grep -q 'no NVIDIA' "$tmp/err"; then fail "--with-cuda is not heard"; fi
touch "$tmp/nvidia0"
QUICKSTART_DEV=$tmp run 0 quickstart build --no-install
if grep -q cuda "$tree/build/configured"; then fail "a GPU is not seen"; fi

echo "--- failures"
rm "$tree"/build/{one,two}
touch "$tree/broken"
run 1 quickstart build --no-install
says 'one\.c:1: error: broken'
complains 'make failed'
printf '#!/bin/sh\necho "E: Unable to locate package" >&2\nexit 100\n' | stub "$tmp/bin/apt-get"
run 1 quickstart build
complains 'installing packages failed'

echo "--- other compilers"
rm "$tree/broken"
printf '#!/bin/sh\nexec gcc "$@"\n' | stub "$tmp/bin/other-cc" # systems differ in the gcc-N that they have
run 0 quickstart build --no-install -- CC=other-cc
if grep -q ccache "$tree/build/configured"; then fail "ccache though a compiler is named"; fi

# A system of which only these programs are seen: all but package managers, and what the test puts there.
mkdir "$tmp/others"
# The last place first: of programs with the same name the first one in PATH stays.
printf '%s\n' "$PATH:/usr/sbin:/sbin" | tr : '\n' | tac | while read -r place; do
  [ -d "$place" ] || continue
  find "$place/" -maxdepth 1 ! -type d -perm /111 ! -name 'apt*' ! -name 'dpkg*' ! -name 'dnf*' ! -name 'rpm*' ! -name 'yum*' \
    ! -name 'sudo*' ! -name ccache ! -name nvcc -print0 | xargs -0 -r ln -sf -t "$tmp/others"
done
# elsewhere STUBS ARGUMENT...: quickstart in a system of these stubs
elsewhere() { env -u CC -u CXX -u MAKEFLAGS -u MFLAGS PATH="$1:$tmp/others" "$tree/quickstart" "${@:2}"; }

# untouched COMMAND...: it fails with status 1, and nothing in the tree has changed.
untouched() {
  rm -rf "$tree/build"
  find "$tree" | sort >"$tmp/before"
  run 1 "$@"
  complains 'nothing was done'
  find "$tree" | sort | cmp - "$tmp/before" || fail "something was done: $*"
}

echo "--- without a package manager"
mkdir "$tmp/none" "$tmp/hwloc"
printf '#!/bin/sh\nexit 1\n' | stub "$tmp/none/pkg-config"
for option in "" --no-install; do
  untouched elsewhere "$tmp/none" build $option
  complains '^  libraries, with their headers: hwloc \(2\.0\), Jansson, libsodium \(1\.0\.12\), zlib$'
  complains '^  for speed: .*OpenBLAS$'
  ! grep -qE 'to do:|packages' "$tmp/err" || fail "packages are announced where none can be installed"
done
# hwloc is too old there, and no ONNX.
printf '#!/bin/sh\ncase "$*" in *protobuf* | *"hwloc >= 2"*) exit 1 ;; esac\n' | stub "$tmp/hwloc/pkg-config"
untouched elsewhere "$tmp/hwloc" build --no-install
complains '^  libraries, with their headers: hwloc \(2\.0\)$'
untouched elsewhere "$tmp/none" build --no-install -- CC=none-of-these
complains '^  to compile: a C compiler, the C library'
# What can be left out is named, and left out with --no-install only.
mkdir "$tmp/enough"
printf '#!/bin/sh\ncase "$*" in *protobuf*) exit 1 ;; esac\n' | stub "$tmp/enough/pkg-config"
untouched elsewhere "$tmp/enough" build
complains 'leave these out with --no-install'
run 0 elsewhere "$tmp/enough" build --no-install
complains '^  for ONNX files: protobuf-c'

echo "--- without root and sudo"
mkdir "$tmp/user"
printf '#!/bin/sh\necho 1000\n' | stub "$tmp/user/id"
for name in apt-get dpkg-query; do printf '#!/bin/sh\necho called >>"%s"\nexit 1\n' "$tmp/calls.$name" | stub "$tmp/user/$name"; done
untouched elsewhere "$tmp/user" build
complains '^  to compile: g\+\+, gcc, libc6-dev, make, pkgconf$'
complains 'first, as root: apt-get install dpkg-dev g\+\+ .*zlib1g-dev'
touch -d '2 hours ago' "$tree/configure" "$tree/Makefile.in" # older than configure.ac: it is made again
untouched elsewhere "$tmp/user" build
complains '^  to make configure: autoconf, automake, libtool$'
touch "$tree/configure" "$tree/Makefile.in"
[ ! -e "$tmp/calls.apt-get" ] || fail "apt-get is called without being allowed"

echo "--- Fedora"
mkdir "$tmp/fedora"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$tmp/dnf" | stub "$tmp/fedora/dnf"
printf '#!/bin/sh\n[ "$3" != hwloc-devel ] && [ "$3" != gcc-c++ ] && [ "$3" != vim ]\n' | stub "$tmp/fedora/rpm"
printf '#!/bin/sh\nexec "$@"\n' | stub "$tmp/fedora/sudo"
run 0 elsewhere "$tmp/fedora" build --packages vim -- CC=gcc
contains "$tmp/dnf" '^-y -q install gcc-c\+\+ hwloc-devel vim$'

echo "--- packages that a system does not have"
# lacking PACKAGE MANAGER...: a system whose package manager has all but this one.
lacking() {
  rm -rf "$tmp/lacking" "$tmp/lacking.log"
  mkdir "$tmp/lacking"
  cp "$tmp/fedora/sudo" "$tmp/lacking"
  stub "$tmp/lacking/$2" <<END
#!/bin/sh
case "\$*" in
  *repoquery*"$1") exit 0 ;;
  *repoquery*) echo package ;;
  *" install "*"$1"*) exit 1 ;;
  *) echo "\$*" >>"$tmp/lacking.log" ;;
esac
END
  printf '#!/bin/sh\n[ "$2" != "%s" ]\n' "$1" | stub "$tmp/lacking/apt-cache"
  for name in rpm dpkg-query; do printf '#!/bin/sh\nexit 1\n' | stub "$tmp/lacking/$name"; done
}
while read -r manager optional required; do
  lacking "$optional" "$manager"
  run 0 elsewhere "$tmp/lacking" build -- "--$manager"
  complains "this system has no $optional \\(for speed\\): without"
  contains "$tmp/lacking.log" ' install .*make'
  ! grep -q "$optional" "$tmp/lacking.log" || fail "$optional is asked for again"
  lacking "$required" "$manager"
  run 1 elsewhere "$tmp/lacking" build -- "--$manager"
  complains "installing packages failed: this system has no $required"
done <<END
apt-get libopenblas-dev libsodium-dev
dnf onednn-devel libsodium-devel
END

echo "--- the library of a wheel is not compiled twice"
mkdir "$tree/python"
printf '#!/bin/sh\necho "$1" >"%s"\n' "$tmp/wheel" | stub "$tree/python/make-wheel"
for name in patchelf perl; do stub "$tmp/enough/$name" </dev/null; done
# without_cuda COMMAND [FLAG]...
without_cuda() { QUICKSTART_CUDA=$tmp/none elsewhere "$tmp/enough" "$1" --no-install -- "${@:2}"; }
rm -rf "$tree/build"
run 0 without_cuda build
run 0 without_cuda python
contains "$tmp/wheel" '^build$'
for flags in --other --without-cuda; do
  run 0 without_cuda python $flags
  contains "$tmp/wheel" '^build/python/library$'
done
run 0 elsewhere "$tmp/bin:$tmp/enough" python --no-install # there is an nvcc
contains "$tmp/wheel" '^build/python/library$'
rm -rf "$tree/build"

echo "--- a source archive of StarPU"
stub "$tree/tools/build-starpu" <<END
#!/bin/sh
echo "\$*" >>"$tmp/starpu"
case "\$*" in *--print-prefix) echo /usr ;; esac
END
cd "$tmp" || exit
run 2 elsewhere "$tmp/enough" build --no-install --tarball starpu.tar.gz
complains 'cannot read .*starpu.tar.gz'
touch starpu.tar.gz
run 0 elsewhere "$tmp/enough" build --no-install --tarball starpu.tar.gz -- --none
contains "$tmp/starpu" "^--tarball $tmp/starpu.tar.gz .*--jobs"

printf '#!/bin/sh\nexit 1\n' | stub "$tree/tools/build-starpu"
stub "$tmp/bin/apt-get" </dev/null
run 1 quickstart build --tarball starpu.tar.gz -- --other
complains 'no StarPU could be built from .*starpu.tar.gz'

echo "--- where StarPU's source is looked for"
mkdir "$tmp/apt.d"
printf '#!/bin/sh\n[ "$2" = hwloc ]\n' | stub "$tmp/apt.d/pkg-config"
stub "$tmp/apt.d/apt-get" <<END
#!/bin/sh
case "\$*" in
  indextargets*) cat "$tmp/targets" ;;
  *) for option; do case \$option in -oDir::Etc::sourcelist=*) cat "\${option#*=}" >>"$tmp/sources" ;; esac; done ;;
esac
END
stub "$tmp/apt.d/dpkg-source" </dev/null
stub "$tmp/apt.d/apt-cache" </dev/null
# looks RELEASE TARGET LINE...: on that system build-starpu looks for source in these lines of a list, and finds none.
looks() {
  printf '%s\n' "$1" | tr ' ' '\n' >"$tmp/os-release"
  echo "$2" >"$tmp/targets"
  rm -f "$tmp/sources"
  run 1 env -u XDG_CACHE_HOME PATH="$tmp/apt.d:$PATH" HOME="$tmp/home" BUILD_STARPU_OS="$tmp/os-release" \
    "$srcdir/tools/build-starpu" --without-cuda
  complains 'no source of StarPU 1.4 was found'
  sed -E 's/\[[^]]*\] //' "$tmp/sources" >"$tmp/plain"
  printf '%s\n' "${@:3}" | cmp - "$tmp/plain" || fail "$1: sources are $(cat "$tmp/sources")"
}
looks "ID=ubuntu VERSION_CODENAME=noble UBUNTU_CODENAME=noble ID_LIKE=debian" "Ubuntu|noble|http://u/ubuntu/" \
  "deb-src http://u/ubuntu/ noble universe"
looks "ID=linuxmint VERSION_CODENAME=zena UBUNTU_CODENAME=resolute ID_LIKE=ubuntu" "Ubuntu|resolute|http://u/ubuntu/" \
  "deb-src http://u/ubuntu/ resolute universe"
looks "ID=debian VERSION_CODENAME=trixie" "Debian-Security|trixie-security|http://s/
Debian|trixie|http://d/debian/" "deb-src http://d/debian/ "{sid,forky,trixie,testing,unstable}" main"
run 1 env -u XDG_CACHE_HOME PATH="$tmp/apt.d:$PATH" HOME="$tmp/file" "$srcdir/tools/build-starpu" --without-cuda
complains 'file/.cache/starling cannot be written: set XDG_CACHE_HOME to another folder'
run 1 env -u HOME -u XDG_CACHE_HOME PATH="$tmp/apt.d:$PATH" "$srcdir/tools/build-starpu" --without-cuda
complains 'HOME is not set'

echo "--- folders"
untouched quickstart build --build-dir "$tmp/file/build"
complains 'file/build cannot be written: choose a folder with --build-dir'
untouched quickstart build --build-dir "build'"
complains 'configure takes no folder whose name has'
# configure and make read a way with spaces as several names.
mkdir "$tmp/two words"
cp -a "$tree" "$tmp/two words/tree"
run 0 quickstart_of "$tmp/two words/tree" build --no-install -- --with-starpu=/usr
contains "$tmp/two words/tree/build/place" '^\.\./configure$'
run 1 quickstart_of "$tmp/two words/tree" build --build-dir "$tmp/elsewhere"
complains 'names have spaces; nothing was done'

echo "--- a failure beside StarPU's build"
rm "$tree/configure"
printf '#!/bin/sh\nexit 1\n' | stub "$tree/autogen.sh"
run 1 quickstart build --no-install -- --with-starpu=/usr
complains 'autoreconf failed'
