"""Layers as functions of mx.nd and mx.sym: their parameters are arguments."""
from .. import _ops as ops
from .._core import pair
from ..autograd import train_mode
from .functions import ones_like
from .missing import not_here
from ._program import classify

__all__ = []


def _public(function):
    __all__.append(function.__name__)
    return function


@_public
def FullyConnected(data, weight, bias=None, num_hidden=None, no_bias=False, flatten=True, **_):
    """data·weightᵀ + bias."""
    if flatten and (data.ndim or 0) > 2:
        data = ops.flatten(data)
    return classify(ops.linear(data, weight, None if no_bias else bias, tw=True))


def _one(value, name):
    """What windows over one axis are given."""
    (value,) = value if isinstance(value, (tuple, list)) else (value,)
    return value


def _axes_of_windows(data, kernel, name):
    """How many axes windows go over."""
    n = len(kernel) if isinstance(kernel, (tuple, list)) else (data.ndim or 4) - 2
    if n not in (1, 2):
        raise not_here(f"{name} over {n} axes", "one or two")
    return n


@_public
def Convolution(data, weight, bias=None, kernel=None, stride=1, pad=0, dilate=1, num_filter=None, num_group=1,
                no_bias=False, layout=None, **_):
    """The convolution of images (n, channels, height, width), or of rows (n, channels, width)."""
    if layout not in (None, "NCHW", "NCW"):
        raise not_here(f"Convolution(layout={layout!r})", "NCHW or NCW")
    options = {"stride": stride or 1, "pad": pad or 0, "dilation": dilate or 1, "groups": num_group}
    if _axes_of_windows(data, kernel, "Convolution") == 1:
        return classify(ops.conv1d(data, weight, None if no_bias else bias, **{n: _one(v, n) for n, v in options.items() if n != "groups"},
                                   groups=num_group))  # fmt: skip
    return classify(ops.conv2d(data, weight, None if no_bias else bias, **options))


@_public
def Deconvolution(data, weight, bias=None, kernel=None, stride=1, pad=0, adj=0, dilate=1, num_filter=None, num_group=1,
                  no_bias=True, target_shape=None, **_):
    """The transposed convolution of images."""
    if target_shape or _axes_of_windows(data, kernel, "Deconvolution") != 2:
        raise not_here("Deconvolution(target_shape=…) or over other than two axes", "adj, with images")
    return classify(ops.conv_transpose2d(data, weight, None if no_bias else bias, stride=stride or 1, pad=pad or 0,
                                         dilation=dilate or 1, output_pad=adj or 0, groups=num_group))  # fmt: skip


@_public
def Pooling(data, kernel=(1, 1), pool_type="max", global_pool=False, stride=None, pad=None,
            pooling_convention="valid", count_include_pad=True, **_):
    """The maximum, the mean or the sum of windows."""
    if pool_type not in ("max", "avg", "sum"):
        raise not_here(f"Pooling(pool_type={pool_type!r})", "max, avg or sum")
    if _axes_of_windows(data, None if global_pool else kernel, "Pooling") == 1:  # rows as images of height 1
        rows = [None if v is None else (k, _one(v, "kernel")) for k, v in ((1, kernel), (1, stride), (0, pad))]
        y = Pooling(data.expand_dims(2), rows[0], pool_type, global_pool, rows[1], rows[2], pooling_convention, count_include_pad)
        return y.squeeze(2)
    pooled = ops.pool2d(
        data, type="max" if pool_type == "max" else "avg", kernel=kernel, stride=stride or 1, pad=pad or 0, global_=global_pool,
        ceil=pooling_convention == "full", exclude_pad=not count_include_pad and pool_type != "sum",
    )  # fmt: skip
    if pool_type != "sum":
        return pooled
    size = data.shape[2:] if global_pool else pair(kernel)
    return pooled * float(size[0] * size[1])




@_public
def Activation(data, act_type, **_):
    """relu, sigmoid, tanh, softrelu, softsign."""
    if act_type == "softsign":
        return data / (abs(data) + 1)
    if act_type not in ("relu", "sigmoid", "tanh", "softrelu"):
        raise not_here(f"Activation({act_type!r})", "relu, sigmoid, tanh, softrelu, softsign")
    return ops.softplus(data) if act_type == "softrelu" else ops.activate(data, act_type)


@_public
def LeakyReLU(data, gamma=None, act_type="leaky", slope=0.25, **_):
    """x where it is positive; elsewhere slope·x, or what elu, selu, gelu, prelu (by gamma) have there."""
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
    return classify(ops.relu(data) - ops.relu(-data) * gamma)


@_public
def LayerNorm(data, gamma, beta, axis=-1, eps=1e-5, **_):
    """Normalisation over an axis."""
    if axis % data.ndim == data.ndim - 1:
        return classify(ops.layer_norm(data, gamma, beta, eps=eps))
    mean = ops.mean(data, axis, keepdims=True)
    var = ops.mean(ops.square(data - mean), axis, keepdims=True)
    shape = [1] * data.ndim
    shape[axis] = -1
    return classify((data - mean) * ops.rsqrt(var + eps) * gamma.reshape(tuple(shape)) + beta.reshape(tuple(shape)))


@_public
def InstanceNorm(data, gamma, beta, eps=1e-3, **_):
    """Normalisation of each channel of each sample."""
    return classify(_normed(ops.instance_norm, data, gamma, beta, eps=eps))


@_public
def GroupNorm(data, gamma, beta, num_groups=1, eps=1e-5, **_):
    """Normalisation of groups of channels of each sample."""
    groups = lambda x, g, b, eps: ops.group_norm(x, num_groups, g, b, eps=eps)  # noqa: E731
    if gamma.size == num_groups != data.shape[1]:  # MXNet's: one for each group
        each = data.shape[1] // num_groups
        gamma, beta = (ops.repeat(p, 0, times=each) for p in (gamma, beta))
    return classify(_normed(groups, data, gamma, beta, eps=eps))


def _normed(norm, data, gamma, beta, eps):
    """Over images; what has other axes is seen as images."""
    if data.ndim == 4:
        return norm(data, gamma, beta, eps=eps)
    n, c = data.shape[:2]
    return norm(data.reshape((n, c, -1, 1)), gamma, beta, eps=eps).reshape(data.shape)


@_public
def Dropout(data, p=0.5, mode="training", axes=(), **_):
    """Elements become zero with probability p in training, or always."""
    if axes:
        raise not_here("Dropout(axes=…)", "Dropout without axes")
    if mode == "always":
        with train_mode():
            return ops.dropout(data, p)
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


# ---- outputs


@_public
def SoftmaxActivation(data, mode="instance", **_):
    """softmax over a sample, or over the channels."""
    return ops.softmax(data, 1) if mode == "channel" else ops.softmax(data.reshape((data.shape[0], -1)), -1).reshape(data.shape)


@_public
def LRN(data, nsize, alpha=1e-4, beta=0.75, knorm=2.0, **_):
    """Local response normalisation over channels."""
    n, c, h, w = data.shape
    squares = ops.pad(ops.square(data), 1, before=nsize // 2, after=nsize // 2)
    around = squares.slice_axis(1, 0, c)
    for i in range(1, nsize):
        around = around + squares.slice_axis(1, i, i + c)
    return data * ops.pow_scalar(around * (alpha / nsize) + knorm, -beta)
