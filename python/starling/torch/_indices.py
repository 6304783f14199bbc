"""The table, continued: elements by number, and their gradients.

Numbers are int32 in programs.  Those below 0 count from the end in PyTorch; the engine refuses them, and what is out of range.
"""
import math

import torch

from ._moving import cut
from ._table import FLOATS, lined, lower, need, typed
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


def masked(p, x, axis, mask, values):
    """x with one number where a mask of some of its axes is true."""
    need(values.size == 1, "with a mask")
    shape = [*mask.shape, *[1] * (x.ndim - axis - mask.ndim)]
    mask = p.op("reshape", p.cast(mask, x.dtype), shape=shape)
    value = p.op("take_if", mask, p.op("reshape", values, shape=[]))
    return p.op("add", p.op("take_unless", mask, x), value)


def replaced(p, x, k, rows):
    """(1 where a row of x is one of the numbers k, else 0; the rows that come there, else 0); of equal numbers the last one counts."""
    m, n = k.size, x.shape[0]
    order = p.op("argsort", k, axis=0, descending=False)
    k = typed(p, p.op("gather", k, order), [m], torch.int32)
    end = p.op("fill", shape=[1], value=-1.0, dtype=NUMBERS[torch.int32])
    following = p.op("concat", cut(p, k, 0, 1, m), end, axis=0) if m > 1 else end
    last = p.op("reshape", p.op("cast", p.op("ne", k, following), dtype=NUMBERS[x.dtype]), shape=[m, 1])
    rows = p.op("take_if", last, p.op("gather", rows, order))
    return p.op("gather_grad", last, k, rows=n), p.op("gather_grad", rows, k, rows=n)


def chosen_rows(p, t, axis, m, size):
    """t with m axes from `axis` on first, as a matrix of `size` rows."""
    y = turned(p, t, [*range(axis, axis + m), *range(axis), *range(axis + m, t.ndim)])
    return typed(p, p.op("reshape", y, shape=[size, t.size // size]), [size, t.size // size], t.dtype)


def put(p, x, axis, indices, values):
    """x with other values at these places."""
    whole, k = as_one(p, x, axis, indices)
    n, m = whole.shape[axis], k.ndim
    k, values = typed(p, p.op("reshape", k, shape=[k.size]), [k.size], torch.int32), chosen_rows(p, values, axis, m, k.size)
    y = chosen_rows(p, whole, axis, 1, n)
    seen, rows = replaced(p, y, k, values)
    y = p.op("add", p.op("take_unless", seen, y), rows)
    shape = [n, *whole.shape[:axis], *whole.shape[axis + 1 :]]
    y = typed(p, p.op("reshape", y, shape=shape), shape, x.dtype)
    y = turned(p, y, [*range(1, axis + 1), 0, *range(axis + 1, y.ndim)])
    return p.op("reshape", y, shape=list(x.shape))


@lower(aten.index_put.default, aten._unsafe_index_put.default, any_type=True)
def _(p, x, indices, values, accumulate=False):
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of integers")
    masks = [(k, i) for k, i in enumerate(indices) if i is not None and i.dtype == torch.bool]
    if masks and not accumulate and len(indices) == masks[0][0] + 1 and not any(i is not None for i in indices[:-1]):
        return masked(p, x, *masks[0], values)
    axis, given = chosen_axes(x, indices)
    shape = [*x.shape[:axis], *torch.broadcast_shapes(*[i.shape for i in given]), *x.shape[axis + len(given) :]]
    if list(values.shape) != shape:
        values = typed(p, p.op("broadcast_to", values, shape=shape), shape, values.dtype)
    if not accumulate:
        return put(p, x, axis, given, values)
    each = crossing(given)
    if each is None:
        whole, flat = as_one(p, x, axis, given)
        sums = p.op("reshape", added(p, values, axis, flat, whole.shape[axis]), shape=list(x.shape))
        return p.op("add", x, sums)
    for k, i in reversed(list(enumerate(each, axis))):
        i = typed(p, p.op("reshape", places(p, i, x.shape[k]), shape=[i.size]), [i.size], torch.int32)
        values = added(p, values, k, i, x.shape[k])
    return p.op("add", x, values)


@lower(aten.put.default, any_type=True)
def _(p, x, i, values, accumulate=False):
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of these types")
    line = lambda t: typed(p, p.op("reshape", t, shape=[t.size]), [t.size], t.dtype)
    whole, k, values = line(x), line(i), line(values)
    if accumulate:
        y = p.op("add", whole, added(p, values, 0, places(p, k, x.size), x.size))
    else:
        y = put(p, whole, 0, [k], values)
    return p.op("reshape", y, shape=list(x.shape))


@lower(aten.index_select.default, any_type=True)
def _(p, x, dim, i):
    k, x = lined(p, places(p, i, 0, negative=False)), lined(p, x)
    return p.op("reshape", taken(p, x, dim % x.ndim, k), shape=list(p.shape))


@lower(aten.index_add.default, any_type=True)
def _(p, x, dim, i, values, *, alpha=1):
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of these types")
    y, i, values = lined(p, x), lined(p, places(p, i, 0, negative=False)), lined(p, values)
    sums = added(p, values, dim % y.ndim, i, y.shape[dim])
    sums = sums if alpha == 1 else p.op("mul_scalar", sums, value=float(alpha))
    return p.op("add", x, p.op("reshape", sums, shape=list(x.shape)))


def lines(p, x, dim, i):
    """(x with the axis last, the order of axes for that, numbers of elements of x as a vector).  For `gather` and its gradient."""
    need(x.ndim == i.ndim and x.size < 2**31, "of a scalar")
    dim %= x.ndim
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


def fitted(p, x, i, dim=None):
    """x with axes as short as those of i, but for dim."""
    for k, n in enumerate(i.shape):
        if k != dim and n < x.shape[k]:
            x = typed(p, cut(p, x, k, 0, n), [*x.shape[:k], n, *x.shape[k + 1 :]], x.dtype)
    return x


def widened(p, y, shape):
    """y with zeros at the ends of its axes."""
    for k, n in enumerate(shape):
        if y.shape[k] < n:
            y = typed(p, p.op("slice_grad", y, axis=k, begin=0, end=y.shape[k], step=1, size=n), [*y.shape[:k], n, *y.shape[k + 1 :]], y.dtype)
    return y


def along(p, x, dim, i):
    """Elements i of each line of an axis."""
    whole, i = i.shape, lined(p, i)
    x = lined(p, x)
    y, order, flat = lines(p, fitted(p, x, i, dim % x.ndim), dim, i)
    shape = [i.shape[k] for k in order]
    y = p.op("gather", typed(p, p.op("reshape", y, shape=[y.size]), [y.size], x.dtype), flat)
    y = turned(p, typed(p, p.op("reshape", y, shape=shape), shape, x.dtype), back(order))
    return y if whole else p.op("reshape", y, shape=[])


@lower(aten.gather.default, any_type=True)
def _(p, x, dim, i, sparse_grad=False):
    return along(p, x, dim, i)


def spread(p, x, dim, i, values, function):
    """What `function` makes of (x as rows of one element, numbers of rows, rows of values), each in the shape of x, else 0."""
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of these types")
    whole, x, i, values = x.shape, lined(p, x), lined(p, i), lined(p, values)
    y, order, k = lines(p, fitted(p, x, i, dim % x.ndim), dim, i)
    rows = lambda t: typed(p, p.op("reshape", t, shape=[t.size, 1]), [t.size, 1], x.dtype)
    found = function(rows(y), k, rows(turned(p, fitted(p, values, i), order)))
    shaped = lambda t: turned(p, typed(p, p.op("reshape", t, shape=list(y.shape)), y.shape, x.dtype), back(order))
    found = [widened(p, shaped(t), x.shape) for t in found]
    return found if whole else [p.op("reshape", t, shape=[]) for t in found]


@lower(aten.scatter_add.default, any_type=True)
def _(p, x, dim, i, values):
    (sums,) = spread(p, x, dim, i, values, lambda y, k, v: [p.op("gather_grad", v, k, rows=y.size)])
    return p.op("add", x, sums)


@lower(aten.scatter.src, any_type=True)
def _(p, x, dim, i, values):
    seen, new = spread(p, x, dim, i, values, lambda y, k, v: replaced(p, y, k, v))
    return p.op("add", p.op("take_unless", seen, x), new)


@lower(aten.scatter.value, any_type=True)
def _(p, x, dim, i, value):
    need(x.dtype in FLOATS and math.isfinite(value), "of these types")
    ones = typed(p, p.op("fill", shape=list(i.shape), value=1.0, dtype=NUMBERS[x.dtype]), i.shape, x.dtype)
    (count,) = spread(p, x, dim, i, ones, lambda y, k, v: [p.op("gather_grad", v, k, rows=y.size)])
    hit = p.op("gt_scalar", count, value=0.0)
    return p.op("add", p.op("take_unless", hit, x), p.op("mul_scalar", hit, value=float(value)))


@lower(aten.unfold.default, any_type=True)
def _(p, x, dim, size, step):
    need(x.ndim, "of a scalar")
    dim, count = dim % x.ndim, (x.shape[dim] - size) // step + 1
    count_up = lambda n, by, shape: p.op("reshape", p.op("arange", shape=[n], start=0.0, step=float(by), dtype=NUMBERS[torch.int32]), shape=shape)
    i = typed(p, p.op("add", count_up(count, step, [count, 1]), count_up(size, 1, [1, size])), [count, size], torch.int32)
    y = taken(p, x, dim, i)
    return turned(p, y, [*[k for k in range(y.ndim) if k != dim + 1], dim + 1])


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


def strided(p, x, size, stride, offset):
    """Numbers of the elements that as_strided takes of x."""
    last = (offset or 0) + sum((n - 1) * s for n, s in zip(size, stride))
    need(0 <= last < x.size < 2**31 and all(s >= 0 for s in stride), "of what does not lie in the tensor")
    k = p.op("fill", shape=[], value=float(offset or 0), dtype=NUMBERS[torch.int32])
    for axis, (n, s) in enumerate(zip(size, stride)):
        shape = [n if a == axis else 1 for a in range(len(size))]
        places = p.op("mul_scalar", p.op("arange", shape=[n], start=0.0, step=1.0, dtype=NUMBERS[torch.int32]), value=float(s))
        k = p.op("add", k, p.op("reshape", places, shape=shape))
    return typed(p, p.op("reshape", k, shape=[math.prod(size)]), [math.prod(size)], torch.int32)


@lower(aten.as_strided.default, any_type=True)
def _(p, x, size, stride, offset=None):
    y = typed(p, p.op("reshape", x, shape=[x.size]), [x.size], x.dtype)
    return p.op("reshape", p.op("gather", y, strided(p, x, size, stride, offset)), shape=list(size))


@lower(aten.as_strided_scatter.default, any_type=True)
def _(p, x, values, size, stride, offset=None):
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of these types")
    rows = lambda t: typed(p, p.op("reshape", t, shape=[t.size, 1]), [t.size, 1], x.dtype)
    seen, new = replaced(p, rows(x), strided(p, x, size, stride, offset), rows(values))
    return p.op("reshape", p.op("add", p.op("take_unless", seen, rows(x)), new), shape=list(x.shape))
