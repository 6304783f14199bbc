"""mx.npx: what networks and devices need beside NumPy's functions."""
from . import nd as _f
from ._mode import is_np_array, is_np_shape, reset_np, set_np
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from .missing import missing
from .np import ndarray
from .ndarray import batch_dot, erf, gather_nd, log_softmax, one_hot, pick, relu, reshape_like, sigmoid, smooth_l1, softmax, topk, waitall
from .random import seed

from . import random

reshape = _f.reshape


def arange_like(data, start=0.0, step=1.0, axis=None, **_):
    """Numbers from start, step apart, as many as an axis is long."""
    from .np import arange

    n = data.size if axis is None else data.shape[axis]
    numbers = arange(start, start + n * step - step / 2, step, ctx=data.context)
    return numbers if axis is not None else numbers.reshape(data.shape)


def save(file, arr):
    """Writes an array, a list, or a dictionary of arrays to a file, as MXNet does."""
    _f.save(file, arr)


def load(file):
    """The arrays in a file: a list, or a dictionary where they have names."""
    read = _f.load(file)
    for a in read.values() if isinstance(read, dict) else read:
        a.__class__ = ndarray
    return read


current_device, Device = current_context, Context
convolution, pooling, fully_connected = _f.Convolution, _f.Pooling, _f.FullyConnected
batch_norm, dropout, embedding, activation = _f.BatchNorm, _f.Dropout, _f.Embedding, _f.Activation
leaky_relu, batch_flatten, stop_gradient = _f.LeakyReLU, _f.flatten, _f.BlockGrad
deconvolution, layer_norm, sequence_mask = _f.Deconvolution, _f.LayerNorm, _f.SequenceMask

__getattr__ = missing("mx.npx")
