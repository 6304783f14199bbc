"""The table, continued: integers.  What their types cannot hold is lost in PyTorch, as in C; sums of the engine saturate, so
these are computed modulo 2**64, and cut to narrower types."""
import math

import torch

from ._table import FLOATS, WHOLE, aten, integers, logical, lower, need, overloads, typed
from ._text import NUMBERS, Value

KINDS = {"add": 0, "sub": 1, "mul": 2, "and": 3, "or": 4, "xor": 5}


def wide(p, v, shape):
    """A tensor or a number as int64 of this shape."""
    if not isinstance(v, Value):
        need(isinstance(v, int) and abs(v) < 2**53, "with such numbers")
        return typed(p, p.op("fill", shape=list(shape), value=float(v), dtype=NUMBERS[torch.int64]), shape, torch.int64)
    need(v.dtype in WHOLE or v.dtype == torch.bool, "of several types")
    given, v = v.shape, p.cast(v, torch.int64)
    return v if tuple(given) == tuple(shape) else typed(p, p.op("broadcast_to", v, shape=list(shape)), shape, torch.int64)


def narrowed(p, v, dtype):
    """int64 in the type of the result."""
    return v if dtype == torch.int64 else p.op("wrap", v, dtype=NUMBERS[dtype])


def modular(p, name, a, b):
    """A function of two integers."""
    a, b = (wide(p, v, p.shape) for v in (a, b))
    return typed(p, p.op("modular", a, b, kind=KINDS[name]), p.shape, torch.int64)


def of_truths(p, name, a, b):
    """Sums and the like of two truth values."""
    need(name != "sub", "of truth values")
    return logical("logical_and" if name in ("mul", "minimum") else "logical_or")(p, a, b)


def arithmetic(name):
    """A sum, difference or product."""

    def function(p, a, b, alpha=1):
        if p.dtype == torch.bool:
            return of_truths(p, name, a, b)
        need(p.dtype in WHOLE, "of integers")
        return narrowed(p, modular(p, name, a, b if alpha == 1 else modular(p, "mul", b, alpha)), p.dtype)

    return function


def chosen(name):
    """The larger, or the smaller."""

    def function(p, a, b, alpha=1):
        if p.dtype == torch.bool:
            return of_truths(p, name, a, b)
        need(p.dtype in WHOLE, "of integers")
        a, b = (wide(p, v, p.shape) for v in (a, b))
        return narrowed(p, typed(p, p.op(name, a, b), p.shape, torch.int64), p.dtype)

    return function


integers.update({name: arithmetic(name) for name in ("add", "sub", "mul")} | {name: chosen(name) for name in ("maximum", "minimum")})


def bits(name):
    """A function of the bits, or of truth values."""

    def function(p, a, b):
        return logical(f"logical_{name}")(p, a, b) if p.dtype == torch.bool else narrowed(p, modular(p, name, a, b), p.dtype)

    return function


for _name in ("and", "or", "xor"):
    lower(*overloads(f"bitwise_{_name}"), any_type=True)(bits(_name))


def divided(p, a, b):
    """(quotients that are rounded down, remainders) of int64 by a number above 0."""
    need(p.dtype in WHOLE and isinstance(b, int) and 0 < b < 2**31, "of integers")
    a = wide(p, a, p.shape)
    q = p.op("div_scalar", a, value=float(b))  # towards 0
    r = p.op("sub", a, p.op("mul_scalar", q, value=float(b)))
    below = p.op("lt_scalar", r, value=0.0)
    found = p.op("sub", q, below), p.op("add", r, p.op("mul_scalar", below, value=float(b)))
    return [narrowed(p, typed(p, v, p.shape, torch.int64), p.dtype) for v in found]


integers["neg"] = lambda p, x: arithmetic("sub")(p, 0, x)
integers["floor_divide"] = lambda p, a, b: divided(p, a, b)[0]
integers["remainder"] = lambda p, a, b: divided(p, a, b)[1]


def as_rows(p, x, axes):
    """int64 as a matrix whose rows have the elements of these axes; all axes where there are none."""
    axes = sorted({k % x.ndim for k in ([axes] if isinstance(axes, int) else axes)}) if axes not in (None, []) and x.ndim else list(range(x.ndim))
    order = [*[k for k in range(x.ndim) if k not in axes], *axes]
    n = math.prod(x.shape[k] for k in axes)
    x = wide(p, x, x.shape)
    y = x if order == list(range(x.ndim)) else p.op("transpose", x, axes=order)
    return typed(p, p.op("reshape", y, shape=[x.size // n, n]), [x.size // n, n], torch.int64)


def summed(p, x, axes=None):
    """A sum: the last of the running sums, which keep their lower bits."""
    rows = as_rows(p, x, axes)
    last = p.op("slice", p.op("cumsum", rows, axis=1, wraps=True), axis=1, begin=rows.shape[1] - 1, end=rows.shape[1], step=1)
    return narrowed(p, typed(p, p.op("reshape", last, shape=list(p.shape)), p.shape, torch.int64), p.dtype)


def multiplied(p, x, axes=None):
    """A product: halves are multiplied until one element is left."""
    rows = as_rows(p, x, axes)
    part = lambda begin, end: typed(p, p.op("slice", rows, axis=1, begin=begin, end=end, step=1), [rows.shape[0], end - begin], torch.int64)
    while (n := rows.shape[1]) > 1:
        half = n // 2
        y = typed(p, p.op("modular", part(0, half), part(half, 2 * half), kind=KINDS["mul"]), [rows.shape[0], half], torch.int64)
        rows = typed(p, p.op("concat", y, part(2 * half, n), axis=1), [rows.shape[0], half + 1], torch.int64) if n % 2 else y
    return narrowed(p, typed(p, p.op("reshape", rows, shape=list(p.shape)), p.shape, torch.int64), p.dtype)


integers.update(sum=summed, prod=multiplied)


def turned_around(p, x):
    """Integers in the opposite order, which all have: -1 - x."""
    ones = typed(p, p.op("fill", shape=list(x.shape), value=-1.0, dtype=NUMBERS[torch.int64]), x.shape, torch.int64)
    return typed(p, p.op("modular", wide(p, x, x.shape), ones, kind=KINDS["xor"]), x.shape, torch.int64)


@lower(aten.bitwise_not.default, any_type=True)
def _(p, x):
    if x.dtype in WHOLE:
        return narrowed(p, turned_around(p, x), p.dtype)
    need(x.dtype == torch.bool or x.dtype in FLOATS, "of integers")
    return p.op("cast", p.op("rsub_scalar", p.cast(p.cast(x, torch.bool), torch.float32), value=1.0), dtype=NUMBERS[torch.bool])
