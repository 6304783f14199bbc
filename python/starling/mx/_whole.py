"""MXNet's integer arithmetic: results wrap around in their type, where the engine's saturate.

Up to 16 bits are computed in int32 and 32 bits in int64, which hold every sum, difference and product; the numbers are brought
back by division.  No wider type holds those of 64 bits: NumPy computes them, after waiting for the values.
"""
import math

import numpy

from .. import _ops as ops
from .._core import here, lib
from .._tensor import Tensor, array, dtypes, wrap

_UINT8, _INT32, _INT64 = (dtypes[name] for name in ("uint8", "int32", "int64"))
_NAMES = {dtypes[name]: name for name in ("uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64")}
_BITS = {kind: numpy.dtype(name).itemsize * 8 for kind, name in _NAMES.items()}
_UNSIGNED = frozenset(kind for kind, name in _NAMES.items() if name[0] == "u")
_WIDER = {kind: "int32" if bits <= 16 else "int64" for kind, bits in _BITS.items() if bits < 64}
_HOST = {"add": numpy.add, "sub": numpy.subtract, "mul": numpy.multiply}


def kind_of(t):
    """The engine's number of the data type."""
    return lib.sl_tensor_dtype(t._p)


class _Calls:
    """Several calls of the engine for one operation here, all with its place in the program."""

    __slots__ = ("at", "kind")

    def __init__(self, t):
        self.at, self.kind = here(), type(t)

    def __getattr__(self, name):
        function = _functions.get(name)
        if function is None:
            function = _functions[name] = getattr(lib, f"sl_{name}_at")
        at, kind = self.at, self.kind

        def call(t, other):
            return wrap(function(at, t._p, other._p if isinstance(other, Tensor) else other), kind)

        return call

    def left(self, t, modulus):
        """The remainder of t and the modulus, with the sign of t: quotients of integers lose their fractions."""
        return self.sub(t, self.mul_scalar(self.div_scalar(t, modulus), modulus))


_functions: dict = {}


def wrapped(t, kind, most=None):
    """Integers of a wider type wrapped to a narrower one; most: the bound of their absolute values."""
    call, modulus = _Calls(t), 2 ** _BITS[kind]
    half = 0 if kind in _UNSIGNED else modulus // 2
    if most is None:
        t, most = call.left(t, modulus), modulus
    up = -(-(most + half) // modulus) * modulus  # a multiple that makes them positive
    t = call.left(call.add_scalar(t, up + half), modulus)
    return call.cast(call.sub_scalar(t, half) if half else t, kind)


def number_as(value, kind):
    """A number as an integer of the type: without its fraction, wrapped."""
    if isinstance(value, (float, numpy.floating)) and not math.isfinite(value):
        value = -(2**31)
    bits = _BITS[kind]
    value = int(value) % 2**bits
    return value - 2**bits if kind not in _UNSIGNED and value >= 2 ** (bits - 1) else value


def _by_numpy(name, a, b, kind, swap):
    first, second = (numpy.asarray(x.numpy() if isinstance(x, Tensor) else x, _NAMES[kind]) for x in ((b, a) if swap else (a, b)))
    with numpy.errstate(all="ignore"):
        return array(numpy.asarray(_HOST[name](first, second)), _NAMES[kind], a.device, a._array)


def _sum_or_product(name, a, b, kind, swap):
    if kind not in _WIDER and not a.is_symbol:
        return _by_numpy(name, a, b, kind, swap)
    if kind not in _WIDER:
        return _computed(name, a, b, swap)
    wide, call = dtypes[_WIDER[kind]], _Calls(a)
    a, b = call.cast(a, wide), call.cast(b, wide) if isinstance(b, Tensor) else b
    return wrapped(_computed(name, a, b, swap), kind, None if name == "mul" else 2 ** _BITS[kind])


def _computed(name, a, b, swap):
    if isinstance(b, Tensor):
        return getattr(ops, name)(b, a) if swap else getattr(ops, name)(a, b)
    swapped = f"r{name}_scalar" if swap and name not in ("add", "mul") else f"{name}_scalar"
    return getattr(ops, swapped)(a, b)


def _filled(a, number):
    """The number as an array beside a."""
    return ops.add_scalar(ops.mul_scalar(a, 0), number)


def _remainder(a, b, kind, swap):
    """The remainder with the sign of the divisor, as in Python; 0 if the divisor is 0."""
    b = b if isinstance(b, Tensor) else _filled(a, b)
    a, b = (b, a) if swap else (a, b)
    rest = ops.sub(a, ops.mul(ops.div(a, b), b))
    if kind not in _UNSIGNED:
        other = ops.mul(ops.ne_scalar(rest, 0), ops.ne(ops.lt_scalar(rest, 0), ops.lt_scalar(b, 0)))
        rest = ops.add(rest, ops.mul(b, other))
    return ops.mul(rest, ops.ne_scalar(b, 0))


def from_floats(t, kind):
    """Floats as integers, as processors convert them: numbers out of range become the smallest one, 0 for uint8."""
    most = 2.0 ** max(_BITS[kind] - 1, 31)
    fits = ops.lt_scalar(ops.abs(t), most)
    whole = ops.where(fits, ops.masked_fill(t, ops.rsub_scalar(fits, 1), 0), ops.add_scalar(ops.mul_scalar(fits, 0), -most))
    return wrapped(ops.cast(whole, "int32"), kind) if _BITS[kind] < 32 else ops.cast(whole, _NAMES[kind])


def _power(a, b, kind, swap):
    a, b = ops.cast(a, "float32"), ops.cast(b, "float32") if isinstance(b, Tensor) else b
    return from_floats(_computed("pow", a, b, swap), kind)


def arithmetic(name, a, b, swap=False):
    """a name b of an array of integers and one of the same type, or a number; swap: b name a."""
    kind = kind_of(a)
    if not isinstance(b, Tensor):
        b = number_as(b, kind)
    if name == "div":
        return _computed("div", a, b, swap)
    if name == "mod":
        return _remainder(a, b, kind, swap)
    if name == "pow":
        return _power(a, b, kind, swap)
    return _sum_or_product(name, a, b, kind, swap)


def absolute(a):
    """Absolute values; the smallest number is unchanged."""
    kind = kind_of(a)
    if kind in _UNSIGNED:
        return a
    return arithmetic("mul", a, ops.sub(ops.gt_scalar(a, 0), ops.lt_scalar(a, 0)))


def squares(a):
    """The square of each element, computed in floats, as in MXNet."""
    return from_floats(ops.square(ops.cast(a, "float64")), kind_of(a))


def total(name, a, axes, keepdims):
    """The sum or the product along axes."""
    kind = kind_of(a)
    if name == "prod" and not a.is_symbol:
        axes = axes if axes is None or isinstance(axes, int) else tuple(axes)
        return array(numpy.asarray(numpy.prod(a.numpy(), axes, _NAMES[kind], keepdims=keepdims)), _NAMES[kind], a.device, a._array)
    if kind not in _WIDER:
        return getattr(ops, name)(a, axes, keepdims=keepdims)
    return wrapped(getattr(ops, name)(ops.cast(a, "int64"), axes, keepdims=keepdims), kind)


def running(a, axis):
    """The cumulative sums along an axis."""
    kind = kind_of(a)
    return ops.cumsum(a, axis) if kind not in _WIDER else wrapped(ops.cumsum(ops.cast(a, "int64"), axis), kind)


def cast(t, name):
    """A conversion to another data type: numbers that integers up to 32 bits cannot hold wrap around."""
    kind, wanted = kind_of(t), dtypes.get(name)
    if wanted not in _WIDER or kind == wanted:
        return ops.cast(t, name)
    if kind in _BITS:
        if _BITS[kind] < _BITS[wanted] and (kind in _UNSIGNED or wanted not in _UNSIGNED):
            return ops.cast(t, name)
        wide = t if _BITS[kind] == 64 else ops.cast(t, "int32" if max(_BITS[kind], _BITS[wanted]) < 32 else "int64")
        return wrapped(wide, wanted)
    if _BITS[wanted] < 32 and name != "bool" and kind != dtypes["bool"]:
        return wrapped(ops.cast(t, "int32"), wanted)
    return ops.cast(t, name)
