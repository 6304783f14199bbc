"""The table, continued: products, normalisation, and their gradients."""
import math

import torch

from ._table import LOWER, OF_NOTHING, lower, need, typed
from ._text import MOST_AXES, NUMBERS, Value

aten = torch.ops.aten

# ---- products ---------------------------------------------------------------------------------------------------------


def dot(p, a, b):
    """A product of matrices; transposes are attributes."""
    return p.op("dot", a.base or a, b.base or b, ta=a.base is not None, tb=b.base is not None)


def of_nothing(p, a):
    """The product of matrices without columns by such without rows: zeros."""
    return None if a.size else typed(p, p.op("fill", shape=list(p.shape), value=0.0, dtype=NUMBERS[p.dtype]), p.shape, p.dtype)


OF_NOTHING.update((aten.mm.default, aten.bmm.default, aten.addmm.default))
LOWER[aten.mm.default] = lambda p, a, b: of_nothing(p, a) or dot(p, a, b)
LOWER[aten.bmm.default] = lambda p, a, b: of_nothing(p, a) or p.op("matmul", a.base or a, b.base or b, ta=a.base is not None, tb=b.base is not None)
LOWER[aten.mv.default] = lambda p, a, b: p.op("dot", a, b)


@lower(aten.addmv.default)
def _(p, b, x, v, *, beta=1, alpha=1):
    y = p.op("dot", x, v)
    y = y if alpha == 1 else p.op("mul_scalar", y, value=float(alpha))
    return p.op("add", y, b if beta == 1 else p.op("mul_scalar", b, value=float(beta))) if beta else y


@lower(aten.addbmm.default)
def _(p, b, x, y, *, beta=1, alpha=1):
    z = p.op("sum", p.op("matmul", x, y), axes=[0])
    z = z if alpha == 1 else p.op("mul_scalar", z, value=float(alpha))
    return p.op("add", z, b if beta == 1 else p.op("mul_scalar", b, value=float(beta))) if beta else z


LOWER[aten.dot.default] = lambda p, a, b: p.op("reshape", p.op("sum", p.op("mul", a, b)), shape=[])


@lower(aten.addmm.default)
def _(p, b, x, w, *, beta=1, alpha=1):
    if beta == 1 and alpha == 1 and x.size and b.ndim == 1 and b.shape[0] == w.shape[1]:
        return p.op("linear", x, w.base or w, b, tw=w.base is not None)
    y = of_nothing(p, x) or dot(p, x, w)
    y = y if alpha == 1 else p.op("mul_scalar", y, value=float(alpha))
    b = b if beta == 1 else p.op("mul_scalar", b, value=float(beta))
    return p.op("add", y, b) if beta else y


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
    """Those of the gradients that are asked for; there is none of weights that are not given, beside which there may be a bias."""
    return [g if k and (weights or i != 1) else None for i, (g, k) in enumerate(zip(gradients, mask))]


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


# ---- distances --------------------------------------------------------------------------------------------------------


def differences(p, a, b):
    """(rows of a less rows of b, (…, rows of a, rows of b, columns)), of the same batches"""
    need(len(p.shape) < MOST_AXES and a.dtype == b.dtype, "of so many axes")
    apart = lambda t, axis: typed(p, p.op("reshape", t, shape=[*t.shape[:axis], 1, *t.shape[axis:]]), [*t.shape[:axis], 1, *t.shape[axis:]], t.dtype)
    return p.op("sub", apart(a, a.ndim - 1), apart(b, b.ndim - 2))


@lower(aten._cdist_forward.default)
def _(p, a, b, order, mode=None):
    size, last = p.op("abs", differences(p, a, b)), [len(p.shape)]
    if order in (0.0, 1.0, math.inf):
        size = p.op("ne_scalar", size, value=0.0) if order == 0 else size
        return p.op("max" if math.isinf(order) else "sum", size, axes=last)
    if order == 2:
        return p.op("sqrt", p.op("sum", p.op("square", size), axes=last))
    return p.op("pow_scalar", p.op("sum", p.op("pow_scalar", size, value=order), axes=last), value=1 / order)


@lower(aten._cdist_backward.default)
def _(p, dy, a, b, order, distance):
    need(list(a.shape[:-2]) == list(b.shape[:-2]), "of several batches")
    d, wide = differences(p, a, b), [*dy.shape, 1]
    dy, distance = (p.op("reshape", t, shape=wide) for t in (dy, distance))
    if order == 0:
        return p.op("fill", shape=list(p.shape), value=0.0, dtype=NUMBERS[p.dtype])
    size, slope = p.op("abs", d), p.op("sign", d)
    if math.isinf(order):
        slope = p.op("mul", slope, p.op("eq", size, distance))
    elif order != 1:
        zero = p.op("eq_scalar", size, value=0.0)  # has no slope
        far = p.op("add", distance, p.op("eq_scalar", distance, value=0.0))
        slope = p.op("mul", slope, p.op("take_unless", zero, p.op("pow_scalar", p.op("div", p.op("add", size, zero), far), value=order - 1)))
    return p.op("sum", p.op("mul", dy, slope), axes=[len(wide) - 2])
