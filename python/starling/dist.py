"""Several processes that train one network together (<starling/dist.h>): sl-launch -n 2 python train.py.

    loader = sl.data.Loader((x, y), batch_size=32, rank=dist.rank(), ranks=dist.size())
    trainer = sl.Trainer(net, "adam", lr=0.001)   # its steps sum gradients over all processes

A process takes part if SL_DIST or start(dist=...) says so; otherwise it is rank 0 of 1, and all functions still work.  All
processes make the same calls in the same order.  A failure of one is a starling.Error in all, which names its rank.
"""
from . import _core
from ._blocks import Block
from ._core import check, ffi, here, lib, pointer, raise_error
from ._tensor import Tensor
from ._training import Trainer

__all__ = ["barrier", "broadcast", "info", "local", "rank", "size", "sum_"]


def _number(value):
    if lib.sl_error():
        raise_error()
    return value


def rank():
    """The rank of this process among the processes that train together, from 0."""
    return _number(lib.sl_dist_rank())


def size():
    """The number of processes that train together; 1: this process is alone."""
    return _number(lib.sl_dist_size())


def barrier():
    """Waits until all processes have made this call."""
    check(lib.sl_dist_barrier_at(here()))


def sum_(tensor):
    """Adds the values over all processes, in place, and returns the tensor at once; a read of it waits."""
    check(lib.sl_dist_sum_at(here(), pointer("tensor", tensor, Tensor)))
    return tensor


def broadcast(block):
    """Sends the parameters and running statistics of rank 0 to all processes.  A trainer's first step does this itself."""
    check(lib.sl_dist_broadcast_at(here(), pointer("block", block, Block)))


def local(trainer):
    """Makes a trainer use the gradients of its own process alone."""
    lib.sl_dist_local(pointer("trainer", trainer, Trainer))
    _number(None)


def info():
    """The cost of exchanges so far: rank, size, exchanges, bytes_sent, seconds, cpu_seconds, gpu_sums (None: not requested)."""
    c = lib.sl_dist_info()
    found = {name: getattr(c, name) for name, _ in ffi.typeof("struct sl_dist_info").fields}
    found["gpu_sums"] = _core.NULL != c.gpu_sums and ffi.string(c.gpu_sums).decode() or None
    return found
