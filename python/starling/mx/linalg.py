"""mx.nd.linalg: products of matrices."""
from .functions import batch_dot
from .unsupported import missing


def gemm2(A, B, transpose_a=False, transpose_b=False, alpha=1.0):
    """alpha·A·B, of matrices or of batches of them."""
    product = batch_dot(A, B, transpose_a, transpose_b)
    return product if alpha == 1 else product * alpha


def gemm(A, B, C, transpose_a=False, transpose_b=False, alpha=1.0, beta=1.0):
    """alpha·A·B + beta·C."""
    return gemm2(A, B, transpose_a, transpose_b, alpha) + C * beta


def syrk(A, transpose=False, alpha=1.0):
    """alpha·A·Aᵀ, or alpha·Aᵀ·A."""
    return gemm2(A, A, transpose, not transpose, alpha)


__getattr__ = missing("mx.nd.linalg")
