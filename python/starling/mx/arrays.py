"""mx.nd: arrays in files, and exchange with other libraries."""
import struct

import numpy

from .. import _foreign, _tensor, _whole_files
from .._core import FormatError, text_of, wrong
from .._tensor import Tensor
from .context import cpu
from ._array import NDArray

_LIST, _V2, _DENSE = 0x112, 0xF993FAC9, 0
_TYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]  # by MXNet's numbers


def _array_bytes(a):
    values = numpy.asarray(a.asnumpy(), order="C")
    version = _V2 if values.size and values.ndim else _V2 + 1  # the one with NumPy's shapes
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
        raise ValueError("data needs to either be a NDArray, dict of str, NDArray pairs or a list of NDarrays.")
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
            shape = self.shape(magic)
        else:
            raise FormatError(f"nd.load: an array begins with 0x{magic:08x}, which is not a version of the format")
        _, _, kind = self.numbers("iii")
        if not 0 <= kind < len(_TYPES):
            raise FormatError(f"nd.load: {kind} is not a data type of MXNet")
        dtype = numpy.dtype(_TYPES[kind])
        values = numpy.frombuffer(self.take(int(numpy.prod(shape, dtype=object)) * dtype.itemsize), dtype).reshape(shape)
        return _tensor.array(values, str(dtype), cpu().device, NDArray)

    def shape(self, magic):
        """The shape of an array of the later versions."""
        (stored,) = self.numbers("i") if magic >= _V2 else (_DENSE,)
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
    made = _foreign.from_numpy(ndarray, cpu().device) if zero_copy else _tensor.array(ndarray, ndarray.dtype, cpu().device)
    made.__class__ = NDArray
    if zero_copy:
        ndarray.flags.writeable = False  # as in MXNet: the array may be read at any time
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
