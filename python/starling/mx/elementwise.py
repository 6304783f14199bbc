"""Functions of mx.nd and mx.sym of each element, and sums along axes."""
import math

from .. import _ops as ops
from .._core import NULL, lib
from .._tensor import Tensor
from . import _whole
from .functions import _no_scalar, _place_of, _softened, turned as _reversed, along as _axes, argmax as _argmax, max as max_axis, min as min_axis, sum as sum_axis
from .unsupported import not_here
from ._program import classify

__all__ = ["max_axis", "min_axis", "sum_axis"]


def _public(function):
    __all__.append(function.__name__)
    return function


# ---- of one array


def _rounded(x, up):
    """The floor, plus 1 where the fraction is at least (or more than) one half: x + 0.5 would round large numbers."""
    below = ops.floor(x)
    return below + up(x - below, 0.5)


def _cube_root(x):
    """The root, by a sign that is 1 at 0: there the gradient is infinite, as the function's slope is, not NaN."""
    side = ops.ge_scalar(x, 0) * 2 - 1
    return side * ops.pow_scalar(x * side, 1 / 3)


_FUNCTIONS = {
    "sin": ops.sin,
    "cos": ops.cos,
    "tan": ops.tan,
    "sinh": ops.sinh,
    "cosh": ops.cosh,
    "arcsinh": ops.asinh,
    "arccosh": ops.acosh,
    "arctanh": ops.atanh,
    "arcsin": ops.asin,
    "arccos": ops.acos,
    "arctan": ops.atan,
    "erf": ops.erf,
    "log1p": ops.log1p,
    "expm1": ops.expm1,
    "log2": lambda x: ops.log(x) * (1 / math.log(2)),
    "log10": lambda x: ops.log(x) * (1 / math.log(10)),
    "rsqrt": ops.rsqrt,
    "cbrt": lambda x: _cube_root(x),
    "rcbrt": lambda x: ops.reciprocal(_cube_root(x)),
    "floor": ops.floor,
    "ceil": ops.ceil,
    "round": lambda x: ops.sign(x) * _rounded(abs(x), ops.ge_scalar),
    "rint": lambda x: _rounded(x, ops.gt_scalar),
    "trunc": lambda x: ops.sign(x) * ops.floor(abs(x)),
    "fix": lambda x: ops.sign(x) * ops.floor(abs(x)),
    "degrees": lambda x: _in_floats(lambda t: t * (180 / math.pi), x),
    "radians": lambda x: _in_floats(lambda t: t * (math.pi / 180), x),
    "softsign": ops.softsign,
    "logical_not": lambda x: x == 0,
    "gelu": ops.gelu,
}


def _unary(name, function):
    def call(data):
        return function(data)

    call.__name__, call.__doc__ = name, f"{name} of each element."
    globals()[name] = _public(call)


for _name, _function in _FUNCTIONS.items():
    _unary(_name, _function)


@_public
def hard_sigmoid(data, alpha=0.2, beta=0.5):
    """alpha·x + beta between 0 and 1."""
    if lib.slpy_integers(data._p, NULL):
        raise TypeError("hard_sigmoid: floats are needed; astype converts")
    return ops.clip(data * alpha + beta, 0, 1)


@_public
def smooth_l1(data, scalar=1.0):
    """(scalar·x)²/2 where |x| < 1/scalar², else |x| - 1/2/scalar²."""
    s = scalar * scalar
    if s == 0:
        return data * 0
    return _in_floats(lambda t: ops.where(abs(t) < 1 / s, ops.square(t) * (0.5 * s), abs(t) - 0.5 / s), data)


def _in_floats(function, x):
    """A function with fractional results: for integers it is computed in float64, and fractions are cut off."""
    if not lib.slpy_integers(x._p, NULL):
        return function(x)
    return classify(function(ops.cast(x, "float64")), x).astype(str(Tensor.dtype.fget(x)))


# ---- of two


def modulo_of(a, b):
    """The remainder with the sign of b, as in Python."""
    return a % b


def hypotenuse(a, b):
    """sqrt(a² + b²), in float64, since float32 would not hold the squares."""
    kind = Tensor.dtype.fget(a)
    if isinstance(b, Tensor) and Tensor.dtype.fget(b) != kind:
        return ops.add(a, b)  # an error that names the types
    a, b = (ops.cast(x, "float64") if isinstance(x, Tensor) else x for x in (a, b))
    return ops.cast(ops.sqrt(ops.square(a) + (ops.square(b) if isinstance(b, Tensor) else b * b)), str(kind))


_BINARY = {
    ("modulo", "broadcast_mod"): modulo_of,
    ("logical_and", "broadcast_logical_and"): lambda a, b: (a != 0) * (b != 0),
    ("logical_or", "broadcast_logical_or"): lambda a, b: ops.maximum(a != 0, b != 0) if isinstance(b, Tensor) else a * 0 + bool(b) if b else a != 0,
    ("logical_xor", "broadcast_logical_xor"): lambda a, b: (a != 0) != (b != 0) if isinstance(b, Tensor) else (a == 0 if b else a != 0),
    ("broadcast_hypot",): hypotenuse,
}


def _binary(name, function):
    def call(lhs, rhs):
        return classify(function(lhs, rhs))

    call.__name__, call.__doc__ = name, f"{name} of two arrays, or of an array and a number."
    globals()[name] = _public(call)


for _names, _function in _BINARY.items():
    for _name in _names:
        _binary(_name, _function)

# ---- along axes


@_public
def prod(data, axis=None, keepdims=False, exclude=False):
    """The product of the elements."""
    axes = _axes(data, axis, exclude)
    if lib.slpy_integers(data._p, NULL):
        return _no_scalar(_whole.total("prod", data, axes, keepdims))
    return _no_scalar(ops.prod(data, axes, keepdims=keepdims))


@_public
def nansum(data, axis=None, keepdims=False, exclude=False):
    """The sum of the elements that are not NaN."""
    if lib.slpy_integers(data._p, NULL):
        return sum_axis(data, axis, keepdims, exclude)
    return _no_scalar(ops.sum(ops.masked_fill(data, ops.isnan(data), 0), _axes(data, axis, exclude), keepdims=keepdims))


@_public
def nanprod(data, axis=None, keepdims=False, exclude=False):
    """The product of the elements that are not NaN."""
    if lib.slpy_integers(data._p, NULL):
        from .ndarray import prod

        return prod(data, axis=axis, keepdims=keepdims, exclude=exclude)
    return _no_scalar(ops.prod(ops.masked_fill(data, ops.isnan(data), 1), _axes(data, axis, exclude), keepdims=keepdims))


@_public
def argmax_channel(data):
    """The index of the largest element of each row."""
    return _argmax(data, 1)


@_public
def argmin(data, axis=None, keepdims=False):
    """The index of the smallest element, in the array's data type."""
    return _place_of(lambda x, at: ops.argmax(_reversed(x), at), data, axis, keepdims)


@_public
def moments(data, axes=None, keepdims=False):
    """The mean and the variance."""
    mean = ops.mean(data, _axes(data, axes), keepdims=True)
    var = ops.mean(ops.square(data - mean), _axes(data, axes), keepdims=keepdims)
    return [_no_scalar(m) for m in (mean if keepdims else ops.mean(data, _axes(data, axes)), var)]


@_public
def L2Normalization(data, eps=1e-10, mode="instance"):
    """Divides by the root of the sum of squares: of a sample, of a channel, or of the channels at a position."""
    axes = {"instance": list(range(1, data.ndim)), "channel": 1, "spatial": list(range(2, data.ndim))}
    if mode not in axes:
        raise not_here(f"L2Normalization(mode={mode!r})", ", ".join(axes))
    return data / ops.sqrt(ops.sum(ops.square(data), axes[mode], keepdims=True) + eps)


@_public
def cumsum(a, axis=None, dtype=None):
    """The cumulative sums of the elements."""
    a = a if dtype is None else a.astype(dtype)
    a, axis = (a.reshape((-1,)), 0) if axis is None else (a, axis)
    return _whole.running(a, axis) if lib.slpy_integers(a._p, NULL) else ops.cumsum(a, axis)


@_public
def softmin(data, axis=-1, temperature=None, dtype=None, use_length=False):
    """softmax of the negative."""
    return _softened(ops.softmax, -data, axis, None, temperature, dtype, use_length)


@_public
def softmax_cross_entropy(data, label):
    """The sum of the cross-entropies of all rows, as an array of one element."""
    return _no_scalar(ops.sum(ops.softmax_cross_entropy(data, label.astype("int32"))))
