"""Sparse arrays: CSRNDArray and RowSparseNDArray keep the stored elements (or rows) and their places.

A function without a sparse form takes the dense values, as in MXNet: the property _p, where all functions look for the engine's
tensor, makes it when it is first asked for.  An array may also begin as a dense result, whose stored elements are found later.
Results that the engine makes with the class of a sparse array become dense arrays.
"""
import numpy

from .. import _ops as ops
from .._core import lib
from .._tensor import Tensor, array as _array, borrow
from . import _signed
from ._array import NDArray
from .base import MXNetError, NotSupportedForSparseNDArray
from .context import Context, known

_pointer, _kept = Tensor._p, Tensor._stored  # the places of each tensor that all its classes share


class Stored:
    """What a sparse array keeps: its shape, data type and context, and its parts, the elements and their places.

    parts is None if they follow from the dense values; live: these change, as those of a gradient, so that parts are not kept.
    """

    __slots__ = ("shape", "dtype", "context", "parts", "live")

    def __init__(self, shape, dtype, context, parts=None, live=False):
        self.shape, self.dtype, self.context, self.parts, self.live = tuple(int(d) for d in shape), numpy.dtype(dtype).type, context, parts, live
        if not _signed.hooks:
            from ._storage import dispatched

            _signed.hooks.append(dispatched)


def integers(values, context):
    """Places as an array of int64."""
    return _array(numpy.asarray(values, numpy.int64), "int64", context.device, NDArray)


def made(kind, parts, shape, dtype=None, context=None):
    """A sparse array of these parts."""
    t = object.__new__(kind)
    _kept.__set__(t, Stored(shape, dtype or parts[0].dtype, context or parts[0].context, tuple(parts)))
    return t


def labelled(dense, stype, live=False, context=None):
    """A dense result as an array of another storage type; it stays the same for a backward pass."""
    if stype == "default":
        return dense
    if dense.is_symbol:
        return dense
    kind = KINDS[stype]
    kind._check(dense.shape)
    stored = Stored(dense.shape, dense.dtype, context or dense.context, live=live)
    t = object.__new__(kind)
    _kept.__set__(t, stored)
    _pointer.__set__(t, dense._p)
    return t


def chosen_rows(dense, numbers, context):
    """Some rows of a dense array, as an array of row_sparse; gradients flow to them."""
    numbers = numpy.unique(numbers.asnumpy().astype(numpy.int64))
    if numbers.size and not 0 <= numbers[0] <= numbers[-1] < dense.shape[0]:
        raise ValueError(f"row {numbers[0] if numbers[0] < 0 else numbers[-1]} of {dense.shape[0]} rows")
    chosen = numpy.zeros((dense.shape[0],) + (1,) * (dense.ndim - 1), "bool")
    chosen[numbers] = True
    mask = _array(chosen, "bool", dense.context.device, NDArray)
    masked = dense if chosen.all() else ops.where(ops.broadcast_to(mask, dense.shape), dense, dense.zeros_like())
    t = labelled(masked, "row_sparse", context=context)
    places = integers(numbers, context)
    _kept.__get__(t).parts = (borrow(dense._p, NDArray).detach()[places], places)
    return t


def dense_of(t):
    """The dense values: the array itself if it is dense."""
    return borrow(t._p, NDArray) if isinstance(t, BaseSparseNDArray) else t


def stype_of(t):
    """The storage type of an array; None for other values."""
    return t.stype if isinstance(t, Tensor) and hasattr(type(t), "stype") else None


class BaseSparseNDArray(NDArray):
    """A sparse array."""

    __slots__ = ()

    @property
    def _p(self):
        try:
            return _pointer.__get__(self)
        except AttributeError:
            pass
        dense = _array(self._values(), str(numpy.dtype(self.dtype)), self.context.device, NDArray)
        _pointer.__set__(self, dense._p)
        return dense._p

    @_p.setter
    def _p(self, p):
        _pointer.__set__(self, p)
        try:
            stored = _kept.__get__(self)
        except AttributeError:  # a new result of the engine
            self.__class__ = NDArray
            return
        stored.parts, stored.live = None, True  # a gradient's values from now on

    def _is_dense(self):
        """Whether the dense values exist."""
        try:
            return bool(_pointer.__get__(self))
        except AttributeError:
            return False

    def _parts(self):
        """The stored elements and their places, as arrays."""
        stored = _kept.__get__(self)
        if stored.parts is not None:
            return stored.parts
        values, *places = self._found(Tensor.numpy(self, copy=True))
        parts = (_array(values, str(numpy.dtype(stored.dtype)), self.context.device, NDArray), *(integers(p, self.context) for p in places))
        if not stored.live:
            stored.parts = parts
        return parts

    # ---- what it is

    @property
    def shape(self):
        """The lengths of the axes."""
        return _kept.__get__(self).shape

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """Sparse arrays have no size, as in MXNet."""
        raise NotImplementedError("the size of a sparse array: use that of its data")

    @property
    def dtype(self):
        """The data type as NumPy's class."""
        return _kept.__get__(self).dtype

    @property
    def context(self):
        """The device."""
        return _kept.__get__(self).context

    ctx = context
    is_symbol = False

    @property
    def data(self):
        """The stored elements."""
        return self._parts()[0]

    @property
    def indices(self):
        """The columns of the stored elements, or the numbers of the stored rows."""
        return self._parts()[1]

    @property
    def _num_aux(self):
        return len(self._parts()) - 1

    def __len__(self):
        return self.shape[0]

    def __bool__(self):
        raise NotSupportedForSparseNDArray("Function __bool__ is not supported for SparseNDArray and only available in NDArray.")

    def __repr__(self):
        return f"\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    __str__ = __repr__

    def __reduce__(self):
        return _again, (self.stype, tuple(p.asnumpy() for p in self._parts()), self.shape, self.context)

    # ---- values

    def asnumpy(self):
        """The dense values as a NumPy array."""
        return self._values() if _kept.__get__(self).parts is not None else Tensor.numpy(self, copy=True)

    def asscalar(self):
        """Sparse arrays have no single value, as in MXNet."""
        raise NotImplementedError("asscalar of a sparse array")

    def reshape(self, *shape, **_):
        """Refused, as in MXNet."""
        raise NotSupportedForSparseNDArray("Function reshape is not supported for SparseNDArray and only available in NDArray.")

    _at = _slice = _sync_copyfrom = reshape

    def astype(self, dtype, copy=True):
        """The values as another data type."""
        if not copy and numpy.dtype(dtype) == numpy.dtype(self.dtype):
            return self
        return mapped(self, lambda x: x.astype(dtype))

    def tostype(self, stype):
        """The values as an array of another storage type."""
        if stype in ("default", self.stype):
            return dense_of(self).copy() if stype == "default" else self.copy()
        if stype not in KINDS:
            raise ValueError(f"{stype!r} is not a storage type; these are default, row_sparse and csr")
        raise ValueError(f"cast_storage from {self.stype} to {stype} is not supported")

    def copy(self):
        """A new array with the same elements."""
        return mapped(self, lambda x: x.copy())

    def detach(self):
        """The same values without a history."""
        if self._is_dense():
            return labelled(NDArray.detach(dense_of(self)), self.stype)
        return made(type(self), self._parts(), self.shape)

    def copyto(self, other):
        """A copy on a context, or into another array, which is returned."""
        if isinstance(other, Context):
            return made(type(self), [p.copyto(other) for p in self._parts()], self.shape, context=other)
        if isinstance(other, BaseSparseNDArray) and other.stype != self.stype:
            raise TypeError(f"copyto does not support destination NDArray stype {other.stype}")
        if not isinstance(other, Tensor):
            raise TypeError(f"copyto does not support type {type(other).__name__}")
        other[:] = self if isinstance(other, BaseSparseNDArray) else dense_of(self)
        return other

    def as_in_context(self, context):
        """The array itself if it is on that context, else a copy."""
        return self if self.context == context else self.copyto(context)

    as_in_ctx = as_in_context

    def attach_grad(self, grad_req="write", stype=None):
        """Attaches a gradient, of the storage type of the array unless stype says otherwise."""
        return NDArray.attach_grad(self, grad_req, stype or self.stype)

    def wait_to_read(self):
        """Waits until the values are computed."""
        (dense_of(self) if self._is_dense() else self._parts()[0]).wait()

    wait_to_write = wait_to_read

    @property
    def T(self):
        """With the axes in reverse order: dense, as in MXNet."""
        return dense_of(self).T

    # ---- changes

    def __setitem__(self, key, value):
        if key != slice(None):
            raise TypeError(f"{type(self).__name__} only supports [:] for assignment")
        if isinstance(value, Tensor) and value.shape != self.shape:
            raise ValueError(f"an array of shape {value.shape} does not fit into one of shape {self.shape}")
        self._assign(value)

    def _assign(self, value):
        """Replaces all values."""
        stored = _kept.__get__(self)
        same_kind = type(value) is type(self) and not stored.live
        if same_kind and not self._is_dense():
            stored.parts = tuple(p.copyto(self.context) for p in value.astype(self.dtype, copy=False)._parts())
            return
        dense = dense_of(self)
        dense[slice(None)] = numpy.broadcast_to(value, self.shape) if not isinstance(value, Tensor) else dense_of(value)
        stored.parts = None

    def check_format(self, full_check=True):
        """An exception if the places are not valid."""
        if full_check and (fault := self._fault(*(p.asnumpy() for p in self._parts()[1:]))):
            raise MXNetError(f"{type(self).__name__}.check_format: {fault}")


class CSRNDArray(BaseSparseNDArray):
    """A matrix of which the stored elements are kept by rows: those of row i are data[indptr[i]:indptr[i + 1]]."""

    __slots__ = ()
    stype = "csr"

    @staticmethod
    def _check(shape):
        if len(shape) != 2:
            raise ValueError(f"To convert to a CSR, the NDArray should be 2 Dimensional. Current shape is {shape}")

    @staticmethod
    def _found(values):
        rows, columns = values.nonzero()
        return values[rows, columns], columns, numpy.searchsorted(rows, numpy.arange(len(values) + 1))

    def _values(self):
        data, columns, begins = (p.asnumpy() for p in self._parts())
        values = numpy.zeros(self.shape, data.dtype)
        numpy.add.at(values, (rows_of(begins), columns), data)
        return values

    @property
    def indptr(self):
        """Where the elements of each row begin, and where those of the last end."""
        return self._parts()[2]

    def asscipy(self):
        """The matrix as scipy.sparse.csr_matrix."""
        from scipy.sparse import csr_matrix

        data, columns, begins = (p.asnumpy() for p in self._parts())
        return csr_matrix((data, columns, begins), shape=self.shape, dtype=self.dtype)

    def __getitem__(self, key):
        if isinstance(key, (int, numpy.integer)):
            row = int(key) % self.shape[0] if -self.shape[0] <= key < self.shape[0] else self.shape[0]
            return self._rows(row, min(row + 1, self.shape[0]))
        if not isinstance(key, slice):
            raise ValueError("Multi-dimension indexing is not supported")
        if key.step not in (None, 1):
            raise ValueError("CSRNDArray only supports continuous slicing on axis 0")
        begin, end, _ = key.indices(self.shape[0])
        return self if (begin, end) == (0, self.shape[0]) and key == slice(None) else self._rows(begin, max(begin, end))

    def _rows(self, begin, end):
        """Some of the rows, one after the other."""
        if lib.sl_is_recording() and self._is_dense():
            return labelled(dense_of(self)[begin:end], "csr")
        data, columns, begins = (p.asnumpy() for p in self._parts())
        part = slice(begins[begin], begins[end])
        return csr_of((data[part], columns[part], begins[begin : end + 1] - begins[begin]), (end - begin, self.shape[1]), self.context)

    def _assign(self, value):
        if not isinstance(value, (Tensor, numpy.ndarray)) and not hasattr(value, "tocsr"):
            raise ValueError("a CSRNDArray takes no numbers by assignment; assign an array")
        BaseSparseNDArray._assign(self, value.toarray() if hasattr(value, "tocsr") else value)

    def _fault(self, columns, begins):
        if len(begins) != self.shape[0] + 1 or begins[0] or begins[-1] != len(columns) or (numpy.diff(begins) < 0).any():
            return "indptr begins with 0, does not fall, and ends with the number of elements"
        if ((columns < 0) | (columns >= self.shape[1])).any():
            return f"a column is not among the {self.shape[1]} of the matrix"
        rows = rows_of(begins)
        return "the columns of a row do not ascend" if ((numpy.diff(rows) == 0) & (numpy.diff(columns) <= 0)).any() else None


class RowSparseNDArray(BaseSparseNDArray):
    """An array of which some rows are stored: data[i] is row indices[i]."""

    __slots__ = ()
    stype = "row_sparse"

    @staticmethod
    def _check(shape):
        if not shape:
            raise ValueError("an array without axes has no rows")

    @staticmethod
    def _found(values):
        rows = numpy.flatnonzero(values.reshape((len(values), -1)).any(1)) if values.size else numpy.zeros(0, numpy.int64)
        return values[rows], rows

    def _values(self):
        data, rows = (p.asnumpy() for p in self._parts())
        values = numpy.zeros(self.shape, data.dtype)
        values[rows] = data
        return values

    def __getitem__(self, key):
        if isinstance(key, (int, numpy.integer)):
            raise TypeError("a RowSparseNDArray has no index by a number; use [:], or tostype('default')")
        if key != slice(None):
            raise ValueError("RowSparseNDArray only supports [:] for __getitem__")
        return self

    def _assign(self, value):
        if value is not self:
            BaseSparseNDArray._assign(self, value)

    def retain(self, indices):
        """The rows with these numbers alone."""
        from .sparse import retain

        return retain(self, indices)

    def _fault(self, rows):
        if ((rows < 0) | (rows >= self.shape[0])).any():
            return f"a row is not among the {self.shape[0]} of the array"
        return "the numbers of the rows do not ascend" if (numpy.diff(rows) <= 0).any() else None


KINDS = {"csr": CSRNDArray, "row_sparse": RowSparseNDArray}


def _again(stype, parts, shape, context):
    data, *places = parts
    values = _array(data, str(data.dtype), context.device, NDArray)
    return made(KINDS[stype], [values, *(integers(p, context) for p in places)], shape, context=context)


def csr_of(parts, shape, context, dtype=None):
    """A matrix of NumPy's arrays: elements, columns, begins of rows."""
    data, columns, begins = parts
    values = _array(numpy.asarray(data), str(numpy.dtype(dtype or data.dtype)), context.device, NDArray)
    return made(CSRNDArray, (values, integers(columns, context), integers(begins, context)), shape, context=context)


def rows_of(begins):
    """The row of each element."""
    return numpy.repeat(numpy.arange(len(begins) - 1), numpy.diff(begins))


def mapped(t, function):
    """A function that is 0 at 0, of the stored elements; while recording, of the dense values, whose history it has."""
    if _kept.__get__(t).live or lib.sl_is_recording():
        return labelled(function(dense_of(t)), t.stype)
    data, *places = t._parts()
    return made(type(t), (function(data), *places), t.shape)


def empty(stype, shape, ctx=None, dtype=None):
    """An array without stored elements."""
    if stype not in KINDS:
        raise ValueError(f"unknown storage type: {stype}")
    shape = (shape,) if isinstance(shape, (int, numpy.integer)) else tuple(shape)
    KINDS[stype]._check(shape)
    context = known(ctx)
    values = _array(numpy.zeros((0, *shape[1:]) if stype == "row_sparse" else 0), str(numpy.dtype(dtype or "float32")), context.device, NDArray)
    begins = [integers(numpy.zeros(shape[0] + 1), context)] if stype == "csr" else []
    return made(KINDS[stype], [values, integers([], context), *begins], shape, context=context)
