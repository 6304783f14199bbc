"""mx.np.random: distributions that the engine lacks, of NumPy's numbers from a seed that the engine draws.

Where a distribution's numbers are a function of its parameters and of numbers of a fixed distribution, such as loc + scale · n,
operations compute them, so that they have gradients with respect to parameters that are arrays.
"""
import numpy

from .. import _ops as ops
from .._core import InvalidArgument
from .._tensor import Tensor
from .context import known
from ._signed import into

__all__ = ["beta", "chisquare", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal", "multinomial", "multivariate_normal", "pareto", "power",
           "rayleigh", "weibull"]  # fmt: skip


def _generator():
    from .random import randint

    return numpy.random.default_rng(int(randint(0, 2**24).asscalar()))


_POSITIVE = {"pareto": (0,), "power": (0,), "weibull": (0,), "gamma": (0, 1)}  # as in MXNet; NumPy takes 0 of some
_FIXED = {"gumbel": ("gumbel", 0, 1), "logistic": ("logistic", 0, 1), "laplace": ("laplace", 0, 1), "lognormal": ("standard_normal",),
          "rayleigh": ("rayleigh", 1), "weibull": ("standard_exponential",), "pareto": ("standard_exponential",),
          "power": ("standard_exponential",)}  # fmt: skip
_COMPUTED = {
    **dict.fromkeys(("gumbel", "logistic", "laplace"), lambda n, loc, scale: loc + n * scale), "lognormal": lambda n, mean, sigma: ops.exp(mean + n * sigma),
    "rayleigh": lambda n, scale: n * scale, "weibull": lambda n, a: ops.exp(ops.log(n) / a), "pareto": lambda n, a: ops.expm1(n / a),
    "power": lambda n, a: ops.exp(n * -1 / a),
}  # fmt: skip


def _check(name, parameters):
    for i, p in enumerate(parameters):
        positive = i in _POSITIVE.get(name, ())
        if positive and not numpy.all(p > 0) or not positive and name in ("lognormal", *_COMPUTED) and i == len(parameters) - 1 and not numpy.all(p >= 0):
            raise InvalidArgument(f"{name}: parameter {i + 1} has to be {'above 0' if positive else 'from 0 on'}")


def _of_functions(name, parameters, given, size, dtype, ctx):
    """Numbers that operations compute from the parameters, of which one is an array."""
    from .np import array

    place = next(p.context for p in parameters if isinstance(p, Tensor))
    size = numpy.broadcast_shapes(*map(numpy.shape, given)) if size is None else (size,) if isinstance(size, int) else tuple(size)
    if numpy.broadcast_shapes(size, *map(numpy.shape, given)) != size:
        raise InvalidArgument(f"{name}: numbers of shape {size} cannot have parameters of shapes {', '.join(str(numpy.shape(p)) for p in given)}")
    kind, *fixed = _FIXED[name]
    noise = array(numpy.asarray(getattr(_generator(), kind)(*fixed, size=size), "float32"), dtype or "float32", place)
    like = [p if isinstance(p, Tensor) else array(p, dtype or "float32", place) for p in parameters]
    return _COMPUTED[name](noise, *(p.astype(noise.dtype) for p in like))


def _drawn(name, parameters, size, dtype, ctx, out):
    from .np import array

    given = [p.numpy() if isinstance(p, Tensor) else p for p in parameters]
    size = out.shape if size is None and out is not None else size
    _check(name, [numpy.asarray(p) for p in given])
    if name in _COMPUTED and any(isinstance(p, Tensor) for p in parameters):
        return into(_of_functions(name, parameters, given, size, dtype, ctx), out)
    numbers = getattr(_generator(), name)(*given, size=size)
    place = next((p.context for p in parameters if isinstance(p, Tensor)), None)
    return into(array(numpy.asarray(numbers, "float32"), dtype or "float32", known(ctx) if place is None else place), out)


def _distribution(name, doc, *names, **defaults):
    def call(*args, size=None, dtype=None, ctx=None, out=None, device=None, **named):
        if len(args) > len(names):
            args, size = args[: len(names)], args[len(names)]
        for given in named:
            if given not in names[len(args) :]:
                raise TypeError(f"{name}() got an unexpected keyword argument {given!r}")
        missing = [n for n in names[len(args) :] if n not in named and n not in defaults]
        if missing:
            raise TypeError(f"{name}() missing 1 required positional argument: {missing[0]!r}")
        parameters = [*args, *(named.get(n, defaults.get(n)) for n in names[len(args) :])]
        return _drawn(name, parameters, size, dtype, ctx if ctx is not None else device, out)

    call.__name__, call.__doc__ = name, doc
    globals()[name] = call


_distribution("beta", "Numbers of the beta distribution.", "a", "b")
_distribution("chisquare", "Numbers of the chi-square distribution.", "df")
_distribution("f", "Numbers of the F distribution.", "dfnum", "dfden")
_distribution("gamma", "Numbers of the gamma distribution.", "shape", "scale", scale=1.0)
_distribution("gumbel", "Numbers of the Gumbel distribution.", "loc", "scale", loc=0.0, scale=1.0)
_distribution("laplace", "Numbers of the Laplace distribution.", "loc", "scale", loc=0.0, scale=1.0)
_distribution("logistic", "Numbers of the logistic distribution.", "loc", "scale", loc=0.0, scale=1.0)
_distribution("lognormal", "Numbers whose logarithms are normal.", "mean", "sigma", mean=0.0, sigma=1.0)
_distribution("pareto", "Numbers of the Pareto distribution.", "a")
_distribution("power", "Numbers of the power distribution.", "a")
_distribution("rayleigh", "Numbers of the Rayleigh distribution.", "scale", scale=1.0)
_distribution("weibull", "Numbers of the Weibull distribution.", "a")


def multinomial(n, pvals, size=None):
    """How often each class is drawn among n."""
    from .np import array

    p = numpy.asarray(pvals.numpy() if isinstance(pvals, Tensor) else pvals, "float64")
    if not p.size:
        return array(numpy.zeros((*(() if size is None else (size,) if isinstance(size, int) else size), 0)), dtype="int64")
    if p.min(initial=0) < 0 or p.sum() > 1 + 1e-6:
        raise InvalidArgument("sum(pvals[:-1]) > 1.0")
    p = p / p.sum() if p.sum() > 1 else p
    return array(_generator().multinomial(n, p, size), dtype="int64")


def multivariate_normal(mean, cov, size=None, check_valid=None, tol=None):
    """Vectors of normal numbers with these means and covariances."""
    from .np import array

    mean, cov = (numpy.asarray(v.numpy() if isinstance(v, Tensor) else v, "float64") for v in (mean, cov))
    size = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    shape = size + numpy.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) + mean.shape[-1:]
    drawn = _generator().standard_normal(shape)
    return array((mean + (numpy.linalg.cholesky(cov) @ drawn[..., None])[..., 0]).astype("float32"))
