"""mx.nd.sparse: making sparse arrays, and functions of them; other functions are those of mx.nd."""
import numpy

from .._core import StateError, lib
from .._tensor import Tensor
from . import nd
from ._array import NDArray
from ._sparse import KINDS, BaseSparseNDArray, CSRNDArray, RowSparseNDArray, csr_of, dense_of, empty, integers, labelled, made
from ._storage import cast_storage, elementwise
from .base import MXNetError
from .context import known
from .unsupported import missing

__all__ = ["BaseSparseNDArray", "CSRNDArray", "RowSparseNDArray", "add", "array", "cast_storage", "csr_matrix", "divide", "empty", "multiply",
           "retain", "row_sparse_array", "subtract", "zeros"]  # fmt: skip


def _type_of(source, dtype):
    if dtype is not None:
        return numpy.dtype(dtype)
    return numpy.dtype(source.dtype) if isinstance(source, (Tensor, numpy.ndarray)) or hasattr(source, "tocsr") else numpy.dtype("float32")


def _numbers(values, dtype=None):
    return values.asnumpy() if isinstance(values, Tensor) else numpy.asarray(values, dtype)


def _same_shape(found, wanted):
    if wanted and tuple(found) != tuple(wanted):
        raise ValueError(f"Shape mismatch detected. {tuple(found)} v.s. {tuple(wanted)}")


def _lengths(arg):
    """Whether an argument is a shape."""
    return isinstance(arg, tuple) and all(isinstance(n, (int, numpy.integer)) for n in arg)


def array(source_array, ctx=None, dtype=None):
    """A copy of a sparse array, also of scipy's."""
    if hasattr(source_array, "tocsr"):
        matrix = source_array.tocsr().copy()
        matrix.sum_duplicates()
        matrix.sort_indices()
        return csr_of((matrix.data, matrix.indices, matrix.indptr), matrix.shape, known(ctx), dtype or matrix.dtype)
    if not isinstance(source_array, BaseSparseNDArray):
        raise ValueError("Unexpected source_array type: ", type(source_array))
    return source_array.astype(dtype or source_array.dtype).copyto(known(ctx))


def csr_matrix(arg1, shape=None, ctx=None, dtype=None):
    """A CSRNDArray: of dense values, of a sparse matrix, of (data, indices, indptr), of (data, (row, column)), or empty of a shape."""
    if isinstance(arg1, RowSparseNDArray):
        raise ValueError("Unexpected input type: RowSparseNDArray")
    if isinstance(arg1, CSRNDArray) or hasattr(arg1, "tocsr"):
        _same_shape(arg1.shape, shape)
        return array(arg1, ctx, dtype)
    if not isinstance(arg1, tuple):
        return _of_dense(arg1, shape, ctx, dtype, "csr")
    if _lengths(arg1) and len(arg1) == 2:
        _same_shape(arg1, shape)
        return empty("csr", arg1, ctx, dtype)
    if len(arg1) == 2:
        return _of_places(arg1[0], arg1[1], shape, ctx, dtype)
    if len(arg1) != 3:
        raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
    return _of_rows(arg1, shape, ctx, dtype)


def _of_dense(values, shape, ctx, dtype, stype):
    dense = nd.array(values, ctx, _type_of(values, dtype))
    _same_shape(dense.shape, shape)
    return labelled(dense, stype, context=known(ctx))


def _of_places(data, places, shape, ctx, dtype):
    """A matrix of elements in any order; those at one place are added."""
    rows, columns = (_numbers(p).astype(numpy.int64) for p in places)
    values = _numbers(data, _type_of(data, None))
    shape = tuple(shape) if shape else (int(rows.max()) + 1, int(columns.max()) + 1)
    keys, at = numpy.unique(rows * shape[1] + columns, return_inverse=True)
    sums = numpy.zeros(len(keys), values.dtype)
    numpy.add.at(sums, at, values)
    begins = numpy.searchsorted(keys // shape[1], numpy.arange(shape[0] + 1))
    return csr_of((sums, keys % shape[1], begins), shape, known(ctx), dtype or values.dtype)


def _of_rows(parts, shape, ctx, dtype):
    data, indices, indptr = (_numbers(p) for p in parts)
    if shape is None:
        if not len(indices):
            raise ValueError("invalid shape")
        shape = len(indptr) - 1, int(indices.max()) + 1
    if len(shape) != 2 or data.ndim != 1 or indices.ndim != 1 or indptr.ndim != 1 or 0 in shape:
        raise ValueError("invalid shape")
    return csr_of((data, indices, indptr), shape, known(ctx), _type_of(parts[0], dtype))


def row_sparse_array(arg1, shape=None, ctx=None, dtype=None):
    """A RowSparseNDArray: of dense values, of a sparse array, of (rows, their numbers), or empty of a shape."""
    if isinstance(arg1, CSRNDArray):
        raise ValueError("Unexpected input type: CSRNDArray")
    if isinstance(arg1, RowSparseNDArray):
        _same_shape(arg1.shape, shape)
        return array(arg1, ctx, dtype)
    if not isinstance(arg1, tuple):
        return _of_dense(arg1, shape, ctx, dtype, "row_sparse")
    if len(arg1) < 2:
        raise ValueError(f"Unexpected length of input tuple: {len(arg1)}")
    if _lengths(arg1):
        _same_shape(arg1, shape)
        return empty("row_sparse", arg1, ctx, dtype)
    return _of_numbered(arg1, shape, ctx, dtype)


def _of_numbered(parts, shape, ctx, dtype):
    context, kind = known(ctx), _type_of(parts[0], dtype)
    data, rows = _numbers(parts[0], kind), _numbers(parts[1])
    if shape is None:
        if not len(rows):
            raise ValueError("invalid shape")
        shape = (int(rows[-1]) + 1, *data.shape[1:])
    if data.ndim != len(shape) or rows.ndim != 1 or 0 in shape[1:]:
        raise ValueError("invalid shape")
    return made(RowSparseNDArray, (nd.array(data, context, kind), integers(rows, context)), shape, context=context)


def zeros(stype, shape, ctx=None, dtype=None, **kwargs):
    """An array of zeros of a storage type."""
    return nd.zeros(shape, ctx, dtype or "float32", **kwargs) if stype == "default" else empty(stype, shape, ctx, dtype)


def retain(data, indices=None, **unknown):
    """The rows with these numbers alone."""
    if unknown or indices is None:
        raise MXNetError(f"retain takes data and indices{'; there is no argument ' if unknown else ''}{', '.join(unknown)}")
    if data.is_symbol:
        raise StateError("retain of a symbol: it has no values yet")
    if not isinstance(data, RowSparseNDArray):
        raise MXNetError(f"retain is for arrays of row_sparse, not of {data.stype}")
    if lib.sl_is_recording():
        return labelled(dense_of(data) * _chosen(indices, data), "row_sparse")
    wanted, (values, rows) = _numbers(indices).astype(numpy.int64).ravel(), (p.asnumpy() for p in data._parts())
    kept = numpy.isin(rows, wanted)
    return made(RowSparseNDArray, (nd.array(values[kept], data.context, data.dtype), integers(rows[kept], data.context)), data.shape)


def _chosen(indices, data):
    """1 in the rows with these numbers, else 0."""
    chosen = numpy.zeros((data.shape[0],) + (1,) * (data.ndim - 1), data.dtype)
    chosen[_numbers(indices).astype(numpy.int64).ravel()] = 1
    return nd.array(chosen, data.context, data.dtype)


def _arithmetic(name, plain):
    def compute(lhs, rhs):
        if isinstance(lhs, Tensor) and isinstance(rhs, Tensor) and lhs.shape == rhs.shape and name != "divide":
            return elementwise({"subtract": "sub", "multiply": "mul"}.get(name, name), plain, lhs, rhs)
        return lhs / rhs if name == "divide" else {"add": lambda: lhs + rhs, "subtract": lambda: lhs - rhs, "multiply": lambda: lhs * rhs}[name]()

    compute.__name__, compute.__doc__ = name, f"{name} of two arrays, or of an array and a number."
    return compute


add, subtract, multiply, divide = (
    _arithmetic(name, getattr(NDArray, f"__{method}__"))
    for name, method in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"), ("divide", "truediv"))
)
_refuse = missing("mx.nd.sparse")


def __getattr__(name):
    found = vars(nd).get(name)
    return found if callable(found) and not name.startswith("_") else _refuse(name)
