"""Several processes that train one network together, as <starling/dist.h> has them: sl-launch -n 2 python train.py.

    loader = sl.data.Loader((x, y), batch_size=32, rank=dist.rank(), ranks=dist.size())
    trainer = sl.Trainer(net, "adam", lr=0.001)   # its steps sum gradients over all processes

A process takes part if SL_DIST or start(dist=...) says so; otherwise it is rank 0 of 1, and all functions work, too.  All processes
make the same calls in the same order.  What goes wrong in one of them is a starling.Error in all, which names its rank.
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
    """The number of this process among those that train together, from 0."""
    return _number(lib.sl_dist_rank())


def size():
    """How many processes train together; 1: this one is alone."""
    return _number(lib.sl_dist_size())


def barrier():
    """Waits until all processes have come here."""
    check(lib.sl_dist_barrier_at(here()))


def sum_(tensor):
    """Adds the values over all processes, in place, and returns the tensor at once: whoever reads it waits."""
    check(lib.sl_dist_sum_at(here(), pointer("tensor", tensor, Tensor)))
    return tensor


def broadcast(block):
    """Gives all processes the parameters of rank 0, running statistics among them.  A trainer's first step does so by itself."""
    check(lib.sl_dist_broadcast_at(here(), pointer("block", block, Block)))


def local(trainer):
    """Makes a trainer use the gradients of its own process alone."""
    lib.sl_dist_local(pointer("trainer", trainer, Trainer))
    _number(None)


def info():
    """The cost of exchanges so far: rank, size, exchanges, bytes_sent, seconds, cpu_seconds, and gpu_sums (None: not asked for)."""
    c = lib.sl_dist_info()
    found = {name: getattr(c, name) for name, _ in ffi.typeof("struct sl_dist_info").fields}
    found["gpu_sums"] = _core.NULL != c.gpu_sums and ffi.string(c.gpu_sums).decode() or None
    return found
