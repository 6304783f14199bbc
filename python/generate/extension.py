"""The extension module starling._ffi: the library's functions through cffi, and the callbacks from
the library into Python.  Its file is the module starling._call, too (call.c)."""
import pathlib
import subprocess
import sys

import cffi

# The C side of blocks written in Python.
_CALLBACKS = """
struct slpy_block { sl_block base; void *object; };
extern "Python" sl_tensor *slpy_forward(sl_block *, sl_tensor *const *, int);
extern "Python" void slpy_destroy(sl_block *);
extern "Python" void slpy_release(void *, void *);
extern "Python" enum sl_status slpy_backward(void *, sl_tensor *const *, int, sl_tensor **, int);
extern "Python" void slpy_forget(void *);
int slpy_truths(const sl_tensor *, const sl_tensor *);
int slpy_integers(const sl_tensor *, const sl_tensor *);
int slpy_whole(const sl_tensor *, const sl_tensor *);
"""
_SOURCE = """
#include <starling.h>
#include <starling/dist.h>
struct slpy_block { sl_block base; void *object; };
/* Which of two tensors are bools: 1, 2, or both; the second may be NULL. */
static int slpy_truths(const sl_tensor *a, const sl_tensor *b)
{
	return (sl_tensor_dtype(a) == SL_BOOL) | (b && sl_tensor_dtype(b) == SL_BOOL) << 1;
}
static int slpy_integer(const sl_tensor *t)
{
	enum { FLOAT, INT, BOOL };
	static const char kinds[SL_DTYPE_COUNT] = {
#define X(symbol, name, type, kind, ...) [symbol] = kind,
		SL_DTYPE_LIST(X)
#undef X
	};
	return kinds[sl_tensor_dtype(t)] == INT;
}
/* The same for integers. */
static int slpy_integers(const sl_tensor *a, const sl_tensor *b)
{
	return slpy_integer(a) | (b ? slpy_integer(b) : 0) << 1;
}
/* The same for integers and bools, which have no fractions. */
static int slpy_whole(const sl_tensor *a, const sl_tensor *b)
{
	return slpy_truths(a, b) | slpy_integers(a, b);
}
#include "call.c"
"""


def build(headers, folder, include, libraries, carried):
    """Compiles starling/_ffi.abi3.so below `folder`; carried: the package brings the library along.  Returns its path."""
    ffi = cffi.FFI()
    ffi.cdef("struct slp_block;\n" + headers.text + _CALLBACKS)
    ffi.set_source(
        "starling._ffi",
        _SOURCE,
        include_dirs=[include, str(pathlib.Path(__file__).resolve().parent)],
        library_dirs=libraries,
        libraries=["starling"],
        extra_compile_args=["-O2", "-g0", "-Wno-unused", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"],
        # An old-style run path: it is looked at for what the library itself needs, too.
        extra_link_args=["-Wl,-z,relro,-z,now", "-Wl,--build-id=none"] + (["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN/lib"] if carried else []),
        py_limited_api=sys.implementation.name == "cpython",
    )
    path = ffi.compile(tmpdir=str(folder))
    if carried:  # a Python may bring along run paths of the machine that it was built on
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", path], check=True)
    return path
