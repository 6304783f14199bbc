"""The table, continued: places of extremes, sorted elements, and products so far."""
import torch

from ._indices import along
from ._moving import cut
from ._table import FLOATS, WHOLE, aten, lined, lower, need, reduction, typed
from ._text import NUMBERS
from ._whole import turned_around


def numbers(p, i, shape):
    """Places, int32 in programs, as PyTorch's int64."""
    i = typed(p, i, i.shape or shape, torch.int32)
    return typed(p, p.op("reshape", p.op("cast", i, dtype=NUMBERS[torch.int64]), shape=list(shape)), shape, torch.int64)


def place(p, x, dim, name):
    """The places of the first largest, or smallest, elements of an axis."""
    need(x.dtype in FLOATS or x.dtype in WHOLE, "of truth values")
    if name == "min":
        x = turned_around(p, x) if x.dtype in WHOLE else typed(p, p.op("neg", x), x.shape, x.dtype)
    return p.op("argmax", x, axis=dim % x.ndim)


def places(name):
    """argmax, argmin; no axis: of all elements."""

    def function(p, x, dim=None, keepdim=False):
        if dim is None:
            x, dim = typed(p, p.op("reshape", x, shape=[x.size]), [x.size], x.dtype), 0
        return numbers(p, place(p, lined(p, x), dim, name), p.shape)

    return function


def extremes(name):
    """The largest, or smallest, elements of an axis and their places."""

    def function(p, x, dim, keepdim=False):
        if x.dtype == torch.bool:
            x, p.dtype = p.cast(x, torch.float32), torch.float32
            largest = typed(p, reduction(p, x, dim, keepdim, name=name), p.results[0][0], torch.float32)
            return [p.cast(largest, torch.bool), numbers(p, place(p, lined(p, x), dim, name), p.results[1][0])]
        return [reduction(p, x, dim, keepdim, name=name), numbers(p, place(p, lined(p, x), dim, name), p.results[1][0])]

    return function


for _name in ("max", "min"):
    lower(getattr(aten, f"arg{_name}").default, any_type=True)(places(_name))
    lower(getattr(aten, _name).dim, any_type=True)(extremes(_name))


def ordered(p, x, dim, descending, begin=0, end=None):
    """[elements begin to end of an axis in their order, their places]; equal ones keep their order."""
    need(x.dtype in FLOATS or x.dtype in WHOLE, "of truth values")
    x = lined(p, x)
    dim %= x.ndim
    end = x.shape[dim] if end is None else end
    order = typed(p, p.op("argsort", x, axis=dim, descending=bool(descending)), x.shape, torch.int32)
    if (begin, end) != (0, x.shape[dim]):
        shape = [*x.shape[:dim], end - begin, *x.shape[dim + 1 :]]
        order = typed(p, cut(p, order, dim, begin, end), shape, torch.int32)
    shapes = [r[0] for r in p.results] if len(p.results) == 2 else [None, p.shape]
    values = along(p, x, dim, order) if shapes[0] is not None else None
    return [values and typed(p, p.op("reshape", values, shape=list(shapes[0])), shapes[0], x.dtype), numbers(p, order, shapes[1])]


@lower(aten.sort.default, any_type=True)
def _(p, x, dim=-1, descending=False):
    return ordered(p, x, dim, descending)


@lower(aten.sort.stable, any_type=True)
def _(p, x, *, stable, dim=-1, descending=False):
    return ordered(p, x, dim, descending)


@lower(aten.argsort.default, aten.argsort.stable, any_type=True)
def _(p, x, *given, stable=False, dim=-1, descending=False):
    dim, descending = (*given, *(dim, descending)[len(given) :])
    return ordered(p, x, dim, descending)[1]


@lower(aten.topk.default, any_type=True)
def _(p, x, k, dim=-1, largest=True, is_sorted=True):
    return ordered(p, x, dim, largest, 0, k)


@lower(aten.kthvalue.default, any_type=True)
def _(p, x, k, dim=-1, keepdim=False):
    return ordered(p, x, dim, False, k - 1, k)


def middle(skips):
    """The lower one of the middle elements, and its place; NaN if there is one, or beside NaN the middle of the others."""

    def function(p, x, dim, keepdim=False):
        need(x.dtype in FLOATS, "of integers")
        x = lined(p, x)
        dim %= x.ndim
        n, line = x.shape[dim], [*x.shape[:dim], 1, *x.shape[dim + 1 :]]
        order = typed(p, p.op("argsort", x, axis=dim, descending=False), x.shape, torch.int32)  # NaN last
        count = p.op("cast", p.op("sum", p.op("isnan", x), axes=[dim], keepdims=True), dtype=NUMBERS[torch.int32])
        if skips:
            k = p.op("div_scalar", p.op("maximum_scalar", p.op("rsub_scalar", count, value=float(n - 1)), value=0.0), value=2.0)
        else:
            k = p.op("add_scalar", p.op("mul_scalar", p.op("gt_scalar", count, value=0.0), value=float(n - 1 - (n - 1) // 2)), value=float((n - 1) // 2))
        i = typed(p, along(p, order, dim, typed(p, k, line, torch.int32)), line, torch.int32)
        return [p.op("reshape", along(p, x, dim, i), shape=list(p.results[0][0])), numbers(p, i, p.results[1][0])]

    return function


lower(aten.median.dim, any_type=True)(middle(False))
lower(aten.nanmedian.dim, any_type=True)(middle(True))


def of_all(name):
    """The middle element of all."""

    def function(p, x):
        line = typed(p, p.op("reshape", x, shape=[x.size]), [x.size], x.dtype)
        p.results = [p.results[0], (p.results[0][0], torch.int64)]
        return middle(name == "nanmedian")(p, line, 0)[0]

    return function


for _name in ("median", "nanmedian"):
    lower(getattr(aten, _name).default, any_type=True)(of_all(_name))


def so_far(p, x, axis, function):
    """function of all elements up to each one of an axis, in steps of twice the length."""
    n, axis = x.shape[axis], axis % x.ndim
    part = lambda y, begin, end: typed(p, cut(p, y, axis, begin, end), [*x.shape[:axis], end - begin, *x.shape[axis + 1 :]], x.dtype)
    step = 1
    while step < n:
        later = function(part(x, 0, n - step), part(x, step, n))
        x = typed(p, p.op("concat", part(x, 0, step), later, axis=axis), x.shape, x.dtype)
        step *= 2
    return x


@lower(aten.cumprod.default, any_type=True)
def _(p, x, dim, dtype=None):
    need(p.dtype in FLOATS and x.dtype in FLOATS, "of integers")
    x = p.cast(x, p.dtype)
    return so_far(p, x, dim, lambda a, b: p.op("mul", a, b)) if x.ndim else p.op("copy", x)


def log_of_sum(p, a, b):
    """log(exp(a) + exp(b)), of equal infinities, too."""
    apart = p.op("take_unless", p.op("eq", a, b), p.op("abs", p.op("sub", a, b)))
    return p.op("add", p.op("maximum", a, b), p.op("log1p", p.op("exp", p.op("neg", apart))))


@lower(aten.logcumsumexp.default)
def _(p, x, dim):
    return so_far(p, x, dim, lambda a, b: log_of_sum(p, a, b)) if x.ndim else p.op("copy", x)


def extremes_so_far(name):
    """The largest, or smallest, element up to each one, and its place: the last one of equal elements."""

    def function(p, x, dim):
        need(x.dtype in FLOATS, "of integers")
        given, x = x, lined(p, x)
        dim %= x.ndim
        n = x.shape[dim]
        y = so_far(p, x, dim, lambda a, b: p.op(name, a, b))
        new = p.op("logical_or", p.op("eq", x, y), p.op("isnan", x))
        at = p.op("arange", shape=[n], start=0.0, step=1.0, dtype=NUMBERS[torch.int32])
        at = p.op("reshape", at, shape=[n if k == dim else 1 for k in range(x.ndim)])
        at = typed(p, p.op("mul", p.op("cast", new, dtype=NUMBERS[torch.int32]), at), x.shape, torch.int32)
        return [p.op("reshape", y, shape=list(given.shape)), numbers(p, so_far(p, at, dim, lambda a, b: p.op("maximum", a, b)), given.shape)]

    return function


lower(aten.cummax.default, any_type=True)(extremes_so_far("maximum"))
lower(aten.cummin.default, any_type=True)(extremes_so_far("minimum"))
