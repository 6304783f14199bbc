"""Programs on PyTorch's tensors in one call: the module starling._call, which is in the file of starling._ffi."""
import importlib.machinery
import importlib.util
import sys

import torch

from .._core import ffi, lib
from . import _memory
from ._results import _new
from ._text import raise_error

_CODES = {  # DLPack's: (kind, bits)
    torch.float32: (2, 32), torch.float64: (2, 64), torch.float16: (2, 16), torch.bfloat16: (4, 16), torch.int32: (0, 32),
    torch.int64: (0, 64), torch.uint8: (1, 8), torch.bool: (6, 8),
}  # fmt: skip


def _load():
    loader = importlib.machinery.ExtensionFileLoader("starling._call", sys.modules["starling._ffi"].__file__)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("starling._call", loader))
    loader.exec_module(module)
    return module


def _failed(status):
    """Raises the engine's error; returns if the engine wants tasks, as while it records a trace."""
    if status == lib.SL_EUNSUPPORTED:
        return lib.sl_error_clear()
    _memory.forget()
    raise_error(status)


_module = _load()
_table = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
_known = _table is not None and _module.setup(
    _table, torch._C.TensorBase, _new, torch.Tensor.untyped_storage, torch.Tensor.storage_offset, torch.Tensor.is_neg,
    torch.UntypedStorage.nbytes, _memory.resized, _failed,
)  # fmt: skip
_memory.count_stops(_module.stopped)


def caller(plan, takes, gives, memory, check):
    """A function that computes a plan; None: it needs tasks.

    takes and gives: as in Quick.  memory: the Results of the plan.  check: a function of the arguments that raises an error, or None.
    The function takes a list of arguments, which it clears, and numbers; it returns a list, or None if it cannot take these arguments.
    """
    if not _known or not lib.sl_plan_may_call(plan):
        return None
    takes = [(x, tuple(shape), *_CODES[dtype]) for x, shape, dtype in takes]
    address = int(ffi.cast("uintptr_t", plan))
    return _module.caller(plan, address, takes, memory.alone, gives, check, memory.put if memory.groups else None)
