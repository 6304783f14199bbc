"""mx.random, mx.nd.random: random arrays."""
import numpy

from .. import _engine
from .. import _ops as ops
from .._core import DTypeError, InvalidArgument
from .._tensor import Tensor, array
from .context import known
from ._signed import into
from ._mode import array_class
from ._signed import as_mxnet as _as_mxnet
from .unsupported import missing
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


def _of_each(function, first, second, shape, dtype, finish=None, factor=None):
    """Random numbers for each element of a distribution's parameters, whose axes come first."""
    given = first if isinstance(first, Tensor) else second
    more = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    base = function(given.shape + more, 0.0, 1.0, dtype=dtype or "float32", device=given.device)
    first, second = (p.reshape(p.shape + (1,) * len(more)) if isinstance(p, Tensor) else p for p in (first, second))
    base.__class__ = type(given)
    if finish is not None:
        return classify(finish(base, factor.reshape(factor.shape + (1,) * len(more))))
    return classify(base * (second - first) + first if function is ops.uniform else base * second + first)


def normal(loc=0, scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Normal numbers with mean loc and standard deviation scale."""
    return _made(ops.normal, loc, scale, shape, dtype, ctx, out)


def uniform(low=0, high=1, shape=None, dtype=None, ctx=None, out=None):
    """Uniform numbers from low to high."""
    return _made(ops.uniform, low, high, shape, dtype, ctx, out)


def randn(*shape, loc=0.0, scale=1.0, dtype=None, ctx=None):
    """Normal numbers in that shape."""
    return normal(loc, scale, shape or (1,), dtype, ctx)


def randint(low, high, shape=None, dtype=None, ctx=None, out=None):
    """Random integers from low to high, exclusive."""
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    whole = ops.randint((1,) if shape is None else shape, low, high, dtype="int32", device=known(ctx).device)
    whole.__class__ = NDArray
    return into(whole if dtype is None else whole.astype(dtype), out)


def check_scale(scale):
    """Refuses an invalid mean."""
    if not isinstance(scale, Tensor) and not scale >= 0:
        raise InvalidArgument(f"exponential: the scale is {scale}, a number from 0 on is needed")


def exponential(scale=1, shape=None, dtype=None, ctx=None, out=None):
    """Exponentially distributed numbers with that mean."""
    if isinstance(scale, Tensor):
        return into(_of_each(ops.uniform, scale * 0, 1.0, shape, dtype, lambda u, s: ops.log(1 - u) * -1 * s, scale), out)
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    check_scale(scale)
    return into(ops.log(1 - uniform(0, 1, shape, dtype, ctx)) * -1 * scale, out)


def _from_numpy(name, *parameters, shape, dtype, ctx, out):
    """Random numbers of a distribution that the engine lacks: NumPy's, from a seed that the engine draws."""
    if out is not None:
        shape, dtype, ctx = out.shape, out.dtype, out.context
    if dtype is not None and numpy.dtype(dtype).kind != "f":
        raise DTypeError(f"{name}: numbers of this distribution are floats, not {numpy.dtype(dtype)}")
    given = next((p for p in parameters if isinstance(p, Tensor)), None)
    size = (1,) if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    if given is not None:  # the axes of the parameters come first
        more = () if shape is None or out is not None else size
        parameters = [p.numpy().reshape(p.shape + (1,) * len(more)) if isinstance(p, Tensor) else p for p in parameters]
        size = given.shape + more
    drawn = getattr(numpy.random.default_rng(int(randint(0, 2**24).asscalar())), name)(*parameters, size=size)
    t = array(numpy.asarray(drawn, "float32"), dtype or "float32", known(ctx).device if given is None else given.device, NDArray)
    return into(t, out)


def gamma(alpha=1, beta=1, shape=None, dtype=None, ctx=None, out=None):
    """Numbers of the gamma distribution of shape alpha and scale beta; NumPy draws them."""
    return _from_numpy("gamma", alpha, beta, shape=shape, dtype=dtype, ctx=ctx, out=out)


def poisson(lam=1, shape=None, dtype=None, ctx=None, out=None):
    """Numbers of Poisson's distribution with mean lam; NumPy draws them."""
    return _from_numpy("poisson", lam, shape=shape, dtype=dtype, ctx=ctx, out=out)


def negative_binomial(k=1, p=1, shape=None, dtype=None, ctx=None, out=None):
    """Numbers of failures before k successes of probability p; NumPy draws them."""
    return _from_numpy("negative_binomial", k, p, shape=shape, dtype=dtype, ctx=ctx, out=out)


def random_exponential(lam=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Exponentially distributed numbers with the mean 1 / lam."""
    if not isinstance(lam, Tensor) and not lam > 0:
        raise InvalidArgument(f"random_exponential: lam is {lam}, a number above 0 is needed")
    return exponential(1 / lam, shape, dtype, ctx, out)


def random_gamma(alpha=1.0, beta=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Numbers of the gamma distribution of shape alpha and scale beta."""
    return gamma(alpha, beta, shape, dtype, ctx, out)


def random_poisson(lam=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Numbers of Poisson's distribution with mean lam."""
    return poisson(lam, shape, dtype, ctx, out)


def random_negative_binomial(k=1, p=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Numbers of failures before k successes of probability p."""
    return negative_binomial(k, p, shape, dtype, ctx, out)


def random_normal(loc=0.0, scale=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Normal numbers with mean loc and standard deviation scale."""
    return normal(loc, scale, shape, dtype, ctx, out)


def random_uniform(low=0.0, high=1.0, shape=None, ctx=None, dtype=None, out=None):
    """Uniform numbers from low to high."""
    return uniform(low, high, shape, dtype, ctx, out)


def random_randint(low, high, shape=None, ctx=None, dtype="int32", out=None):
    """Random integers from low to high, exclusive."""
    return randint(low, high, shape, dtype, ctx, out)


def sample_exponential(lam, shape=(), dtype=None):
    """Exponentially distributed numbers for each mean 1 / lam."""
    return exponential(1 / lam, shape or None, dtype)


def sample_gamma(alpha, beta, shape=(), dtype=None):
    """Numbers of a gamma distribution for each shape alpha and scale beta."""
    return gamma(alpha, beta, shape or None, dtype)


def sample_poisson(lam, shape=(), dtype=None):
    """Numbers of a Poisson distribution for each mean lam."""
    return poisson(lam, shape or None, dtype)


def sample_normal(mu, sigma, shape=(), dtype=None):
    """Normal numbers for each mean mu and standard deviation sigma."""
    return normal(mu, sigma, shape or None, dtype)


def sample_uniform(low, high, shape=(), dtype=None):
    """Uniform numbers for each low and high."""
    return uniform(low, high, shape or None, dtype)


def bernoulli(prob=None, logit=None, size=None, dtype=None, ctx=None, out=None):
    """1 with a probability, given itself or as a logit, else 0."""
    if (prob is None) == (logit is None):
        raise InvalidArgument("bernoulli: either prob or logit must be given")
    if prob is None:
        prob = ops.sigmoid(logit) if isinstance(logit, Tensor) else 1 / (1 + numpy.exp(-logit))
    size = (prob.shape if isinstance(prob, Tensor) else (1,)) if size is None else size
    if isinstance(prob, Tensor):  # looked at when they are drawn by
        drawn = ops.bernoulli(ops.broadcast_to(prob.astype("float32"), (size,) if isinstance(size, int) else tuple(size)))
    elif 0 <= prob <= 1:
        drawn = uniform(0, 1, size, "float32", ctx) < prob
    else:
        raise InvalidArgument(f"bernoulli: the probability {prob} is not between 0 and 1")
    drawn = drawn.astype(dtype or "float32")
    drawn.__class__ = array_class()
    return into(drawn, out)


def multinomial(data, shape=(), get_prob=False, out=None, dtype="int32"):
    """Classes drawn by their probabilities; with get_prob also the logarithms of these."""
    several = (shape,) if isinstance(shape, int) else tuple(shape or ())
    count = int(numpy.prod(several))
    drawn = ops.multinomial(data, count)
    wanted = (data.shape[:-1] + (() if shape == 1 else several)) or (1,)
    found = classify(drawn.astype(dtype).reshape(wanted), data)
    if not get_prob:
        return into(found, out)
    rows, places = data.reshape((-1, data.shape[-1])), drawn.reshape((-1, count))
    return into([found, classify(ops.log(ops.take_along(rows, places, -1)).reshape(wanted), data)], out)


def shuffle(data):
    """The rows in another order."""
    return classify(ops.gather(data, ops.permutation(data.shape[0], data.device)))


def _like(function, *names):
    def call(data, *parameters, **named):
        for name in named:
            if name not in names:
                raise TypeError(f"{call.__name__}() got an unexpected keyword argument {name!r}")
        return function(*parameters, **named, shape=data.shape, ctx=data.context)

    call.__name__, call.__doc__ = f"{function.__name__}_like", f"{function.__name__} in the shape of an array."
    return call


normal_like, uniform_like = _like(normal, "loc", "scale"), _like(uniform, "low", "high")
exponential_like = _like(lambda lam=1.0, **rest: exponential(1 / lam, **rest), "lam")
exponential_like.__name__ = "exponential_like"
gamma_like, poisson_like = _like(gamma, "alpha", "beta"), _like(poisson, "lam")


def seed(seed_state, ctx="all"):
    """Restarts random numbers with this seed."""
    _engine.seed(seed_state % 2**32 if isinstance(seed_state, int) else seed_state)  # as an int of C


_as_mxnet("random", globals())
__getattr__ = missing("mx.random")
