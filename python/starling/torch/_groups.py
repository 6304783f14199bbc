"""The table, continued: rows that are combined with those of the same number: scatter_reduce, index_reduce."""
import math

import torch

from ._indices import added, places, replaced, spread
from ._moving import cut
from ._table import FLOATS, aten, lined, lower, need, typed
from ._text import NUMBERS

COMBINED = {"prod": "mul", "amax": "maximum", "amin": "minimum"}


def combined(p, x, k, rows, name):
    """(1 where a row of x is one of the numbers k, else 0; what an operation makes of the rows that come there, else 0).

    Rows are sorted by their numbers.  After steps of 1, 2, 4 … a row is combined with all those before it of the same number, of
    which `replaced` takes the last one.
    """
    m = k.size
    order = p.op("argsort", k, axis=0, descending=False)
    k = typed(p, p.op("gather", k, order), [m], k.dtype)
    rows = typed(p, p.op("gather", rows, order), rows.shape, rows.dtype)
    part = lambda t, begin, end: typed(p, cut(p, t, 0, begin, end), [end - begin, *t.shape[1:]], t.dtype)
    step = 1
    while step < m:
        same = p.op("eq", part(k, 0, m - step), part(k, step, m))
        same = p.op("reshape", p.op("cast", same, dtype=NUMBERS[x.dtype]), shape=[m - step, 1])
        here = part(rows, step, m)
        both = p.op(name, part(rows, 0, m - step), here)
        later = p.op("add", p.op("take_if", same, both), p.op("take_unless", same, here))
        rows = typed(p, p.op("concat", part(rows, 0, step), later, axis=0), rows.shape, rows.dtype)
        step *= 2
    return replaced(p, x, k, rows)


def with_self(p, x, seen, new, name, include_self):
    """x where nothing comes; elsewhere what comes, combined with x if it counts."""
    there = p.op(name, x, new) if include_self else new
    return p.op("add", p.op("take_unless", seen, x), p.op("take_if", seen, there))


def mean_of(p, kept, sums, count, include_self):
    """Sums of elements as means."""
    more = p.op("add_scalar", count, value=1.0) if include_self else p.op("maximum_scalar", count, value=1.0)
    return p.op("div", p.op("add", kept, sums), more)


@lower(aten.scatter_reduce.two, any_type=True)
def _(p, x, dim, i, values, reduce, *, include_self=True):
    if reduce in COMBINED:
        seen, new = spread(p, x, dim, i, values, lambda y, k, v: combined(p, y, k, v, COMBINED[reduce]))
        return with_self(p, x, seen, new, COMBINED[reduce], include_self)
    need(reduce in ("sum", "mean"), f"with {reduce}")
    ones = typed(p, p.op("fill", shape=list(values.shape), value=1.0, dtype=NUMBERS[x.dtype]), values.shape, x.dtype)
    add = lambda v: spread(p, x, dim, i, v, lambda y, k, r: [p.op("gather_grad", r, k, rows=y.size)])[0]
    sums, count = add(values), add(ones)
    kept = x if include_self else p.op("take_unless", count, x)
    return p.op("add", kept, sums) if reduce == "sum" else mean_of(p, kept, sums, count, include_self)


@lower(aten.index_reduce.default, any_type=True)
def _(p, x, dim, i, values, reduce, *, include_self=True):
    need(x.dtype in FLOATS and values.dtype == x.dtype, "of these types")
    y, k, values = lined(p, x), lined(p, places(p, i, 0, negative=False)), lined(p, values)
    dim %= y.ndim
    n, m, order = y.shape[dim], k.size, [dim, *[a for a in range(y.ndim) if a != dim]]
    turned = lambda t: p.op("transpose", t, axes=order) if dim else t
    rows = lambda t, count: typed(p, p.op("reshape", turned(t), shape=[count, y.size // n]), [count, y.size // n], x.dtype)
    lines, values = rows(y, n), rows(values, m)
    if reduce == "mean":
        ones = typed(p, p.op("fill", shape=[m, 1], value=1.0, dtype=NUMBERS[x.dtype]), [m, 1], x.dtype)
        sums, count = added(p, values, 0, k, n), added(p, ones, 0, k, n)
        z = mean_of(p, lines if include_self else p.op("take_unless", count, lines), sums, count, include_self)
    else:
        seen, new = combined(p, lines, k, values, COMBINED[reduce])
        z = with_self(p, lines, seen, new, COMBINED[reduce], include_self)
    z = p.op("reshape", z, shape=[y.shape[a] for a in order])
    z = z if not dim else p.op("transpose", z, axes=[order.index(a) for a in range(y.ndim)])
    return p.op("reshape", z, shape=list(x.shape))


def turns(p, mask, n):
    """The number of each true element among them, up to n, as a vector of int32."""
    whole = p.op("cumsum", p.op("reshape", p.cast(mask, torch.int64), shape=[mask.size]), axis=0, wraps=True)
    k = p.op("minimum_scalar", p.op("maximum_scalar", p.op("add_scalar", whole, value=-1.0), value=0.0), value=float(n - 1))
    return typed(p, p.op("cast", k, dtype=NUMBERS[torch.int32]), [mask.size], torch.int32)


def spread_over(p, x, mask):
    """A mask in the shape of x."""
    return mask if list(mask.shape) == list(x.shape) else typed(p, p.op("broadcast_to", mask, shape=list(x.shape)), x.shape, mask.dtype)


@lower(aten.masked_scatter.default, any_type=True)
def _(p, x, mask, values):
    need(x.dtype in FLOATS and values.dtype == x.dtype and mask.dtype == torch.bool and list(p.shape) == list(x.shape), "of these types")
    mask = spread_over(p, x, mask)
    new = p.op("gather", p.op("reshape", values, shape=[values.size]), turns(p, mask, values.size))
    seen = p.cast(mask, x.dtype)
    return p.op("add", p.op("take_unless", seen, x), p.op("take_if", seen, p.op("reshape", new, shape=list(x.shape))))


@lower(aten.masked_scatter_backward.default, any_type=True)
def _(p, dy, mask, sizes):
    need(dy.dtype in FLOATS and mask.dtype == torch.bool, "of these types")
    n, mask = math.prod(sizes), spread_over(p, dy, mask)
    rows = p.op("reshape", p.op("take_if", p.cast(mask, dy.dtype), dy), shape=[dy.size, 1])
    return p.op("reshape", p.op("gather_grad", rows, turns(p, mask, n), rows=n), shape=list(sizes))
