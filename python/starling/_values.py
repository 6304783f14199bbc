"""Values from the program as elements of a data type: those that it cannot hold are refused, never changed silently."""
import numbers

import numpy

from ._core import DTypeError

# From this number on, float32 rounds to an infinite bfloat16.
_NO_BFLOAT16 = float.fromhex("0x1.ffp127")
_HELD = {name: numpy.dtype(name) for name in ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")}
_HELD.update({name: numpy.dtype(name) for name in ("int8", "int16", "uint16", "uint32", "uint64")})
_HELD["bfloat16"] = _HELD["float32"]  # NumPy has none


def refuse(value, name):
    """The error for a value that a data type cannot hold."""
    return DTypeError(f"{value} is not a value of {name}")


def whole(given, values):
    """Values as NumPy made them of what a program gave: whole numbers of which int64 has not all are no floats, as in NumPy."""
    if values.dtype.kind == "f" and not isinstance(given, (numpy.ndarray, numpy.generic)) and values.size and abs(values).max() >= 2**63:
        exact = numpy.array(given, object)
        if all(isinstance(v, (int, numpy.integer)) for v in exact.flat):
            return exact
    return values


def _ends(values):
    """The smallest and the largest of the numbers; NaN if one of them is NaN."""
    if values.dtype.kind == "O":
        return min(values.flat), max(values.flat)
    return values.min().item(), values.max().item()


def _check_whole(values, kind, name, exact):
    """Refuses numbers that this integer type cannot hold; exact: also fractions."""
    low, high = _ends(values)
    for end in (low, high):
        if end != end or end in (float("inf"), float("-inf")):
            raise refuse(end, name)
    limits = numpy.iinfo(kind)
    if int(low) < limits.min or int(high) > limits.max:
        raise refuse(low if int(low) < limits.min else high, name)
    if exact and values.dtype.kind in "fO":
        whole = numpy.equal(numpy.trunc(values), values) if values.dtype.kind == "f" else numpy.array([v == int(v) for v in values.flat])
        if not whole.all():
            raise refuse(values.ravel()[whole.ravel().argmin()], name)


def _check_finite(given, stored, name):
    """Refuses numbers that have become infinite."""
    lost = numpy.isinf(stored) if name != "bfloat16" else numpy.abs(stored) >= _NO_BFLOAT16
    if lost.any():
        lost &= ~numpy.isinf(given.astype(numpy.float64) if given.dtype.kind == "O" else given)
        if lost.any():
            raise refuse(given.ravel()[lost.ravel().argmax()], name)


def fit(values, name, exact=False):
    """A NumPy array converted to the values of a data type (bfloat16: as float32).

    Numbers out of range are refused, and for integers infinities and NaN.  A fraction is cut off, as in NumPy, or refused
    if exact.
    """
    kind = _HELD[name]
    if values.dtype == kind and name != "bfloat16":
        return values
    if values.dtype.kind not in "fiub" and not (values.dtype.kind == "O" and all(isinstance(v, numbers.Real) for v in values.flat)):
        raise DTypeError(f"values of type {values.dtype} cannot be in a tensor")
    if kind.kind in "iu" and values.size and values.dtype.kind != "b":
        _check_whole(values, kind, name, exact)
    with numpy.errstate(all="ignore"):
        stored = values.astype(kind)
        if kind.kind == "f" and values.size and values.dtype.kind != "b":
            _check_finite(values, stored, name)
    return stored


def number_of(value, name, exact=False):
    """A number for C, as an element of the data type: refused, or without its fraction, as in fit."""
    fitting = fit(numpy.asarray(value), name, exact)
    return float(value) if "float" in name else fitting.item()
