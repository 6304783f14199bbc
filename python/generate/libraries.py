"""The shared libraries that travel with the package: Starling, StarPU, and those that a machine may lack.

In a wheel (--whole) these are all but the few that manylinux, the standard of wheels for any Linux, finds everywhere, and those
of GPUs' drivers and CUDA.  A package in a build folder leaves the large ones (oneDNN, OpenBLAS) and the compiler's to the system.
"""
import os
import pathlib
import re
import shutil
import subprocess

_SYSTEM = r"(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libgomp|libgfortran|libquadmath|linux-vdso|libz)(?=[.-])"
_CUDA = r"lib(cuda|cublas|cudnn|cufft|cupti|curand|cusolver|cusparse|nv)"
_LARGE = rf"(libdnnl|libopenblas|libOpenCL|{_CUDA})"
# Where the nvidia-* wheels of PyPI have CUDA 13, which PyTorch uses, too: one copy for both.
_NVIDIA = "".join(f":$ORIGIN/../../nvidia/{name}/lib" for name in ("cu13", "cudnn", "nccl"))
_EVERYWHERE = rf"(ld-linux|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|linux-vdso)(?=[.-])|{_CUDA}"


def _needed(library):
    """(name, path) of all libraries that the loader would load with it."""
    text = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    return re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE)


def soname(library):
    return subprocess.run(["patchelf", "--print-soname", library], check=True, capture_output=True, text=True).stdout.strip()


def _put(path, folder, name, whole):
    target = folder / name
    shutil.copy(pathlib.Path(path).resolve(), target)
    target.chmod(0o755)
    uses_cuda = whole and "libcudart.so.13" in subprocess.run(["patchelf", "--print-needed", target], check=True, capture_output=True, text=True).stdout
    # The build id depends on the folder of the build.
    subprocess.run(["strip", "--strip-unneeded", "--remove-section=.note.gnu.build-id", target], check=True)
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN" + _NVIDIA * uses_cuda, target], check=True)
    return target


def _forget(prefix, target, source):
    """Names the folder of StarPU's installation nowhere; as build-aux/install-runtime does."""
    move = source / "build-aux/move-paths"
    subprocess.run([move, f"{prefix}/share/starpu/perfmodels/sampling", "/usr/share", target], check=True)
    subprocess.run([move, prefix, "/usr", target], check=True)


def _stays(name, whole):
    """Whether a library is left to the machine."""
    return re.match(_EVERYWHERE, name) if whole else re.match(_SYSTEM, name) or re.match(_LARGE, name)


def carry(library, folder, source, version, whole=False):
    """Copies the library and what it needs into folder, without debug information and folders of this machine, and writes
    the list of all of them, sbom.cdx.json."""
    folder.mkdir(parents=True, exist_ok=True)
    carried = {name: path for name, path in _needed(library) if not _stays(name, whole)}
    targets = [_put(path, folder, name, whole) for name, path in sorted(carried.items())] + [_put(library, folder, library.name, whole)]
    for starpu in (pathlib.Path(path).resolve().parents[1] for name, path in carried.items() if name.startswith("libstarpu")):
        if not str(starpu).startswith("/usr"):
            for target in targets:
                _forget(starpu, target, source)
    bill = subprocess.run(
        [source / "build-aux/sbom", version, library],
        check=True, capture_output=True, env={**os.environ, "SBOM_CARRIED": str(folder)},
    ).stdout
    (folder / "sbom.cdx.json").write_bytes(bill)
