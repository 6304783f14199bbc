"""mx.np.random: distributions that the engine lacks, of NumPy's numbers from a seed that the engine draws."""
import numpy

from .._tensor import Tensor
from .context import known
from ._signed import into

__all__ = ["beta", "chisquare", "f", "gamma", "gumbel", "laplace", "logistic", "lognormal", "multinomial", "multivariate_normal", "pareto", "power",
           "rayleigh", "weibull"]  # fmt: skip


def _generator():
    from .random import randint

    return numpy.random.default_rng(int(randint(0, 2**24).asscalar()))


def _drawn(name, parameters, size, dtype, ctx, out):
    from .np import array

    given = [p.numpy() if isinstance(p, Tensor) else p for p in parameters]
    size = out.shape if size is None and out is not None else size
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
    if p.min(initial=0) < 0 or p.sum() > 1 + 1e-6:
        raise ValueError("sum(pvals[:-1]) > 1.0")
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
