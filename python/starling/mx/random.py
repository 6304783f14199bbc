"""mx.random, mx.nd.random: random arrays."""
import numpy

from .. import _engine
from .. import _ops as ops
from .._tensor import Tensor, array
from .context import known
from ._signed import into
from .missing import missing, not_here
from ._array import NDArray
from ._program import classify


def _made(function, first, second, shape, dtype, ctx, out=None):
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        return into(_of_each(function, first, second, shape, dtype), out)
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    shape = (1,) if shape is None else shape
    t = function(shape, first, second, dtype=dtype or "float32", device=known(ctx).device)
    t.__class__ = NDArray
    return into(t, out)


def _of_each(function, first, second, shape, dtype):
    """Numbers of a distribution for each element of its parameters: their axes come first."""
    given = first if isinstance(first, Tensor) else second
    more = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    base = function(given.shape + more, 0.0, 1.0, dtype=dtype or "float32", device=given.device)
    first, second = (p.reshape(p.shape + (1,) * len(more)) if isinstance(p, Tensor) else p for p in (first, second))
    base.__class__ = type(given)
    return classify(base * (second - first) + first if function is ops.uniform else base * second + first)


def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Normal numbers with mean loc and standard deviation scale."""
    return _made(ops.normal, loc, scale, shape, dtype, ctx, out)


def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None):
    """Uniform numbers from low to high."""
    return _made(ops.uniform, low, high, shape, dtype, ctx, out)


def randn(*shape, loc=0.0, scale=1.0, dtype=None, ctx=None):
    """Normal numbers in that shape."""
    return normal(loc, scale, shape, dtype, ctx)


def randint(low, high, shape=None, dtype=None, ctx=None, out=None):
    """Whole numbers from low to high, which is left out."""
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    whole = ops.randint((1,) if shape is None else shape, low, high, dtype="int32", device=known(ctx).device)
    whole.__class__ = NDArray
    return into(whole if dtype is None else whole.astype(dtype), out)


def exponential(scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Exponentially distributed numbers with that mean."""
    return into(ops.log(1 - uniform(0, 1, shape, dtype, ctx)) * -1 * scale, out)


def _from_numpy(name, *parameters, shape, dtype, ctx, out):
    """Numbers of a distribution that the engine has not: NumPy's, from a seed that the engine draws."""
    if any(isinstance(p, Tensor) for p in parameters):
        raise not_here(f"random.{name} with arrays of parameters", "numbers as parameters")
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    seed_ = int(randint(0, 2**24).asscalar())
    drawn = getattr(numpy.random.default_rng(seed_), name)(*parameters, size=(1,) if shape is None else shape)
    t = array(drawn.astype("float32"), dtype or "float32", known(ctx).device, NDArray)
    return into(t, out)


def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx=None, out=None):
    """Numbers of the gamma distribution of shape alpha and scale beta; NumPy draws them."""
    return _from_numpy("gamma", alpha, beta, shape=shape, dtype=dtype, ctx=ctx, out=out)


def poisson(lam=1, shape=None, dtype=None, ctx=None, out=None):
    """Numbers of Poisson's distribution with mean lam; NumPy draws them."""
    return _from_numpy("poisson", lam, shape=shape, dtype=dtype, ctx=ctx, out=out)


def bernoulli(prob=0.5, shape=None, dtype=None, ctx=None):
    """1 with that probability, else 0."""
    drawn = uniform(0, 1, shape, dtype, ctx) < prob
    drawn.__class__ = NDArray
    return drawn


def multinomial(data, shape=1, get_prob=False, out=None, dtype="int32"):
    """Classes drawn by their probabilities."""
    if get_prob:
        raise NotImplementedError("multinomial(get_prob=True) is not in Starling; use log and pick")
    several = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for n in several:
        count *= n
    drawn = ops.multinomial(data, count).astype(dtype)
    wanted = data.shape[:-1] + (() if shape == 1 else several)
    return into(classify(drawn.reshape(wanted or (1,))), out)


def shuffle(data):
    """The rows in another order."""
    return classify(ops.gather(data, ops.permutation(data.shape[0], data.device)))


def _like(function):
    def call(data, *parameters):
        return function(*parameters, shape=data.shape, ctx=data.context)

    call.__name__, call.__doc__ = f"{function.__name__}_like", f"{function.__name__} in the shape of an array."
    return call


normal_like, uniform_like, exponential_like = _like(normal), _like(uniform), _like(exponential)


def seed(seed_state, ctx="all"):
    """Makes random numbers begin anew with this seed."""
    _engine.seed(seed_state)


__getattr__ = missing("mx.random")
