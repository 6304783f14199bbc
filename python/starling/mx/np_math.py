"""Functions of mx.np that compute: element by element, along axes, products."""
import builtins
import operator

import numpy

from .. import _ops as ops
from .._core import NULL, InvalidArgument, ShapeError, lib
from .._tensor import Tensor
from . import elementwise as _elements
from . import manipulation as _manipulation
from . import nd as _f
from ._array import in_shape
from ._np import as_array, flat, named
from ._program import classify
from ._signed import into
from .np_by_numpy import nonzero
from .unsupported import not_here

__all__ = """abs absolute add argmax argmin argsort around average clip diag diagonal diff divide dot einsum equal exp fabs greater greater_equal inner
    less less_equal log matmul max maximum mean min minimum multiply negative not_equal outer power prod cumsum reciprocal round round_ sign sort
    sqrt square std subtract sum tanh tensordot trace tril triu true_divide var vdot where""".split()


def _enter(name, function, doc):
    globals()[name] = named(function, name, doc)
    __all__.append(name)


_ORDER = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")


def promoted(a, b):
    """Arrays of two data types as the common one, the later in _ORDER."""
    if {str(a.dtype), str(b.dtype)} == {"int8", "uint8"}:  # as in MXNet
        raise not_here("an operation of int8 and uint8", "astype of one of them")
    common = builtins.max(str(a.dtype), str(b.dtype), key=_ORDER.index)
    return tuple(x if str(x.dtype) == common else x.astype(common) for x in (a, b))


# ---- element by element

def _is_number(x):
    return isinstance(x, (builtins.int, builtins.float, numpy.generic))


def _of_one(name, function):
    """A function of an array; of a number it is NumPy's."""

    def call(x, out=None):
        if _is_number(x) and out is None:
            return getattr(numpy, name)(x)
        return into(function(as_array(x)), out)

    return named(call, name, function.__doc__)


exp, log, sqrt, square, tanh, reciprocal, negative, sign, abs = (
    _of_one(name, getattr(_f, name)) for name in ("exp", "log", "sqrt", "square", "tanh", "reciprocal", "negative", "sign", "abs")
)
absolute = fabs = abs


def _operator(name, doc):
    def call(x1, x2, out=None):
        if _is_number(x1) and _is_number(x2) and out is None:
            return getattr(operator, name)(x1, x2)
        if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
            x1 = as_array(x1)
        if not isinstance(x1, Tensor):
            return into(_swapped[name](x2, x1) if name in _swapped else getattr(x2, f"__r{name}__")(x1), out)
        return into(getattr(x1, f"__{name}__")(x2), out)

    call.__doc__ = doc
    return call


_swapped = {
    "eq": lambda b, a: b == a, "ne": lambda b, a: b != a, "lt": lambda b, a: b > a, "le": lambda b, a: b >= a,
    "gt": lambda b, a: b < a, "ge": lambda b, a: b <= a,
}  # fmt: skip
add, subtract, multiply = _operator("add", "a + b."), _operator("sub", "a - b."), _operator("mul", "a · b.")
divide = true_divide = _operator("truediv", "a / b.")
power, equal, not_equal = _operator("pow", "a to the power of b."), _operator("eq", "a == b."), _operator("ne", "a != b.")
less, less_equal = _operator("lt", "a < b."), _operator("le", "a <= b.")
greater, greater_equal = _operator("gt", "a > b."), _operator("ge", "a >= b.")


def _chosen(name):
    choose = getattr(_f, name)

    def call(x1, x2, out=None):
        if _is_number(x1) and _is_number(x2) and out is None:
            return getattr(numpy, name)(x1, x2)
        x1, x2 = (x2, x1) if not isinstance(x1, Tensor) else (x1, x2)
        x1 = x1 if isinstance(x1, Tensor) else as_array(x1)
        if isinstance(x2, Tensor):
            x1, x2 = promoted(x1, x2)
        elif lib.slpy_truths(x1._p, NULL):
            x1 = x1.astype("int64")
        return into(choose(x1, x2), out)

    call.__name__, call.__doc__ = name, f"The {name} of two."
    return call


maximum, minimum = _chosen("maximum"), _chosen("minimum")


def clip(a, a_min, a_max, out=None):
    """Values below a_min become a_min, those above a_max a_max; one of them may be None."""
    if a_min is None and a_max is None:
        raise InvalidArgument("clip: a_min and a_max are both None")
    if _is_number(a) and out is None:
        return numpy.clip(a, a_min, a_max)
    a = as_array(a)
    a = a if a_min is None else ops.maximum_scalar(a, a_min)
    return into(a if a_max is None else ops.minimum_scalar(a, a_max), out)


def _unary(name, function):
    def call(x, out=None):
        return getattr(numpy, name)(x) if _is_number(x) and out is None else into(function(as_array(x)), out)

    _enter(name, call, f"{name} of each element.")


for _name in """sin cos tan sinh cosh arcsin arccos arctan arcsinh arccosh arctanh expm1 log1p log2 log10 floor ceil rint trunc fix cbrt degrees radians
        """.split():
    _unary(_name, getattr(_elements, _name))
_unary("rad2deg", _elements.degrees)
_unary("deg2rad", _elements.radians)


def _truth(name, function):
    _enter(name, lambda x1, x2=None, out=None: into(function(as_array(x1), x2).astype("bool"), out), f"{name}, as truth values.")


_truth("logical_not", lambda a, _: a == 0)
_truth("isnan", lambda a, _: ops.isnan(a))
_truth("isfinite", lambda a, _: ops.isfinite(a))
_truth("isinf", lambda a, _: builtins.abs(a) == float("inf"))
_truth("logical_and", lambda a, b: ((a != 0).astype("int32") * (as_array(b) != 0).astype("int32")))
_truth("logical_or", lambda a, b: ((a != 0).astype("int32") + (as_array(b) != 0).astype("int32")))
_truth("logical_xor", lambda a, b: (a != 0).astype("int32") != (as_array(b) != 0).astype("int32"))


def _binary(name, function):
    def call(x1, x2, out=None):
        if _is_number(x1) and _is_number(x2) and out is None:
            return getattr(numpy, name)(x1, x2)
        return into(classify(function(as_array(x1), x2)), out)

    _enter(name, call, f"{name} of two arrays, or an array and a number.")


for _name, _function in (("mod", _elements.modulo_of), ("remainder", _elements.modulo_of), ("fmod", lambda a, b: a - _elements.trunc(a / b) * b),
                         ("hypot", _elements.hypotenuse),
                         ("copysign", lambda a, b: builtins.abs(a) * ((as_array(b) >= 0).astype("float32") * 2 - 1))):  # fmt: skip
    _binary(_name, _function)


def around(x, decimals=0, out=None):
    """Rounds to `decimals` decimal places, ties to even."""
    scale = 10.0**decimals
    return into(ops.round(as_array(x) * scale) / scale if decimals else ops.round(as_array(x)), out)


round = round_ = around


def where(condition, x=None, y=None):
    """The elements of x where the condition holds, else those of y."""
    if x is None and y is None:
        return nonzero(condition)
    x, y = as_array(x), as_array(y)
    if x.dtype != y.dtype:
        y = y.astype(x.dtype)
    return classify(ops.where(as_array(condition), x, y))


# ---- along axes


def _some_axis(name, axis):
    """Refuses (), which in NumPy means no axis, and to the engine all."""
    if isinstance(axis, (tuple, list)) and not axis:
        raise not_here(f"{name}(axis=())", "axes, or sum, mean, max and min")


def _holding(kind, dtype, name):
    """The data type in which a sum or mean of elements of one data type is computed for a result of another one."""
    if "float" in kind:
        return builtins.max(kind, str(numpy.dtype(dtype)), key=_ORDER.index)
    return "int64" if name == "sum" else "float64"


def _reduction(name):
    function = getattr(_f, name)

    def reduce(a, axis, keepdims):
        return a.copy() if isinstance(axis, (tuple, list)) and not axis else function(a, axis, keepdims)

    def call(a, axis=None, dtype=None, out=None, keepdims=False):
        a = a if isinstance(a, Tensor) else as_array(a)
        kind = Tensor.dtype.fget(a)
        if dtype is not None and name in ("sum", "mean"):  # computed in a type that holds the elements, too
            return into(reduce(a.astype(_holding(str(kind), dtype, name)), axis, keepdims).astype(dtype), out)
        if dtype is not None:
            a = a.astype(dtype)
        elif name == "mean" and kind.kind in "iub":  # float64 holds the sum
            return into(reduce(a.astype("float64"), axis, keepdims).astype("float32"), out)
        elif kind.kind == "b":
            a = a.astype("int64")
        result = reduce(a, axis, keepdims)
        return into(result.astype("bool") if kind.kind == "b" and name in ("max", "min") else result, out)

    call.__name__, call.__doc__ = name, function.__doc__
    return call


sum, mean, max, min = (_reduction(name) for name in ("sum", "mean", "max", "min"))


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """The mean of the squared differences from the mean."""
    _some_axis("var", axis)
    a = a.astype(dtype) if dtype is not None else a if "float" in str(a.dtype) else a.astype("float32")
    n = a.size if axis is None else numpy.prod([a.shape[i] for i in ([axis] if isinstance(axis, int) else axis)])
    squares = ops.square(a - _f.mean(a, axis, True))
    return into(_f.sum(squares, axis, keepdims) / float(n - ddof), out)


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False):
    """The root of the variance."""
    return into(ops.sqrt(var(a, axis, dtype, None, ddof, keepdims)), out)


def argmax(a, axis=None, out=None, keepdims=False):
    """The index of the largest element."""
    flat = a.reshape((-1,)) if axis is None or not a.ndim and axis in (0, -1) else a
    result = ops.argmax(flat, 0 if axis is None else axis).astype("int64")
    return into(result.expand_dims(axis) if keepdims and axis is not None else result, out)


def argmin(a, axis=None, out=None, keepdims=False):
    """The index of the smallest element."""
    return argmax(-(a.astype("int64") if lib.slpy_integers(a._p, NULL) else a), axis, out, keepdims)


def prod(a, axis=None, dtype=None, out=None, keepdims=False):
    """The product of the elements."""
    a = as_array(a) if dtype is None else as_array(a).astype(dtype)
    if axis == ():  # along no axis
        return into(a.copy(), out)
    return into(_elements.prod(a.astype("int64") if a.dtype == numpy.bool_ else a, axis, keepdims), out)


def cumsum(a, axis=None, dtype=None, out=None):
    """The cumulative sums of the elements."""
    return into(_elements.cumsum(as_array(a), axis, dtype), out)


def _of_truth(name, reduce):
    def call(a, axis=None, out=None, keepdims=False):
        nonzero = (as_array(a) != 0).astype("int32")
        if axis == ():  # along no axis
            return into(nonzero.astype("bool"), out)
        return into(reduce(nonzero, axis if axis is None or isinstance(axis, int) else list(axis), keepdims=keepdims).astype("bool"), out)

    _enter(name, call, f"Whether {name} elements are not zero.")


_of_truth("any", ops.any)
_of_truth("all", ops.all)


def average(a, axis=None, weights=None, returned=False):
    """The mean, or the mean with weights."""
    a = as_array(a)
    if weights is None:
        mean = ops.mean(a, axis)
        count = mean * 0 + float(a.size / mean.size)
        return (mean, count.reshape((-1,))[0]) if returned else mean
    weights = as_array(weights)
    count = ops.sum(weights, axis if weights.ndim == a.ndim else None)
    if weights.ndim < a.ndim:
        weights = weights.reshape(tuple(-1 if i == axis % a.ndim else 1 for i in range(a.ndim)))
    mean = ops.sum(a * weights, axis) / count
    return (mean, count) if returned else mean


def sort(a, axis=-1, kind=None, order=None):
    """The elements in sorted order."""
    if order is not None:
        raise not_here("np.sort(order=…)", "arrays without fields")
    return ops.sort(*flat(as_array(a), axis), descending=False)


def argsort(a, axis=-1, kind=None, order=None):
    """The indices that sort the elements."""
    if order is not None:
        raise not_here("np.argsort(order=…)", "arrays without fields")
    return ops.argsort(*flat(as_array(a), axis), descending=False).astype("int64")


def diff(a, n=1, axis=-1):
    """The differences between neighbours."""
    for _ in range(n):
        a = a.slice_axis(axis, 1, None) - a.slice_axis(axis, 0, -1)
    return a


# ---- products


def dot(a, b, out=None):
    """The product of vectors or matrices, over the last axis of a and the last but one of b; numbers scale."""
    a, b = (x if isinstance(x, Tensor) or numpy.isscalar(x) and not isinstance(x, str) else as_array(x) for x in (a, b))
    if not isinstance(a, Tensor) or not isinstance(b, Tensor) or not a.ndim or not b.ndim:
        return into(a * b, out)
    if a.ndim > 2 or b.ndim > 2:
        return into(tensordot(a, b, ([-1], [b.ndim - 2 if b.ndim > 1 else 0])), out)
    return into(_f.dot(a, b), out)


def matmul(a, b, out=None):
    """The product of matrices, or of batches of matrices."""
    a, b = (x if isinstance(x, Tensor) else as_array(x) for x in (a, b))
    if a.shape is None or b.shape is None or a.ndim > 1 and b.ndim > 1:
        return into(a @ b, out)
    if not a.ndim or not b.ndim:
        raise ShapeError("matmul: an operand has no axes; use *")
    product = (a if a.ndim > 1 else a.reshape((1, -1))) @ (b if b.ndim > 1 else b.reshape((-1, 1)))
    axes = ([product.ndim - 2] if a.ndim == 1 else []) + ([product.ndim - 1] if b.ndim == 1 else [])
    return into(product.squeeze(tuple(axes)), out)


def einsum(subscripts, *operands, out=None, optimize=False):
    """Einstein's sum; an axis of length 1 goes with any length."""
    operands = [as_array(a) for a in operands]
    product = ops.einsum(*_without_short_axes(subscripts, operands))
    product.__class__ = operands[0]._array
    return into(classify(product), out)


def _without_short_axes(subscripts, operands):
    """The same sum without axes of length 1 whose letter stands for a longer one elsewhere: they are repeated along it."""
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if "." in given or len(terms) != len(operands) or builtins.any(a.shape is None or len(t) != a.ndim for t, a in zip(terms, operands)):
        return subscripts, operands
    if not arrow:
        result = "".join(sorted(letter for letter in set(given) - {","} if given.count(letter) == 1))
    longest = {}
    for letter, length in (pair for t, a in zip(terms, operands) for pair in zip(t, a.shape)):
        longest[letter] = builtins.max(length, longest.get(letter, 1))
    kept, arrays = [], []
    for term, a in zip(terms, operands):
        stays = [length != 1 or longest[letter] == 1 for letter, length in zip(term, a.shape)]
        kept.append("".join(letter for letter, stay in zip(term, stays) if stay))
        arrays.append(a if builtins.all(stays) else in_shape(a, *(length for length, stay in zip(a.shape, stays) if stay)))
    return f"{','.join(kept)}->{result}", arrays


def tensordot(a, b, axes=2):
    """The sum of products over axes of both."""
    if isinstance(axes, int):
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    over = [[i % x.ndim for i in ([which] if isinstance(which, int) else which)] for x, which in zip((a, b), axes)]
    rest = [[i for i in range(x.ndim) if i not in o] for x, o in zip((a, b), over)]
    first = ops.transpose(a, rest[0] + over[0]) if a.ndim > 1 else a
    second = ops.transpose(b, over[1] + rest[1]) if b.ndim > 1 else b
    inner = int(numpy.prod([a.shape[i] for i in over[0]], dtype=int))
    shape = tuple(a.shape[i] for i in rest[0]) + tuple(b.shape[i] for i in rest[1])
    rows, columns = (int(numpy.prod([x.shape[i] for i in r], dtype=int)) for x, r in zip((a, b), rest))
    return classify(ops.dot(in_shape(first, rows, inner), in_shape(second, inner, columns))).reshape(shape)


def outer(a, b):
    """All products of an element of a and one of b."""
    return a.reshape((-1, 1)) * b.reshape((1, -1))


def inner(a, b):
    """The sum of products over the last axes."""
    return tensordot(a, b, ([-1], [-1]))


def vdot(a, b):
    """The sum of products of all elements."""
    return ops.sum(a.reshape((-1,)) * b.reshape((-1,)))


def _triangle(a, keep):
    return a * as_array(keep(numpy.ones(a.shape[-2:], "float32"))).astype(a.dtype)


def tril(m, k=0):
    """The lower triangle."""
    return _triangle(m, lambda ones: numpy.tril(ones, k))


def triu(m, k=0):
    """The upper triangle."""
    return _triangle(m, lambda ones: numpy.triu(ones, k))


def trace(a, offset=0, axis1=0, axis2=1, out=None):
    """The sum of the diagonal."""
    return into(ops.sum(_manipulation.diag(a, offset, axis1, axis2), -1), out)


def diag(v, k=0):
    """The diagonal of a matrix, or a matrix with that diagonal."""
    return _manipulation.diag(v, k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal over two axes."""
    return _manipulation.diag(a, offset, axis1, axis2)
