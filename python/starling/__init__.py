"""Deep learning on every processor of the machine: the Starling engine from Python.

Calls return at once; StarPU runs them on CPUs and GPUs, in parallel where they are independent.  The program waits only
where it reads a value.

    import starling as sl

    x = sl.normal((1000, 2), 0, 1)
    net = sl.nn.Sequential(sl.nn.Dense(16, activation="relu"), sl.nn.Dense(1))
    net.initialize()
    net.hybridize()
    print(net(x)[:3])
"""
import atexit as _atexit
import os as _os

_os.environ.setdefault("STARPU_SILENT", "1")  # a program that only imports a package expects no messages of its first start

try:
    from ._ffi import ffi as _ffi, lib as _lib
except ImportError as _error:
    if "cannot open shared object" not in str(_error):
        raise
    raise ImportError(f"{_error}; on Debian: apt install libdnnl2 libopenblas0 libgomp1") from None

from . import _core, _operators, autograd, checkpoint, data, init, program
from ._blocks import Block, Initializer, Parameter, load
from ._core import (
    DeviceError,
    DTypeError,
    Error,
    FileError,
    FormatError,
    InternalError,
    InvalidArgument,
    KernelError,
    OutOfMemory,
    ShapeError,
    StateError,
    Timeout,
    Unsupported,
)
from ._custom import Function
from ._engine import init_engine, poll, seed, shutdown, spill, stats, var, version
from ._extra import compared, recurrent, split, topk
from ._files import explain, load_npy, save_npy
from ._ops import *  # noqa: F403
from ._ops import __all__ as _operations
from . import _division, _protocols  # noqa: F401
from ._foreign import from_dlpack, from_numpy
from ._creation import *  # noqa: F403
from ._creation import __all__ as _creation
from ._quantizing import quantize
from ._show import Curves, progress
from ._tensor import Device, Tensor, array, device_count, dtypes, wait_all
from ._training import Accuracy, Cache, Mean, Metric, Schedule, Step, StepAll, TopK, Trainer, split_and_load
from .autograd import autocast, grad, pause, record
from . import dist, nn

# Functions import these.  In the child of a fork an import waits for ever if another thread was importing the same.
from . import _indexing, _words  # noqa: F401

tensor = array
start = init_engine
__version__ = version()
__all__ = [
    "Accuracy", "Block", "Cache", "Curves", "DTypeError", "Device", "DeviceError", "Error", "FileError", "FormatError", "Function", "Initializer",
    "InternalError", "InvalidArgument", "KernelError", "Mean", "Metric", "OutOfMemory", "Parameter", "Schedule", "ShapeError",
    "StateError", "Step", "StepAll", "Tensor", "Timeout", "TopK", "Trainer", "Unsupported", "array", "autocast", "autograd", "checkpoint", "data", "device_count", "dist", "dtypes",
    "explain", "from_dlpack", "from_numpy", "grad", "init", "load", "load_npy", "nn", "pause", "poll", "program", "progress", "quantize", "record", "save_npy", "seed",
    "shutdown", "spill", "split", "split_and_load", "start", "stats", "tensor", "topk", "var", "version", "wait_all", *_operations, *_creation,
]  # fmt: skip

_atexit.register(_core.lib.sl_shutdown_at_exit)  # threads that go on meanwhile, daemons, do not come back from calls
