"""The functions of mx.nd and mx.sym: one list for both, because operations take arrays and symbols alike."""
import numpy

from .. import _ops as ops
from .._core import pointer
from .._tensor import Tensor, array as _array
from .context import known
from .missing import not_here
from ._array import NDArray
from ._program import classify

__all__ = []


def _public(function):
    __all__.append(function.__name__)
    return function


def _ctx(ctx):
    return known(ctx).device


def _made(t):
    t.__class__ = NDArray
    return t


# ---- new arrays


@_public
def zeros(shape, ctx=None, dtype="float32", **_):
    """An array of zeros."""
    return _made(ops.zeros(shape, dtype=dtype, device=_ctx(ctx)))


@_public
def ones(shape, ctx=None, dtype="float32", **_):
    """An array of ones."""
    return _made(ops.ones(shape, dtype=dtype, device=_ctx(ctx)))


@_public
def full(shape, val, ctx=None, dtype="float32", **_):
    """An array of one value."""
    return _made(ops.full(shape, val, dtype=dtype, device=_ctx(ctx)))


@_public
def empty(shape, ctx=None, dtype="float32"):
    """An array of zeros: nothing here is without a value."""
    return zeros(shape, ctx, dtype)


@_public
def array(source_array, ctx=None, dtype=None):
    """An array of the values: lists, NumPy arrays (as float32 unless dtype says otherwise), arrays."""
    if isinstance(source_array, NDArray):
        copy = source_array.copyto(known(ctx))
        return _made(copy if dtype is None else copy.astype(dtype))
    if isinstance(source_array, (list, tuple)) and any(isinstance(x, NDArray) for x in source_array):
        source_array = [x.asnumpy() if isinstance(x, NDArray) else x for x in source_array]
    return _array(source_array, dtype or "float32", _ctx(ctx), NDArray)


@_public
def arange(start, stop=None, step=1.0, repeat=1, ctx=None, dtype="float32", **_):
    """Numbers from start (0 if only stop is given) to stop, step apart."""
    if stop is None:
        start, stop = 0, start
    numbers = _made(ops.arange(start, stop, step, dtype=dtype, device=_ctx(ctx)))
    return numbers if repeat == 1 else ops.repeat(numbers, 0, times=repeat)


@_public
def zeros_like(data, **_):
    """Zeros in the shape of an array."""
    return data * 0


@_public
def ones_like(data, **_):
    """Ones in the shape of an array."""
    return data * 0 + 1


# ---- element by element


def into(result, out):
    """The result, put into the array out if there is one."""
    if out is None:
        return result
    out[:] = result
    return out


def _unary(name, mx=None):
    function = getattr(ops, name)

    def call(data, out=None, **_):
        return into(function(data), out)

    call.__name__ = mx or name
    call.__doc__ = function.__doc__
    globals()[call.__name__] = _public(call)


for _name in ("exp", "log", "sqrt", "square", "abs", "relu", "sigmoid", "tanh", "reciprocal"):
    _unary(_name)
_unary("neg", "negative")


@_public
def sign(data, **_):
    """1 where an element is positive, -1 where it is negative, else 0."""
    return ops.gt_scalar(data, 0) - ops.lt_scalar(data, 0)


def _binary(name, *mx_names):
    tensors, scalar = getattr(ops, name), getattr(ops, f"{name}_scalar")
    swapped = getattr(ops, f"r{name}_scalar", scalar if name in ("add", "mul", "maximum", "minimum") else None)

    def call(lhs, rhs, out=None, **_):
        if isinstance(lhs, Tensor) and isinstance(rhs, Tensor):
            return into(classify(tensors(lhs, rhs)), out)
        if isinstance(lhs, Tensor):
            return into(scalar(lhs, rhs), out)
        if swapped is None:
            raise TypeError(f"{mx_names[0]}: the first argument is {type(lhs).__name__}, an array is needed")
        return into(swapped(rhs, lhs), out)

    for mx in mx_names:
        globals()[mx] = call
        __all__.append(mx)


for _c, _names in (
    ("add", ("add", "elemwise_add", "broadcast_add", "broadcast_plus")),
    ("sub", ("subtract", "elemwise_sub", "broadcast_sub", "broadcast_minus")),
    ("mul", ("multiply", "elemwise_mul", "broadcast_mul")),
    ("div", ("divide", "true_divide", "elemwise_div", "broadcast_div")),
    ("pow", ("power", "broadcast_power")),
    ("maximum", ("maximum", "broadcast_maximum")),
    ("minimum", ("minimum", "broadcast_minimum")),
    ("eq", ("equal", "broadcast_equal")),
    ("ne", ("not_equal", "broadcast_not_equal")),
    ("lt", ("lesser", "broadcast_lesser")),
    ("le", ("lesser_equal", "broadcast_lesser_equal")),
    ("gt", ("greater", "broadcast_greater")),
    ("ge", ("greater_equal", "broadcast_greater_equal")),
):
    _binary(_c, *_names)


@_public
def add_n(*args, **_):
    """The sum of arrays."""
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


ElementWiseSum = add_n
__all__.append("ElementWiseSum")


@_public
def clip(data, a_min, a_max, out=None, **_):
    """Values below a_min become a_min, those above a_max a_max."""
    return into(ops.minimum_scalar(ops.maximum_scalar(data, a_min), a_max), out)


# ---- along axes


def _no_scalar(result):
    """MXNet's nd has no scalars: they are arrays of one element; those of np it has."""
    return result if result.ndim or result.is_symbol or result._scalars else result.reshape((1,))


def _reduction(name):
    function = getattr(ops, name)

    def call(data, axis=None, keepdims=False, **options):
        if options.pop("exclude", False):
            inside = {a % data.ndim for a in ([axis] if isinstance(axis, int) else axis or ())}
            axis = [a for a in range(data.ndim) if a not in inside]
        result = function(data, axis if axis is None or isinstance(axis, int) else list(axis), keepdims=keepdims)
        return _no_scalar(result)

    call.__name__, call.__doc__ = name, function.__doc__
    globals()[name] = _public(call)


for _name in ("sum", "mean", "max", "min"):
    _reduction(_name)


@_public
def norm(data, ord=2, axis=None, keepdims=False, **_):
    """The root of the sum of squares."""
    axis = axis if axis is None or isinstance(axis, int) else list(axis)
    if ord == 1:
        return _no_scalar(ops.sum(abs(data), axis, keepdims=keepdims))
    if ord != 2:
        raise not_here(f"norm(ord={ord})", "ord 1 or 2")
    return _no_scalar(ops.norm(data, axis, keepdims=keepdims))


@_public
def argmax(data, axis=None, keepdims=False, **_):
    """Where the largest element is, as MXNet's float32."""
    if axis is None:
        return ops.argmax(data.reshape((-1,)), 0).astype("float32").reshape((1,))
    result = ops.argmax(data, axis).astype("float32")
    return result.expand_dims(axis) if keepdims else _no_scalar(result)


def _warm(data, length, temperature):
    if length is not None:
        raise not_here("softmax(length=…)", "SequenceMask")
    return data if temperature in (None, 1.0) else data / temperature


@_public
def softmax(data, axis=-1, length=None, temperature=None, **_):
    """exp(x) over its sum along an axis."""
    return ops.softmax(_warm(data, length, temperature), axis)


@_public
def log_softmax(data, axis=-1, length=None, temperature=None, **_):
    """The logarithm of softmax."""
    return ops.log_softmax(_warm(data, length, temperature), axis)


# ---- products


@_public
def dot(lhs, rhs, transpose_a=False, transpose_b=False, out=None, **_):
    """The product of matrices, or of an array and a matrix over the last and the first axis."""
    if out is not None:
        return into(dot(lhs, rhs, transpose_a, transpose_b), out)
    for name, value in (("lhs", lhs), ("rhs", rhs)):
        pointer(f"dot: {name}", value, Tensor)
    if lhs.ndim == 1 and rhs.ndim == 1:
        return classify((lhs * rhs).sum())
    if lhs.ndim > 2 and not transpose_a and rhs.ndim == 2:
        rows = lhs.reshape((-1, lhs.shape[-1]))
        y = ops.dot(rows, rhs, tb=transpose_b)
        return classify(y.reshape(lhs.shape[:-1] + (y.shape[-1],)))
    if lhs.ndim == 1:
        return classify(ops.dot(lhs.reshape((1, -1)), rhs, tb=transpose_b).reshape((-1,)))
    if rhs.ndim == 1:
        return classify(ops.dot(lhs, rhs.reshape((-1, 1)), ta=transpose_a).reshape((-1,)))
    return classify(ops.dot(lhs, rhs, ta=transpose_a, tb=transpose_b))


@_public
def batch_dot(lhs, rhs, transpose_a=False, transpose_b=False, **_):
    """The products of the matrices of two batches."""
    return classify(ops.matmul(lhs, rhs, ta=transpose_a, tb=transpose_b))


linalg_gemm2 = batch_dot


# ---- moving elements


@_public
def flatten(data, **_):
    """(n, …) as (n, elements)."""
    return ops.flatten(data)


Flatten = flatten
__all__.append("Flatten")


@_public
def reshape(data, shape, **_):
    """The same values in another shape."""
    return data.reshape(shape)


Reshape = reshape
__all__.append("Reshape")


@_public
def transpose(data, *axes, **options):
    """With the axes in another order, or in reverse."""
    axes = options.get("axes") or (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)
    return ops.transpose(data, axes or None)


@_public
def expand_dims(data, axis, **_):
    """With one more axis, of length 1."""
    return data.expand_dims(axis)


def _joined(arrays, dim):
    joined = ops.concat(arrays, dim)
    joined.__class__ = arrays[0]._array
    return classify(joined)


@_public
def concat(*data, dim=1, **_):
    """Arrays side by side along an axis."""
    data = data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data
    return _joined(data, dim)


Concat = concat
__all__.append("Concat")


@_public
def concatenate(arrays, axis=0, **_):
    """Arrays side by side along an axis."""
    return _joined(arrays, axis)


@_public
def stack(*data, axis=0, **_):
    """Arrays side by side along a new axis."""
    data = data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data
    return concat(*[x.expand_dims(axis) for x in data], dim=axis)


@_public
def swapaxes(data, dim1=0, dim2=0, **_):
    """With two axes exchanged."""
    order = list(range(data.ndim))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return ops.transpose(data, order)


@_public
def squeeze(data, axis=None, **_):
    """Without axes of length 1."""
    return data.squeeze(axis)


@_public
def tile(data, reps, **_):
    """Copies of an array side by side along its axes."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    data = data.reshape((1,) * (len(reps) - data.ndim) + data.shape) if len(reps) > data.ndim else data
    for axis, n in enumerate(reps, data.ndim - len(reps)):
        data = concat(*[data] * n, dim=axis) if n > 1 else data
    return data


@_public
def reshape_like(lhs, rhs, **_):
    """The values of lhs in the shape of rhs."""
    return lhs.reshape(rhs.shape)


@_public
def eye(N, M=0, k=0, ctx=None, dtype="float32"):
    """Ones on a diagonal."""
    return array(numpy.eye(N, M or N, k), ctx, dtype)


@_public
def linspace(start, stop, num, endpoint=True, ctx=None, dtype="float32"):
    """num numbers from start to stop."""
    return array(numpy.linspace(start, stop, num, endpoint), ctx, dtype)


@_public
def slice_axis(data, axis, begin, end, **_):
    """Part of an axis."""
    return data.slice_axis(axis, begin, end)


@_public
def cast(data, dtype, **_):
    """The values as another data type."""
    return data.astype(dtype)


Cast = cast
__all__.append("Cast")


@_public
def broadcast_to(data, shape, **_):
    """Repeated to a shape."""
    return ops.broadcast_to(data, shape)


@_public
def identity(data, **_):
    """The array itself."""
    return data


@_public
def BlockGrad(data, **_):
    """The values, without gradients: none flows back through them."""
    return data.detach()


stop_gradient = BlockGrad
__all__.append("stop_gradient")
