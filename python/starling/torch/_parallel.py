"""torch.nn.parallel on Starling's devices: PyTorch's own functions for it are CUDA's.

A copy to a device is a function with a gradient here, so that scatter, gather and broadcast are made of it; calls return at once,
so that replicas need no threads.
"""
import sys

import torch
from torch.nn.parallel import _functions, comm, scatter_gather

from ._eager import StarlingTensor


def _index(device):
    """The index of a device, or None if it is not ours."""
    if isinstance(device, torch.device):
        return device.index or 0 if device.type == "starling" else None
    return device if isinstance(device, int) and not torch.cuda.is_available() else None


class _Choice:
    """A function of PyTorch's, or ours where tensors or devices are Starling's."""

    def __init__(self, theirs, ours):
        self.theirs, self.ours = theirs, ours

    def apply(self, *args):
        found = self.ours(*args)
        return self.theirs.apply(*args) if found is None else found


def _ours(devices):
    """The devices, if they are ours."""
    places = [_index(d) for d in devices]
    if None in places:
        return None
    return [torch.device("starling", k) for k in places]


def _scatter(devices, sizes, dim, x):
    places = _ours(devices)
    if places is None:
        return None
    parts = x.chunk(len(places), dim) if sizes is None else x.split(list(sizes), dim)
    return tuple(part.to(place) for part, place in zip(parts, places))


def _gather(device, dim, *parts):
    if not all(isinstance(t, StarlingTensor) for t in parts):
        return None
    place = torch.device("cpu") if str(device) == "cpu" else _ours([device])[0]
    if all(t.ndim == 0 for t in parts):
        parts = [t.view(1) for t in parts]
    return torch.cat([t.to(place) for t in parts], dim)


def _broadcast(devices, *tensors):
    if not tensors or not all(isinstance(t, StarlingTensor) for t in tensors):
        return None
    return tuple(t.to(place) for place in _ours(devices) for t in tensors)


def _applied(theirs):
    def parallel_apply(modules, inputs, kwargs=None, devices=None):
        if not devices or not all(_index(d) is not None for d in devices):
            return theirs(modules, inputs, kwargs, devices)
        kwargs = kwargs or [{}] * len(modules)
        return [m(*(x if isinstance(x, (list, tuple)) else (x,)), **k) for m, x, k in zip(modules, inputs, kwargs)]

    return parallel_apply


def _coalesced(theirs):
    def broadcast_coalesced(tensors, devices, *rest):
        found = _broadcast(devices, *tensors)
        if found is None:
            return theirs(tensors, devices, *rest)
        n = len(tensors)
        return [list(found[i : i + n]) for i in range(0, len(found), n)]

    return broadcast_coalesced


def patch():
    """Puts these into torch.nn.parallel."""
    scatter_gather.Scatter = _Choice(scatter_gather.Scatter, _scatter)
    scatter_gather.Gather = _Choice(scatter_gather.Gather, _gather)
    _functions.Broadcast = _Choice(_functions.Broadcast, _broadcast)
    module = sys.modules["torch.nn.parallel.data_parallel"]  # torch.nn.parallel.data_parallel is its function of that name
    module.parallel_apply = _applied(module.parallel_apply)
    comm.broadcast_coalesced = _coalesced(comm.broadcast_coalesced)
