"""The table, continued: pooling by the largest element with its place, over images and volumes, also adaptive and with dilation.

Elements of all windows are gathered: (windows, elements of a window, images).  `_windows.py` has what needs no places.
"""
import math

import torch

from . import _windows  # noqa: F401 - enters pooling of images, which this one replaces where it has to
from ._order import numbers
from ._table import FLOATS, LOWER, aten, lower, need, typed
from ._text import NUMBERS

INT = NUMBERS[torch.int32]
by_windows = {t: LOWER[t] for t in (aten.max_pool2d_with_indices.default, aten.max_pool2d_with_indices_backward.default)}


def counted(p, n, axis, axes, step=1, start=0):
    """start, start + step, … along one of so many axes."""
    y = p.op("arange", shape=[n], start=float(start), step=float(step), dtype=INT)
    return p.op("reshape", y, shape=[n if k == axis else 1 for k in range(axes)])


class Fixed:
    """Windows of k elements along an axis of n."""

    def __init__(self, n, k, stride, pad, dilation, m):
        self.n, self.k, self.m, self.stride, self.pad, self.dilation = n, k, m, stride, pad, dilation

    def elements(self, p, at, axes):
        """(the places of the windows' elements, 1 for those outside)"""
        k = axes // 2
        y = p.op("add", counted(p, self.m, at, axes, self.stride, -self.pad), counted(p, self.k, at + k, axes, self.dilation))
        return y, p.op("logical_or", p.op("lt_scalar", y, value=0.0), p.op("ge_scalar", y, value=float(self.n)))


class Adaptive:
    """m windows that cover an axis of n elements."""

    def __init__(self, n, m):
        self.n, self.m, self.k = n, m, max(-(-(i + 1) * n // m) - i * n // m for i in range(m))

    def elements(self, p, at, axes):
        """As Fixed."""
        begin = p.op("div_scalar", counted(p, self.m, at, axes, self.n), value=float(self.m))
        end = p.op("div_scalar", counted(p, self.m, at, axes, self.n, self.n + self.m - 1), value=float(self.m))
        y = p.op("add", begin, counted(p, self.k, at + axes // 2, axes))
        return y, p.op("ge", y, end)


def elements(p, axes):
    """(the places of all windows' elements in an image, 1 for those outside), each as (windows, elements of a window)"""
    count, flat, outside = 2 * len(axes), None, None
    for k, axis in enumerate(axes):
        y, out = axis.elements(p, k, count)
        y = p.op("maximum_scalar", p.op("minimum_scalar", y, value=float(axis.n - 1)), value=0.0)
        flat = y if flat is None else p.op("add", p.op("mul_scalar", flat, value=float(axis.n)), y)
        outside = out if outside is None else p.op("logical_or", outside, out)
    shape = [math.prod(a.m for a in axes), math.prod(a.k for a in axes)]
    return [typed(p, p.op("reshape", t, shape=shape), shape, torch.int32) for t in (flat, outside)]


def maxima(p, x, axes):
    """[the largest elements of windows of the last axes of x, their places]"""
    need(x.dtype in FLOATS, "of integers")
    n, at, outside = math.prod(a.n for a in axes), *elements(p, axes)
    m, k, batch = *at.shape, x.size // n
    rows = p.op("transpose", p.op("reshape", x, shape=[batch, n]), axes=[1, 0])
    g = p.op("gather", rows, typed(p, p.op("reshape", at, shape=[m * k]), [m * k], torch.int32))
    g = p.op("reshape", g, shape=[m, k, batch])
    outside = p.op("cast", p.op("reshape", outside, shape=[m, k, 1]), dtype=NUMBERS[x.dtype])
    least = p.op("rdiv_scalar", p.op("fill", shape=[], value=0.0, dtype=NUMBERS[x.dtype]), value=-1.0)  # minus infinity
    g = typed(p, p.op("add", p.op("take_unless", outside, g), p.op("take_if", outside, least)), [m, k, batch], x.dtype)
    largest = p.op("transpose", p.op("max", g, axes=[1]), axes=[1, 0])
    first = p.op("reshape", p.op("argmax", g, axis=1), shape=[m, batch])
    of_all = p.op("reshape", p.op("add", first, counted(p, m, 0, 2, k)), shape=[m * batch])
    found = p.op("gather", p.op("reshape", at, shape=[m * k, 1]), of_all)
    found = p.op("transpose", p.op("reshape", found, shape=[m, batch]), axes=[1, 0])
    (shape, _), places = p.results[0], p.results[1]
    return [p.op("reshape", largest, shape=list(shape)), places and numbers(p, typed(p, found, [batch, m], torch.int32), places[0])]


def back(p, dy, x, places, axes):
    """The gradient of `maxima`: elements of dy are added at their places."""
    n = math.prod(x.shape[-axes:])
    batch, m = x.size // n, math.prod(dy.shape[-axes:])
    at = p.op("add", p.op("reshape", p.cast(places, torch.int32), shape=[batch, m]), counted(p, batch, 0, 2, n))
    rows = p.op("reshape", dy, shape=[batch * m, 1])
    dx = p.op("gather_grad", rows, typed(p, p.op("reshape", at, shape=[batch * m]), [batch * m], torch.int32), rows=batch * n)
    return p.op("reshape", dx, shape=list(x.shape))


def several(k, axes):
    """An attribute for each axis."""
    return list(k) * axes if len(k) == 1 else list(k)


def fixed(p, x, axes, kernel, stride, pad, dilation):
    """Windows that have the results of this call."""
    sizes = [several(k, axes) for k in (kernel, stride or kernel, pad, dilation)]
    return [Fixed(*a) for a in zip(x.shape[-axes:], *sizes, p.results[0][0][-axes:])]


@lower(aten.max_pool2d_with_indices.default, any_type=True)
def _(p, x, kernel, stride=(), pad=(0, 0), dilation=(1, 1), ceil=False):
    if not p.places and all(d == 1 for d in dilation):  # its gradient finds them again
        return by_windows[aten.max_pool2d_with_indices.default](p, x, kernel, stride, pad, dilation, ceil)
    return maxima(p, x, fixed(p, x, 2, kernel, stride, pad, dilation))


@lower(aten.max_pool2d_with_indices_backward.default, any_type=True)
def _(p, dy, x, kernel, stride, pad, dilation, ceil, places):
    if all(d == 1 for d in dilation):
        return by_windows[aten.max_pool2d_with_indices_backward.default](p, dy, x, kernel, stride, pad, dilation, ceil, places)
    return back(p, dy, x, places, 2)


@lower(aten.max_pool3d_with_indices.default, any_type=True)
def _(p, x, kernel, stride=(), pad=(0,), dilation=(1,), ceil=False):
    return maxima(p, x, fixed(p, x, 3, kernel, stride, pad, dilation))


@lower(aten.max_pool3d_with_indices_backward.default, any_type=True)
def _(p, dy, x, kernel, stride, pad, dilation, ceil, places):
    return back(p, dy, x, places, 3)


for _axes in (2, 3):

    @lower(getattr(aten, f"adaptive_max_pool{_axes}d").default, any_type=True)
    def _(p, x, size, axes=_axes):
        return maxima(p, x, [Adaptive(*a) for a in zip(x.shape[-axes:], size)])

    @lower(getattr(aten, f"adaptive_max_pool{_axes}d_backward").default, any_type=True)
    def _(p, dy, x, places, axes=_axes):
        return back(p, dy, x, places, axes)
