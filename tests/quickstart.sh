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
