"""mx.base: the error class that programs for MXNet catch, and the types of numbers and texts."""
import os

import numpy

from .._core import Error as MXNetError
from .unsupported import missing

__all__ = ["MXNetError"]
string_types, numeric_types, integer_types = (str,), (float, int, numpy.generic), (int, numpy.int32, numpy.int64)
mx_real_t = numpy.float32



class NotImplementedForSymbol(MXNetError):
    """A function of arrays was called with a symbol."""


class NotSupportedForSparseNDArray(MXNetError):
    """A function of dense arrays was called with a sparse one."""


def data_dir():
    """The folder of data sets and trained weights."""
    return os.environ.get("MXNET_HOME") or os.path.join(os.path.expanduser("~"), ".mxnet")


def py_str(x):
    """The text of bytes."""
    return x.decode("utf-8") if isinstance(x, bytes) else x


def _as_list(obj):
    return list(obj) if isinstance(obj, (list, tuple)) else [obj]


__getattr__ = missing("mx.base")
