"""The table, continued: convolutions and pooling of three axes, made of those of images: the depths of a window are channels of
an image, or the depths are pooled after the images."""
import math

from ._moving import cut
from ._table import LOWER, aten, lower, need, typed
from ._windows import Means

images = {target: LOWER[target] for target in (aten.convolution.default, aten.convolution_backward.default)}  # _windows.py


def shaped(p, x, *shape):
    """The same elements in another shape."""
    return typed(p, p.op("reshape", x, shape=list(shape)), shape, x.dtype)


def swapped(p, x):
    """(n, a, b, …) as (n, b, a, …)."""
    order = [0, 2, 1, *range(3, x.ndim)]
    return typed(p, p.op("transpose", x, axes=order), [x.shape[k] for k in order], x.dtype)


def part(p, x, axis, begin, end, step=1):
    """Elements of an axis."""
    count = len(range(begin, end, step))
    return typed(p, cut(p, x, axis, begin, end, step), [*x.shape[:axis], count, *x.shape[axis + 1 :]], x.dtype)


def widened(p, x, axis, begin, step, size):
    """x with zeros between and beside the elements of an axis."""
    end = begin + (x.shape[axis] - 1) * step + 1
    y = p.op("slice_grad", x, axis=axis, begin=begin, end=end, step=step, size=size)
    return typed(p, y, [*x.shape[:axis], size, *x.shape[axis + 1 :]], x.dtype)


class Window:
    """The depths of a convolution's windows, and the attributes of the convolution of images."""

    def __init__(self, kernel, stride, pad, dilation, groups, size):
        self.kernel, self.stride, self.pad, self.dilation = kernel[0], stride[0], pad[0], dilation[0]
        self.at = {"stride": stride[1:], "pad": pad[1:], "dilation": dilation[1:], "groups": groups}
        self.size, self.whole, self.image = size[0], size[0] + 2 * self.pad, list(size[1:])
        self.count = (self.whole - self.dilation * (self.kernel - 1) - 1) // self.stride + 1
        self.filter = list(kernel[1:])

    def seen(self):
        """The height and width of the results."""
        sizes = zip(self.image, self.filter, *(self.at[name] for name in ("stride", "pad", "dilation")))
        return [(n + 2 * q - d * (k - 1) - 1) // s + 1 for n, k, s, q, d in sizes]

    def range(self, k):
        """The depths that part k of the windows sees."""
        begin = k * self.dilation
        return begin, begin + (self.count - 1) * self.stride + 1, self.stride


def stacked(p, x, w):
    """(n, c, depth, h, w) as images (n·depth, c·kernel, h, w), an image for each depth of the result."""
    n, c, _, height, width = x.shape
    x = shaped(p, x, n, c, w.size, height * width)
    x = widened(p, x, 2, w.pad, 1, w.whole) if w.pad else x
    parts = [shaped(p, swapped(p, part(p, x, 2, *w.range(k))), n * w.count, c, 1, height * width) for k in range(w.kernel)]
    y = p.op("concat", *parts, axis=2) if w.kernel > 1 else parts[0]
    return shaped(p, typed(p, y, [n * w.count, c, w.kernel, height * width], x.dtype), n * w.count, c * w.kernel, height, width)


def unstacked(p, y, w, n, c):
    """The gradient of `stacked`."""
    area = math.prod(w.image)
    y, total = shaped(p, y, n * w.count, c, w.kernel, area), None
    for k in range(w.kernel):
        one = swapped(p, shaped(p, part(p, y, 2, k, k + 1), n, w.count, c, area))
        begin, _, step = w.range(k)
        one = widened(p, one, 2, begin, step, w.whole)
        total = one if total is None else typed(p, p.op("add", total, one), one.shape, y.dtype)
    total = part(p, total, 2, w.pad, w.pad + w.size) if w.pad else total
    return shaped(p, total, n, c, w.size, *w.image)


def flat(p, x):
    """(n, c, depth, h, w) as images (n·depth, c, h, w)."""
    x = swapped(p, x)
    return shaped(p, x, x.shape[0] * x.shape[1], *x.shape[2:])


def deep(p, y, n, depth):
    """The reverse of `flat`."""
    return swapped(p, shaped(p, y, n, depth, *y.shape[1:]))


def filters(p, w):
    """(out, in, depth, h, w) as those of stacked images."""
    return shaped(p, w, w.shape[0], w.shape[1] * w.shape[2], *w.shape[3:])


def forward(p, x, w, b, window):
    """The convolution of volumes."""
    n = x.shape[0]
    y = p.op("conv2d", stacked(p, x, window), filters(p, w), *([] if b is None else [b]), **window.at)
    return deep(p, typed(p, y, [n * window.count, w.shape[0], *window.seen()], x.dtype), n, window.count)


def data_gradient(p, dy, w, window):
    """Its gradient with respect to the volumes, of window.size."""
    n, c = dy.shape[0], w.shape[1] * window.at["groups"]
    y = p.op("conv2d_grad_data", flat(p, dy), filters(p, w), **window.at, size=window.image)
    y = typed(p, y, [n * window.count, c * window.kernel, *window.image], dy.dtype)
    return unstacked(p, y, window, n, c)


def weight_gradient(p, x, dy, window, shape, bias):
    """Its gradients with respect to the filters, of this shape, and the bias."""
    dw, db = p.op("conv2d_grad_weights", stacked(p, x, window), flat(p, dy), n=2, **window.at, size=window.filter, bias=bias)
    return p.op("reshape", dw, shape=list(shape)), db


def reaches_back(window, out):
    """Whether the windows over a volume of window.size have these results."""
    need([window.count, *window.seen()] == list(out), "with output_padding")


def three(k):
    return list(k) * 3 if len(k) == 1 else list(k)


@lower(aten.convolution.default)
def _(p, x, w, b, stride, pad, dilation, transposed, output_pad, groups):
    if x.ndim != 5:
        return images[aten.convolution.default](p, x, w, b, stride, pad, dilation, transposed, output_pad, groups)
    size = p.shape[2:] if transposed else x.shape[2:]
    window = Window(w.shape[2:], three(stride), three(pad), three(dilation), groups, size)
    if not transposed:
        return forward(p, x, w, b, window)
    reaches_back(window, x.shape[2:])
    y = data_gradient(p, x, w, window)
    return y if b is None else p.op("add", y, p.op("reshape", b, shape=[1, b.size, 1, 1, 1]))


@lower(aten.convolution_backward.default)
def _(p, dy, x, w, sizes, stride, pad, dilation, transposed, output_pad, groups, mask):
    if x.ndim != 5:
        return images[aten.convolution_backward.default](p, dy, x, w, sizes, stride, pad, dilation, transposed, output_pad, groups, mask)
    big, small = (dy, x) if transposed else (x, dy)
    window = Window(w.shape[2:], three(stride), three(pad), three(dilation), groups, big.shape[2:])
    reaches_back(window, small.shape[2:])
    dx = dw = db = None
    if mask[0]:
        dx = forward(p, dy, w, None, window) if transposed else data_gradient(p, dy, w, window)
    if mask[1] or (mask[2] and not transposed):
        dw, db = weight_gradient(p, big, small, window, w.shape, mask[2] and not transposed)
    if mask[2] and transposed:
        db = p.op("sum", dy, axes=[0, 2, 3, 4])
    return [dx, dw if mask[1] else None, db if mask[2] else None]


# ---- pooling ----------------------------------------------------------------------------------------------------------


def pooled_size(n, kernel, stride, pad, ceil):
    """The number of windows along an axis."""
    rest = n + 2 * pad - kernel
    m = -(-rest // stride) + 1 if ceil else rest // stride + 1
    return m - 1 if ceil and (m - 1) * stride >= n + pad else m


class Pooling:
    """Windows over volumes (n, c, depth, h, w), or (c, depth, h, w): first of the images, then of their depths."""

    def __init__(self, x, kernel, stride, pad, ceil):
        need(x.ndim in (4, 5), "not of volumes")
        self.k, self.s, self.q = ([*map(int, k)] if len(k) == 3 else [*map(int, k)] * 3 for k in (kernel, stride or kernel, pad))
        self.n = list(x.shape[-3:])
        self.m = [pooled_size(*a, ceil) for a in zip(self.n, self.k, self.s, self.q)]
        self.ceil = ceil
        self.batch = math.prod(x.shape[:-3])

    def images(self, **more):
        return {"kernel": self.k[1:], "stride": self.s[1:], "pad": self.q[1:], "ceil": bool(self.ceil), **more}

    def depths(self, **more):
        return {"kernel": [self.k[0], 1], "stride": [self.s[0], 1], "pad": [self.q[0], 0], "ceil": bool(self.ceil), **more}

    def first(self, p, x):
        return shaped(p, x, 1, self.batch * self.n[0], *self.n[1:])

    def between(self, p, y):
        return shaped(p, typed(p, y, [1, self.batch * self.n[0], *self.m[1:]], p.dtype), 1, self.batch, self.n[0], self.m[1] * self.m[2])


@lower(aten.avg_pool3d.default)
def _(p, x, kernel, stride=(), pad=(0,), ceil=False, count_pad=True, divisor=None):
    w, means = Pooling(x, kernel, stride, pad, ceil), Means(x.shape[-3:], kernel, stride, pad, ceil, count_pad, divisor)
    y = p.op("avg_pool2d", w.first(p, x), type=1, **w.images(**means.inside))
    y = p.op("avg_pool2d", w.between(p, y), type=1, **w.depths(**means.inside))
    y = typed(p, p.op("reshape", y, shape=list(p.shape)), p.shape, x.dtype)
    return means.scaled(p, y, w.m)


@lower(aten.avg_pool3d_backward.default)
def _(p, dy, x, kernel, stride, pad, ceil, count_pad, divisor):
    w, means = Pooling(x, kernel, stride, pad, ceil), Means(x.shape[-3:], kernel, stride, pad, ceil, count_pad, divisor)
    dy = shaped(p, typed(p, means.scaled(p, dy, w.m), dy.shape, dy.dtype), 1, w.batch, w.m[0], w.m[1] * w.m[2])
    d = p.op("avg_pool2d_grad", dy, type=1, **w.depths(**means.inside), size=[w.n[0], w.m[1] * w.m[2]])
    d = shaped(p, typed(p, d, [1, w.batch, w.n[0], w.m[1] * w.m[2]], x.dtype), 1, w.batch * w.n[0], *w.m[1:])
    d = p.op("avg_pool2d_grad", d, type=1, **w.images(**means.inside), size=w.n[1:])
    return p.op("reshape", d, shape=list(p.shape))
