"""NumPy's functions of MXNet's arrays.  As in MXNet, those of mx.np's arrays are mx.np's functions of the same name, and those that
NumPy itself leaves to a method of its argument are, of mx.nd's arrays, that method; all others wait, and give NumPy's arrays."""
import numpy

from .._protocols import array_function, array_ufunc
from . import np as _np
from ._array import NDArray
from .np import ndarray

_METHODS = frozenset("argmax argmin clip max min prod repeat reshape round squeeze sum swapaxes take transpose".split())
_OTHER_NAMES = {"amax": "max", "amin": "min", "around": "round"}
_FUNCTIONS = frozenset("""all any argmax argmin argsort around atleast_1d atleast_2d append array_split average broadcast_to clip column_stack
    concatenate copy cumsum diag diagonal dot dsplit dstack einsum expand_dims flip fliplr flipud hsplit hstack inner max mean min moveaxis
    nonzero ones_like outer prod ravel repeat reshape roll rot90 round sort split squeeze stack std sum swapaxes take tensordot tile trace
    transpose tril triu unique var vdot vsplit vstack where zeros_like""".split())  # fmt: skip
_OF_ELEMENTS = frozenset("""absolute arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil copysign cos cosh degrees exp expm1 fabs floor
    hypot log log10 log1p log2 logical_not maximum minimum negative radians reciprocal rint sign sin sinh sqrt square tan tanh
    trunc""".split())  # fmt: skip


def _is_numpys(function, name):
    return getattr(numpy, name, None) is function


def _tried(function, args, kwargs):
    """The result of a function here; None if it cannot take these arguments."""
    try:
        return function(*args, **{name: value for name, value in kwargs.items() if name != "out" or value is not None})
    except (TypeError, NotImplementedError):
        return None


def _of_nd(self, function, types, args, kwargs):
    name = function.__name__
    method = _OTHER_NAMES.get(name, name)
    if method in _METHODS and _is_numpys(function, name) and args and isinstance(args[0], NDArray):
        found = _tried(getattr(args[0], method), args[1:], kwargs)
        if found is not None:
            return found
    return array_function(self, function, types, args, kwargs)


def _of_np(self, function, types, args, kwargs):
    name = _OTHER_NAMES.get(function.__name__, function.__name__)
    if name in _FUNCTIONS and _is_numpys(function, function.__name__):
        found = _tried(getattr(_np, name), args, kwargs)
        if found is not None:
            return found
    return array_function(self, function, types, args, kwargs)


def _ufunc_of_np(self, ufunc, method, *inputs, **options):
    if method == "__call__" and not options and ufunc.__name__ in _OF_ELEMENTS:
        found = _tried(getattr(_np, ufunc.__name__), inputs, {})
        if found is not None:
            return found
    return array_ufunc(self, ufunc, method, *inputs, **options)


NDArray.__array_function__ = _of_nd
ndarray.__array_function__, ndarray.__array_ufunc__ = _of_np, _ufunc_of_np
