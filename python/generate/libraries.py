"""The shared libraries that travel in a wheel: Starling, StarPU, and small ones that a machine may lack.

Large ones that Debian has (oneDNN, OpenBLAS), CUDA's, and those of the compiler and the C library stay outside.
"""
import pathlib
import re
import shutil
import subprocess

_SYSTEM = r"(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libgomp|libgfortran|libquadmath|linux-vdso|libz)(?=[.-])"
_LARGE = r"(libdnnl|libopenblas|libcu|libnv|libOpenCL)"


def _needed(library):
    """(name, path) of all that the loader would load with it."""
    text = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)


def _put(path, folder, name):
    target = folder / name
    shutil.copy(pathlib.Path(path).resolve(), target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", target], check=True)
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", target], check=True)


def carry(library, folder):
    """Copies the library and what it needs into folder, without debug information and run paths of this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in _needed(library):
        if not re.match(_SYSTEM, name) and not re.match(_LARGE, name):
            _put(path, folder, name)
    _put(library, folder, library.name)
