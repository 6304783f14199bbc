"""Starling's devices as PyTorch's: torch.device("starling", i), made known to PyTorch when it is first asked for."""
import contextlib
import threading

import torch

from .._core import lib
from ._memory import generation
from ._text import HERE, checked_status

# Functions that make tensors of a size that only they know: computed in main memory.
MADE = """arange arange.start arange.start_step eye eye.m linspace logspace randperm randperm.generator tril_indices triu_indices
scalar_tensor""".split()
_local = threading.local()
_library = None


def kind():
    """The engine's kind of these devices: GPUs where there are GPUs, else teams of CPU cores."""
    generation()
    return lib.SL_DEVICE_GPU if lib.sl_device_count(lib.SL_DEVICE_GPU) else lib.SL_DEVICE_CPU


def device_count():
    """The number of devices: GPUs where there are GPUs, else teams of CPU cores.  Starts the engine."""
    return lib.sl_device_count(kind())


def synchronize(device=None):
    """Waits for all work that was queued."""
    if lib.sl_is_initialized():
        checked_status(lib.sl_wait_all_at(HERE))


def device(index=0):
    """One of Starling's devices as a torch.device, for .to(device) and device=: a GPU where there are GPUs, else a team of cores.

        x = torch.randn(2, 3).to(starling.torch.device(1))
    """
    _register()
    if not isinstance(index, int) or not 0 <= index < (n := device_count()):
        raise ValueError(f"device {index!r}: there are {n}, from 0 on; starling.init_engine(teams=…) makes more teams of cores")
    return torch.device("starling", index)


@contextlib.contextmanager
def on(where):
    """The device of operations inside of views."""
    before = current()
    _local.where = where
    try:
        yield
    finally:
        _local.where = before


def current():
    return getattr(_local, "where", 0)


class _Module:
    """What PyTorch asks of a device type, as torch.starling."""

    synchronize, device_count = staticmethod(synchronize), staticmethod(device_count)
    is_initialized = is_available = staticmethod(lambda: True)
    _is_in_bad_fork = staticmethod(lambda: False)
    current_device = staticmethod(lambda: 0)
    manual_seed_all = staticmethod(lambda seed: None)  # random numbers are drawn by PyTorch's generator of CPUs


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self):
        return torch._C._autograd.DeviceType.PrivateUse1


def _check_autograd():
    """Autograd counts devices in its first backward pass."""
    from ._eager import constant

    try:
        constant((), torch.float32, 1, 0).requires_grad_().sum().backward()
    except RuntimeError:
        raise RuntimeError("starling.torch must be imported before the first backward pass of the program") from None


def _register():
    """Makes the devices known to PyTorch, once."""
    global _library
    if _library is not None:
        return
    name = torch._C._get_privateuse1_backend_name()
    if name not in ("privateuseone", "starling"):
        raise RuntimeError(f"PyTorch has room for one further kind of devices, and {name} has it")
    torch.utils.backend_registration._setup_privateuseone_for_python_backend("starling", _Module(), device_guard=_guard)
    from ._eager import assign, constant, from_host
    from . import _failures, _parallel

    def made(op):
        def function(*args, device=None, **kwargs):
            return from_host(op(*args, device="cpu", **kwargs), device.index or 0)

        return function

    def empty(size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
        return constant(size, dtype or torch.get_default_dtype(), 0, device.index or 0)

    def empty_strided(size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
        return constant(size, dtype or torch.get_default_dtype(), 0, device.index or 0)

    def copy_from(source, to, non_blocking=False):
        return assign(to, source)

    _library = torch.library.Library("aten", "IMPL")
    _library.impl("_copy_from", copy_from, "PrivateUse1")  # torch.tensor(…, device=…) leaves subclasses out
    _library.impl("empty.memory_format", empty, "PrivateUse1")
    _library.impl("empty_strided", empty_strided, "PrivateUse1")
    for name in MADE:
        packet, _, overload = name.partition(".")
        _library.impl(name, made(getattr(getattr(torch.ops.aten, packet), overload or "default")), "PrivateUse1")
    _parallel.patch()
    _failures.patch()
    _check_autograd()


# Known to autograd before its first backward pass, whenever the devices are asked for.
_guard = _Guard()
torch._C._acc.register_python_privateuseone_device_guard(_guard)
