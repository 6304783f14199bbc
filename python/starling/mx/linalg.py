"""mx.nd.linalg: products, factorisations and inverses of matrices, or of batches of them; LAPACK computes the latter on the host."""
import numpy

from .._core import InvalidArgument, ShapeError
from ._host import on_host
from .functions import batch_dot
from .unsupported import missing


def _t(a):
    return numpy.swapaxes(a, -1, -2)


def _square(name, a):
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: the shape {a.shape} is not that of square matrices")


def _swapped(x, axis):
    """The array with the rows of its matrices on the axis -2."""
    return x if axis in (-2, x.ndim - 2) else x.swapaxes(axis, -2)


def _product(a, b, transpose_a, transpose_b):
    if a.ndim == 2:
        return (a.T if transpose_a else a).dot(b.T if transpose_b else b)
    if a.ndim == 3:
        return batch_dot(a, b, transpose_a, transpose_b)
    batch, matrix = a.shape[:-2], [(-1, *x.shape[-2:]) for x in (a, b)]
    found = batch_dot(a.reshape(matrix[0]), b.reshape(matrix[1]), transpose_a, transpose_b)
    return found.reshape((*batch, *found.shape[1:]))


def gemm2(A, B, transpose_a=False, transpose_b=False, alpha=1.0, axis=-2):
    """alpha·A·B, of matrices or of batches of them."""
    product = _swapped(_product(_swapped(A, axis), _swapped(B, axis), transpose_a, transpose_b), axis)
    return product if alpha == 1 else product * alpha


def gemm(A, B, C, transpose_a=False, transpose_b=False, alpha=1.0, beta=1.0, axis=-2):
    """alpha·A·B + beta·C."""
    return gemm2(A, B, transpose_a, transpose_b, alpha, axis) + C * beta


def syrk(A, transpose=False, alpha=1.0):
    """alpha·A·Aᵀ, or alpha·Aᵀ·A."""
    return gemm2(A, A, transpose, not transpose, alpha)


# ---- triangular matrices


def _lower_symmetric(m):
    """The lower triangle, mirrored."""
    low = numpy.tril(m)
    return low + _t(numpy.tril(m, -1))


def _cholesky(a):
    try:
        return numpy.linalg.cholesky(_lower_symmetric(a))
    except numpy.linalg.LinAlgError as error:
        raise InvalidArgument(f"linalg.potrf: {error}") from None


def _cholesky_gradient(given, low, dlow):
    inverse = numpy.linalg.inv(low)
    return _t(inverse) @ _lower_symmetric(_t(low) @ dlow) @ inverse / 2


def potrf(A, lower=True):
    """The lower triangular L with A = L·Lᵀ of symmetric positive definite matrices, or Lᵀ."""
    _square("linalg.potrf", A)
    low = on_host(_cholesky, _cholesky_gradient, A)
    return low if lower else low.swapaxes(-1, -2)


def potri(A, lower=True):
    """The inverse of L·Lᵀ for a lower triangular L, or its transpose."""
    _square("linalg.potri", A)
    if not lower:
        return potri(A.swapaxes(-1, -2))

    def compute(low):
        inverse = numpy.linalg.inv(numpy.tril(low))
        return _t(inverse) @ inverse

    def gradient(given, b, db):
        return numpy.tril(-(b @ (db + _t(db)) @ _t(numpy.linalg.inv(numpy.tril(given[0])))))

    return on_host(compute, gradient, A)


def _triangle(a, lower):
    return numpy.tril(a) if lower else numpy.triu(a)


def trmm(A, B, transpose=False, rightside=False, lower=True, alpha=1.0):
    """alpha·A·B, or alpha·B·A, of a triangular A, which may be transposed."""
    _square("linalg.trmm", A)

    def chosen(a):
        return _t(_triangle(a, lower)) if transpose else _triangle(a, lower)

    def compute(a, b):
        return alpha * (b @ chosen(a) if rightside else chosen(a) @ b)

    def gradient(given, _, dy):
        a, b = given
        da = _t(b) @ dy if rightside else dy @ _t(b)
        return alpha * _triangle(_t(da) if transpose else da, lower), alpha * (dy @ _t(chosen(a)) if rightside else _t(chosen(a)) @ dy)

    return on_host(compute, gradient, A, B)


def trsm(A, B, transpose=False, rightside=False, lower=True, alpha=1.0):
    """The X with A·X = alpha·B, or X·A = alpha·B, of a triangular A, which may be transposed."""
    _square("linalg.trsm", A)

    def chosen(a):
        return _t(_triangle(a, lower)) if transpose else _triangle(a, lower)

    def solved(a, b):
        return _t(numpy.linalg.solve(_t(a), _t(b))) if rightside else numpy.linalg.solve(a, b)

    def compute(a, b):
        return alpha * solved(chosen(a), b)

    def gradient(given, x, dx):
        db = solved(_t(chosen(given[0])), dx)
        da = -(_t(x) @ db if rightside else db @ _t(x))
        return _triangle(_t(da) if transpose else da, lower), alpha * db

    return on_host(compute, gradient, A, B)


# ---- factorisations


def gelqf(A):
    """(Q, L) with A = L·Q: the rows of Q are orthonormal, L is lower triangular."""

    def compute(a):
        q, r = numpy.linalg.qr(_t(a)) if a.ndim == 2 else map(numpy.stack, zip(*(numpy.linalg.qr(_t(m)) for m in a.reshape((-1, *a.shape[-2:])))))
        shape = a.shape[:-2]
        return _t(q).reshape(shape + _t(q).shape[-2:]), _t(r).reshape(shape + _t(r).shape[-2:])

    def gradient(given, results, dq, dl):
        q, low = results
        return _t(numpy.linalg.inv(low)) @ (dq + _lower_symmetric(_t(low) @ dl - dq @ _t(q)) @ q)

    return on_host(compute, gradient, A)


def syevd(A):
    """(U, L) with A = Uᵀ·diag(L)·U of symmetric matrices: the rows of U are eigenvectors, L the eigenvalues in ascending order."""
    _square("linalg.syevd", A)

    def compute(a):
        values, vectors = numpy.linalg.eigh(a)
        vectors = _t(vectors)
        largest = numpy.take_along_axis(vectors, numpy.abs(vectors).argmax(-1)[..., None], -1)
        return vectors * numpy.where(largest < 0, -1, 1), values

    def gradient(given, results, du, dl):
        u, values = results
        apart = values[..., :, None] - values[..., None, :]
        apart = numpy.where(numpy.abs(apart) < 1e-12, numpy.inf, apart)
        y = (du @ _t(u)) / apart
        inner = (y + _t(y)) / 2 + dl[..., :, None] * numpy.eye(dl.shape[-1])
        return _t(u) @ inner @ u

    return on_host(compute, gradient, A)


# ---- inverses, determinants, diagonals


def inverse(A):
    """The inverse of square matrices."""
    _square("linalg.inverse", A)
    return on_host(numpy.linalg.inv, lambda given, b, db: -_t(b) @ db @ _t(b), A)


def det(A):
    """The determinants of square matrices."""
    _square("linalg.det", A)
    return on_host(numpy.linalg.det, lambda given, d, dd: (numpy.asarray(dd) * d)[..., None, None] * _t(numpy.linalg.inv(given[0])), A)


def slogdet(A):
    """(signs, logarithms) of the determinants of square matrices."""
    _square("linalg.slogdet", A)

    def compute(a):
        sign, log = numpy.linalg.slogdet(a)
        return numpy.asarray(sign), numpy.asarray(log)

    return on_host(compute, lambda given, _, dsign, dlog: numpy.asarray(dlog)[..., None, None] * _t(numpy.linalg.inv(given[0])), A)


def sumlogdiag(A):
    """The sum of the logarithms of the diagonal."""
    _square("linalg.sumlogdiag", A)

    def gradient(given, _, dy):
        return numpy.asarray(dy)[..., None, None] * numpy.eye(A.shape[-1]) / numpy.where(numpy.eye(A.shape[-1]) > 0, given[0], 1)

    return on_host(lambda a: numpy.asarray(numpy.log(numpy.diagonal(a, 0, -2, -1)).sum(-1)), gradient, A)


def _scattered(n, places, values, m=None):
    """Matrices with the values at the places, zeros elsewhere."""
    found = numpy.zeros((*values.shape[:-1], n, m or n), values.dtype)
    found[(..., *places)] = values
    return found


def _picked(places, n):
    return (lambda a: a[(..., *places)]), (lambda given, _, dy: _scattered(given[0].shape[-2], places, dy, given[0].shape[-1]))


def _spread(places, n):
    return (lambda a: _scattered(n, places, a)), (lambda given, _, dy: dy[(..., *places)])


def _diagonal(n, offset):
    i = numpy.arange(n - abs(offset))
    return (i, i + offset) if offset >= 0 else (i - offset, i)


def extractdiag(A, offset=0):
    """A diagonal of matrices."""
    _square("linalg.extractdiag", A)
    return on_host(*_picked(_diagonal(A.shape[-1], offset), A.shape[-1]), A)


def makediag(A, offset=0):
    """Matrices with these diagonals."""
    n = A.shape[-1] + abs(offset)
    return on_host(*_spread(_diagonal(n, offset), n), A)


def _triangle_places(n, offset, lower):
    if offset < 0 or offset == 0 and lower:
        return numpy.tril_indices(n, offset)
    return numpy.tril_indices(n, -offset)[::-1]  # an upper triangle column by column


def extracttrian(A, offset=0, lower=True):
    """The elements of a triangle of matrices in a row: of a lower one line by line, of an upper one column by column."""
    _square("linalg.extracttrian", A)
    return on_host(*_picked(_triangle_places(A.shape[-1], offset, lower), A.shape[-1]), A)


def maketrian(A, offset=0, lower=True):
    """Triangular matrices of their elements."""
    n = int((numpy.sqrt(8 * A.shape[-1] + 1) - 1) / 2)
    if n * (n + 1) // 2 != A.shape[-1]:
        raise ShapeError(f"linalg.maketrian: {A.shape[-1]} elements do not make a triangle")
    n += abs(offset)
    return on_host(*_spread(_triangle_places(n, offset, lower), n), A)


__getattr__ = missing("mx.nd.linalg")
