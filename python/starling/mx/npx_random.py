"""mx.npx.random: random numbers beside NumPy's, for batches of parameters."""
from .._tensor import Tensor
from ._signed import as_mxnet as _as_mxnet
from .np import random as _random
from .random import bernoulli
from .unsupported import missing

__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]


def seed(seed, ctx="all"):
    """Restarts random numbers with this seed."""
    _random.seed(seed, ctx)


def _of_batch(draw, first, second, batch_shape, dtype, ctx):
    """Numbers of shape batch_shape for each element of the parameters."""
    batch = () if batch_shape is None else (batch_shape,) if isinstance(batch_shape, int) else tuple(batch_shape)
    like = next((p for p in (first, second) if isinstance(p, Tensor)), None)
    if like is None:
        return draw(first, second, batch, dtype, ctx)
    each = (first + second * 0).shape if isinstance(first, Tensor) else (second + first * 0).shape
    return draw(first, second, batch + each, dtype, ctx)


def uniform_n(low=0.0, high=1.0, batch_shape=None, dtype=None, ctx=None):
    """Uniform numbers from low to high, batch_shape of them for each element of low and high."""
    return _of_batch(_random.uniform, low, high, batch_shape, dtype, ctx)


def normal_n(loc=0.0, scale=1.0, batch_shape=None, dtype=None, ctx=None):
    """Normal numbers, batch_shape of them for each element of loc and scale."""
    return _of_batch(_random.normal, loc, scale, batch_shape, dtype, ctx)


_as_mxnet("npx.random", globals())
__getattr__ = missing("mx.npx.random")
