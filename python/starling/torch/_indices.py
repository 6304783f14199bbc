"""The table, continued: elements by number, and their gradients.

Numbers are int32 in programs.  Those below 0 count from the end in PyTorch; the engine refuses them, and what is out of range.
"""
import math

import torch

from ._table import FLOATS, lower, need, typed
from ._text import MOST_AXES, NUMBERS

aten = torch.ops.aten


def places(p, i, n, negative=True):
    """Numbers of rows as int32; negative: those below 0 count from the end of the n rows."""
    need(i.dtype in (torch.int32, torch.int64), "with these types")
    k = p.cast(i, torch.int32)
    if not negative or (i.known is not None and int(i.known.min()) >= 0):
        return k
    k = p.op("add", k, p.op("mul_scalar", p.op("lt_scalar", k, value=0.0), value=float(n)))
    return typed(p, k, i.shape, torch.int32)


def turned(p, x, order):
    """Axes in another order."""
    if order == list(range(x.ndim)):
        return x
    return typed(p, p.op("transpose", x, axes=order), [x.shape[k] for k in order], x.dtype)


def taken(p, x, axis, i):
    """Elements i, a tensor, of an axis; the axes of i are in its place."""
    need(x.ndim + i.ndim - 1 <= MOST_AXES, "of so many axes")
    y = turned(p, x, [axis, *[k for k in range(x.ndim) if k != axis]])
    shape = [*i.shape, *y.shape[1:]]
    y = typed(p, p.op("gather", y, i), shape, x.dtype)
    m = i.ndim
    return turned(p, y, [*range(m, m + axis), *range(m), *range(m + axis, len(shape))])


def added(p, dy, axis, i, n):
    """The gradient of `taken`, for an axis of n elements."""
    m = i.ndim
    y = turned(p, dy, [*range(axis, axis + m), *range(axis), *range(axis + m, dy.ndim)])
    shape = [n, *y.shape[m:]]
    y = typed(p, p.op("gather_grad", y, i, rows=n), shape, dy.dtype)
    return turned(p, y, [*range(1, axis + 1), 0, *range(axis + 1, y.ndim)])


def crossing(indices):
    """Indices of several axes as one for each axis, if each has an axis of the result for itself; else None."""
    n = max(i.ndim for i in indices)
    if n != len(indices):
        return None
    for j, i in enumerate(indices):
        shape = [1] * (n - i.ndim) + list(i.shape)
        if any(d != 1 for k, d in enumerate(shape) if k != j):
            return None
    return list(indices)


def as_one(p, x, axis, indices):
    """(x with these axes as one, numbers of its elements)."""
    count = len(indices)
    sizes = x.shape[axis : axis + count]
    need(math.prod(sizes) < 2**31, "of so many elements")
    shape = torch.broadcast_shapes(*[i.shape for i in indices])
    flat = None
    for i, n in zip(indices, sizes):
        i = places(p, i, n)
        flat = i if flat is None else p.op("add", p.op("mul_scalar", flat, value=float(n)), i)
    flat = typed(p, flat, shape, torch.int32)
    whole = [*x.shape[:axis], math.prod(sizes), *x.shape[axis + count :]]
    return typed(p, p.op("reshape", x, shape=whole), whole, x.dtype), flat


def chosen_axes(x, indices):
    """(first axis, the indices), which have to be of neighbouring axes."""
    given = [(k, i) for k, i in enumerate(indices) if i is not None]
    first = given[0][0]
    need(all(i.dtype in (torch.int32, torch.int64) for _, i in given), "with a mask")
    need([k for k, _ in given] == list(range(first, first + len(given))), "of axes that are not neighbours")
    return first, [i for _, i in given]


@lower(aten.index.Tensor, aten._unsafe_index.Tensor, any_type=True)
def _(p, x, indices):
    axis, given = chosen_axes(x, indices)
    each = crossing(given)
    if each is None:
        x, flat = as_one(p, x, axis, given)
        return taken(p, x, axis, flat)
    for k, i in enumerate(each, axis):
        i = typed(p, p.op("reshape", places(p, i, x.shape[k]), shape=[i.size]), [i.size], torch.int32)
        x = taken(p, x, k, i)
    return x


@lower(aten.index_put.default, aten._unsafe_index_put.default, any_type=True)
def _(p, x, indices, values, accumulate=False):
    need(accumulate and x.dtype in FLOATS, "without a sum")
    axis, given = chosen_axes(x, indices)
    shape = [*x.shape[:axis], *torch.broadcast_shapes(*[i.shape for i in given]), *x.shape[axis + len(given) :]]
    if list(values.shape) != shape:
        values = typed(p, p.op("broadcast_to", values, shape=shape), shape, values.dtype)
    each = crossing(given)
    if each is None:
        whole, flat = as_one(p, x, axis, given)
        sums = p.op("reshape", added(p, values, axis, flat, whole.shape[axis]), shape=list(x.shape))
        return p.op("add", x, sums)
    for k, i in reversed(list(enumerate(each, axis))):
        i = typed(p, p.op("reshape", places(p, i, x.shape[k]), shape=[i.size]), [i.size], torch.int32)
        values = added(p, values, k, i, x.shape[k])
    return p.op("add", x, values)


@lower(aten.index_select.default, any_type=True)
def _(p, x, dim, i):
    need(x.ndim, "of a scalar")
    k = places(p, i, 0, negative=False)
    if not i.ndim:
        k = typed(p, p.op("reshape", k, shape=[1]), [1], torch.int32)
    return taken(p, x, dim % x.ndim, k)


@lower(aten.index_add.default, any_type=True)
def _(p, x, dim, i, values, *, alpha=1):
    need(x.ndim and i.ndim == 1 and x.dtype in FLOATS, "of these types")
    sums = added(p, values, dim % x.ndim, places(p, i, 0, negative=False), x.shape[dim])
    return p.op("add", x, sums if alpha == 1 else p.op("mul_scalar", sums, value=float(alpha)))


def lines(p, x, dim, i):
    """(x with the axis last, the order of axes for that, numbers of elements of x as a vector).  For `gather` and its gradient."""
    need(x.ndim and x.ndim == i.ndim and x.size < 2**31, "of a scalar")
    dim %= x.ndim
    need(all(a == b for k, (a, b) in enumerate(zip(x.shape, i.shape)) if k != dim), "of some of the lines")
    order = [*[k for k in range(x.ndim) if k != dim], dim]
    i = turned(p, i, order)
    n, m = x.shape[dim], i.shape[-1]
    k = typed(p, p.op("reshape", places(p, i, n, negative=False), shape=[i.size // m, m]), [i.size // m, m], torch.int32)
    # Out of range, a number would be that of another line.
    outside = p.op("logical_or", p.op("lt_scalar", k, value=0.0), p.op("ge_scalar", k, value=float(n)))
    first = p.op("reshape", p.op("arange", shape=[i.size // m], start=0.0, step=float(n), dtype=NUMBERS[torch.int32]), shape=[i.size // m, 1])
    k = p.op("sub", p.op("add", k, first), p.op("mul_scalar", outside, value=float(2**31 - 1)))
    return turned(p, x, order), order, typed(p, p.op("reshape", k, shape=[i.size]), [i.size], torch.int32)


def back(order):
    """The order of axes that undoes another."""
    return [order.index(k) for k in range(len(order))]


@lower(aten.gather.default, any_type=True)
def _(p, x, dim, i, sparse_grad=False):
    y, order, flat = lines(p, x, dim, i)
    shape = [i.shape[k] for k in order]
    y = p.op("gather", typed(p, p.op("reshape", y, shape=[x.size]), [x.size], x.dtype), flat)
    return turned(p, typed(p, p.op("reshape", y, shape=shape), shape, x.dtype), back(order))


@lower(aten.scatter_add.default, any_type=True)
def _(p, x, dim, i, values):
    need(x.dtype in FLOATS and values.shape == i.shape, "of these shapes")
    y, order, flat = lines(p, x, dim, i)
    v = p.op("reshape", turned(p, values, order), shape=[i.size])
    sums = p.op("gather_grad", v, flat, rows=x.size)
    sums = typed(p, p.op("reshape", sums, shape=list(y.shape)), y.shape, x.dtype)
    return p.op("add", x, turned(p, sums, back(order)))


@lower(aten.scatter.value, any_type=True)
def _(p, x, dim, i, value):
    need(x.dtype in FLOATS and math.isfinite(value), "of these types")
    y, order, flat = lines(p, x, dim, i)
    ones = p.op("fill", shape=[i.size], value=1.0, dtype=NUMBERS[x.dtype])
    hit = p.op("gt_scalar", p.op("gather_grad", ones, flat, rows=x.size), value=0.0)
    hit = turned(p, typed(p, p.op("reshape", hit, shape=list(y.shape)), y.shape, x.dtype), back(order))
    return p.op("add", p.op("take_unless", hit, x), p.op("mul_scalar", hit, value=float(value)))


@lower(aten.embedding.default, any_type=True)
def _(p, w, i, padding=-1, scale=False, sparse=False):
    need(i.dtype in (torch.int32, torch.int64) and w.dtype in FLOATS, "with these types")
    need(w.ndim == 2 and i.ndim < MOST_AXES, "of so many axes")
    return p.op("gather", w, p.cast(i, torch.int32))


@lower(aten.embedding_dense_backward.default, any_type=True)
def _(p, dy, i, rows, padding, scale):
    need(not scale, "with scaled gradients")
    need(i.dtype in (torch.int32, torch.int64) and dy.dtype in FLOATS, "with these types")
    i = p.cast(i, torch.int32)
    if padding is not None and padding >= 0:  # these rows get none
        other = p.op("cast", p.op("ne_scalar", i, value=float(padding)), dtype=NUMBERS[dy.dtype])
        dy = p.op("mul", dy, p.op("reshape", other, shape=[*i.shape, 1]))
    return p.op("gather_grad", dy, i, rows=rows)
