"""More of mx.np: functions made of the engine's operations, and those that MXNet, too, leaves to NumPy."""
import numpy

from .. import _ops as ops
from .._tensor import Tensor
from . import elementwise as _elements
from . import moving as _moving
from . import nd as _f
from .autograd import is_recording
from .context import known
from ._signed import into
from .missing import not_here
from ._program import classify

__all__ = []


def _public(function):
    __all__.append(function.__name__)
    return function


def _array(x):
    from .np import array

    return x if isinstance(x, Tensor) else array(x)


def _enter(name, function, doc):
    function.__name__, function.__doc__ = name, doc
    globals()[name] = _public(function)


# ---- element by element


def _unary(name, function):
    _enter(name, lambda x, out=None: into(function(_array(x)), out), f"{name} of each element.")


for _name in """sin cos tan sinh cosh arcsin arccos arctan arcsinh arccosh arctanh expm1 log1p log2 log10 floor ceil rint trunc fix cbrt degrees radians
        """.split():
    _unary(_name, getattr(_elements, _name))
_unary("rad2deg", _elements.degrees)
_unary("deg2rad", _elements.radians)


def _truth(name, function):
    _enter(name, lambda x1, x2=None, out=None: into(function(_array(x1), x2).astype("bool"), out), f"{name}, as truth values.")


_truth("logical_not", lambda a, _: a == 0)
_truth("isnan", lambda a, _: ops.isnan(a))
_truth("isfinite", lambda a, _: ops.isfinite(a))
_truth("isinf", lambda a, _: abs(a) == float("inf"))
_truth("logical_and", lambda a, b: ((a != 0).astype("int32") * (_array(b) != 0).astype("int32")))
_truth("logical_or", lambda a, b: ((a != 0).astype("int32") + (_array(b) != 0).astype("int32")))
_truth("logical_xor", lambda a, b: (a != 0).astype("int32") != (_array(b) != 0).astype("int32"))


def _binary(name, function):
    _enter(name, lambda x1, x2, out=None: into(classify(function(_array(x1), x2)), out), f"{name} of two arrays, or an array and a number.")


for _name, _function in (("mod", _elements.modulo_of), ("remainder", _elements.modulo_of), ("fmod", lambda a, b: a - _elements.trunc(a / b) * b),
                         ("hypot", _elements.hypotenuse),
                         ("copysign", lambda a, b: abs(a) * ((_array(b) >= 0).astype("float32") * 2 - 1))):  # fmt: skip
    _binary(_name, _function)


@_public
def around(x, decimals=0, out=None):
    """Rounds to so many decimals, ties to even."""
    scale = 10.0**decimals
    return into(ops.round(_array(x) * scale) / scale if decimals else ops.round(_array(x)), out)


round = round_ = around
__all__ += ["round", "round_"]


@_public
def where(condition, x=None, y=None):
    """The elements of x where the condition holds, else those of y."""
    if x is None and y is None:
        return nonzero(condition)
    x, y = _array(x), _array(y)
    if x.dtype != y.dtype:
        y = y.astype(x.dtype)
    return classify(ops.where(_array(condition), x, y))


# ---- along axes


def _flat(a, axis):
    return (a.reshape((-1,)), 0) if axis is None else (a, axis)


@_public
def prod(a, axis=None, dtype=None, out=None, keepdims=False):
    """The product of the elements."""
    a = _array(a) if dtype is None else _array(a).astype(dtype)
    return into(_elements.prod(a.astype("int64") if a.dtype == numpy.bool_ else a, axis, keepdims), out)


@_public
def cumsum(a, axis=None, dtype=None, out=None):
    """The sums of the elements so far."""
    return into(_elements.cumsum(_array(a), axis, dtype), out)


def _of_truth(name, reduce):
    def call(a, axis=None, out=None, keepdims=False):
        nonzero = (_array(a) != 0).astype("int32")
        return into(reduce(nonzero, axis if axis is None or isinstance(axis, int) else list(axis), keepdims=keepdims).astype("bool"), out)

    _enter(name, call, f"Whether {name} elements are not zero.")


_of_truth("any", ops.any)
_of_truth("all", ops.all)


@_public
def average(a, axis=None, weights=None, returned=False):
    """The mean, or the mean with weights."""
    a = _array(a)
    if weights is None:
        mean = ops.mean(a, axis)
        count = mean * 0 + float(a.size / mean.size)
        return (mean, count.reshape((-1,))[0]) if returned else mean
    weights = _array(weights)
    count = ops.sum(weights, axis if weights.ndim == a.ndim else None)
    if weights.ndim < a.ndim:
        weights = weights.reshape(tuple(-1 if i == axis % a.ndim else 1 for i in range(a.ndim)))
    mean = ops.sum(a * weights, axis) / count
    return (mean, count) if returned else mean


@_public
def sort(a, axis=-1, kind=None, order=None):
    """The elements in order."""
    if order is not None:
        raise not_here("np.sort(order=…)", "arrays without fields")
    return ops.sort(*_flat(_array(a), axis), descending=False)


@_public
def argsort(a, axis=-1, kind=None, order=None):
    """The places of the elements in order."""
    if order is not None:
        raise not_here("np.argsort(order=…)", "arrays without fields")
    return ops.argsort(*_flat(_array(a), axis), descending=False).astype("int64")


@_public
def diff(a, n=1, axis=-1):
    """The differences between neighbours."""
    for _ in range(n):
        a = a.slice_axis(axis, 1, None) - a.slice_axis(axis, 0, -1)
    return a


# ---- products


@_public
def einsum(subscripts, *operands, out=None, optimize=False):
    """Einstein's sum."""
    product = ops.einsum(subscripts, list(operands))
    product.__class__ = operands[0]._array
    return into(classify(product), out)


@_public
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
    return classify(ops.dot(first.reshape((-1, inner)), second.reshape((inner, -1)))).reshape(shape)


@_public
def outer(a, b):
    """All products of an element of a and one of b."""
    return a.reshape((-1, 1)) * b.reshape((1, -1))


@_public
def inner(a, b):
    """The sum of products over the last axes."""
    return tensordot(a, b, ([-1], [-1]))


@_public
def vdot(a, b):
    """The sum of products of all elements."""
    return ops.sum(a.reshape((-1,)) * b.reshape((-1,)))


def _triangle(a, keep):
    return a * _array(keep(numpy.ones(a.shape[-2:], "float32"))).astype(a.dtype)


@_public
def tril(m, k=0):
    """The lower triangle."""
    return _triangle(m, lambda ones: numpy.tril(ones, k))


@_public
def triu(m, k=0):
    """The upper triangle."""
    return _triangle(m, lambda ones: numpy.triu(ones, k))


@_public
def trace(a, offset=0, axis1=0, axis2=1, out=None):
    """The sum of the diagonal."""
    return into(ops.sum(_moving.diag(a, offset, axis1, axis2), -1), out)


@_public
def diag(v, k=0):
    """The diagonal of a matrix, or a matrix with that diagonal."""
    return _moving.diag(v, k)


@_public
def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonal over two axes."""
    return _moving.diag(a, offset, axis1, axis2)


# ---- moving elements


@_public
def flip(m, axis=None, out=None):
    """In reverse along an axis, several, or all."""
    return into(ops.flip(m, axis if axis is None or isinstance(axis, int) else list(axis)), out)


@_public
def flipud(m):
    """In reverse along the first axis."""
    return flip(m, 0)


@_public
def fliplr(m):
    """In reverse along the second axis."""
    return flip(m, 1)


@_public
def roll(a, shift, axis=None):
    """Moves elements along an axis; those at the end come back at the beginning."""
    if isinstance(axis, (tuple, list)):
        for s, x in zip(shift, axis):
            a = roll(a, s, x)
        return a
    flat, at = _flat(a, axis)
    cut = -shift % flat.shape[at] if flat.shape[at] else 0
    rolled = _f.concat(flat.slice_axis(at, cut, None), flat.slice_axis(at, 0, cut), dim=at) if cut else flat
    return rolled.reshape(a.shape)


@_public
def rot90(m, k=1, axes=(0, 1)):
    """Turned by 90 degrees, k times."""
    for _ in range(k % 4):
        m = flip(m.swapaxes(*axes), axes[0])
    return m


@_public
def tile(A, reps):
    """Copies of an array side by side along its axes."""
    return _f.tile(A, (reps,) if isinstance(reps, int) else reps)


@_public
def repeat(a, repeats, axis=None):
    """Each element several times."""
    return _moving.repeat(a, repeats, axis)


@_public
def moveaxis(a, source, destination):
    """With an axis at another place."""
    return _moving.moveaxis(a, source, destination)


@_public
def pad(x, pad_width=None, mode="constant", constant_values=0):
    """More elements around: of a value, those at the edge, those reflected there, or the largest or smallest of an axis."""
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        return _moving.pad(x, mode, sum(widths, []), constant_values)
    if mode not in ("edge", "reflect", "symmetric", "maximum", "minimum"):
        raise not_here(f"np.pad(mode={mode!r})", "constant, edge, reflect, symmetric, maximum, minimum")
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode in ("maximum", "minimum"):
            most = getattr(_f, mode[:3])(x, axis, True)
            x = _f.concat(*[most] * before, x, *[most] * after, dim=axis)
        else:
            x = x[(slice(None),) * axis + (numpy.pad(numpy.arange(x.shape[axis]), (before, after), mode).tolist(),)]
    return x


@_public
def dstack(arrays):
    """Arrays side by side along the third axis."""
    def deep(a):
        a = a.reshape((1, -1)) if a.ndim < 2 else a
        return a.expand_dims(2) if a.ndim == 2 else a

    return _f.concat(*map(deep, arrays), dim=2)


@_public
def column_stack(tup):
    """Arrays as columns side by side."""
    return _f.concat(*[a.reshape((-1, 1)) if a.ndim < 2 else a for a in tup], dim=1)


@_public
def array_split(ary, indices_or_sections, axis=0):
    """An array cut into parts, which need not be equal."""
    if not isinstance(indices_or_sections, int):
        return _moving.split_v2(ary, indices_or_sections, axis)
    each, more = divmod(ary.shape[axis], indices_or_sections)
    sizes = [each + 1] * more + [each] * (indices_or_sections - more)
    return _moving.split_v2(ary, numpy.cumsum(sizes)[:-1].tolist(), axis)


@_public
def hsplit(ary, indices_or_sections):
    """Parts side by side."""
    return _moving.split_v2(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


@_public
def vsplit(ary, indices_or_sections):
    """Parts stacked along the first axis."""
    return _moving.split_v2(ary, indices_or_sections, 0)


@_public
def append(arr, values, axis=None):
    """An array with more at the end."""
    arr, values = (_array(a).reshape((-1,)) if axis is None else _array(a) for a in (arr, values))
    return _f.concat(arr, values, dim=axis or 0)


def _at_least(n):
    def call(*arys):
        made = [a if a.ndim >= n else a.reshape((1,) * (n - a.ndim) + a.shape) for a in map(_array, arys)]
        return made[0] if len(made) == 1 else made

    _enter(f"atleast_{n}d", call, f"With at least {n} axes.")


_at_least(1)
_at_least(2)


@_public
def meshgrid(*xi, indexing="xy"):
    """Coordinates of a grid."""
    shape = [x.size for x in xi]
    grids = [ops.broadcast_to(x.reshape(tuple(-1 if i == j else 1 for j in range(len(xi)))), shape) for i, x in enumerate(xi)]
    return [g.swapaxes(0, 1) for g in grids] if indexing == "xy" and len(xi) > 1 else grids


# ---- NumPy's, over the values: MXNet leaves these to NumPy, too, or their results' shapes depend on values


def _by_numpy(name):
    function = getattr(numpy, name)

    def call(*args, **kwargs):
        if is_recording():
            raise not_here(f"the gradient of np.{name}", "autograd.pause around it")
        args += tuple(kwargs.pop(n) for n in ("x1", "x2") if n in kwargs)  # NumPy's have no names
        out = kwargs.pop("out", None)
        result = function(*map(_host, args), **{k: _host(v) for k, v in kwargs.items()})
        if out is not None:
            return into(_from_host(result), out)
        return tuple(map(_from_host, result)) if isinstance(result, tuple) else _from_host(result)

    _enter(name, call, f"NumPy's {name}, over values that are waited for; it has no gradient.")


def _host(x):
    if isinstance(x, Tensor):
        return x.numpy()
    return type(x)(map(_host, x)) if isinstance(x, (list, tuple)) else x


def _from_host(x):
    from .np import array

    if not isinstance(x, (numpy.ndarray, numpy.generic)):
        return x
    return array(x, dtype="float32" if x.dtype == numpy.float64 else str(x.dtype))


for _name in """arctan2 argwhere bincount blackman corrcoef count_nonzero cov delete digitize ediff1d extract
        flatnonzero hamming hanning histogram indices insert interp intersect1d isin kron lexsort logspace median nan_to_num nanargmax
        nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar nonzero percentile polyval ptp quantile searchsorted setdiff1d
        trapz tri union1d unique unravel_index vander""".split():
    if hasattr(numpy, _name):
        _by_numpy(_name)


@_public
def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are nearly the same; waited for."""
    return numpy.allclose(_host(a), _host(b), rtol, atol, equal_nan)


@_public
def may_share_memory(a, b, max_work=None):
    """Whether it is the same array."""
    return a is b


shares_memory = may_share_memory
__all__.append("shares_memory")


def choice(a, size=None, replace=True, p=None, ctx=None, out=None):
    """Numbers below a, or elements of a, drawn at random."""
    n, device = a if isinstance(a, int) else a.shape[0], known(ctx).device
    count = int(numpy.prod(() if size is None else size))
    if p is not None:
        if not replace:
            raise not_here("np.random.choice(p=…, replace=False)", "replace=True")
        drawn = ops.multinomial(_array(p), count)
    elif replace:
        drawn = ops.randint((count,), 0, n, dtype="int32", device=device)
    else:
        drawn = ops.permutation(n, device)[:count]
    drawn.__class__ = type(_array(0.0))
    shape = (size,) if isinstance(size, int) else tuple(size or ())
    return into(drawn.reshape(shape).astype("int64") if isinstance(a, int) else a[drawn].reshape(shape), out)


def permutation(x):
    """The numbers below x, or the rows of x, in another order."""
    order = ops.permutation(x if isinstance(x, int) else x.shape[0])
    order.__class__ = type(_array(0.0))
    return order if isinstance(x, int) else x[order]


def shuffle(x):
    """Puts the rows into another order, in place."""
    x[:] = permutation(x)
