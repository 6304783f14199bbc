"""mx.nd: arrays in files, and exchange with other libraries."""
import struct

import numpy

from .. import _foreign, _tensor, _whole_files
from .._core import FormatError, InvalidArgument, text_of, wrong
from .._tensor import Tensor
from .context import cpu
from ._array import NDArray
from ._mode import is_np_shape

_LIST, _V2, _DENSE = 0x112, 0xF993FAC9, 0
_STORED = {1: ("row_sparse", 1), 2: ("csr", 2)}  # by MXNet's number: the storage type, how many arrays of places there are
_TYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]  # by MXNet's numbers


def _shape_bytes(shape):
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _sparse_bytes(a):
    """A sparse array: its parts, and before them their shapes; MXNet has the begins of rows before the columns."""
    data, *places = (numpy.asarray(p.asnumpy(), order="C") for p in a._parts())
    places, number = places[::-1], next(n for n, (stype, _) in _STORED.items() if stype == a.stype)
    heads = b"".join(struct.pack("<i", _TYPES.index("int64")) + _shape_bytes(p.shape) for p in places)
    values = b"".join(p.tobytes() for p in (data, *places))
    return (struct.pack("<Ii", _V2, number) + _shape_bytes(data.shape) + _shape_bytes(a.shape)
            + struct.pack("<iii", 1, 0, _TYPES.index(data.dtype.name)) + heads + values)  # fmt: skip


def _array_bytes(a):
    if a.stype != "default":
        return _sparse_bytes(a)
    values = numpy.asarray(a.asnumpy(), order="C")
    of_numpy = not values.ndim or not values.size and is_np_shape()  # in shapes of version 2, 0 is an unknown length
    version = _V2 + 1 if of_numpy else _V2
    head = struct.pack("<Iii", version, _DENSE, values.ndim) + struct.pack(f"<{values.ndim}q", *values.shape)
    if values.dtype.name not in _TYPES:
        raise TypeError(f"save: {values.dtype} has no place in MXNet's files")
    return head + struct.pack("<iii", 1, 0, _TYPES.index(values.dtype.name)) + values.tobytes()


def save(fname, data):
    """Writes an array, a list, or a dictionary of arrays to a file in MXNet's format."""
    if isinstance(data, Tensor):
        data = [data]
    names = list(data) if isinstance(data, dict) else []
    arrays = list(data.values()) if isinstance(data, dict) else data
    if not isinstance(arrays, (list, tuple)) or not all(isinstance(a, NDArray) for a in arrays):
        raise InvalidArgument("data needs to either be a NDArray, dict of str, NDArray pairs or a list of NDarrays.")
    parts = [struct.pack("<QQQ", _LIST, 0, len(arrays)), *map(_array_bytes, arrays), struct.pack("<Q", len(names))]
    for name in names:
        text = str(name).encode()
        parts += [struct.pack("<Q", len(text)), text]
    _whole_files.write(fname, b"".join(parts))


class _Reader:
    def __init__(self, buffer):
        self._buffer, self._at = buffer, 0

    def take(self, n):
        part = self._buffer[self._at : self._at + n]
        if n < 0 or len(part) != n:
            raise FormatError("nd.load: the file is cut off, or is not MXNet's")
        self._at += n
        return part

    def numbers(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def array(self):
        (magic,) = self.numbers("I")
        if magic <= 32:  # the oldest version begins with the number of axes
            shape = self.numbers(f"{magic}I")
        elif _V2 - 1 <= magic <= _V2 + 1:
            (stored,) = self.numbers("i") if magic >= _V2 else (_DENSE,)
            if stored in _STORED:
                return self.sparse(*_STORED[stored])
            shape = self.shape(stored)
            if 0 in shape and (magic > _V2) != is_np_shape():
                raise FormatError(f"nd.load: the array of shape {shape} was saved {'with' if magic > _V2 else 'without'} mx.np_shape, where 0 has another "
                                  f"meaning; load it {'with' if magic > _V2 else 'without'} it")  # fmt: skip
        else:
            raise FormatError(f"nd.load: an array begins with 0x{magic:08x}, which is not a version of the format")
        _, _, kind = self.numbers("iii")
        values = self.values(shape, self.type(kind))
        return _tensor.array(values, str(values.dtype), cpu().device, NDArray)

    def type(self, kind):
        """The data type of that number."""
        if not 0 <= kind < len(_TYPES):
            raise FormatError(f"nd.load: {kind} is not a data type of MXNet")
        return numpy.dtype(_TYPES[kind])

    def values(self, shape, dtype):
        """The elements of an array."""
        return numpy.frombuffer(self.take(int(numpy.prod(shape, dtype=object)) * dtype.itemsize), dtype).reshape(shape)

    def sparse(self, stype, count):
        """A sparse array."""
        stored, shape = self.shape(_DENSE), self.shape(_DENSE)
        _, _, kind = self.numbers("iii")
        heads = [(self.type(*self.numbers("i")), self.shape(_DENSE)) for _ in range(count)]
        data = self.values(stored, self.type(kind))
        places = [self.values(shape_, dtype) for dtype, shape_ in heads][::-1]
        from . import sparse

        make = sparse.csr_matrix if stype == "csr" else sparse.row_sparse_array
        made = make((data, *places), tuple(shape), cpu(), data.dtype) if all(shape) else sparse.zeros(stype, tuple(shape), cpu(), data.dtype)
        made.check_format()
        return made

    def shape(self, stored):
        """A shape of the later versions."""
        if stored not in (_DENSE, -1):
            raise FormatError("nd.load: the file has arrays of another kind than dense ones of MXNet 1.x")
        (ndim,) = self.numbers("i")
        return self.numbers(f"{ndim}q") if 0 <= ndim <= 32 else self.take(-1)


def load_frombuffer(buf):
    """The arrays in the bytes of a file of save."""
    reader = _Reader(bytes(buf))
    magic, _, count = reader.numbers("QQQ")
    if magic != _LIST:
        raise FormatError("nd.load: the file is not MXNet's")
    arrays = [reader.array() for _ in range(count)]
    (named,) = reader.numbers("Q")
    names = [reader.take(*reader.numbers("Q")).decode() for _ in range(named)]
    return dict(zip(names, arrays)) if names else arrays


def load(fname):
    """The arrays in a file: a list, or a dictionary if they have names."""
    if not isinstance(fname, str):
        raise TypeError("fname required to be a string")
    text_of(fname, "fname")
    return load_frombuffer(_whole_files.read("nd.load", fname))


def from_numpy(ndarray, zero_copy=True):
    """An array in NumPy's memory, or with a copy."""
    if not isinstance(ndarray, numpy.ndarray):
        raise wrong("from_numpy: ndarray", ndarray, "a NumPy array")
    if zero_copy and not ndarray.flags.c_contiguous:
        raise InvalidArgument("Only c-contiguous arrays are supported for zero-copy")
    # With zero_copy NumPy's array is read-only from now on, as in MXNet: it may be read at any time.
    made = _foreign.lend(ndarray, cpu().device) if zero_copy else _tensor.array(ndarray, ndarray.dtype, cpu().device)
    made.__class__ = NDArray
    return made


def to_dlpack_for_read(data):
    """Waits for the values and returns a DLPack capsule."""
    return data.__dlpack__()


to_dlpack_for_write = to_dlpack_for_read


class _Capsule:
    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **_):
        return self._capsule

    def __dlpack_device__(self):
        return (1, 0)


def from_dlpack(dlpack):
    """An array in another library's memory."""
    made = _foreign.from_dlpack(dlpack if hasattr(dlpack, "__dlpack__") else _Capsule(dlpack), cpu().device)
    made.__class__ = NDArray
    return made
