"""Tensors over memory of other libraries: of NumPy, and of others through DLPack."""
import weakref

import numpy

from . import _core
from ._core import ffi, here, lib, shape_of
from ._tensor import Tensor, _numpy, array, device_of, dtypes, wrap

_MAIN_MEMORY = (1, 3)  # DLPack's kDLCPU and kDLCUDAHost
_adopted: dict = {}  # objects kept alive by tensors in their memory, by address


@ffi.def_extern()
def slpy_release(data, arg):
    _adopted.pop(int(ffi.cast("uintptr_t", arg)), None)


_lent: dict = {}  # by their ids: weak references to NumPy's arrays that are read-only because tensors are in their memory


def lend(values, device=None):
    """from_numpy, after which the array is read-only; one that is so for this reason already is not copied."""
    key = id(values)
    found = _lent.get(key)
    made = _over(values, device, values.flags.writeable or found is not None and found() is values)
    values.flags.writeable = False
    _lent[key] = weakref.ref(values, lambda _: _lent.pop(key, None))
    return made


def from_numpy(values, device=None):
    """A tensor in the memory of a NumPy array, without a copy.

    Do not change the array while the tensor exists.  An array is copied if it is not contiguous (C order), is read-only, has
    another byte order, or has a type that tensors lack.
    """
    if not isinstance(values, numpy.ndarray):
        raise _core.wrong("values", values, "a NumPy array")
    return _over(values, device, values.flags.writeable)


def _over(values, device, writeable):
    name = values.dtype.name
    flags = values.flags
    if name not in _numpy or not values.dtype.isnative or not values.size or not (flags.c_contiguous and writeable and flags.aligned):
        return array(values, device=device)
    data = ffi.from_buffer(values, require_writable=False)
    key = id(data)
    _adopted[key] = (data, values)
    p = lib.sl_adopt_at(
        here(), data, shape_of(values.shape), lib.slpy_release, ffi.cast("void *", key), (dtypes[name], device_of(device))
    )
    if not p:
        del _adopted[key]
    return wrap(p, Tensor)


def from_dlpack(other, device=None):
    """A tensor in the memory of another library's array, through DLPack.

    Without a copy if the memory is writable and contiguous; then operations in place change both, once they are computed.
    Arrays on GPUs must be copied to main memory first.
    """
    if not hasattr(other, "__dlpack__"):
        raise _core.wrong("other", other, "an array with __dlpack__")
    kind, index = map(int, other.__dlpack_device__())
    if kind not in _MAIN_MEMORY:
        raise _core.DeviceError(f"from_dlpack: the array is on DLPack's device ({kind}, {index}); copy it to main memory first")
    if isinstance(other, Tensor):
        return array(other, device=device)
    try:
        values = other if isinstance(other, numpy.ndarray) else numpy.from_dlpack(other)
    except RuntimeError as error:
        raise _core.DTypeError(f"from_dlpack: NumPy, which unpacks the values: {error}") from None
    return from_numpy(values, device)
