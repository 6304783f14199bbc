"""Layers as functions of mx.nd and mx.sym: their parameters are arguments."""
import numpy

from .. import _ops as ops
from .._core import InvalidArgument, ShapeError, pair
from ..autograd import train_mode
from . import _windows3
from .functions import ones_like, places_inside
from .unsupported import not_here
from ._program import classify

__all__ = []


def _public(function):
    __all__.append(function.__name__)
    return function


@_public
def FullyConnected(data, weight, bias=None, num_hidden=None, no_bias=False, flatten=True):
    """data·weightᵀ + bias."""
    _agrees("FullyConnected: num_hidden", num_hidden, weight)
    bias = _bias("FullyConnected", bias, no_bias)
    if flatten and len(data.shape or ()) > 2:
        data = ops.flatten(data)
    return classify(ops.linear(data, weight, bias, tw=True))


def _bias(name, bias, no_bias):
    """The bias, if there is one; refused beside no_bias=True, as in MXNet."""
    if no_bias and bias is not None:
        raise InvalidArgument(f"{name}: a bias with no_bias=True")
    return bias


def _agrees(name, value, weight):
    """Refuses a number of results that differs from the weight's."""
    if value is not None and weight.shape is not None and weight.shape[0] != value:
        raise ShapeError(f"{name} is {value}, the weight's shape {weight.shape}")


def _same_windows(name, kernel, weight, n):
    """Refuses a kernel that differs from the weight's."""
    if kernel and weight.shape is not None and _each(kernel, 1, n) != weight.shape[2:]:
        raise ShapeError(f"{name}: kernel is {_each(kernel, 1, n)}, the weight's shape {weight.shape}")


def _one(value, name):
    """An option of windows over one axis."""
    (value,) = value if isinstance(value, (tuple, list)) else (value,)
    return value


def _axes_of_windows(data, kernel, name):
    """The number of axes of windows."""
    n = len(kernel) if isinstance(kernel, (tuple, list)) else (len(data.shape) if data.shape else 4) - 2
    if n not in (1, 2, 3):
        raise not_here(f"{name} over {n} axes", "one, two or three")
    return n


_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def _channels_last(layout, n, name):
    """Whether a layout has the channels last; unknown layouts are refused."""
    if layout is not None and layout not in _LAYOUTS[n]:
        raise InvalidArgument(f"{name}: layout is {layout!r}; over {n} axes these are {' and '.join(_LAYOUTS[n])}")
    return layout == _LAYOUTS[n][1]


def _to_front(x):
    """Moves channels from the last axis to their usual one, for data and weights."""
    return ops.transpose(x, [0, x.ndim - 1, *range(1, x.ndim - 1)])


def _to_end(x):
    return ops.transpose(x, [0, *range(2, x.ndim), 1])


@_public
def Convolution(data, weight, bias=None, kernel=None, stride=(), dilate=(), pad=(), num_filter=None, num_group=1, workspace=1024,
                no_bias=False, cudnn_tune=None, cudnn_off=False, layout=None):
    """The convolution of images (n, channels, height, width), of rows (n, channels, width), or with the channels at the end."""
    _agrees("Convolution: num_filter", num_filter, weight)
    n = _axes_of_windows(data, kernel, "Convolution")
    if _channels_last(layout, n, "Convolution"):
        return _to_end(Convolution(_to_front(data), _to_front(weight), bias, kernel, stride, dilate, pad, num_filter, num_group, no_bias=no_bias))
    _same_windows("Convolution", kernel, weight, n)
    options = {"stride": stride or 1, "pad": pad or 0, "dilation": dilate or 1, "groups": num_group}
    bias = _bias("Convolution", bias, no_bias)
    if n == 1:
        return classify(ops.conv1d(data, weight, bias, **{n: _one(v, n) for n, v in options.items() if n != "groups"}, groups=num_group))
    if n == 3:
        return _windows3.convolution(data, weight, bias, *(_each(v, d, 3) for v, d in ((stride, 1), (pad, 0), (dilate, 1))), num_group)
    return classify(ops.conv2d(data, weight, bias, **options))


@_public
def Deconvolution(data, weight, bias=None, kernel=None, stride=(), dilate=(), pad=(), adj=(), target_shape=(), num_filter=None, num_group=1,
                  workspace=512, no_bias=True, cudnn_tune=None, cudnn_off=False, layout=None):
    """The transposed convolution of images, or of rows; target_shape says how large the result is instead of pad and adj."""
    n = _axes_of_windows(data, kernel, "Deconvolution")
    if _channels_last(layout, n, "Deconvolution"):
        return _to_end(Deconvolution(_to_front(data), _to_front(weight), bias, kernel, stride, dilate, pad, adj, target_shape, num_filter, num_group,
                                     no_bias=no_bias))  # fmt: skip
    _same_windows("Deconvolution", kernel, weight, n)
    stride, dilate, pad, adj = (_each(v, d, n) for v, d in ((stride, 1), (dilate, 1), (pad, 0), (adj, 0)))
    if target_shape:
        pad, adj = zip(*[_around(*each) for each in zip(data.shape[2:], weight.shape[2:], stride, dilate, _each(target_shape, 1, n))])
    if n == 1:  # rows as images of height 1
        y = Deconvolution(data.expand_dims(2), weight.expand_dims(2), bias, (1, *weight.shape[2:]), (1, *stride), (1, *dilate), (0, *pad),
                          (0, *adj), (), num_filter, num_group, no_bias=no_bias)  # fmt: skip
        return y.squeeze(2)
    if n == 3:
        return _windows3.transposed(data, weight, _bias("Deconvolution", bias, no_bias), stride, pad, dilate, adj, num_group)
    return classify(ops.conv_transpose2d(data, weight, _bias("Deconvolution", bias, no_bias), stride=stride, pad=pad, dilation=dilate, output_pad=adj,
                                         groups=num_group))  # fmt: skip


def _each(value, default, n):
    """An option of windows for each of n axes."""
    return (value,) * n if hasattr(value, "__index__") else tuple(value or (default,) * n)


def _around(size, kernel, stride, dilate, target):
    """(padding, additional elements at the end) of a transposed convolution whose result has the length target."""
    total = (size - 1) * stride + (kernel - 1) * dilate + 1 - target
    if total < 0:
        raise InvalidArgument(f"Deconvolution: target_shape {target} is longer than the result can be, {total + target}")
    return (total + 1) // 2, total % 2


@_public
def Pooling(data, kernel=(), pool_type="max", global_pool=False, cudnn_off=False, pooling_convention="valid", stride=(), pad=(), p_value=None,
            count_include_pad=True, layout=None):
    """The maximum, the mean, the sum or the p-norm of windows."""
    if pool_type not in ("max", "avg", "sum", "lp"):
        raise InvalidArgument(f"Pooling: pool_type is {pool_type!r}; these are max, avg, sum, lp")
    if pooling_convention not in ("valid", "full"):
        raise not_here(f"Pooling(pooling_convention={pooling_convention!r})", "valid or full")
    n = _axes_of_windows(data, None if global_pool else kernel, "Pooling")
    rest = {"pool_type": pool_type, "global_pool": global_pool, "pooling_convention": pooling_convention, "p_value": p_value,
            "count_include_pad": count_include_pad}  # fmt: skip
    if _channels_last(layout, n, "Pooling"):
        return _to_end(Pooling(_to_front(data), kernel, stride=stride, pad=pad, **rest))
    if pool_type == "lp":
        if p_value not in (1, 2, 3):
            raise InvalidArgument(f"Pooling: p_value is {p_value!r}; pool_type='lp' needs 1, 2 or 3")
        powers = data if p_value == 1 else ops.pow_scalar(data, p_value)  # MXNet's sums have signs
        sums = Pooling(powers, kernel, stride=stride, pad=pad, **{**rest, "pool_type": "sum", "p_value": None})
        return sums if p_value == 1 else ops.sqrt(sums) if p_value == 2 else ops.sign(sums) * ops.pow_scalar(sums.__abs__(), 1 / 3)
    if n == 1:  # rows as images of height 1
        kernel, stride, pad = ((k, *_each(v, k, 1)) for k, v in ((1, kernel), (1, stride), (0, pad)))
        return Pooling(data.expand_dims(2), kernel, stride=stride, pad=pad, **rest).squeeze(2)
    if n == 3:
        return _windows3.pooled(Pooling, data, *(_each(v, 1 if i < 2 else 0, 3) for i, v in enumerate((kernel, stride, pad))), rest)
    kind = "max" if pool_type == "max" else "avg"
    if global_pool:  # MXNet ignores the options of windows
        pooled = ops.pool2d(data, type=kind, global_=True)
    else:
        pooled = ops.pool2d(data, type=kind, kernel=kernel or 1, stride=stride or 1, pad=pad or 0, ceil=pooling_convention == "full",
                            exclude_pad=count_include_pad is False and pool_type == "avg")  # fmt: skip
    if pool_type != "sum":
        return pooled
    size = data.shape[2:] if global_pool else pair(kernel)
    return pooled * float(size[0] * size[1])


@_public
def Activation(data, act_type):
    """relu, sigmoid, tanh, softrelu, softsign."""
    if act_type == "softsign":
        return ops.softsign(data)
    if act_type not in ("relu", "sigmoid", "tanh", "softrelu"):
        raise not_here(f"Activation({act_type!r})", "relu, sigmoid, tanh, softrelu, softsign")
    return ops.softplus(data) if act_type == "softrelu" else ops.activate(data, act_type)


@_public
def LeakyReLU(data, gamma=None, act_type="leaky", slope=0.25, lower_bound=0.125, upper_bound=0.334):
    """x where it is positive; elsewhere slope·x, or the value of elu, selu, gelu or prelu (with gamma)."""
    if act_type == "leaky":
        return ops.leaky_relu(data, slope)
    if act_type == "elu":
        return ops.elu(data, slope)
    if act_type == "selu":
        return ops.elu(data, 1.6732632423543772) * 1.0507009873554805
    if act_type == "gelu":
        return ops.gelu(data)
    if act_type != "prelu":
        raise not_here(f"LeakyReLU(act_type={act_type!r})", "leaky, elu, selu, gelu, prelu")
    if data.ndim > 1 and gamma.ndim == 1 and gamma.size > 1:
        gamma = gamma.reshape((1, -1) + (1,) * (data.ndim - 2))
    elif 1 < gamma.ndim < data.ndim:
        gamma = gamma.reshape(gamma.shape + (1,) * (data.ndim - gamma.ndim))  # of samples and channels
    return classify(ops.relu(data) - ops.relu(-data) * gamma)


@_public
def LayerNorm(data, gamma, beta, axis=-1, eps=1e-5, output_mean_var=False):
    """Normalisation over an axis; with output_mean_var also the means and deviations."""
    axis %= data.ndim
    if axis == data.ndim - 1 and not output_mean_var:
        return classify(ops.layer_norm(data, gamma, beta, eps=eps))
    mean = ops.mean(data, axis, keepdims=True)
    deviation = ops.sqrt(ops.mean(ops.square(data - mean), axis, keepdims=True) + eps)
    gamma, beta = (_along(p, axis, data.ndim) for p in (gamma, beta))
    y = classify((data - mean) / deviation * gamma + beta)
    return [y, mean, deviation] if output_mean_var else y


def _along(p, axis, ndim):
    """A vector in the shape of one axis among ndim."""
    return p.reshape(tuple(-1 if i == axis else 1 for i in range(ndim)))


@_public
def InstanceNorm(data, gamma, beta, eps=1e-3):
    """Normalisation of each channel of each sample."""
    return classify(_normed(ops.instance_norm, data, gamma, beta, eps=eps))


@_public
def GroupNorm(data, gamma, beta, num_groups=1, eps=1e-5):
    """Normalisation of groups of channels of each sample."""
    groups = lambda x, g, b, eps: ops.group_norm(x, num_groups, g, b, eps=eps)  # noqa: E731
    if gamma.size == num_groups != data.shape[1]:  # MXNet's: one for each group
        each = data.shape[1] // num_groups
        gamma, beta = (ops.repeat(p, 0, times=each) for p in (gamma, beta))
    return classify(_normed(groups, data, gamma, beta, eps=eps))


def _normed(norm, data, gamma, beta, eps):
    """Normalises images; arrays with other axes are treated as images."""
    if data.ndim == 4:
        return norm(data, gamma, beta, eps=eps)
    n, c = data.shape[:2]
    return norm(data.reshape((n, c, -1, 1)), gamma, beta, eps=eps).reshape(data.shape)


@_public
def Dropout(data, p=0.5, mode="training", axes=(), cudnn_off=False):
    """Sets elements to zero with probability p, in training or always; along `axes` all together."""
    if mode not in ("training", "always"):
        raise InvalidArgument(f"Dropout: mode is {mode!r}; these are training and always")
    if mode == "always":
        with train_mode():
            return Dropout(data, p, "training", axes)
    if not axes:
        return ops.dropout(data, p)
    axes = {a % data.ndim for a in ([axes] if isinstance(axes, int) else axes)}
    mask = ops.ones(tuple(1 if i in axes else n for i, n in enumerate(data.shape)), device=data.device)
    return classify(data * classify(ops.dropout(mask, p), data))


@_public
def BatchNorm(data, gamma, beta, moving_mean, moving_var, eps=1e-3, momentum=0.9, fix_gamma=True, use_global_stats=False, output_mean_var=False,
              axis=1, cudnn_off=False):
    """Batch normalisation over all axes but one."""
    if output_mean_var:
        raise not_here("BatchNorm(output_mean_var=True)", "moments")
    if fix_gamma:
        gamma = ones_like(gamma)
    order = None
    if data.shape and axis % data.ndim != 1:
        axis %= data.ndim
        order = [i for i in range(data.ndim) if i != axis]
        order.insert(1, axis)
        data = ops.transpose(data, order)
    y = classify(ops.batch_norm(data, gamma, beta, moving_mean, moving_var, eps=eps, momentum=momentum, use_global_stats=use_global_stats))
    return y if order is None else ops.transpose(y, [order.index(i) for i in range(len(order))])


@_public
def Embedding(data, weight, input_dim=None, output_dim=None, dtype="float32", sparse_grad=False):
    """The rows of weight at the indices in data; indices out of range mean the first or the last row.  sparse_grad: a program's
    gradient of weight is given as an array of sparse rows."""
    _agrees("Embedding: input_dim", input_dim, weight)
    if output_dim is not None and weight.shape is not None and weight.shape[-1] != output_dim:
        raise ShapeError(f"Embedding: output_dim is {output_dim}, the weight's shape {weight.shape}")
    if str(numpy.dtype(dtype)) not in ("float32", str(numpy.dtype(weight.dtype))):
        raise not_here(f"Embedding(dtype={dtype!r})", "the data type of the weight")
    rows = places_inside(data, weight.shape[0] if weight.shape else input_dim, "clip")
    return classify(ops.gather(weight, rows))


# ---- outputs


@_public
def SoftmaxActivation(data, mode="instance"):
    """softmax over the last axis, or over the channels."""
    if mode not in ("instance", "channel"):
        raise InvalidArgument(f"SoftmaxActivation: mode is {mode!r}; these are instance and channel")
    return ops.softmax(data, 1 if mode == "channel" else -1)


@_public
def LRN(data, alpha=1e-4, beta=0.75, knorm=2.0, nsize=None):
    """Local response normalisation over channels."""
    n, c, h, w = data.shape
    squares = ops.pad(ops.square(data), 1, before=nsize // 2, after=nsize // 2)
    around = squares.slice_axis(1, 0, c)
    for i in range(1, nsize):
        around = around + squares.slice_axis(1, i, i + c)
    return data * ops.pow_scalar(around * (alpha / nsize) + knorm, -beta)
