"""The table, continued: convolutions, pooling, padding, and their gradients."""
import math

import torch

from ._indices import added
from ._moving import cut
from ._table import FLOATS, lower, need, typed
from ._text import NUMBERS

aten = torch.ops.aten

# ---- convolutions -----------------------------------------------------------------------------------------------------


def two(k, first):
    """An attribute for each of the two axes of images; those of one axis are images of one row."""
    k = list(k)
    return k * 2 if len(k) == 1 and first is None else [first, *k] if len(k) == 1 else k


def lifted(p, t):
    """Signals of one axis as images of one row."""
    if t is None or t.ndim != 3:
        return t
    shape = [*t.shape[:2], 1, t.shape[2]]
    return typed(p, p.op("reshape", t, shape=shape), shape, t.dtype)


def window(x, stride, pad, dilation, groups):
    """The attributes of a convolution of images or signals."""
    need(x.ndim in (3, 4), "not of images or signals")
    first = (1, 0, 1) if x.ndim == 3 else (None,) * 3
    return {name: two(k, f) for name, k, f in zip(("stride", "pad", "dilation"), (stride, pad, dilation), first)} | {"groups": groups}


def reaches_back(at, size, kernel, seen):
    """Whether a convolution of images of this size has results of the size `seen`."""
    for n, k, s, q, d, m in zip(size, kernel, at["stride"], at["pad"], at["dilation"], seen):
        need((n + 2 * q - d * (k - 1) - 1) // s + 1 == m, "with output_padding")


def as_shaped(p, y, shape):
    """A result in the shape that PyTorch gives it."""
    return p.op("reshape", y, shape=list(shape)) if len(shape) == 3 else y


@lower(aten.convolution.default)
def _(p, x, w, b, stride, pad, dilation, transposed, output_pad, groups):
    at, shape = window(x, stride, pad, dilation, groups), p.shape
    x, w = lifted(p, x), lifted(p, w)
    if not transposed:
        return as_shaped(p, p.op("conv2d", x, w, *([] if b is None else [b]), **at), shape)
    size = [1] * (4 - len(shape)) + list(shape[2:])
    reaches_back(at, size, w.shape[2:], x.shape[2:])
    y = p.op("conv2d_grad_data", x, w, **at, size=size)
    y = y if b is None else p.op("add", y, p.op("reshape", b, shape=[1, b.size, 1, 1]))
    return as_shaped(p, y, shape)


@lower(aten.convolution_backward.default)
def _(p, dy, x, w, sizes, stride, pad, dilation, transposed, output_pad, groups, mask):
    at, shapes = window(x, stride, pad, dilation, groups), (x.shape, w.shape)
    dy, x, w = (lifted(p, t) for t in (dy, x, w))
    dx = dw = db = None
    if transposed:
        reaches_back(at, dy.shape[2:], w.shape[2:], x.shape[2:])
        dx = p.op("conv2d", dy, w, **at) if mask[0] else None
        dw, _ = p.op("conv2d_grad_weights", dy, x, n=2, **at, size=list(w.shape[2:]), bias=False) if mask[1] else (None, None)
        db = p.op("sum", dy, axes=[0, 2, 3]) if mask[2] else None
    else:
        dx = p.op("conv2d_grad_data", dy, w, **at, size=list(x.shape[2:])) if mask[0] else None
        if mask[1] or mask[2]:
            dw, db = p.op("conv2d_grad_weights", x, dy, n=2, **at, size=list(w.shape[2:]), bias=mask[2])
    dx, dw = (None if d is None else as_shaped(p, d, shape) for d, shape in zip((dx, dw), shapes))
    return [dx, dw if mask[1] else None, db if mask[2] else None]


# ---- pooling ----------------------------------------------------------------------------------------------------------


def pooled(x, kernel, stride, pad=(0, 0), ceil=False, **more):
    """The attributes of a pooling of images."""
    need(x.ndim in (3, 4), "not of images")
    pair = lambda k: list(k) * 2 if len(k) == 1 else list(k)
    return {"kernel": pair(kernel), "stride": pair(stride or kernel), "pad": pair(pad), "ceil": bool(ceil), **more}


def batch(p, x):
    """A single image as a batch of one."""
    shape = [1, *x.shape]
    return x if x.ndim == 4 else typed(p, p.op("reshape", x, shape=shape), shape, x.dtype)


class Means:
    """Means over the windows of the last axes.

    The engine's are over all elements of a window, or over those inside of the image.  PyTorch's windows that hang over the border
    count padding but nothing beyond it, and a divisor may be given: such means are those inside of the image, times a factor.
    """

    def __init__(self, shape, kernel, stride, pad, ceil, count_pad, divisor):
        axes = len(shape)
        self.n, self.axes = list(shape), axes
        self.k, self.s, self.q = (list(k) * axes if len(k) == 1 else list(k) for k in (kernel, stride or kernel, pad))
        self.over = bool(ceil) and any((n + 2 * q - k) % s for n, k, s, q in zip(shape, self.k, self.s, self.q))
        self.count_pad, self.divisor = count_pad, divisor
        self.given = self.over and (count_pad or divisor is not None)  # whether there is a factor for each window
        self.inside = {"exclude_pad": self.given or (not count_pad and divisor is None)}

    def along(self, p, axis, m):
        """The factor of m windows along an axis."""
        n, k, q = self.n[axis], float(self.k[axis]), float(self.q[axis])
        start = p.op("arange", shape=[m], start=-q, step=float(self.s[axis]), dtype=NUMBERS[p.dtype])
        end = p.op("add_scalar", start, value=k)
        inside = p.op("sub", p.op("minimum_scalar", end, value=float(n)), p.op("maximum_scalar", start, value=0.0))
        if self.divisor is None:
            inside = p.op("div", inside, p.op("sub", p.op("minimum_scalar", end, value=n + q), start))
        return p.op("reshape", inside, shape=[m if a == axis else 1 for a in range(self.axes)])

    def scaled(self, p, y, shape):
        """Means of windows as PyTorch counts their elements; shape: the numbers of windows.  The gradient is the same."""
        if self.divisor is not None:
            y = p.op("mul_scalar", y, value=(1 if self.given else math.prod(self.k)) / self.divisor)
        if self.given:
            for axis, m in enumerate(shape):
                y = p.op("mul", y, self.along(p, axis, m))
        return y


@lower(aten.avg_pool2d.default)
def _(p, x, kernel, stride=(), pad=(0, 0), ceil=False, count_pad=True, divisor=None):
    means = Means(x.shape[-2:], kernel, stride, pad, ceil, count_pad, divisor)
    at = pooled(x, kernel, stride, pad, means.over, **means.inside)
    return as_shaped(p, means.scaled(p, p.op("avg_pool2d", batch(p, x), type=1, **at), p.shape[-2:]), p.shape)


@lower(aten.avg_pool2d_backward.default)
def _(p, dy, x, kernel, stride, pad, ceil, count_pad, divisor):
    means = Means(x.shape[-2:], kernel, stride, pad, ceil, count_pad, divisor)
    at = pooled(x, kernel, stride, pad, means.over, **means.inside)
    shape = [1] * (4 - dy.ndim) + list(dy.shape)
    dy = typed(p, means.scaled(p, batch(p, dy), dy.shape[-2:]), shape, dy.dtype)
    return as_shaped(p, p.op("avg_pool2d_grad", dy, type=1, **at, size=list(x.shape[-2:])), p.shape)


def windows(n, m):
    """The windows (begin, end) of an adaptive pooling of n elements to m."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


MOST_WINDOWS = 64  # of an adaptive pooling, along an axis


@lower(aten._adaptive_avg_pool2d.default)
def _(p, x, size):
    n, k = x.shape[-2:], x.ndim - 2
    if list(size) == [1, 1]:
        return p.op("mean", x, axes=[k, k + 1], keepdims=True)
    if not n[0] % size[0] and not n[1] % size[1]:
        kernel = [n[0] // size[0], n[1] // size[1]]
        return as_shaped(p, p.op("avg_pool2d", batch(p, x), type=1, **pooled(x, kernel, kernel, exclude_pad=False)), p.shape)
    need(max(size) <= MOST_WINDOWS, "to so many elements")
    for axis, m in zip((k, k + 1), size):  # a window is one of rows and one of columns
        parts = [p.op("mean", cut(p, x, axis, a, e), axes=[axis], keepdims=True) for a, e in windows(x.shape[axis], m)]
        shape = [*x.shape[:axis], m, *x.shape[axis + 1 :]]
        x = typed(p, p.op("concat", *parts, axis=axis) if m > 1 else parts[0], shape, x.dtype)
    return x


@lower(aten._adaptive_avg_pool2d_backward.default)
def _(p, dy, x):
    need(max(dy.shape[-2:]) <= MOST_WINDOWS, "to so many elements")
    for axis in (x.ndim - 1, x.ndim - 2):
        n, m = x.shape[axis], dy.shape[axis]
        shape, sum_ = [*dy.shape[:axis], n, *dy.shape[axis + 1 :]], None
        for i, (a, e) in enumerate(windows(n, m)):
            one = p.op("mul_scalar", cut(p, dy, axis, i, i + 1), value=1 / (e - a))
            part = p.op("broadcast_to", one, shape=[*dy.shape[:axis], e - a, *dy.shape[axis + 1 :]])
            part = p.op("slice_grad", part, axis=axis, begin=a, end=e, step=1, size=n)
            sum_ = part if sum_ is None else p.op("add", sum_, part)
        dy = typed(p, sum_, shape, x.dtype)
    return dy


def largest(x, dilation):
    """Whether a pooling by the largest element can be computed."""
    need(all(d == 1 for d in dilation), "with a dilation")
    need(x.dtype in FLOATS, "of integers")


@lower(aten.max_pool2d_with_indices.default, any_type=True)
def _(p, x, kernel, stride=(), pad=(0, 0), dilation=(1, 1), ceil=False):
    largest(x, dilation)
    y = p.op("max_pool2d", batch(p, x), **pooled(x, kernel, stride, pad, ceil))
    return [as_shaped(p, y, p.shape), None]  # its gradient finds the places again


@lower(aten.max_pool2d_with_indices_backward.default, any_type=True)
def _(p, dy, x, kernel, stride, pad, dilation, ceil, places):
    largest(x, dilation)
    dx = p.op("max_pool2d_grad", batch(p, x), batch(p, dy), **pooled(x, kernel, stride, pad, ceil), size=list(x.shape[-2:]))
    return as_shaped(p, dx, p.shape)


# ---- padding ----------------------------------------------------------------------------------------------------------


@lower(aten.constant_pad_nd.default)
def _(p, x, pad, value=0):
    need(math.isfinite(value), "with a number that is not finite")
    for k in range(len(pad) // 2):
        axis, before, after = x.ndim - 1 - k, pad[2 * k], pad[2 * k + 1]
        n = x.shape[axis]
        if before < 0 or after < 0:
            begin, end = max(-before, 0), n - max(-after, 0)
            x, n = typed(p, cut(p, x, axis, begin, end), [*x.shape[:axis], end - begin, *x.shape[axis + 1 :]], x.dtype), end - begin
        before, after = max(before, 0), max(after, 0)
        if before or after:
            shape = [*x.shape[:axis], before + n + after, *x.shape[axis + 1 :]]
            x = typed(p, padded(p, x, axis, before, after, value), shape, x.dtype)
    return x


def repeated_back(axes):
    """The gradient of a padding that repeats the elements at the ends of the last axes."""

    def function(p, dy, x, pad):
        for k in range(axes):
            axis, (before, after) = x.ndim - 1 - k, pad[2 * k : 2 * k + 2]
            n = x.shape[axis]
            at = p.op("arange", shape=[before + n + after], start=float(-before), step=1.0, dtype=NUMBERS[torch.int32])
            at = p.op("maximum_scalar", p.op("minimum_scalar", at, value=float(n - 1)), value=0.0)
            dy = added(p, dy, axis, typed(p, at, [before + n + after], torch.int32), n)
        return dy

    return function


for _axes in (1, 2, 3):
    lower(getattr(aten, f"replication_pad{_axes}d_backward").default)(repeated_back(_axes))


def padded(p, x, axis, before, after, value):
    """More elements at both ends of an axis."""
    n = x.shape[axis]
    if not value:
        return p.op("slice_grad", x, axis=axis, begin=before, end=before + n, step=1, size=before + n + after)
    more = lambda m: p.op("fill", shape=[*x.shape[:axis], m, *x.shape[axis + 1 :]], value=float(value), dtype=NUMBERS[x.dtype])
    return p.op("concat", *([more(before)] if before else []), x, *([more(after)] if after else []), axis=axis)
