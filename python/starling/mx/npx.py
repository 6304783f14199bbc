"""mx.npx: functions for networks and devices beside NumPy's."""
from .._core import InvalidArgument
from . import contrib, nd as _f
from ._mode import is_np_array, is_np_shape, reset_np, set_np
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from .unsupported import missing, not_here
from ._signed import as_mxnet as _as_mxnet
from .np import ndarray
from .ndarray import batch_dot, erf, gather_nd, log_softmax, one_hot, pick, relu, reshape_like, sigmoid, smooth_l1, softmax, topk, waitall
from .random import seed

from . import npx_random as random


def reshape(a, newshape, reverse=False, order="C"):
    """The same values in another shape: -1 is computed, -2 keeps a length, -3 leaves a 1 out, -4 keeps all others, -5 joins two
    axes, -6 cuts one into the two lengths that follow; with reverse, from the last axis on."""
    if order != "C":
        raise not_here(f"npx.reshape(order={order!r})", "order C")
    wanted = [newshape] if isinstance(newshape, int) else list(newshape)
    shape = _lengths(wanted[::-1], list(a.shape)[::-1])[::-1] if reverse else _lengths(wanted, list(a.shape))
    return a.reshape(tuple(shape))


def _lengths(wanted, old):
    found, at = [], 0
    while wanted:
        n = wanted.pop(0)
        if n == -4:
            found += old[at:]
            at = len(old)
        elif n == -5:
            found.append(old[at] * old[at + 1])
            at += 2
        elif n == -6:
            first, second = wanted.pop(0), wanted.pop(0)
            found += [old[at] // second if first == -1 else first, old[at] // first if second == -1 else second]
            at += 1
        elif n == -3:
            if old[at] != 1:
                raise InvalidArgument(f"npx.reshape: -3 leaves out an axis of length 1, axis {at} has {old[at]}")
            at += 1
        else:
            found.append(old[at] if n == -2 else n)
            at += 1
    return found


def arange_like(data, start=0.0, step=1.0, axis=None):
    """Numbers from start, step apart, with the length of an axis."""
    from .np import arange

    n = data.size if axis is None else data.shape[axis]
    numbers = arange(start, start + n * step - step / 2, step, ctx=data.context)
    return numbers if axis is not None else numbers.reshape(data.shape)


def save(file, arr):
    """Writes an array, a list, or a dictionary of arrays to a file in MXNet's format."""
    _f.save(file, arr)


def load(file):
    """The arrays in a file: a list, or a dictionary if they have names."""
    read = _f.load(file)
    for a in read.values() if isinstance(read, dict) else read:
        a.__class__ = ndarray
    return read


current_device, Device = current_context, Context
convolution, pooling, fully_connected = _f.Convolution, _f.Pooling, _f.FullyConnected
batch_norm, dropout, embedding, activation = _f.BatchNorm, _f.Dropout, _f.Embedding, _f.Activation
leaky_relu, batch_flatten, stop_gradient = _f.LeakyReLU, _f.flatten, _f.BlockGrad
deconvolution, layer_norm, sequence_mask = _f.Deconvolution, _f.LayerNorm, _f.SequenceMask

multibox_prior, multibox_target, multibox_detection = (getattr(contrib, f"MultiBox{n}") for n in ("Prior", "Target", "Detection"))
roi_pooling, ctc_loss, gamma, gammaln, erfinv = _f.ROIPooling, _f.CTCLoss, _f.gamma, _f.gammaln, _f.erfinv
cast, slice, shape_array = _f.cast, _f.slice, _f.shape_array

_as_mxnet("npx", globals())
__getattr__ = missing("mx.npx")
