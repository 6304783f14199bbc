"""Functions that make tensors, with the forms and defaults that NumPy and PyTorch have, and those that take numbers, too."""
import functools

import numpy

from . import _core, _ops
from ._tensor import Tensor, array

__all__ = ["arange", "eye", "full_like", "linspace", "maximum", "minimum", "normal", "ones_like", "uniform", "where", "zeros_like"]


def _number(name, value):
    if isinstance(value, Tensor) or not hasattr(value, "__float__"):
        raise _core.wrong(name, value, "a number")
    return value


def arange(start, stop=None, step=1, *, dtype=None, device=None):
    """Equally spaced numbers: arange(stop), arange(start, stop) or arange(start, stop, step); stop is left out.

    The data type is float32 unless another one is given.
    """
    if stop is None:
        start, stop = 0, start
    numbers = [_number(f"arange: {name}", value) for name, value in (("start", start), ("stop", stop), ("step", step))]
    return _ops.arange(*numbers, dtype=dtype, device=device)


def linspace(start, stop, num=50, *, dtype=None, device=None):
    """num equally spaced numbers, of which start is the first and stop the last one."""
    return array(numpy.linspace(_number("linspace: start", start), _number("linspace: stop", stop), num), dtype or "float32", device)


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
    """One value in the shape, data type and on the device of x."""
    shape, make = _like(x, dtype, device)
    return _ops.full(shape, value, **make)


def normal(shape, mean=0.0, sigma=1.0, *, dtype=None, device=None):
    """Normally distributed random numbers of this mean and standard deviation."""
    return _ops.normal(shape, mean, sigma, dtype=dtype, device=device)


def uniform(shape, low=0.0, high=1.0, *, dtype=None, device=None):
    """Random numbers from low to below high, all equally probable."""
    return _ops.uniform(shape, low, high, dtype=dtype, device=device)


def _beside(name, given, other):
    """A number as a tensor that goes with the other operand."""
    if isinstance(given, Tensor):
        return given
    whole = isinstance(_number(name, given), (int, numpy.integer))
    if isinstance(other, Tensor) and (whole or "float" in str(other.dtype)):
        return array(given, other.dtype, other.device)
    return array(given, None, None if not isinstance(other, Tensor) else other.device)


def where(condition, a, b):
    """a where the condition is not 0, b elsewhere; shapes are broadcast.  a and b are tensors or numbers.

    Gradients flow back to a and b, not to the condition.
    """
    return _ops.where(condition, _beside("where: a", a, b), _beside("where: b", b, a))


def _with_numbers(name):
    tensors, scalar = getattr(_ops, name), getattr(_ops, f"{name}_scalar")

    @functools.wraps(tensors)
    def function(a, b):
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return tensors(a, b)
        if isinstance(a, Tensor):
            return scalar(a, _number(f"{name}: b", b))
        return scalar(b, _number(f"{name}: a", a)) if isinstance(b, Tensor) else tensors(a, b)

    return function


maximum = _with_numbers("maximum")
minimum = _with_numbers("minimum")
