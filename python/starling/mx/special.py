"""The gamma function, its logarithm, and the inverse of erf, which are computed on the host."""
import math

import numpy

from ._host import on_host

__all__ = ["gamma", "gammaln", "erfinv"]


def _each(function):
    def call(x):
        try:
            return function(float(x))
        except OverflowError:
            return math.inf
        except ValueError:  # a pole
            return math.inf if function is math.lgamma else math.copysign(math.inf, x) if x == 0 else math.nan

    return numpy.vectorize(call, otypes=[numpy.float64])


_GAMMA, _GAMMALN, _ERF = _each(math.gamma), _each(math.lgamma), _each(math.erf)


def _digamma(x):
    """The derivative of gammaln: the asymptotic series, after steps up to 10; reflection below 0; infinite at poles, as MXNet has it."""
    x = numpy.asarray(x, numpy.float64)
    with numpy.errstate(all="ignore"):
        low = x <= 0
        at, found = numpy.where(low, 1 - x, x), numpy.zeros(x.shape)
        for _ in range(10):
            small = at < 10
            found -= numpy.where(small, 1 / at, 0)
            at = numpy.where(small, at + 1, at)
        inverse = 1 / at**2
        series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
        found += numpy.log(at) - 0.5 / at - series
        reflected = numpy.where(x == numpy.floor(x), numpy.inf, found - numpy.pi / numpy.tan(numpy.pi * x))
        return numpy.where(low, reflected, found)


def _erfinv(y):
    """Winitzki's approximation, then steps of Newton's method."""
    y = numpy.asarray(y, numpy.float64)
    with numpy.errstate(all="ignore"):
        inside = numpy.abs(y) < 1
        log = numpy.log1p(-numpy.where(inside, y, 0) ** 2)
        first = 2 / (numpy.pi * 0.147) + log / 2
        x = numpy.copysign(numpy.sqrt(numpy.sqrt(first**2 - log / 0.147) - first), y)
        for _ in range(4):
            x -= (_ERF(x) - numpy.where(inside, y, 0)) / (2 / math.sqrt(math.pi) * numpy.exp(-(x**2)))
        return numpy.where(inside, x, numpy.where(numpy.abs(y) == 1, numpy.copysign(numpy.inf, y), numpy.nan))


def gamma(data):
    """The gamma function of each element."""
    return on_host(lambda x: _GAMMA(x), lambda given, y, dy: dy * y * _digamma(given[0]), data)


def gammaln(data):
    """The logarithm of the absolute value of the gamma function."""
    return on_host(lambda x: _GAMMALN(x), lambda given, y, dy: dy * _digamma(given[0]), data)


def erfinv(data):
    """The inverse of erf."""
    return on_host(_erfinv, lambda given, y, dy: dy * math.sqrt(math.pi) / 2 * numpy.exp(numpy.square(y, dtype=numpy.float64)), data)
