"""PyTorch's programs on Starling.

    model = torch.compile(model, backend="starling")           # forward and backward pass
    step = starling.torch.compile_step(model, loss, optimizer)  # a whole training step as one program
    x = x.to(starling.torch.device(1))                         # eager tensors, whose operations are queued

doc/torch.md describes what is computed by Starling, what is left to PyTorch, and how memory is shared.
"""
try:
    import torch as _torch
except ImportError as _error:
    raise ImportError(f"starling.torch needs PyTorch: {_error}") from None

from ._backend import backend
from ._device import device, device_count, synchronize
from ._graph import counts as _counts, fallbacks as _fallbacks
from ._step import compile_step

__all__ = ["backend", "compile_step", "counts", "device", "device_count", "fallbacks", "synchronize"]

if "starling" not in _torch._dynamo.list_backends(exclude_tags=()):  # packages that pip installed are listed by themselves
    _torch._dynamo.register_backend(backend, name="starling")


def counts():
    """How many programs there are, operations in them, and operations that were left to PyTorch."""
    return dict(_counts)


def fallbacks():
    """The operations that were left to PyTorch and why, and how often that was met while compiling."""
    return dict(_fallbacks)
