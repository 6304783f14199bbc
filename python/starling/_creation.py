"""Functions that make tensors, with the forms and defaults of NumPy and PyTorch, and functions that also take numbers."""
import functools

import numpy

from . import _core, _ops
from ._operators import operand, together
from ._tensor import Tensor, _dtype_names, array, dtype_of
from ._values import number_of, refuse

__all__ = ["arange", "eye", "full", "full_like", "linspace", "masked_fill", "maximum", "minimum", "normal", "ones_like", "uniform", "where", "zeros_like"]


def _number(name, value):
    if isinstance(value, Tensor) or not hasattr(value, "__float__"):
        raise _core.wrong(name, value, "a number")
    return value.item() if isinstance(value, (numpy.generic, numpy.ndarray)) else value


def _name_of(dtype):
    return "float32" if dtype is None else _dtype_names[dtype_of(dtype)]


def _check_float32(numbers):
    """Refuses integers that float32, the default, would change."""
    if numbers and max(map(abs, (numbers[0], numbers[-1]))) > 2**24:
        given = numpy.array(numbers, dtype="int64" if max(map(abs, numbers)) < 2**63 else object)
        changed = given != given.astype("float32").astype(given.dtype)
        if changed.any():
            raise refuse(given[changed.argmax()], "float32, which is meant where no dtype is given")


def arange(start, stop=None, step=1, *, dtype=None, device=None):
    """Equally spaced numbers: arange(stop), arange(start, stop) or arange(start, stop, step), without stop itself.

    The data type is float32 unless another one is given.  Numbers that the data type cannot hold are refused.
    """
    if stop is None:
        start, stop = 0, start
    numbers = [_number(f"arange: {name}", value) for name, value in (("start", start), ("stop", stop), ("step", step))]
    name = _name_of(dtype)
    whole = all(isinstance(n, (int, numpy.integer)) for n in numbers)
    if not whole and "float" not in name and all(numpy.isfinite(n) for n in numbers):
        for n in numbers:
            if n != int(n):
                raise refuse(n, name)
        numbers, whole = [int(n) for n in numbers], True
    if whole and numbers[2]:
        elements = range(*map(int, numbers))
        if dtype is None:
            _check_float32(elements)
        elif elements:
            ends = [number_of(elements[0], name), number_of(elements[-1], name)]
            if "int" in name and max(map(abs, ends)) >= 2**53:  # a double does not hold all digits
                return array(numpy.arange(*map(int, numbers), dtype="int64"), dtype, device)
    return _ops.arange(*numbers, dtype=dtype, device=device)


def linspace(start, stop, num=50, *, dtype=None, device=None):
    """num equally spaced numbers from start to stop, both included."""
    start, stop = _number("linspace: start", start), _number("linspace: stop", stop)
    if isinstance(start, int) and isinstance(stop, int) and max(abs(start), abs(stop)) > 2**53:  # beyond NumPy's doubles
        values = [start + (stop - start) * i // max(num - 1, 1) for i in range(num)]
    else:
        values = numpy.linspace(start, stop, num)
    return array(values, dtype or "float32", device)


def eye(n, m=None, *, dtype=None, device=None):
    """A matrix (n, m) with ones on its diagonal and zeros elsewhere; without m it is square."""
    return array(numpy.eye(n, m), dtype or "float32", device)


def _like(x, dtype, device):
    if not isinstance(x, Tensor):
        raise _core.wrong("x", x, "Tensor")
    return x.shape, {"dtype": x.dtype if dtype is None else dtype, "device": x.device if device is None else device}


def zeros_like(x, *, dtype=None, device=None):
    """Zeros in the shape, data type and on the device of x."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x, *, dtype=None, device=None):
    """Ones in the shape, data type and on the device of x."""
    return full_like(x, 1, dtype=dtype, device=device)


def full_like(x, value, *, dtype=None, device=None):
    """One value in the shape, data type and on the device of x.

    Integers that do not have the value refuse it, a fraction too, unless dtype names their type.
    """
    shape, make = _like(x, dtype, device)
    if dtype is None:
        number_of(_number("full_like: value", value), _name_of(x.dtype), exact=True)
    return full(shape, value, **make)


def full(shape, value, *, dtype=None, device=None):
    """A tensor of one number: float32, unless dtype names another data type, which must be able to hold the number.

    For integer types a fraction is cut off, as in NumPy; numbers out of range and NaN are refused.
    """
    name = _name_of(dtype)
    value = _number("full: value", value)
    if dtype is None and isinstance(value, int):
        _check_float32([value])
    value = number_of(value, name)
    if name == "int64" and abs(value) > 2**53:  # a double does not hold all digits
        return _ops.broadcast_to(array(value, dtype, device), shape).copy()
    return _ops.full(shape, value, dtype=dtype, device=device)


def masked_fill(x, mask, value):
    """x with a number where the mask is not 0; the number must be one of x's data type."""
    if not isinstance(x, Tensor):
        raise _core.wrong("masked_fill: x", x, "Tensor")
    name = _dtype_names[dtype_of(x.dtype)]
    value = number_of(_number("masked_fill: value", value), name, exact=True)
    if name == "int64" and abs(value) > 2**53:
        return _ops.where(mask, array(value, name, x.device, type(x)), x)
    return _ops.masked_fill(x, mask, value)


def normal(shape, mean=0.0, sigma=1.0, *, dtype=None, device=None):
    """Normally distributed random numbers of this mean and standard deviation."""
    return _ops.normal(shape, mean, sigma, dtype=dtype, device=device)


def uniform(shape, low=0.0, high=1.0, *, dtype=None, device=None):
    """Random numbers from low to below high, uniformly distributed."""
    return _ops.uniform(shape, low, high, dtype=dtype, device=device)


def where(condition, a, b):
    """a where the condition is not 0, b elsewhere; shapes are broadcast.  a and b may be tensors, numbers, lists or arrays.

    The data type follows the table for operators (doc/python.md).  Gradients flow to a and b, not to the condition.
    """
    a, b = together("where", a, b)
    if not isinstance(condition, Tensor):
        if operand(condition) is None:
            raise _core.wrong("where: condition", condition, "Tensor")
        condition = array(condition, "bool", a.device)
    return _ops.where(condition, a, b)


def _of_two(name, of_bools):
    tensors = getattr(_ops, name)

    @functools.wraps(tensors)
    def function(a, b):
        if not isinstance(a, Tensor) or not isinstance(b, Tensor) or a.dtype != b.dtype:
            a, b = together(name, a, b)
        return of_bools(a, b) if a._truths and a.dtype == bool else tensors(a, b)

    return function


maximum = _of_two("maximum", _ops.logical_or)
minimum = _of_two("minimum", _ops.logical_and)
setattr(Tensor, "masked_fill", masked_fill)
