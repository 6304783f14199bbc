"""One piece of memory for PyTorch's tensors and Starling's: inputs are adopted, results are shown in place.

The engine's handle of a piece of memory is kept by address and type, because making one costs more than a small program.
Programs run on CPUs and each call waits for its results, so between calls no task uses a handle, and main memory has the only
copy: whatever PyTorch does to the memory meanwhile (writing it, freeing it, giving it to another tensor) is seen, or does not
matter, at the next call, which takes the address from a tensor that is alive.
"""
import math
import threading

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .._core import InternalError, ffi, lib
from .._engine import when_stopped
from ._text import HERE, NUMBERS, checked_status, raise_error

MOST = 2048  # handles that are kept, of some 20 KB each
FEW = 64  # handles, beside as many as there are of tensors that live, before those of freed ones are dropped
DEVICE = (lib.SL_DEVICE_CPU, -1)
_AXES = 6

handles: dict = {}  # (address, shape, dtype): [a pointer of the engine, which has the reference; whether it was used again; its storage]
_shown: dict = {}  # the same for results whose memory PyTorch's tensors show
_lock = threading.Lock()
_stops, _count = 0, None
_limit = FEW  # the number of handles at which those of freed tensors are looked for


def _shape(shape):
    return (len(shape), (*shape, *[0] * (_AXES - len(shape))))


def resized(t):
    """The error for a tensor whose storage is smaller than it needs."""
    raise RuntimeError(f"the memory of a tensor of shape {tuple(t.shape)} was resized to {t.untyped_storage().nbytes()} bytes")


def _is_whole(t):
    return t.untyped_storage().nbytes() >= (t.storage_offset() + t.numel()) * t.itemsize


def _adopt(t, key):
    p = lib.sl_adopt_at(HERE, ffi.cast("void *", key[0]), _shape(key[1]), ffi.NULL, ffi.NULL, (NUMBERS[t.dtype], DEVICE))
    if not p:
        raise_error()
    p = ffi.gc(p, lib.sl_release)
    with _lock:
        if len(handles) >= _limit:
            _drop_freed()
        if len(handles) >= MOST:
            _make_room()
        handles[key] = [p, False, StorageWeakRef(t.untyped_storage())]
    return p


def _drop_freed():
    global _limit
    for key, entry in list(handles.items()):
        if entry[2].expired():
            del handles[key]
    _limit = min(2 * len(handles) + FEW, MOST)


def drop_freed():
    """Drops the handles of tensors that were freed: those of models that are gone, before another one is compiled."""
    with _lock:
        _drop_freed()


def _make_room():
    """Drops handles that were used only once, or the older half; a call under way has references."""
    once = [key for key, entry in handles.items() if not entry[1]]
    for key in once if len(once) >= MOST // 4 else list(handles)[: MOST // 2]:
        del handles[key]
    for entry in handles.values():
        entry[1] = False


def handle(t):
    """The engine's tensor over the memory of a contiguous tensor with elements."""
    if not _is_whole(t):
        resized(t)
    key = (t.data_ptr(), t.shape, t.dtype)
    entry = handles.get(key)
    if entry is None:
        p = _shown.get(key)
        return _adopt(t, key) if p is None else p
    entry[1] = True
    return entry[0]


def forget():
    """Drops all handles: after an error, which spoils what was written."""
    with _lock:
        handles.clear()


def shown_once(p, shape, dtype, seen):
    """The same, where results in one place share a tensor's counter of changes in place; seen: those of this call, by address."""
    t = shown(p, shape, dtype)
    first = seen.setdefault(t.data_ptr(), t)
    return t if first is t or first.numel() != t.numel() or first.dtype != t.dtype else first.view(shape)


def shown(p, shape, dtype):
    """A PyTorch tensor over the memory of a result; waits for it."""
    if lib.sl_tensor_dtype(p) != NUMBERS[dtype] or lib.sl_tensor_size(p) != math.prod(shape):
        raise InternalError(f"a result is not {dtype} {tuple(shape)}")
    values = lib.sl_values_at(HERE, p)
    if not values:  # written more than once, or with GPUs: a copy
        if lib.sl_error():
            raise_error()
        t = torch.empty(shape, dtype=dtype)
        checked_status(lib.sl_read_at(HERE, p, ffi.cast("void *", t.data_ptr()), t.nbytes))
        return t
    key = (int(ffi.cast("uintptr_t", values)), torch.Size(shape), dtype)
    _shown[key] = p

    def end(_):
        if _shown.get(key) is p:
            del _shown[key]
        lib.sl_values_end(p)

    seen = ffi.gc(ffi.cast("char *", values), end)
    flat = torch.frombuffer(ffi.buffer(seen, lib.sl_tensor_bytes(p)), dtype=dtype)
    # Another tensor over its storage, not a view: PyTorch forbids changes in place of views that a function returned.
    return torch.empty(0, dtype=dtype).set_(flat.untyped_storage(), 0, shape, contiguous(shape))


def count_stops(function):
    """Has this function, which returns another number each time, called when the engine has stopped."""
    global _count
    _count = function
    when_stopped.append(_stopped)


def _stopped():
    global _stops
    _stops = _count()
    forget()


def generation():
    """Another number after each stop of the engine: handles and plans are those of one run of it."""
    if not lib.sl_is_initialized():
        _stopped()
        checked_status(lib.sl_init_at(HERE, ffi.NULL))
    return _stops


def contiguous(shape):
    """The strides of an array in C's order."""
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    return tuple(strides)


def wait(p):
    """Waits for what a program wrote into an input."""
    checked_status(lib.sl_wait_at(HERE, p))
