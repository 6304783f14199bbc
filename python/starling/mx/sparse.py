"""mx.nd.sparse: the classes of sparse arrays, of which there are none, so that programs can ask whether an array is one.  Making
one is refused by name."""
from .unsupported import missing, not_here


class BaseSparseNDArray:
    """A sparse array."""

    def __init__(self, *_, **__):
        raise not_here(f"mx.nd.sparse.{type(self).__name__}", "dense arrays")


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which a few rows are not zero."""


class CSRNDArray(BaseSparseNDArray):
    """A matrix of which a few elements are not zero."""


def _refused(name):
    def make(*_, **__):
        raise not_here(f"mx.nd.sparse.{name}", "dense arrays")

    make.__name__ = name
    make.__doc__ = "Refused: arrays are dense."
    return make


csr_matrix, row_sparse_array = _refused("csr_matrix"), _refused("row_sparse_array")
__getattr__ = missing("mx.nd.sparse")
