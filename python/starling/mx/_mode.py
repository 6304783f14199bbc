"""Whether blocks and loaders make arrays of mx.np (npx.set_np) or of mx.nd."""
from .unsupported import not_here

_np = False
_shapes = False  # whether shapes have NumPy's meaning: () is a number's, 0 a length, -1 an unknown length


def set_np(shape=True, array=True, dtype=False):
    """Blocks, parameters and loaders make arrays of mx.np from now on."""
    global _np, _shapes
    if dtype:
        raise not_here("npx.set_np(dtype=True)", "dtype='float64' where it is wanted")
    if array and not shape:
        raise ValueError("NumPy Shape semantics is required in using NumPy array semantics.")
    _np, _shapes = bool(array), bool(shape)


def reset_np():
    """Blocks, parameters and loaders make arrays of mx.nd from now on."""
    set_np(False, False)


def is_np_array():
    """Whether set_np was called."""
    return _np


def is_np_shape():
    """Whether shapes have NumPy's meaning."""
    return _shapes


def array_class():
    """The class of the arrays that blocks, parameters and loaders make."""
    if _np:
        from .np import ndarray

        return ndarray
    from ._array import NDArray

    return NDArray
