"""Attention whose heads stay where projections write them: (batch, positions, parts, heads, width).

PyTorch takes q, k and v as views of a projection, which cost it nothing; as values of programs they would be copies.  So attention
between such views becomes attention_heads, whose sources are the projections, and so do its gradients, whose parts are joined again
without a copy where PyTorch joins them in the same way.
"""
import torch

from ._table import typed

SWAPPED = (0, 2, 1, 3)  # from (batch, positions, heads, width) to (batch, heads, positions, width)
IN_TURN = (2, 0, 3, 1, 4)  # from (batch, positions, parts, heads, width) to (parts, batch, heads, positions, width)


def made_by(p, v, name, **attrs):
    """The argument of the operation of this name that made v in this program, with these attributes; None: something else made it."""
    if v is None or v.program is not p or v.made is None or v.made[0] != name or any(v.made[2].get(key) != x for key, x in attrs.items()):
        return None
    return v.made[1][0]


def turned(p, v):
    """The (batch, positions, heads, width) whose transposition v is."""
    return made_by(p, v, "transpose", axes=SWAPPED)


def cut(p, v, axis):
    """(what v is a slice of along an axis, where it begins)"""
    whole = made_by(p, v, "slice", axis=axis, step=1)
    return (None, 0) if whole is None else (whole, v.made[2]["begin"])


def joined(p, q, k, v):
    """The value of which q, k and v are the first, second and third part, and how it is laid out: (value, its order)."""
    wholes = []
    for i, x in enumerate((q, k, v)):
        batch, heads, places, width = x.shape
        whole, begin = cut(p, made_by(p, turned(p, x), "reshape"), 2)
        if whole is not None and whole.shape == (batch, places, 3 * heads * width) and begin == i * heads * width:
            wholes.append(whole)
            continue
        whole, begin = cut(p, made_by(p, x, "reshape"), 0)
        whole = made_by(p, whole, "transpose", axes=IN_TURN)
        if whole is None or whole.shape != (batch, places, 3, heads, width) or begin != i:
            return None
        wholes.append(whole)
    return wholes[0] if wholes[0] is wholes[1] and wholes[1] is wholes[2] else None


def wide(p, x, parts, heads, width):
    """A source, with its axes of parts, heads and width."""
    shape = (*x.shape[:2], parts, heads, width)
    return x if tuple(x.shape) == shape else typed(p, p.op("reshape", x, shape=shape), shape, x.dtype)


def sources(p, q, k, v):
    """What attention_heads takes for q, k and v; None: they are no such views."""
    if any(x.ndim != 4 or x.dtype != torch.float32 for x in (q, k, v)):
        return None
    whole = joined(p, q, k, v) if q.shape == k.shape == v.shape else None
    if whole is not None:
        return [wide(p, whole, 3, q.shape[1], q.shape[3])]
    if any(turned(p, x) is None for x in (q, k, v)):
        return None
    return [wide(p, turned(p, x), 1, x.shape[1], x.shape[3]) for x in (q, k, v)]


def turn(p, x):
    """(batch, heads, positions, width) of (batch, positions, heads, width), or the reverse."""
    before = turned(p, x)
    if before is not None:
        return before
    a, b, c, d = x.shape
    return typed(p, p.op("transpose", x, axes=SWAPPED), (a, c, b, d), x.dtype)


def attention(p, q, k, v, **attrs):
    """[result, logarithms of the sums]; None: q, k and v are no views of projections."""
    given = sources(p, q, k, v)
    if given is None:
        return None
    y, logs = p.op("attention_heads", *given, n=2, sources=len(given), **attrs)
    batch, heads, places, _ = q.shape
    return [turn(p, typed(p, y, (batch, places, heads, v.shape[3]), q.dtype)), logs]


def part(p, dx, i, like):
    """Part i of the gradient of a source, in the order of attention's operands."""
    batch, heads, places, width = like.shape
    x = dx if dx.shape[2] == 1 else typed(p, p.op("slice", dx, axis=2, begin=i, end=i + 1, step=1), (batch, places, 1, heads, width), dx.dtype)
    return turn(p, typed(p, p.op("reshape", x, shape=(batch, places, heads, width)), (batch, places, heads, width), dx.dtype))


def attention_grad(p, dy, q, k, v, y, logs, **attrs):
    """[gradients of q, k and v]; None: as above."""
    given = sources(p, q, k, v)
    if given is None:
        return None
    n = len(given)
    found = p.op("attention_heads_grad", turn(p, dy), *given, turn(p, y), logs, n=n, sources=n, **attrs)
    found = [typed(p, dx, s.shape, s.dtype) for dx, s in zip(found if n > 1 else [found], given)]
    return [part(p, found[i if n > 1 else 0], i, x) for i, x in enumerate((q, k, v))]


# ---- joins of gradients, and transpositions of transpositions ------------------------------------------------------------


def whole_of(p, xs, axis):
    """The (batch, positions, parts, heads, width) whose parts, all of them and in turn, these values are; None: there is none."""
    whole = None
    for i, x in enumerate(xs):
        x = turned(p, x) if axis == 0 else made_by(p, x, "reshape")
        found, begin = cut(p, made_by(p, x, "reshape"), 2)
        if found is None or found.ndim != 5 or found.shape[2] != len(xs) or begin != i or found is not (whole or found):
            return None
        whole = found
    return whole


def join(p, xs, axis):
    """The parts of a gradient joined along an axis, without a copy; None: they are something else."""
    x = whole_of(p, xs, axis) if axis in (0, 2) and xs and xs[0].ndim == {0: 4, 2: 3}[axis] else None
    if x is None or (axis == 2 and tuple(p.shape) != (*x.shape[:2], x.shape[2] * x.shape[3] * x.shape[4])):
        return None
    if axis == 2:
        return p.op("reshape", x, shape=list(p.shape))
    batch, places, parts, heads, width = x.shape
    y = typed(p, p.op("transpose", x, axes=IN_TURN), (parts, batch, heads, places, width), x.dtype)
    return p.op("reshape", y, shape=list(p.shape))


def transposed(p, x, order):
    """A transposition; of one, a single one, or what that is of."""
    before = made_by(p, x, "transpose")
    if before is None:
        return p.op("transpose", x, axes=tuple(order))
    both = tuple(x.made[2]["axes"][k] for k in order)
    return before if both == tuple(range(len(both))) else p.op("transpose", before, axes=both)
