"""The functions of mx.nd and mx.sym: one list for both, because operations take arrays and symbols."""
import builtins
import math
import operator
import types

import numpy

from .. import _ops as ops
from .._core import NULL, InvalidArgument, ShapeError, lib, pointer
from .._tensor import Tensor, array as _array
from . import _whole
from .context import known
from ._mode import is_np_array, is_np_shape
from .unsupported import not_here
from ._signed import into
from ._array import NDArray, apart, reshaped
from .autograd import is_recording
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


def _all_known(name, shape):
    """As in MXNet, a length of 0 is unknown, and so is a shape without axes, unless shapes have NumPy's meaning."""
    lengths = list(shape) if numpy.ndim(shape) else [shape]
    if not is_np_shape() and not is_np_array() and (not lengths or 0 in lengths):
        raise ShapeError(f"{name}: the shape {shape} has an unknown length; npx.set_np() or mx.np_shape() allows arrays without elements")


@_public
def zeros(shape, ctx=None, dtype="float32", stype=None, out=None):
    """An array of zeros."""
    if out is not None:
        return into(zeros(shape, ctx, dtype), out)
    _all_known("zeros", shape)
    if stype not in (None, "default"):
        from ._sparse import empty as of_type

        return of_type(stype, shape, ctx, dtype)
    return _made(ops.zeros(shape, dtype=dtype, device=_ctx(ctx)))


@_public
def ones(shape, ctx=None, dtype="float32", out=None):
    """An array of ones."""
    if out is not None:
        return into(ones(shape, ctx, dtype), out)
    _all_known("ones", shape)
    return _made(ops.ones(shape, dtype=dtype, device=_ctx(ctx)))


@_public
def full(shape, val, ctx=None, dtype="float32"):
    """An array of one value."""
    if isinstance(val, (int, numpy.integer)) and abs(int(val)) > 2**53 and numpy.dtype(dtype) == numpy.int64:  # beyond a double
        return _made(ops.broadcast_to(_array([int(val)], "int64", _ctx(ctx)), (shape,) if isinstance(shape, int) else tuple(shape)))
    return _made(ops.full(shape, val, dtype=dtype, device=_ctx(ctx)))


@_public
def empty(shape, ctx=None, dtype="float32", stype=None):
    """An array of zeros: all arrays have values here."""
    return zeros(shape, ctx, dtype, stype)


@_public
def array(source_array, ctx=None, dtype=None):
    """An array of the values: lists, NumPy arrays (as float32 unless dtype says otherwise), arrays."""
    if getattr(source_array, "stype", "default") != "default" or hasattr(source_array, "tocsr"):
        from .sparse import array as of_sparse

        return of_sparse(source_array, ctx, dtype)
    if isinstance(source_array, NDArray):
        copy = source_array.copyto(known(ctx))
        return _made(copy if dtype is None else copy.astype(dtype))
    if isinstance(source_array, (list, tuple)) and any(isinstance(x, NDArray) for x in source_array):
        source_array = [x.asnumpy() if isinstance(x, NDArray) else x for x in source_array]
    return _array(source_array, dtype or "float32", _ctx(ctx), NDArray)


@_public
def arange(start, stop=None, step=1.0, repeat=1, ctx=None, dtype="float32"):
    """Numbers from start (0 if only stop is given) to stop, step apart."""
    if stop is None:
        start, stop = 0, start
    if numpy.dtype(dtype).kind in "iu":  # as in MXNet, start and step are converted, the length is that of the numbers given
        count = builtins.max(math.ceil((stop - start) / step), 0) if step else 0
        start, step = int(start), int(step)
        stop = start + count * step
        if not step:
            return repeated(full((count,), start, ctx, dtype), repeat)
        bounds = numpy.iinfo(dtype)
        if not all(bounds.min <= end <= bounds.max for end in (start, stop - step)):
            return repeated(cast(arange(start, stop, step, 1, ctx, "int64"), dtype), repeat)  # wraps around
    numbers = _made(ops.arange(start, stop, step, dtype=dtype, device=_ctx(ctx)))
    return repeated(numbers, repeat)


def repeated(numbers, repeat):
    """Each element several times."""
    return numbers if repeat == 1 else ops.repeat(numbers, 0, times=repeat)


@_public
def zeros_like(data):
    """Zeros in the shape of an array."""
    if not data.is_symbol and not is_recording():
        made = ops.zeros(data.shape, dtype=str(Tensor.dtype.fget(data)), device=data.device)
        made.__class__ = type(data)
        return made
    everywhere = ops.eq(data, data) * 0 + 1  # infinity times 0 is NaN
    return classify(ops.masked_fill(data, everywhere, 0))


@_public
def ones_like(data):
    """Ones in the shape of an array."""
    return zeros_like(data) + 1


# ---- element by element


def _unary(name, mx=None):
    function = getattr(ops, name)

    def call(data):
        return function(data)

    call.__name__ = mx or name
    call.__doc__ = function.__doc__
    globals()[call.__name__] = _public(call)


for _name in ("exp", "log", "sqrt", "relu", "sigmoid", "tanh", "reciprocal"):
    _unary(_name)


@_public
def square(data):
    """The square of each element."""
    return _whole.squares(data) if lib.slpy_integers(data._p, NULL) else ops.square(data)


@_public
def abs(data):
    """The absolute value of each element."""
    return data.__abs__()


@_public
def negative(data):
    """0 - x of each element."""
    return -data


@_public
def sign(data):
    """1 where an element is positive, -1 where it is negative, else 0."""
    return ops.gt_scalar(data, 0) - ops.lt_scalar(data, 0)


def _same_shapes(name, *arrays):
    shapes = {x.shape for x in arrays if isinstance(x, Tensor) and x.shape is not None}
    if len(shapes) > 1:
        raise ShapeError(f"{name}: the shapes {' and '.join(map(str, sorted(shapes)))} are not the same")


def _of_one_shape(name, function):
    """What MXNet does not broadcast."""

    def call(lhs, rhs):
        _same_shapes(name, lhs, rhs)
        return function(lhs, rhs)

    return call


_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _binary(name, *mx_names):
    operate = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow, "eq": operator.eq,
               "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}.get(name)
    tensors, scalar = getattr(ops, name), getattr(ops, f"{name}_scalar")
    swapped = getattr(ops, f"r{name}_scalar", getattr(ops, f"{_TURNED.get(name, name)}_scalar"))

    def call(lhs, rhs):
        if operate is not None and (isinstance(lhs, Tensor) or isinstance(rhs, Tensor)):
            return operate(lhs, rhs)
        if isinstance(lhs, Tensor) and isinstance(rhs, Tensor):
            return classify(tensors(lhs, rhs))
        if isinstance(lhs, Tensor):
            return scalar(lhs, rhs)
        if not isinstance(rhs, Tensor) and operate is not None and all(isinstance(x, (int, float, numpy.number)) for x in (lhs, rhs)):
            return operate(lhs, rhs)
        if not isinstance(rhs, Tensor):
            raise TypeError(f"{mx_names[0]}: an argument is an array, these are {type(lhs).__name__} and {type(rhs).__name__}")
        return swapped(rhs, lhs)

    for mx in mx_names:
        function = _of_one_shape(mx, call) if mx.startswith("elemwise_") else call
        globals()[mx] = types.FunctionType(function.__code__, function.__globals__, mx, None, function.__closure__)  # with its own name
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
def add_n(*args):
    """The sum of arrays of one shape."""
    _same_shapes("add_n", *args)
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


ElementWiseSum = add_n
__all__.append("ElementWiseSum")


@_public
def clip(data, a_min, a_max):
    """Values below a_min become a_min, those above a_max a_max."""
    if not (a_min <= a_max):  # MXNet compares with the upper one first
        if a_min != a_min or a_max != a_max:
            raise InvalidArgument(f"clip: the limits are {a_min} and {a_max}, numbers are needed")
        return ops.masked_fill(ops.maximum_scalar(data, a_min), ops.gt_scalar(data, a_max), a_max)
    return ops.minimum_scalar(ops.maximum_scalar(data, a_min), a_max)


# ---- along axes


def _no_scalar(result):
    """In MXNet's nd scalars are arrays of one element; np has scalars."""
    return result if result.is_symbol or result.ndim or result._scalars else result.reshape((1,))


def along(data, axis, exclude=False):
    """Axes for the engine: all if none are given; with exclude, the others."""
    if not exclude:
        return axis if axis is None or isinstance(axis, int) else list(axis) or None
    inside = {a % data.ndim for a in ([axis] if isinstance(axis, int) else axis or ())}
    return [a for a in range(data.ndim) if a not in inside] if inside else None


def _of_integers(name, data, axes, keepdims):
    """The sum, or the mean, an integer."""
    total = _whole.total("sum", data, axes, keepdims)
    if name == "mean":
        lengths = data.shape if axes is None else [data.shape[i] for i in ([axes] if isinstance(axes, int) else axes)]
        total = total / math.prod(lengths)
    return total


def _reduction(name):
    function = getattr(ops, name)

    def call(data, axis=None, keepdims=False, exclude=False):
        axes = along(data, axis, exclude)
        if name in ("sum", "mean") and lib.slpy_integers(data._p, NULL):
            return _no_scalar(_of_integers(name, data, axes, keepdims))
        return _no_scalar(function(data, axes, keepdims=keepdims))

    call.__name__, call.__doc__ = name, function.__doc__
    globals()[name] = _public(call)


for _name in ("sum", "mean", "max", "min"):
    _reduction(_name)


@_public
def norm(data, ord=2, axis=None, out_dtype=None, keepdims=False):
    """The root of the sum of squares, or with ord=1 the sum of absolute values."""
    if ord not in (1, 2):
        raise not_here(f"norm(ord={ord})", "ord 1 or 2")
    data = data if out_dtype is None else data.astype(out_dtype)
    return _no_scalar((ops.sum(data.__abs__(), along(data, axis), keepdims=keepdims) if ord == 1 else ops.norm(data, along(data, axis), keepdims=keepdims)))


def turned(x):
    """Values in the opposite order: -x, or -1 - x for integers, which cannot overflow."""
    return -1 - ops.cast(x, "int64") if lib.slpy_integers(x._p, NULL) else -x


def _place_of(function, data, axis, keepdims):
    """The index of an element, in the array's data type, as in MXNet."""
    kind = str(Tensor.dtype.fget(data))
    if axis is None:
        flat = classify(function(data.reshape((-1,)), 0), data).astype(kind)
        return flat.reshape((1,) * data.ndim if keepdims else (1,))
    place = classify(function(data, axis), data).astype(kind)
    return place.expand_dims(axis if axis >= 0 else axis + data.ndim) if keepdims else _no_scalar(place)


@_public
def argmax(data, axis=None, keepdims=False):
    """The index of the largest element, in the array's data type."""
    return _place_of(ops.argmax, data, axis, keepdims)


def _inside_lengths(data, length, axis):
    """1 where an index along an axis is below the length, else 0."""
    axis %= data.ndim
    shape = [1] * data.ndim
    shape[axis] = data.shape[axis]
    places = _array(numpy.arange(data.shape[axis], dtype="int32").reshape(shape), device=data.device, like=data._array)
    return places < length.astype("int32").expand_dims(axis)


def _softened(function, data, axis, length, temperature, dtype, use_length):
    if (length is not None) != bool(use_length):
        raise InvalidArgument("softmax: length and use_length=True belong together")
    data = data if temperature in (None, 1.0) else data / temperature
    data = data if dtype is None else data.astype(dtype)
    if length is None:
        return function(data, axis)
    outside = _inside_lengths(data, length, axis) == 0
    least = -6e4 if "float16" == str(Tensor.dtype.fget(data)) else -1e30
    return ops.masked_fill(function(ops.masked_fill(data, outside, least), axis), outside, 0)


@_public
def softmax(data, length=None, axis=-1, temperature=None, dtype=None, use_length=False):
    """exp(x) over its sum along an axis; with use_length, over the first `length` elements of each row."""
    return _softened(ops.softmax, data, axis, length, temperature, dtype, use_length)


@_public
def log_softmax(data, axis=-1, temperature=None, dtype=None, use_length=False):
    """The logarithm of softmax."""
    return _softened(ops.log_softmax, data, axis, None, temperature, dtype, use_length)


# ---- products


@_public
def dot(lhs, rhs, transpose_a=False, transpose_b=False, forward_stype=None):
    """The sum of products over the last axis of lhs (the first, transposed) and the first axis of rhs (the last, transposed)."""
    if forward_stype not in (None, "default"):
        from ._storage import cast_storage

        return cast_storage(dot(lhs, rhs, transpose_a, transpose_b), forward_stype)
    for name, value in (("lhs", lhs), ("rhs", rhs)):
        pointer(f"dot: {name}", value, Tensor)
    if lhs.shape is None or rhs.shape is None or lhs.ndim == rhs.ndim == 2:
        return classify(ops.dot(lhs, rhs, ta=transpose_a, tb=transpose_b))
    if lhs.ndim == 1 and rhs.ndim == 1:
        return classify((lhs * rhs).sum())
    inner = (lhs.shape[0] if transpose_a else lhs.shape[-1], rhs.shape[-1] if transpose_b else rhs.shape[0])
    if inner[0] != inner[1]:
        return ops.dot(lhs, rhs, ta=transpose_a, tb=transpose_b)  # an error that names the shapes and the place
    a = lhs.reshape((inner[0], -1) if transpose_a else (-1, inner[0]))
    b = rhs.reshape((-1, inner[0]) if transpose_b else (inner[0], -1))
    left, right = lhs.shape[1:] if transpose_a else lhs.shape[:-1], rhs.shape[:-1] if transpose_b else rhs.shape[1:]
    return classify(classify(ops.dot(a, b, ta=transpose_a, tb=transpose_b)).reshape(left + right))


@_public
def batch_dot(lhs, rhs, transpose_a=False, transpose_b=False):
    """The products of the matrices of two batches."""
    return classify(ops.matmul(lhs, rhs, ta=transpose_a, tb=transpose_b))


# ---- rearranging elements


@_public
def flatten(data):
    """(n, …) as (n, elements)."""
    return apart(ops.flatten(data))


Flatten = flatten
__all__.append("Flatten")


@_public
def reshape(data, shape=(), reverse=False, target_shape=(), keep_highest=False):
    """The same values in another shape; with reverse, lengths are looked up from the last axis on."""
    if target_shape:  # MXNet's old form: 0 is computed
        wanted = [n or -1 for n in target_shape]
        shape = [data.shape[0], *wanted[1:]] if keep_highest else wanted
        return apart(reshaped(data, tuple(shape)))
    return apart(reshaped(data, shape, reverse))


Reshape = reshape
__all__.append("Reshape")


@_public
def transpose(data, *several, axes=()):
    """With the axes in another order, or in reverse."""
    axes = axes or (several[0] if len(several) == 1 and not isinstance(several[0], int) else several)
    return ops.transpose(data, list(axes) if axes else None)


@_public
def expand_dims(data, axis):
    """With one more axis, of length 1."""
    return data.expand_dims(axis)


def _joined(arrays, dim):
    joined = ops.concat(arrays, dim)
    joined.__class__ = arrays[0]._array
    return classify(joined)


@_public
def concat(*data, dim=1):
    """Arrays side by side along an axis."""
    data = data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data
    return _joined(data, dim)


Concat = concat
__all__.append("Concat")


@_public
def concatenate(arrays, axis=0):
    """Arrays side by side along an axis."""
    return _joined(arrays, axis)


@_public
def stack(*data, axis=0):
    """Arrays side by side along a new axis."""
    data = data[0] if len(data) == 1 and isinstance(data[0], (list, tuple)) else data
    return concat(*[x.expand_dims(axis) for x in data], dim=axis)


@_public
def swapaxes(data, dim1=0, dim2=0):
    """With two axes exchanged."""
    order = list(range(data.ndim))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return ops.transpose(data, order)


@_public
def squeeze(data, axis=None):
    """Without axes of length 1."""
    return data.squeeze(axis)


@_public
def tile(data, reps):
    """Copies of an array side by side along its axes."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    data = data.reshape((1,) * (len(reps) - data.ndim) + data.shape) if len(reps) > data.ndim else data
    for axis, n in enumerate(reps, data.ndim - len(reps)):
        if n < 1:
            raise InvalidArgument(f"tile: {n} copies along axis {axis}; a number from 1 on is needed")
        data = concat(*[data] * n, dim=axis) if n > 1 else data
    return data


@_public
def reshape_like(lhs, rhs, lhs_begin=None, lhs_end=None, rhs_begin=None, rhs_end=None):
    """The values of lhs in the shape of rhs, or with some axes of lhs in the place of some of rhs."""
    shape = lhs.shape[: lhs_begin or 0] + rhs.shape[rhs_begin:rhs_end] + (lhs.shape[lhs_end:] if lhs_end is not None else ())
    return apart(reshaped(lhs, shape))


@_public
def eye(N, M=0, k=0, ctx=None, dtype="float32"):
    """Ones on a diagonal."""
    return array(numpy.eye(N, M or N, k), ctx, dtype)


@_public
def linspace(start, stop, num, endpoint=True, ctx=None, dtype="float32"):
    """num numbers from start to stop."""
    return array(numpy.linspace(start, stop, num, endpoint), ctx, dtype)


@_public
def slice_axis(data, axis, begin, end):
    """Part of an axis."""
    return data.slice_axis(axis, begin, end)


@_public
def cast(data, dtype):
    """The values as another data type."""
    return data.astype(dtype)


Cast = cast
__all__.append("Cast")


@_public
def broadcast_to(data, shape=()):
    """Repeated to a shape; 0 keeps a length."""
    shape = [int(d) for d in shape]
    if len(shape) == data.ndim and 0 in shape:
        shape = [wanted or n for wanted, n in zip(shape, data.shape)]
    return ops.broadcast_to(data, shape)


@_public
def identity(data):
    """The array itself."""
    return data


@_public
def onehot_encode(indices, out):
    """Puts ones at the indices of each row of out, and zeros elsewhere."""
    rows = numpy.zeros(out.shape, str(numpy.dtype(out.dtype)))
    rows[numpy.arange(out.shape[0]), indices.asnumpy().astype(numpy.int64)] = 1
    out[:] = array(rows, dtype=rows.dtype)
    return out


@_public
def choose_element_0index(lhs, rhs):
    """The element of each row of lhs with the number in rhs."""
    from .manipulation import pick

    return pick(lhs, rhs, axis=1)


@_public
def fill_element_0index(lhs, mhs, rhs):
    """lhs with the element of each row whose number is in rhs replaced by that of mhs."""
    columns = _array(numpy.arange(lhs.shape[1], dtype="int32").reshape((1, -1)), device=lhs.device, like=lhs._array)
    chosen = columns == numbers_of(rhs).reshape((-1, 1))
    return classify(ops.where(ops.broadcast_to(chosen, lhs.shape), ops.broadcast_to(mhs.reshape((-1, 1)), lhs.shape), lhs))


@_public
def BlockGrad(data):
    """The values as constants: no gradient flows through them."""
    return data.detach()


stop_gradient = BlockGrad
__all__.append("stop_gradient")


def numbers_of(t):
    """Labels or indices as int32, without wrapping around; NaN, which would be 0, is -1 and so none."""
    if "int32" in str(t.dtype):
        return t
    whole = ops.cast(t, "int32")
    return classify(whole if lib.slpy_integers(t._p, NULL) else whole - ops.cast(ops.isnan(t), "int32"), t)


def places_inside(indices, size, mode):
    """Indices for the engine, all in range: an index out of range becomes the nearest ("clip"), or wraps around."""
    if mode not in ("clip", "wrap", "raise"):
        raise InvalidArgument(f"mode is {mode!r}; these are clip, wrap and raise")
    whole = indices if lib.slpy_integers(indices._p, NULL) else numbers_of(indices)
    if mode == "wrap":
        whole = _whole.arithmetic("mod", whole, size)
    elif mode == "clip":
        whole = ops.minimum_scalar(ops.maximum_scalar(whole, 0), size - 1)
    return whole if "int32" in str(whole.dtype) else ops.cast(whole, "int32")
