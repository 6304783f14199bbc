"""Files with any name, as in MXNet; the engine itself chooses the format by the extension."""
import os
import tempfile

_KNOWN = (".params", ".safetensors")


def write(save, path):
    """save(path), also for names without a known extension."""
    path = os.fspath(path)
    if path.endswith(_KNOWN):
        return save(path)
    save(f"{path}.params")
    os.replace(f"{path}.params", path)


def read(load, path):
    """load(path), also for names without a known extension."""
    path = os.fspath(path)
    if path.endswith(_KNOWN) or not os.path.exists(path):
        return load(path)
    with tempfile.TemporaryDirectory() as folder:
        known = os.path.join(folder, "file.params")
        os.symlink(os.path.abspath(path), known)
        load(known)
