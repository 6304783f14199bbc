"""Arrays in files, and text that the library prints."""
import os
import tempfile

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
    check(lib.sl_save_npy_at(here(), pointer("t", t, Tensor), text_of(path, "path")))


def explain(t):
    """How a tensor was computed, as text (starling.init(explain=True) before)."""
    return captured(lambda file: lib.sl_explain_at(here(), file, pointer("t", t, Tensor)))
