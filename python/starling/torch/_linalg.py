"""The table, continued: linear algebra of small matrices: LU with LAPACK's pivots, Cholesky, QR, triangular systems.

A matrix is eliminated row by row, in programs whose length grows with it: what has more than MOST rows runs in PyTorch, whose
LAPACK computes it in blocks.  Batches are one axis: matrices are (batch, rows, columns).
"""
import math

import torch

from ._table import FLOATS, aten, lower, need, typed
from ._text import NUMBERS

MOST = 24


class Matrices:
    """Operations of a program that keep the shapes of their results."""

    def __init__(self, p, dtype):
        self.p, self.dtype = p, dtype

    def op(self, name, *args, shape=None, dtype=None, **attrs):
        """An operation whose result has the broadcast shape of its arguments, or this one."""
        shape = torch.broadcast_shapes(*[a.shape for a in args]) if shape is None else shape
        return typed(self.p, self.p.op(name, *args, **attrs), shape, dtype or self.dtype)

    def part(self, x, axis, begin, end):
        """Elements of an axis."""
        if (begin, end) == (0, x.shape[axis]):
            return x
        return self.op("slice", x, shape=[*x.shape[:axis], end - begin, *x.shape[axis + 1 :]], dtype=x.dtype, axis=axis, begin=begin, end=end, step=1)

    def join(self, parts, axis):
        """Parts that have elements, one after another."""
        parts = [t for t in parts if t.shape[axis]]
        shape = list(parts[0].shape)
        shape[axis] = sum(t.shape[axis] for t in parts)
        return self.op("concat", *parts, shape=shape, dtype=parts[0].dtype, axis=axis) if len(parts) > 1 else parts[0]

    def shaped(self, x, *shape):
        return typed(self.p, self.p.op("reshape", x, shape=list(shape)), shape, x.dtype)

    def turned(self, x):
        """The transposes."""
        return typed(self.p, self.p.op("transpose", x, axes=[0, 2, 1]), [x.shape[0], x.shape[2], x.shape[1]], x.dtype)

    def product(self, a, b):
        return self.op("matmul", a, b, shape=[a.shape[0], a.shape[1], b.shape[2]])

    def full(self, value, *shape):
        return typed(self.p, self.p.op("fill", shape=list(shape), value=float(value), dtype=NUMBERS[self.dtype]), shape, self.dtype)

    def either(self, condition, a, b):
        return self.op("add", self.op("take_if", condition, a), self.op("take_unless", condition, b))

    def hot(self, places, n):
        """(batch, n, 1): 1 at the place of each matrix, else 0; places are int32."""
        y = self.p.op("one_hot", places, depth=n, dtype=NUMBERS[self.dtype])
        return typed(self.p, self.p.op("reshape", y, shape=[-1, n, 1]), [places.size, n, 1], self.dtype)

    def identity(self, batch, n):
        """(batch, n, n)"""
        k = self.p.op("arange", shape=[n], start=0.0, step=1.0, dtype=NUMBERS[torch.int32])
        y = self.p.op("reshape", self.p.op("one_hot", k, depth=n, dtype=NUMBERS[self.dtype]), shape=[1, n, n])
        return typed(self.p, self.p.op("broadcast_to", y, shape=[batch, n, n]), [batch, n, n], self.dtype)


def opened(p, *given):
    """(matrices, the arguments with one axis for batches); all have the same batches."""
    need(all(x.dtype in FLOATS and x.dtype in (torch.float32, torch.float64) for x in given), "of these types")
    need(all(max(x.shape[-2:]) <= MOST for x in given[:1]), f"of more than {MOST} rows")
    shape = torch.broadcast_shapes(*[x.shape[:-2] for x in given])
    m = Matrices(p, given[0].dtype)

    def flat(x):
        whole = [*shape, *x.shape[-2:]]
        if list(x.shape) != whole:
            x = typed(p, p.op("broadcast_to", x, shape=whole), whole, x.dtype)
        return m.shaped(x, math.prod(shape), *x.shape[-2:])

    return m, *map(flat, given)


def closed(p, x, result):
    """A result in its shape; None where there is none."""
    return x if result is None or x is None else p.op("reshape", x, shape=list(result[0]))


def closed_all(p, values):
    return [closed(p, v, r) for v, r in zip(values, p.results)]


# ---- LU ---------------------------------------------------------------------------------------------------------------


def picked(m, hot, rows):
    """(batch, 1, columns): the row that is hot, exactly."""
    return m.op("sum", m.op("take_if", hot, rows), shape=[rows.shape[0], 1, rows.shape[2]], axes=[1], keepdims=True)


def eliminated(m, w, columns, pivot=True):
    """(LU of the first columns of w, beside what the others become; pivots from 1 on, as rows; the first pivot that is 0, from 1 on)"""
    batch, rows, width = w.shape
    done, pivots, singular = [], [], m.full(0, batch, 1, 1)
    for k in range(min(rows, columns)):
        n = rows - k
        if pivot and n > 1:
            size = m.op("abs", m.shaped(m.part(w, 2, k, k + 1), batch, n))
            at = typed(m.p, m.p.op("argmax", size, axis=1), [batch], torch.int32)
            hot = m.hot(at, n)
            top, row = m.part(w, 1, 0, 1), picked(m, hot, w)
            rest = m.either(m.part(hot, 1, 1, n), top, m.part(w, 1, 1, n))
            pivots.append(typed(m.p, m.p.op("reshape", m.p.op("add_scalar", at, value=float(k + 1)), shape=[batch, 1]), [batch, 1], torch.int32))
        else:
            row, rest = m.part(w, 1, 0, 1), m.part(w, 1, 1, n) if n > 1 else None
            pivots.append(typed(m.p, m.p.op("fill", shape=[batch, 1], value=float(k + 1), dtype=NUMBERS[torch.int32]), [batch, 1], torch.int32))
        done.append(row)
        head = m.part(row, 2, k, k + 1)
        zero = m.op("eq_scalar", head, value=0.0)
        singular = m.either(m.op("logical_and", zero, m.op("eq_scalar", singular, value=0.0)), m.full(k + 1, 1, 1, 1), singular)
        if rest is None:
            w = None
            break
        factor = m.op("take_unless", zero, m.op("div", m.part(rest, 2, k, k + 1), head))
        parts = [m.part(rest, 2, 0, k), factor] if k else [factor]
        if k + 1 < width:
            parts.append(m.op("sub", m.part(rest, 2, k + 1, width), m.op("mul", factor, m.part(row, 2, k + 1, width))))
        w = m.join(parts, 2)
    return m.join(done + ([] if w is None else [w]), 1), m.join(pivots, 1), singular


def swapped_rows(m, x, pivots, back=False):
    """x after the exchanges of rows that pivots describe, or before them."""
    count, rows = pivots.shape[1], x.shape[1]
    for k in range(count)[:: -1 if back else 1]:
        at = typed(m.p, m.p.op("reshape", m.p.op("add_scalar", m.part(pivots, 1, k, k + 1), value=-1.0), shape=[x.shape[0]]), [x.shape[0]], torch.int32)
        hot, top = m.hot(at, rows), m.part(x, 1, k, k + 1)
        row = picked(m, hot, x)
        y = m.either(hot, top, x)
        x = m.join(([m.part(y, 1, 0, k)] if k else []) + [row] + ([m.part(y, 1, k + 1, rows)] if k + 1 < rows else []), 1)
    return x


def solved(m, a, b, upper, unit=False):
    """The solutions of triangular systems."""
    n, found = a.shape[1], None
    for i in range(n)[:: -1 if upper else 1]:
        y = m.part(b, 1, i, i + 1)
        if found is not None:
            row = m.part(a, 1, i, i + 1)
            row = m.part(row, 2, i + 1, n) if upper else m.part(row, 2, 0, i)
            y = m.op("sub", y, m.product(row, found))
        if not unit:
            y = m.op("div", y, m.part(m.part(a, 1, i, i + 1), 2, i, i + 1))
        found = y if found is None else m.join([y, found] if upper else [found, y], 1)
    return found


def info(p, singular, place):
    """The number of the first pivot that is 0 as the result at this place."""
    return p.op("reshape", p.op("cast", singular, dtype=NUMBERS[torch.int32]), shape=list(p.results[place][0]))


def square(x):
    need(x.shape[-1] == x.shape[-2], "of matrices that are not square")


@lower(aten.linalg_lu_factor_ex.default, any_type=True)
def _(p, a, *, pivot=True, check_errors=False):
    m, w = opened(p, a)
    lu, pivots, singular = eliminated(m, w, a.shape[-1], pivot)
    return [closed(p, lu, p.results[0]), closed(p, pivots, p.results[1]), info(p, singular, 2)]


def triangles(m, lu):
    """(L with ones on its diagonal, U)"""
    rows, columns = lu.shape[1:]
    n = min(rows, columns)
    return triangle(m, m.part(lu, 2, 0, n), lambda i, j: j < i, 1), triangle(m, m.part(lu, 1, 0, n), lambda i, j: j >= i, 0)


def triangle(m, x, inside, diagonal):
    """x where inside(row, column), elsewhere 0, with this number added on the diagonal."""
    batch, rows, columns = x.shape
    lines = []
    for i in range(rows):
        kept = [j for j in range(columns) if inside(i, j)]
        row = m.part(x, 1, i, i + 1)
        parts = [m.full(0, batch, 1, kept[0])] if kept and kept[0] else []
        parts += [m.part(row, 2, kept[0], kept[-1] + 1)] if kept else []
        at = kept[-1] + 1 if kept else 0
        if diagonal and at == i < columns:
            parts.append(m.full(diagonal, batch, 1, 1))
            at += 1
        parts += [m.full(0, batch, 1, columns - at)] if at < columns else []
        lines.append(m.join(parts, 2))
    return m.join(lines, 1)


def permutation(m, pivots, rows):
    """P of A = P L U."""
    return m.turned(swapped_rows(m, m.identity(pivots.shape[0], rows), pivots))


@lower(aten.linalg_lu.default, any_type=True)
def _(p, a, *, pivot=True):
    m, w = opened(p, a)
    lu, pivots, _ = eliminated(m, w, a.shape[-1], pivot)
    return closed_all(p, [permutation(m, pivots, a.shape[-2]) if pivot else None, *triangles(m, lu)])


def opened_lu(p, lu, pivots):
    """(matrices, LU, pivots as rows)"""
    m, w = opened(p, lu)
    return m, w, typed(p, p.op("reshape", pivots, shape=[w.shape[0], pivots.shape[-1]]), [w.shape[0], pivots.shape[-1]], torch.int32)


@lower(aten.lu_unpack.default, any_type=True)
def _(p, lu, pivots, unpack_data=True, unpack_pivots=True):
    need(unpack_data and unpack_pivots and pivots.dtype == torch.int32, "in part")
    m, w, pivots = opened_lu(p, lu, pivots)
    return closed_all(p, [permutation(m, pivots, w.shape[1]), *triangles(m, w)])


@lower(aten.linalg_lu_solve.default, any_type=True)
def _(p, lu, pivots, b, *, left=True, adjoint=False):
    square(lu)
    need(pivots.dtype == torch.int32 and list(lu.shape[:-2]) == list(b.shape[:-2]), "of several batches")
    m, w, b = opened(p, lu, b)
    pivots = typed(p, p.op("reshape", pivots, shape=[w.shape[0], w.shape[1]]), [w.shape[0], w.shape[1]], torch.int32)
    b, adjoint = (b, adjoint) if left else (m.turned(b), not adjoint)  # X A = B: the transposes of Aᵀ Xᵀ = Bᵀ
    if adjoint:
        t = m.turned(w)
        x = swapped_rows(m, solved(m, t, solved(m, t, b, upper=False), upper=True, unit=True), pivots, back=True)
    else:
        x = solved(m, w, solved(m, w, swapped_rows(m, b, pivots), upper=False, unit=True), upper=True)
    return p.op("reshape", x if left else m.turned(x), shape=list(p.shape))


@lower(aten.linalg_inv_ex.default, any_type=True)
def _(p, a, *, check_errors=False):
    square(a)
    m, w = opened(p, a)
    n = w.shape[1]
    done, _, singular = eliminated(m, m.join([w, m.identity(w.shape[0], n)], 2), n)
    x = solved(m, m.part(done, 2, 0, n), m.part(done, 2, n, 2 * n), upper=True)
    return [closed(p, x, p.results[0]), info(p, singular, 1)]


@lower(aten._linalg_solve_ex.default, any_type=True)
def _(p, a, b, *, left=True, check_errors=False):
    square(a)
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and list(b.shape) == list(a.shape[:-1]))
    b = typed(p, p.op("reshape", b, shape=[*b.shape, 1]), [*b.shape, 1], b.dtype) if vector else b
    m, w, b = opened(p, a, b)
    if not left and not vector:
        lu, pivots, singular = eliminated(m, w, w.shape[1])
        t = m.turned(lu)
        x = solved(m, t, solved(m, t, m.turned(b), upper=False), upper=True, unit=True)
        x = m.turned(swapped_rows(m, x, pivots, back=True))
    else:
        n = w.shape[1]
        done, pivots, singular = eliminated(m, m.join([w, b], 2), n)
        lu = m.part(done, 2, 0, n)
        x = solved(m, lu, m.part(done, 2, n, done.shape[2]), upper=True)
    need(math.prod(p.results[2][0][:-1]) == w.shape[0], "of several batches")  # A has fewer of them than B
    return [*closed_all(p, [x, lu, pivots])[:3], info(p, singular, 3)]


def signs(m, lu, pivots):
    """(the diagonal of U as rows, -1 for each odd number of exchanges, else 1)"""
    batch, n, _ = lu.shape
    at = typed(m.p, m.p.op("arange", shape=[n], start=1.0, step=1.0, dtype=NUMBERS[torch.int32]), [n], torch.int32)
    moved = m.p.op("cast", m.p.op("ne", pivots, m.p.op("reshape", at, shape=[1, n])), dtype=NUMBERS[m.dtype])
    turn = m.p.op("prod", m.p.op("add_scalar", m.p.op("mul_scalar", moved, value=-2.0), value=1.0), axes=[1])
    diagonal = m.p.op("slice", m.p.op("reshape", lu, shape=[batch, n * n]), axis=1, begin=0, end=n * n, step=n + 1)
    return typed(m.p, diagonal, [batch, n], m.dtype), typed(m.p, turn, [batch], m.dtype)


@lower(aten._linalg_det.default, any_type=True)
def _(p, a):
    square(a)
    m, w = opened(p, a)
    lu, pivots, _ = eliminated(m, m.turned(w) if p.in_order else w, w.shape[1])  # the gradient expects that, too
    diagonal, turn = signs(m, lu, pivots)
    det = p.op("mul", turn, p.op("prod", diagonal, axes=[1]))
    return closed_all(p, [typed(p, det, [w.shape[0]], a.dtype), lu, pivots])


@lower(aten._linalg_slogdet.default, any_type=True)
def _(p, a):
    square(a)
    m, w = opened(p, a)
    lu, pivots, _ = eliminated(m, m.turned(w) if p.in_order else w, w.shape[1])  # the gradient expects that, too
    diagonal, turn = signs(m, lu, pivots)
    sign = p.op("mul", turn, p.op("prod", p.op("sign", diagonal), axes=[1]))
    logs = p.op("sum", p.op("log", p.op("abs", diagonal)), axes=[1])
    return closed_all(p, [sign, logs, lu, pivots])


# ---- triangular systems, Cholesky, QR -----------------------------------------------------------------------------------


@lower(aten.linalg_solve_triangular.default, any_type=True)
def _(p, a, b, *, upper, left=True, unitriangular=False):
    m, w, b = opened(p, a, b)
    if left:
        return p.op("reshape", solved(m, w, b, upper, unitriangular), shape=list(p.shape))
    x = m.turned(solved(m, m.turned(w), m.turned(b), not upper, unitriangular))
    return p.op("reshape", x, shape=list(p.shape))


@lower(aten.triangular_solve.default, any_type=True)
def _(p, b, a, upper=True, transpose=False, unitriangular=False):
    m, w, c = opened(p, a, b)
    x = solved(m, m.turned(w) if transpose else w, c, upper != transpose, unitriangular)
    return closed_all(p, [x, w])


def cholesky(m, a):
    """(L, the first row whose diagonal is not above 0, from 1 on)"""
    batch, n, _ = a.shape
    columns, wrong = None, m.full(0, batch, 1, 1)
    for j in range(n):
        x = m.part(m.part(a, 1, j, n), 2, j, j + 1)
        if columns is not None:
            x = m.op("sub", x, m.product(m.part(columns, 1, j, n), m.turned(m.part(columns, 1, j, j + 1))))
        head = m.part(x, 1, 0, 1)
        bad = m.op("rsub_scalar", m.op("gt_scalar", head, value=0.0), value=1.0)
        wrong = m.either(m.op("logical_and", bad, m.op("eq_scalar", wrong, value=0.0)), m.full(j + 1, 1, 1, 1), wrong)
        x = m.op("div", x, m.op("sqrt", head))
        x = m.join([m.full(0, batch, j, 1), x], 1) if j else x
        columns = x if columns is None else m.join([columns, x], 2)
    return columns, wrong


@lower(aten.linalg_cholesky_ex.default, any_type=True)
def _(p, a, *, upper=False, check_errors=False):
    m, w = opened(p, a)
    low, wrong = cholesky(m, m.turned(w) if upper else w)  # the lower triangle is read, or the upper one
    return [closed(p, m.turned(low) if upper else low, p.results[0]), info(p, wrong, 1)]


@lower(aten.cholesky_solve.default, any_type=True)
def _(p, b, a, upper=False):
    m, w, b = opened(p, a, b)
    low = m.turned(w) if upper else w
    return p.op("reshape", solved(m, m.turned(low), solved(m, low, b, upper=False), upper=True), shape=list(p.shape))


@lower(aten.cholesky_inverse.default, any_type=True)
def _(p, a, upper=False):
    m, w = opened(p, a)
    low = m.turned(w) if upper else w
    x = solved(m, low, m.identity(w.shape[0], w.shape[1]), upper=False)
    return p.op("reshape", m.product(m.turned(x), x), shape=list(p.shape))


def reflection(m, x):
    """(v with a first element of 1, tau, the first element afterwards) of (batch, n, 1), as LAPACK's larfg: none where the rest is 0."""
    n = x.shape[1]
    head, rest = m.part(x, 1, 0, 1), m.part(x, 1, 1, n)
    squares = m.op("sum", m.op("square", rest), shape=[x.shape[0], 1, 1], axes=[1], keepdims=True)
    none = m.op("eq_scalar", squares, value=0.0)
    norm = m.op("sqrt", m.op("add", m.op("square", head), squares))
    beta = m.either(m.op("lt_scalar", head, value=0.0), norm, m.op("neg", norm))
    safe = m.op("add", m.op("take_unless", none, beta), none)
    tau = m.op("take_unless", none, m.op("div", m.op("sub", beta, head), safe))
    scale = m.op("take_unless", none, m.op("reciprocal", m.op("add", m.op("sub", head, beta), none)))
    return m.join([m.full(1, x.shape[0], 1, 1), m.op("mul", rest, scale)], 1), tau, m.either(none, head, beta)


def reflected(m, v, tau, x):
    """(1 - tau v vᵀ) x."""
    return m.op("sub", x, m.op("mul", m.op("mul", v, tau), m.product(m.turned(v), x)))


@lower(aten.linalg_qr.default, any_type=True)
def _(p, a, mode="reduced"):
    m, w = opened(p, a)
    batch, rows, columns = w.shape
    lines, found = [], []
    for j in range(min(rows - 1, columns)):
        v, tau, head = reflection(m, m.part(w, 2, 0, 1))
        found.append((j, v, tau))
        rest = reflected(m, v, tau, m.part(w, 2, 1, w.shape[2])) if w.shape[2] > 1 else None
        first = [head] if rest is None else [head, m.part(rest, 1, 0, 1)]
        lines.append(m.join(([m.full(0, batch, 1, j)] if j else []) + first, 2))
        w = None if rest is None else m.part(rest, 1, 1, rest.shape[1])
    done = len(lines)
    if w is not None:
        lines.append(m.join([m.full(0, batch, rows - done, done), w], 2) if done else w)
    count = rows if mode == "complete" else min(rows, columns)
    have = sum(t.shape[1] for t in lines)
    if have < count:
        lines.append(m.full(0, batch, count - have, columns))
    r = m.part(m.join(lines, 1), 1, 0, count)
    if mode == "r":
        return [None, closed(p, r, p.results[1])]
    q = m.part(m.identity(batch, rows), 2, 0, count)
    for j, v, tau in found[::-1]:
        q = m.join(([m.part(q, 1, 0, j)] if j else []) + [reflected(m, v, tau, m.part(q, 1, j, rows))], 1)
    return closed_all(p, [q, r])
