"""mx.np.linalg: factorisations, inverses and determinants, which LAPACK computes on the host."""
import numpy

from . import linalg as _linalg
from ._host import constant, on_host
from .autograd import is_recording
from .unsupported import not_here

__all__ = ["cholesky", "inv", "det", "slogdet", "solve", "svd", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "tensorinv", "tensorsolve"]


def _refuse_gradient(name):
    if is_recording():
        raise not_here(f"the gradient of np.linalg.{name}", "autograd.pause around it")


def cholesky(a):
    """The lower triangular L with a = L·Lᵀ."""
    return _linalg.potrf(a)


def inv(a):
    """The inverse."""
    return _linalg.inverse(a)


def det(a):
    """The determinant."""
    return _linalg.det(a)


def slogdet(a):
    """(sign, logarithm) of the determinant."""
    return tuple(_linalg.slogdet(a))


def solve(a, b):
    """The x with a·x = b."""
    t = lambda m: numpy.swapaxes(m, -1, -2)  # noqa: E731
    vector = b.ndim == 1 or b.ndim == a.ndim - 1

    def compute(m, v):
        return numpy.linalg.solve(m, v[..., None])[..., 0] if vector else numpy.linalg.solve(m, v)

    def gradient(given, x, dx):
        x, dx = (v[..., None] if vector else v for v in (x, dx))
        db = numpy.linalg.solve(t(given[0]), dx)
        return -db @ t(x), db[..., 0] if vector else db

    return on_host(compute, gradient, a, b)


def svd(a):
    """(ut, s, v) with a = ut·diag(s)·v: the columns of ut and the rows of v are orthonormal, s are in descending order."""
    _refuse_gradient("svd")

    def compute(m):
        u, s, v = numpy.linalg.svd(m, full_matrices=False)
        if not v.size:
            return u, s, v
        signs = numpy.where(numpy.take_along_axis(v, numpy.abs(v).argmax(-1)[..., None], -1) < 0, -1, 1)[..., 0]
        return u * signs[..., None, :], s, v * signs[..., :, None]

    return tuple(constant(compute, a))


def eigh(a, UPLO="L"):
    """(values in ascending order, vectors in columns) of symmetric matrices."""

    def compute(m):
        w, v = numpy.linalg.eigh(m, UPLO)
        if not v.size:
            return w, v
        largest = numpy.take_along_axis(v, numpy.abs(v).argmax(-2)[..., None, :], -2)
        return w, v * numpy.where(largest < 0, -1, 1)

    _refuse_gradient("eigh")
    return tuple(constant(compute, a))


def eigvalsh(a, UPLO="L"):
    """The values of eigh."""
    _refuse_gradient("eigvalsh")
    return constant(lambda m: numpy.linalg.eigvalsh(m, UPLO), a)


def _real(values, name):
    if numpy.iscomplexobj(values) and numpy.abs(values.imag).max() > 0:
        raise not_here(f"np.linalg.{name} with complex results", "numpy.linalg of asnumpy()")
    return values.real


def eig(a):
    """(values, vectors in columns) of matrices whose eigenvalues are real."""
    _refuse_gradient("eig")
    return tuple(constant(lambda m: tuple(_real(part, "eig") for part in numpy.linalg.eig(m)), a))


def eigvals(a):
    """The values of eig."""
    _refuse_gradient("eigvals")
    return constant(lambda m: _real(numpy.linalg.eigvals(m), "eigvals"), a)


def pinv(a, rcond=1e-15, hermitian=False):
    """The pseudo-inverse."""
    _refuse_gradient("pinv")
    rcond = rcond.numpy() if hasattr(rcond, "asnumpy") else rcond
    return constant(lambda m: numpy.linalg.pinv(m, rcond, hermitian), a)


def tensorinv(a, ind=2):
    """The inverse with respect to tensordot."""
    _refuse_gradient("tensorinv")
    return constant(lambda m: numpy.linalg.tensorinv(m, ind), a)


def tensorsolve(a, b, axes=None):
    """The x with tensordot(a, x) = b."""
    _refuse_gradient("tensorsolve")
    return constant(lambda m, v: numpy.linalg.tensorsolve(m, v, axes), a, b)
