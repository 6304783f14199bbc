"""Arrays in files, and text that the library prints."""
import os
import tempfile
import warnings

from ._core import check, ffi, here, lib, pointer, text_of
from ._tensor import Tensor, wrap


def captured(print_to):
    """The text that print_to(FILE *) writes; raises if it returns an error."""
    with tempfile.TemporaryFile("w+b") as file:
        check(print_to(file) or 0)
        file.seek(0)
        return file.read().decode(errors="replace")


def load_npy(path):
    """The tensor in a NumPy file."""
    return wrap(lib.sl_load_npy_at(here(), text_of(path, "path")), Tensor)


def save_npy(t, path):
    """Writes a tensor to a NumPy file."""
    if isinstance(path, Tensor):  # the order of 0.1, until 0.3
        warnings.warn("save_npy(t, path): the tensor comes first", DeprecationWarning, stacklevel=2)
        t, path = path, t
    check(lib.sl_save_npy_at(here(), pointer("t", t, Tensor), text_of(path, "path")))


def explain(t):
    """How a tensor was computed, as text; the engine must be started with explain=True."""
    return captured(lambda file: lib.sl_explain_at(here(), file, pointer("t", t, Tensor)))
