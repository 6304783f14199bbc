"""The table, continued: products, convolutions, pooling, normalisation, attention, losses, and their gradients."""
import math

import torch

from ._table import FLOATS, LOWER, lower, need, typed
from ._text import NUMBERS, Value

aten = torch.ops.aten

# ---- products ---------------------------------------------------------------------------------------------------------


def dot(p, a, b):
    """A product of matrices; transposes are attributes."""
    return p.op("dot", a.base or a, b.base or b, ta=a.base is not None, tb=b.base is not None)


LOWER[aten.mm.default] = dot
LOWER[aten.bmm.default] = lambda p, a, b: p.op("matmul", a, b)
LOWER[aten.mv.default] = lambda p, a, b: p.op("dot", a, b)
LOWER[aten.dot.default] = lambda p, a, b: p.op("reshape", p.op("sum", p.op("mul", a, b)), shape=[])


@lower(aten.addmm.default)
def _(p, b, x, w, *, beta=1, alpha=1):
    if beta == 1 and alpha == 1 and b.ndim == 1 and b.shape[0] == w.shape[1]:
        return p.op("linear", x, w.base or w, b, tw=w.base is not None)
    y = dot(p, x, w)
    y = y if alpha == 1 else p.op("mul_scalar", y, value=float(alpha))
    b = b if beta == 1 else p.op("mul_scalar", b, value=float(beta))
    return p.op("add", y, b) if beta else y


# ---- convolutions -----------------------------------------------------------------------------------------------------


def window(x, stride, pad, dilation, transposed, groups):
    """The attributes of a convolution of images."""
    need(x.ndim == 4 and not transposed, "transposed" if transposed else "not of images")
    two = lambda k: list(k) * 2 if len(k) == 1 else list(k)
    return {"stride": two(stride), "pad": two(pad), "dilation": two(dilation), "groups": groups}


@lower(aten.convolution.default)
def _(p, x, w, b, stride, pad, dilation, transposed, output_pad, groups):
    return p.op("conv2d", x, w, *([] if b is None else [b]), **window(x, stride, pad, dilation, transposed, groups))


@lower(aten.convolution_backward.default)
def _(p, dy, x, w, sizes, stride, pad, dilation, transposed, output_pad, groups, mask):
    at = window(x, stride, pad, dilation, transposed, groups)
    dx = p.op("conv2d_grad_data", dy, w, **at, size=list(x.shape[2:])) if mask[0] else None
    dw, db = p.op("conv2d_grad_weights", x, dy, n=2, **at, size=list(w.shape[2:]), bias=mask[2]) if mask[1] or mask[2] else (None, None)
    return [dx, dw if mask[1] else None, db if mask[2] else None]


# ---- pooling ----------------------------------------------------------------------------------------------------------


def pooled(x, kernel, stride, pad=(0, 0), ceil=False, **more):
    """The attributes of a pooling of images."""
    need(x.ndim == 4, "not of a batch of images")
    two = lambda k: list(k) * 2 if len(k) == 1 else list(k)
    return {"kernel": two(kernel), "stride": two(stride or kernel), "pad": two(pad), "ceil": bool(ceil), **more}


def mean_of(count_pad, divisor, pad, ceil):
    """Whether the mean is over the window, as it is in both where nothing hangs over the border."""
    need(not ceil, "with windows that hang over the border")
    return not count_pad and divisor is None


def divided(p, y, kernel, divisor):
    """Another divisor than the size of the window."""
    size = kernel[0] * kernel[-1] if len(kernel) > 1 else kernel[0] ** 2
    return y if divisor is None else p.op("mul_scalar", y, value=size / divisor)


@lower(aten.avg_pool2d.default)
def _(p, x, kernel, stride=(), pad=(0, 0), ceil=False, count_pad=True, divisor=None):
    exclude = mean_of(count_pad, divisor, pad, ceil)
    return divided(p, p.op("avg_pool2d", x, type=1, **pooled(x, kernel, stride, pad, ceil, exclude_pad=exclude)), kernel, divisor)


@lower(aten.avg_pool2d_backward.default)
def _(p, dy, x, kernel, stride, pad, ceil, count_pad, divisor):
    exclude = mean_of(count_pad, divisor, pad, ceil)
    dx = p.op("avg_pool2d_grad", dy, type=1, **pooled(x, kernel, stride, pad, ceil, exclude_pad=exclude), size=list(x.shape[2:]))
    return divided(p, dx, kernel, divisor)


@lower(aten._adaptive_avg_pool2d.default)
def _(p, x, size):
    need(x.ndim == 4 and list(size) == [1, 1], "to more than one element")
    return p.op("mean", x, axes=[2, 3], keepdims=True)


def largest(x, dilation):
    """Whether a pooling by the largest element can be computed."""
    need(all(d == 1 for d in dilation), "with a dilation")


@lower(aten.max_pool2d_with_indices.default, any_type=True)
def _(p, x, kernel, stride=(), pad=(0, 0), dilation=(1, 1), ceil=False):
    need(x.dtype in FLOATS, "of integers")
    largest(x, dilation)
    return [p.op("max_pool2d", x, **pooled(x, kernel, stride, pad, ceil)), None]  # its gradient finds the places again


@lower(aten.max_pool2d_with_indices_backward.default, any_type=True)
def _(p, dy, x, kernel, stride, pad, dilation, ceil, places):
    need(x.dtype in FLOATS, "of integers")
    largest(x, dilation)
    return p.op("max_pool2d_grad", x, dy, **pooled(x, kernel, stride, pad, ceil), size=list(x.shape[2:]))


# ---- normalisation ----------------------------------------------------------------------------------------------------


def vectors(x, *given):
    """Normalisation needs its vectors, in the type of x or float32."""
    need(x.ndim >= 2 and all(isinstance(v, Value) for v in given), "without statistics")
    need(all(v.dtype in (x.dtype, wide(x)) for v in given), "of several types")


def plain(p, v, shape, dtype, value):
    """The vector of a normalisation, or one of this number where there is none."""
    return v if v is not None else typed(p, p.op("fill", shape=list(shape), value=value, dtype=NUMBERS[dtype]), shape, dtype)


def wide(x):
    """The type of statistics: half types have those of float32."""
    return x.dtype if x.dtype == torch.float64 else torch.float32


def rounded(p, gradients, w):
    """Gradients of x and of vectors, the latter in the vectors' type, as PyTorch's."""
    dx, *vectors = gradients
    return [dx, *[p.cast(typed(p, d, w.shape, w.dtype), r[1]) if r else d for d, r in zip(vectors, p.results[1:])]]


@lower(aten._native_batch_norm_legit_functional.default)
def _(p, x, w, b, mean, var, training, momentum, eps):
    need(x.ndim >= 2, "of one axis")
    w, b = (plain(p, v, [x.shape[1]], wide(x), n) for v, n in ((w, 1.0), (b, 0.0)))
    vectors(x, w, b, mean, var)
    if not training:
        return [p.op("batch_norm_infer", x, w, b, mean, var, eps=eps), None, None, mean, var]
    count = x.size // x.shape[1]
    need(count > 1, "of a single element")
    new = [p.op("copy", mean), p.op("copy", var)]  # the operation writes them
    y, *moments = p.op("batch_norm", x, w, b, *new, n=3, eps=eps, momentum=1 - momentum, unbiased=True)
    moments = [typed(p, t, mean.shape, wide(x)) for t in moments]
    return [y, *[p.cast(t, r[1]) for t, r in zip(moments, p.results[1:3])], *new]


@lower(aten._native_batch_norm_legit.no_stats)
def _(p, x, w, b, training, momentum, eps):
    need(training and x.ndim >= 2 and x.size // x.shape[1] > 1, "of a single element")
    c = [x.shape[1]]
    w, b, mean, var = (plain(p, v, c, wide(x), n) for v, n in ((w, 1.0), (b, 0.0), (None, 0.0), (None, 1.0)))
    vectors(x, w, b)
    y, *moments = p.op("batch_norm", x, w, b, p.op("copy", mean), p.op("copy", var), n=3, eps=eps, momentum=0.0, unbiased=True)
    moments = [typed(p, t, c, wide(x)) for t in moments]
    return [y, *[p.cast(t, r[1]) for t, r in zip(moments, p.results[1:3])]]


@lower(aten._native_batch_norm_legit_no_training.default)
def _(p, x, w, b, mean, var, momentum, eps):
    need(x.ndim >= 2, "of one axis")
    w, b = (plain(p, v, [x.shape[1]], wide(x), n) for v, n in ((w, 1.0), (b, 0.0)))
    vectors(x, w, b, mean, var)
    return [p.op("batch_norm_infer", x, w, b, mean, var, eps=eps), None, None]


@lower(aten.native_batch_norm_backward.default)
def _(p, dy, x, w, mean, var, m, s, training, eps, mask):
    need(x.ndim >= 2, "of one axis")
    given, w = w, plain(p, w, [x.shape[1]], wide(x), 1.0)
    vectors(x, w)
    if not training:
        return wanted(by_running(p, dy, x, w, mean, var, eps), given is not None, mask)
    need(all(isinstance(v, Value) for v in (m, s)), "of running statistics")
    m, s = p.cast(m, wide(x)), p.cast(s, wide(x))
    return wanted(rounded(p, p.op("batch_norm_grad", dy, x, w, m, s, n=3), w), given is not None, mask)


def by_running(p, dy, x, w, mean, var, eps):
    """The gradients of a batch normalisation by running statistics, which are constants."""
    need(x.dtype in (torch.float32, torch.float64), "of half types")
    need(all(isinstance(v, Value) and v.dtype == x.dtype for v in (mean, var, w)), "of several types")
    axes, shape = [k for k in range(x.ndim) if k != 1], [1, x.shape[1]] + [1] * (x.ndim - 2)
    mean, var, scale = (p.op("reshape", v, shape=shape) for v in (mean, var, w))
    invstd = p.op("rsqrt", p.op("add_scalar", var, value=float(eps)))
    normal = p.op("mul", p.op("sub", x, mean), invstd)
    dx = p.op("mul", dy, p.op("mul", scale, invstd))
    return [dx, p.op("sum", p.op("mul", dy, normal), axes=axes), p.op("sum", dy, axes=axes)]


def wanted(gradients, weights, mask):
    """Those of the gradients that are asked for; there are none of vectors that are not given."""
    return [g if k and (weights or i == 0) else None for i, (g, k) in enumerate(zip(gradients, mask))]


def rows(p, x, shape):
    """The elements of x with the last axes, which have this shape, as one."""
    n = math.prod(shape)
    return typed(p, p.op("reshape", x, shape=[x.size // n, n]), [x.size // n, n], x.dtype)


def flat(p, v, shape, dtype, value):
    """The weights of a layer norm as a vector."""
    v, n = plain(p, v, shape, dtype, value), [math.prod(shape)]
    return v if v.ndim == 1 else typed(p, p.op("reshape", v, shape=n), n, v.dtype)


@lower(aten.native_layer_norm.default)
def _(p, x, shape, w, b, eps):
    w, b = flat(p, w, shape, wide(x), 1.0), flat(p, b, shape, wide(x), 0.0)
    outer = list(x.shape[: x.ndim - len(shape)]) + [1] * len(shape)
    several = len(shape) > 1 or x.ndim == 1
    z = rows(p, x, shape) if several else x
    vectors(z, w, b)
    y, *moments = p.op("layer_norm", z, w, b, n=3, eps=eps)
    y = p.op("reshape", y, shape=list(x.shape)) if several else y
    moments = [typed(p, p.op("reshape", t, shape=outer), outer, wide(x)) for t in moments]
    return [y, *[p.cast(t, r[1]) for t, r in zip(moments, p.results[1:])]]


@lower(aten.native_layer_norm_backward.default)
def _(p, dy, x, shape, m, s, w, b, mask):
    given, w = w, flat(p, w, shape, wide(x), 1.0)
    several = len(shape) > 1 or x.ndim == 1
    z, dz = (rows(p, x, shape), rows(p, dy, shape)) if several else (x, dy)
    vectors(z, w)
    m, s = (p.op("reshape", p.cast(t, wide(x)), shape=list(z.shape[:-1])) for t in (m, s))
    dx, *rest = p.op("layer_norm_grad", dz, z, w, m, s, n=3)
    types = [r and r[1] for r in p.results[1:]]
    rest = [typed(p, d, w.shape, w.dtype) for d in rest]
    if several:
        dx = p.op("reshape", dx, shape=list(x.shape))
        rest = [typed(p, p.op("reshape", d, shape=list(shape)), shape, w.dtype) for d in rest]
    return wanted([dx, *[p.cast(d, t) if t else d for d, t in zip(rest, types)]], given is not None, mask)


@lower(aten.native_group_norm.default)
def _(p, x, w, b, n, c, size, groups, eps):
    need(x.dtype in (torch.float32, torch.float64), "of half types")
    rows = p.op("reshape", x, shape=[n, groups, c // groups * size])
    mean = p.op("mean", rows, axes=[2], keepdims=True)
    off = p.op("sub", rows, mean)
    invstd = p.op("rsqrt", p.op("add_scalar", p.op("mean", p.op("square", off), axes=[2], keepdims=True), value=float(eps)))
    y = p.op("reshape", p.op("mul", off, invstd), shape=list(x.shape))
    channels = [1, c] + [1] * (x.ndim - 2)
    if w is not None:
        y = p.op("mul", y, p.op("reshape", w, shape=channels))
    if b is not None:
        y = p.op("add", y, p.op("reshape", b, shape=channels))
    return [y, *[p.op("reshape", t, shape=[n, groups]) for t in (mean, invstd)]]


# ---- attention, losses ------------------------------------------------------------------------------------------------


def heads(q, k, v, dropout, causal, mask):
    """What attention of CPUs can be computed."""
    need(not dropout and mask is None, "with a mask or dropout")
    need(q.shape[:-2] == k.shape[:-2] and (not causal or q.shape[-2] == k.shape[-2]), "of these shapes")


@lower(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _(p, q, k, v, dropout=0.0, causal=False, attn_mask=None, scale=None):
    heads(q, k, v, dropout, causal, attn_mask)
    return p.op("attention", q, k, v, n=2, causal=causal, scale=q.shape[-1] ** -0.5 if scale is None else scale)


@lower(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _(p, dy, q, k, v, y, logs, dropout, causal, attn_mask=None, scale=None):
    heads(q, k, v, dropout, causal, attn_mask)
    return p.op("attention_grad", dy, q, k, v, y, logs, n=3, causal=causal, scale=q.shape[-1] ** -0.5 if scale is None else scale)


def softened(name):
    """A softmax and its like along an axis."""

    def function(p, x, dim, half):
        need(not half and x.ndim, "to float32")
        return p.op(name, x, axis=dim % x.ndim)

    return function


def softened_grad(name):
    """Their gradients."""

    def function(p, dy, y, dim, dtype):
        need(dtype == y.dtype and y.ndim, "to another type")
        return p.op(name, dy, y, axis=dim % y.ndim)

    return function


LOWER[aten._softmax.default], LOWER[aten._log_softmax.default] = softened("softmax"), softened("log_softmax")
LOWER[aten._softmax_backward_data.default] = softened_grad("softmax_grad")
LOWER[aten._log_softmax_backward_data.default] = softened_grad("log_softmax_grad")


def chosen(p, logp, target, weight, ignore):
    """Rows with a one, or the label's weight, at the label; zeros for labels that are ignored."""
    need(logp.dtype in FLOATS, "of integers")
    need(logp.ndim in (1, 2) and target.dtype == torch.int64, "of these types")
    need(target.source is not None, "with labels that are computed")
    need(weight is None or weight.dtype == logp.dtype, "of several types")
    p.labels[target.source] = (logp.shape[-1], ignore)
    hot = p.op("one_hot", p.cast(target, torch.int32), depth=logp.shape[-1], dtype=NUMBERS[logp.dtype])
    if 0 <= ignore < logp.shape[-1]:
        ones = [p.op("fill", shape=[n], value=v, dtype=NUMBERS[logp.dtype]) for n, v in counted(ignore, logp.shape[-1])]
        hot = p.op("mul", hot, p.op("concat", *ones, axis=0) if len(ones) > 1 else ones[0])
    return hot if weight is None else p.op("mul", hot, weight)


def counted(ignore, classes):
    """(how many classes, whether they count), in their order."""
    return [(n, v) for n, v in ((ignore, 1.0), (1, 0.0), (classes - ignore - 1, 1.0)) if n]


@lower(aten.nll_loss_forward.default, any_type=True)
def _(p, logp, target, weight, mode, ignore):
    hot = chosen(p, logp, target, weight, ignore)
    # Chosen, not multiplied: an infinity that was not chosen has no effect.
    taken = p.op("take_if", hot, logp)
    taken = taken if weight is None else p.op("mul", taken, weight)
    loss = p.op("neg", p.op("sum", taken, **({"axes": [logp.ndim - 1]} if mode == 0 else {})))
    rows = p.op("sum", hot)
    return [p.op("div", loss, rows) if mode == 1 else loss, rows]


@lower(aten.nll_loss_backward.default, any_type=True)
def _(p, dy, logp, target, weight, mode, ignore, rows):
    hot = chosen(p, logp, target, weight, ignore)
    if mode == 0 and logp.ndim == 2:
        dy = p.op("reshape", dy, shape=[*dy.shape, 1])
    return p.op("mul", hot, p.op("neg", p.op("div", dy, rows) if mode == 1 else dy))
