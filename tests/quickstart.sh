#!/bin/bash
# quickstart.sh: quickstart itself, on a project that is none: it waits for another apt, counts what is compiled, takes
# ccache, and ends with the status of what it ran.  Run by make check in the build tree.
. "${srcdir:-.}/tests/expect.sh"
tree=$tmp/tree
mkdir -p "$tree/dev" "$tree/tools" "$tree/m4" "$tree/src/starling" "$tmp/bin"
cp "$srcdir/quickstart" "$tree"
cp "$srcdir/dev/counted-make" "$tree/dev"
touch "$tree"/{Makefile.in,Makefile.am,configure.ac,m4/slp_none.m4,src/starling/version.h}

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
quickstart() { env -u CC -u CXX -u MAKEFLAGS -u MFLAGS PATH="$tmp/bin:$PATH" "$tree/quickstart" "$@"; }

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
run 0 quickstart build --no-install -- CC=gcc-12
if grep -q ccache "$tree/build/configured"; then fail "ccache though a compiler is named"; fi

# A system of which only these programs are seen: all but package managers, and what the test puts there.
mkdir "$tmp/others"
for place in $(printf '%s\n' "$PATH" | tr : ' ') /usr/sbin /sbin; do
  for program in "$place"/*; do
    case ${program##*/} in apt* | dpkg* | dnf* | rpm* | yum* | sudo* | ccache) continue ;; esac
    [ ! -x "$program" ] || [ -e "$tmp/others/${program##*/}" ] || ln -s "$(command -v "$program" || echo "$program")" "$tmp/others/${program##*/}"
  done
done
# elsewhere STUBS ARGUMENT...: quickstart in a system of these stubs
elsewhere() { env -u CC -u CXX -u MAKEFLAGS -u MFLAGS PATH="$1:$tmp/others" "$tree/quickstart" "${@:2}"; }

echo "--- without a package manager"
mkdir "$tmp/none"
printf '#!/bin/sh\nexit 1\n' | stub "$tmp/none/pkg-config"
run 1 elsewhere "$tmp/none" build
complains 'no apt-get or dnf here.*hwloc \(2\.0\), Jansson'
if grep -qE 'to do:|packages' "$tmp/err"; then fail "packages are announced where there are none"; fi
run 0 elsewhere "$tmp/none" build --no-install -- CC=gcc
complains 'not installed: .*hwloc'

echo "--- without root and sudo"
mkdir "$tmp/user"
printf '#!/bin/sh\necho 1000\n' | stub "$tmp/user/id"
for name in apt-get dpkg-query; do printf '#!/bin/sh\necho called >>"%s"\nexit 1\n' "$tmp/calls.$name" | stub "$tmp/user/$name"; done
run 1 elsewhere "$tmp/user" build
complains 'neither root nor sudo; first, as root: apt-get install autoconf automake .*zlib1g-dev'
[ ! -e "$tmp/calls.apt-get" ] || fail "apt-get is called without being allowed"

echo "--- Fedora"
mkdir "$tmp/fedora"
printf '#!/bin/sh\necho "$*" >>"%s"\n' "$tmp/dnf" | stub "$tmp/fedora/dnf"
printf '#!/bin/sh\n[ "$3" != hwloc-devel ] && [ "$3" != gcc-c++ ] && [ "$3" != vim ]\n' | stub "$tmp/fedora/rpm"
printf '#!/bin/sh\nexec "$@"\n' | stub "$tmp/fedora/sudo"
run 0 elsewhere "$tmp/fedora" build --packages vim -- CC=gcc
contains "$tmp/dnf" '^-y -q install gcc-c\+\+ hwloc-devel vim$'

echo "--- a source archive of StarPU"
stub "$tree/tools/build-starpu" <<END
#!/bin/sh
echo "\$*" >>"$tmp/starpu"
case "\$*" in *--print-prefix) echo /usr ;; esac
END
cd "$tmp" || exit
run 0 elsewhere "$tmp/none" build --no-install --tarball starpu.tar.gz -- CC=gcc-11
contains "$tmp/starpu" "^--tarball $tmp/starpu.tar.gz .*--jobs"

echo "--- a failure beside StarPU's build"
rm "$tree/configure"
printf '#!/bin/sh\nexit 1\n' | stub "$tree/autogen.sh"
run 1 elsewhere "$tmp/none" build --no-install -- CC=gcc-10
complains 'autoreconf failed'
