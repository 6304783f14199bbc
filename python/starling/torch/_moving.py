"""The table, continued: shapes, parts and joins of tensors."""
import torch

from ._heads import join, made_by, transposed
from ._table import FLOATS, aten, lower, need, typed
from ._text import NUMBERS


@lower(aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default, any_type=True)
def _(p, x):
    return x


@lower(aten.clone.default, torch.ops.prims.copy_strided.default, any_type=True)
def _(p, x, strides=None, memory_format=None):
    return x


def reshaped(p, x, *_, **__):
    """Another shape of the same elements."""
    before = made_by(p, x, "reshape")
    if before is not None and before.shape is not None and tuple(before.shape) == tuple(p.shape):
        return before
    y = p.op("reshape", x, shape=list(p.shape))
    y.source = x.source
    return y


lower(
    aten.view.default, aten.view_copy.default, aten._unsafe_view.default, aten.reshape.default, aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.squeeze.default, any_type=True,
)(reshaped)  # fmt: skip


@lower(aten.permute.default, aten.permute_copy.default, aten.transpose.int, aten.t.default, any_type=True)
def _(p, x, *axes):
    n = x.ndim
    if n < 2:
        return x
    if len(axes) == 2:
        a, b = (k % n for k in axes)
        order = list(range(n))
        order[a], order[b] = b, a
    else:
        order = [k % n for k in (axes[0] if axes else range(n)[::-1])]
    swap = order == [*range(n - 2), n - 1, n - 2]
    if swap and x.base is not None:
        return x.base  # twice
    y = transposed(p, x, order)
    if swap and y is not made_by(p, x, "transpose"):
        y.base = x
    return y


@lower(aten.expand.default, any_type=True)
def _(p, x, *_, **__):
    return p.op("broadcast_to", x, shape=list(p.shape)) if tuple(x.shape) != tuple(p.shape) else x


@lower(aten.cat.default, any_type=True)
def _(p, xs, dim=0):
    need(all(x.dtype == p.dtype and x.ndim == len(p.shape) for x in xs), "of several types")
    if len(xs) == 1:
        return xs[0]
    y = join(p, xs, dim % len(p.shape))
    return p.op("concat", *xs, axis=dim % len(p.shape)) if y is None else y


@lower(aten.repeat.default, any_type=True)
def _(p, x, times):
    need(max(times, default=1) <= 64, "so often")
    shape = [1] * (len(times) - x.ndim) + list(x.shape)
    x = typed(p, p.op("reshape", x, shape=shape), shape, x.dtype)
    for k, n in enumerate(times):
        x = p.op("concat", *[x] * n, axis=k) if n > 1 else x
    return x


def cut(p, x, axis, begin, end, step=1):
    """Elements begin, begin + step … up to end of an axis."""
    return p.op("slice", x, axis=axis % x.ndim, begin=begin, end=end, step=step)


@lower(aten.slice.Tensor, any_type=True)
def _(p, x, dim=0, start=None, end=None, step=1):
    begin, end, step = slice(start, end, step).indices(x.shape[dim])
    return x if (begin, end, step) == (0, x.shape[dim], 1) else cut(p, x, dim, begin, end, step)


@lower(aten.slice_backward.default)
def _(p, dy, sizes, dim, start, end, step):
    begin, end, step = slice(start, end, step).indices(sizes[dim])
    return p.op("slice_grad", dy, axis=dim % len(sizes), begin=begin, end=end, step=step, size=sizes[dim])


@lower(aten.select.int, any_type=True)
def _(p, x, dim, i):
    i %= x.shape[dim]
    return p.op("reshape", cut(p, x, dim, i, i + 1), shape=list(p.shape))


@lower(aten.select_backward.default)
def _(p, dy, sizes, dim, i):
    dim %= len(sizes)
    i %= sizes[dim]
    one = p.op("reshape", dy, shape=[*sizes[:dim], 1, *sizes[dim + 1 :]])
    return p.op("slice_grad", one, axis=dim, begin=i, end=i + 1, step=1, size=sizes[dim])


@lower(aten.slice_scatter.default, any_type=True)
def _(p, x, y, dim=0, start=None, end=None, step=1):
    begin, end, step = slice(start, end, step).indices(x.shape[dim])
    need(x.dtype == y.dtype, "of several types")
    if step != 1:
        need(x.dtype in FLOATS, "of integers, with a step")
        at = {"axis": dim % x.ndim, "begin": begin, "end": end, "step": step, "size": x.shape[dim]}
        ones = p.op("fill", shape=list(y.shape), value=1.0, dtype=NUMBERS[x.dtype])
        return p.op("add", p.op("take_unless", p.op("slice_grad", ones, **at), x), p.op("slice_grad", y, **at))
    return pasted(p, x, y, dim, begin, max(begin, end))


@lower(aten.flip.default, any_type=True)
def _(p, x, dims):
    need(x.dtype in FLOATS, "of integers")
    for k in dims if x.ndim else ():
        k %= x.ndim
        order = [k, *[i for i in range(x.ndim) if i != k]]
        shape, n = [x.shape[i] for i in order], x.shape[k]
        places = typed(p, p.op("arange", shape=[n], start=float(n - 1), step=-1.0, dtype=NUMBERS[torch.int32]), [n], torch.int32)
        y = p.op("reshape", p.op("transpose", x, axes=order) if k else x, shape=[n, x.size // n])
        y = p.op("reshape", p.op("gather", y, places), shape=shape)
        y = p.op("transpose", y, axes=[order.index(i) for i in range(x.ndim)]) if k else y
        x = typed(p, y, x.shape, x.dtype)
    return x


@lower(aten.select_scatter.default, any_type=True)
def _(p, x, y, dim, i):
    need(x.dtype == y.dtype, "of several types")
    dim, i = dim % x.ndim, i % x.shape[dim]
    one = [*x.shape[:dim], 1, *x.shape[dim + 1 :]]
    return pasted(p, x, typed(p, p.op("reshape", y, shape=one), one, y.dtype), dim, i, i + 1)


def pasted(p, x, y, dim, begin, end):
    """x with y in the place of elements begin to end of an axis."""
    dim %= x.ndim
    before = [cut(p, x, dim, 0, begin)] if begin else []
    after = [cut(p, x, dim, end, x.shape[dim])] if end < x.shape[dim] else []
    return p.op("concat", *before, y, *after, axis=dim) if before or after else y


def diagonal_of(p, x, offset, dim1, dim2):
    """(the order of axes with these two last, (begin, end, step) of their diagonal among their elements, its length)"""
    a, b = dim1 % x.ndim, dim2 % x.ndim
    rows, columns = x.shape[a], x.shape[b]
    n = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    begin = offset if offset >= 0 else -offset * columns
    return [*[k for k in range(x.ndim) if k not in (a, b)], a, b], (begin, begin + (n - 1) * (columns + 1) + 1, columns + 1), n


def squares(p, x, order):
    """x with these two last axes as one."""
    shape = [*[x.shape[k] for k in order[:-2]], x.shape[order[-2]] * x.shape[order[-1]]]
    x = x if order == list(range(x.ndim)) else p.op("transpose", x, axes=order)
    return typed(p, p.op("reshape", x, shape=shape), shape, p.dtype)


@lower(aten.diagonal.default, any_type=True)
def _(p, x, offset=0, dim1=0, dim2=1):
    order, (begin, end, step), _ = diagonal_of(p, x, offset, dim1, dim2)
    return cut(p, squares(p, x, order), -1, begin, end, step)


@lower(aten.diagonal_scatter.default)
def _(p, x, y, offset=0, dim1=0, dim2=1):
    need(y.dtype == x.dtype, "of several types")
    order, (begin, end, step), n = diagonal_of(p, x, offset, dim1, dim2)
    rest = squares(p, x, order)
    spread = lambda t: p.op("slice_grad", t, axis=rest.ndim - 1, begin=begin, end=end, step=step, size=rest.shape[-1])
    seen = spread(p.op("fill", shape=[*rest.shape[:-1], n], value=1.0, dtype=NUMBERS[x.dtype]))
    z = p.op("reshape", p.op("add", p.op("take_unless", seen, rest), spread(y)), shape=[x.shape[k] for k in order])
    return z if order == list(range(x.ndim)) else p.op("transpose", z, axes=[order.index(k) for k in range(x.ndim)])


@lower(aten.split_with_sizes.default, any_type=True)
def _(p, x, sizes, dim=0):
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    need(all(sizes), "of empty tensors")
    return [cut(p, x, dim, e - n, e) for n, e in zip(sizes, ends)]


@lower(aten.unbind.int, aten.unbind_copy.int, any_type=True)
def _(p, x, dim=0):
    return [p.op("reshape", cut(p, x, dim, i, i + 1), shape=list(p.shape)) for i in range(x.shape[dim])]
