"""mx.nd.ndarray: where MXNet has the class NDArray and functions beside it."""
from . import ndarray as _nd
from ._array import NDArray
from ._storage import STYPE_NUMBERS
from .arrays import *  # noqa: F403
from .unsupported import missing

_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = -1, 0, 1, 2
_STORAGE_TYPE_STR_TO_ID = STYPE_NUMBERS
_STORAGE_TYPE_ID_TO_STR = {number: name for name, number in _STORAGE_TYPE_STR_TO_ID.items()}
py_slice = slice
_refuse = missing("mx.nd.ndarray")


def __getattr__(name):
    return vars(_nd)[name] if name in vars(_nd) and not name.startswith("_") else _refuse(name)


__all__ = ["NDArray"]
