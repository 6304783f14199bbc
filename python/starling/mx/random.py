"""mx.random, mx.nd.random: random arrays."""
from .. import _engine
from .. import _ops as ops
from .context import known
from .missing import missing
from .ndarray import NDArray


def _made(function, first, second, shape, dtype, ctx, out=None):
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    shape = (1,) if shape is None else shape
    t = function(shape, first, second, dtype=dtype or "float32", device=known(ctx).device)
    t.__class__ = NDArray
    if out is None:
        return t
    out[:] = t
    return out


def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Normal numbers with mean loc and standard deviation scale."""
    return _made(ops.normal, loc, scale, shape, dtype, ctx, out)


def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None):
    """Uniform numbers from low to high."""
    return _made(ops.uniform, low, high, shape, dtype, ctx, out)


def randn(*shape, loc=0.0, scale=1.0, dtype=None, ctx=None, **_):
    """Normal numbers in that shape."""
    return normal(loc, scale, shape, dtype, ctx)


def randint(low, high, shape=None, dtype=None, ctx=None, out=None):
    """Whole numbers from low to high, which is left out."""
    values = ops.minimum_scalar(uniform(0, high - low, shape, "float64", ctx), high - low - 1)
    whole = values.astype("int32").astype(dtype or "int32") + low
    if out is None:
        return whole
    out[:] = whole
    return out


def seed(seed_state, ctx="all"):
    """Makes random numbers begin anew with this seed."""
    _engine.seed(seed_state)


__getattr__ = missing("mx.random")
