"""mx.random, mx.nd.random: random arrays."""
from .. import _engine
from .. import _ops as ops
from .context import current_context
from .missing import missing
from .ndarray import NDArray


def _made(function, first, second, shape, dtype, ctx):
    shape = (1,) if shape is None else shape
    t = function(shape, first, second, dtype=dtype or "float32", device=(ctx or current_context()).device)
    t.__class__ = NDArray
    return t


def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Normal numbers with mean loc and standard deviation scale."""
    return _made(ops.normal, loc, scale, shape, dtype, ctx)


def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None):
    """Uniform numbers from low to high."""
    return _made(ops.uniform, low, high, shape, dtype, ctx)


def randn(*shape, loc=0.0, scale=1.0, dtype=None, ctx=None, **_):
    """Normal numbers in that shape."""
    return normal(loc, scale, shape, dtype, ctx)


def seed(seed_state, ctx="all"):
    """Makes random numbers begin anew with this seed."""
    _engine.seed(seed_state)


__getattr__ = missing("mx.random")
