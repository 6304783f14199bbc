"""Builds the Python package: build.py --source SRC --build BUILD --out DIR.

DIR/starling becomes the package: the modules of python/starling, those made from the headers, the extension module, and the
library with the libraries that a usual Debian installation lacks.  With --system the library is the installed one.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import defaults  # noqa: E402
import extension  # noqa: E402
import libraries  # noqa: E402
from headers import Headers  # noqa: E402
from wrappers import Layers, Operations  # noqa: E402


def documentation(source):
    """The comments above the definitions, by function name."""
    text = subprocess.run([source / "doc/reference/collect", "--json"], check=True, capture_output=True).stdout
    return json.loads(text)


def methods(path):
    """The names of the operations that are also methods of tensors: METHODS in that file."""
    return re.search(r'METHODS = """(.*?)"""', path.read_text(), re.DOTALL).group(1).split()


def write_modules(headers, docs, package):
    operations, layers = Operations(headers, docs), Layers(headers, docs)
    for name, maker in (("_ops", operations), ("nn", layers)):
        (package / f"{name}.py").write_text(maker.module())
        (package / f"{name}.pyi").write_text(maker.stub())
    (package / "_defaults.py").write_text(defaults.module(headers.defaults, headers.structs))
    (package / "_methods.pyi").write_text(operations.methods_stub(methods(package / "_arguments.py")))
    for name, reason in operations.left_out.items():
        print(f"{name} has no Python form: {reason}", file=sys.stderr)
    return operations


def main():
    parser = argparse.ArgumentParser(description="Build the Python package.")
    parser.add_argument("--source", type=pathlib.Path, required=True, help="the source tree")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the folder that the C library was built in")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the package goes")
    parser.add_argument("--version", default="0.0.0")
    parser.add_argument("--system", action="store_true", help="leave the library to the system, for a package of a distribution")
    parser.add_argument("--whole", action="store_true", help="with all libraries that a machine may lack, for a wheel")
    options = parser.parse_args()
    source, out = options.source.resolve(), options.out.resolve()
    package = out / "starling"
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(source / "python/starling", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "py.typed").touch()
    (package / "_version.py").write_text(f'version = "{options.version}"\n')
    headers = Headers(source / "src")
    write_modules(headers, documentation(source), package)
    libs = options.build.resolve() / ".libs"
    extension.build(headers, out, str(source / "src"), [str(libs)], not options.system)
    for leftover in (*package.glob("_ffi.c"), *package.glob("_ffi.o")):
        leftover.unlink()
    if not options.system:
        libraries.carry(libs / libraries.soname(libs / "libstarling.so"), package / "lib", source, options.version, options.whole)


if __name__ == "__main__":
    main()
