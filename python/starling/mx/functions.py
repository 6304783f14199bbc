"""The functions of mx.nd and mx.sym: one list for both, because operations take arrays and symbols alike."""
import numpy

from .. import _ops as ops
from .._core import pointer
from .._tensor import Tensor, array as _array
from .context import known
from .missing import not_here
from .ndarray import NDArray
from .symbol import classify

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
    if repeat != 1:
        raise not_here("arange(repeat=…)", "arange and broadcasting")
    if stop is None:
        start, stop = 0, start
    return _made(ops.arange(start, stop, step, dtype=dtype, device=_ctx(ctx)))


@_public
def zeros_like(data):
    """Zeros in the shape of an array."""
    return data * 0


@_public
def ones_like(data):
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
    ("add", ("add", "elemwise_add", "broadcast_add")),
    ("sub", ("subtract", "elemwise_sub", "broadcast_sub")),
    ("mul", ("multiply", "elemwise_mul", "broadcast_mul")),
    ("div", ("divide", "elemwise_div", "broadcast_div")),
    ("pow", ("power", "broadcast_power")),
    ("maximum", ("maximum", "broadcast_maximum")),
    ("minimum", ("minimum", "broadcast_minimum")),
    ("eq", ("equal", "broadcast_equal")),
    ("ne", ("not_equal",)),
    ("lt", ("lesser",)),
    ("le", ("lesser_equal",)),
    ("gt", ("greater",)),
    ("ge", ("greater_equal",)),
):
    _binary(_c, *_names)


@_public
def add_n(*args, **_):
    """The sum of arrays."""
    total = args[0]
    for x in args[1:]:
        total = total + x
    return total


@_public
def clip(data, a_min, a_max):
    """Values below a_min become a_min, those above a_max a_max."""
    return ops.minimum_scalar(ops.maximum_scalar(data, a_min), a_max)


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
    if ord != 2:
        raise not_here(f"norm(ord={ord})", "abs and sum")
    return _no_scalar(ops.norm(data, axis, keepdims=keepdims))


@_public
def argmax(data, axis=None, keepdims=False):
    """Where the largest element is, as MXNet's float32."""
    if axis is None:
        return ops.argmax(data.reshape((-1,)), 0).astype("float32").reshape((1,))
    result = ops.argmax(data, axis).astype("float32")
    return result.expand_dims(axis) if keepdims else result


@_public
def softmax(data, axis=-1, **_):
    """exp(x) over its sum along an axis."""
    return ops.softmax(data, axis)


@_public
def log_softmax(data, axis=-1, **_):
    """The logarithm of softmax."""
    return ops.log_softmax(data, axis)


# ---- products and layers


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


@_public
def FullyConnected(data, weight, bias=None, num_hidden=None, no_bias=False, flatten=True, **_):
    """data·weightᵀ + bias."""
    if flatten and (data.ndim or 0) > 2:
        data = ops.flatten(data)
    return classify(ops.linear(data, weight, None if no_bias else bias, tw=True))


@_public
def Convolution(data, weight, bias=None, kernel=None, stride=1, pad=0, dilate=1, num_filter=None, num_group=1,
                no_bias=False, **_):
    """The convolution of images (n, channels, height, width)."""
    options = {"stride": stride or 1, "pad": pad or 0, "dilation": dilate or 1, "groups": num_group}
    return classify(ops.conv2d(data, weight, None if no_bias else bias, **options))


@_public
def Pooling(data, kernel=(1, 1), pool_type="max", global_pool=False, stride=(1, 1), pad=(0, 0),
            pooling_convention="valid", count_include_pad=True, **_):
    """The maximum or the mean of windows."""
    if pool_type not in ("max", "avg"):
        raise not_here(f"Pooling(pool_type={pool_type!r})", "max or avg")
    return ops.pool2d(
        data, type=pool_type, kernel=kernel, stride=stride, pad=pad, global_=global_pool,
        ceil=pooling_convention == "full", exclude_pad=not count_include_pad,
    )  # fmt: skip


@_public
def Activation(data, act_type, **_):
    """relu, sigmoid, tanh, softrelu."""
    return ops.activate(data, {"softrelu": "softplus"}.get(act_type, act_type))


@_public
def LeakyReLU(data, act_type="leaky", slope=0.25, **_):
    """x where it is positive, else slope·x."""
    if act_type != "leaky":
        raise not_here(f"LeakyReLU(act_type={act_type!r})", "act_type 'leaky'")
    return ops.relu(data) - ops.relu(-data) * slope


@_public
def Dropout(data, p=0.5, mode="training", **_):
    """Elements become zero with probability p in training."""
    return ops.dropout(data, p)


@_public
def BatchNorm(data, gamma, beta, moving_mean, moving_var, eps=1e-3, momentum=0.9, fix_gamma=True,
              use_global_stats=False, **_):
    """Batch normalisation."""
    if fix_gamma:
        gamma = ones_like(gamma)
    y = ops.batch_norm(data, gamma, beta, moving_mean, moving_var, eps=eps, momentum=momentum,
                       use_global_stats=use_global_stats)  # fmt: skip
    return classify(y)


@_public
def Embedding(data, weight, input_dim=None, output_dim=None, **_):
    """The rows of weight that data names."""
    return classify(ops.gather(weight, data.astype("int32")))


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


@_public
def transpose(data, *axes, **options):
    """With the axes in another order, or in reverse."""
    axes = options.get("axes") or (axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)
    return ops.transpose(data, axes or None)


@_public
def expand_dims(data, axis):
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
def swapaxes(data, dim1=0, dim2=0):
    """With two axes exchanged."""
    order = list(range(data.ndim))
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return ops.transpose(data, order)


@_public
def squeeze(data, axis=None, **_):
    """Without axes of length 1."""
    return data.squeeze(axis)


@_public
def split(data, num_outputs, axis=1, squeeze_axis=False):
    """An array cut into equal parts along an axis."""
    step, rest = divmod(data.shape[axis], num_outputs)
    if rest:
        raise ValueError(f"split: {data.shape[axis]} elements of axis {axis} are not {num_outputs} equal parts")
    parts = [data.slice_axis(axis, i * step, (i + 1) * step) for i in range(num_outputs)]
    return [p.squeeze(axis) for p in parts] if squeeze_axis else parts


@_public
def tile(data, reps):
    """Copies of an array side by side along its axes."""
    reps = (reps,) if isinstance(reps, int) else tuple(reps)
    data = data.reshape((1,) * (len(reps) - data.ndim) + data.shape) if len(reps) > data.ndim else data
    for axis, n in enumerate(reps, data.ndim - len(reps)):
        data = concat(*[data] * n, dim=axis) if n > 1 else data
    return data


@_public
def reshape_like(lhs, rhs):
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
def slice_axis(data, axis, begin, end):
    """Part of an axis."""
    return data.slice_axis(axis, begin, end)


@_public
def take(a, indices, axis=0, **_):
    """The parts of an axis that indices name."""
    return classify(a[(slice(None),) * axis + (indices.astype("int32"),)])


@_public
def one_hot(indices, depth, dtype="float32", **_):
    """1 where an index says, else 0."""
    return classify(ops.one_hot(indices.astype("int32"), depth, dtype=dtype))


@_public
def cast(data, dtype):
    """The values as another data type."""
    return data.astype(dtype)


@_public
def broadcast_to(data, shape):
    """Repeated to a shape."""
    return ops.broadcast_to(data, shape)


@_public
def identity(data):
    """The array itself."""
    return data


@_public
def BlockGrad(data):
    """The values, through which no gradient goes."""
    return data.detach()


stop_gradient = BlockGrad
__all__.append("stop_gradient")


for _name in """exp log sqrt square abs relu sigmoid tanh sum mean max min norm argmax softmax log_softmax clip flatten
        transpose broadcast_to one_hot dot take""".split():
    setattr(NDArray, _name, globals()[_name])
