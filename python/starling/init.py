"""Initialisers: how parameters get their first values."""
from ._blocks import Initializer
from ._core import lib

__all__ = ["constant", "he", "normal", "ones", "uniform", "xavier", "zeros"]


def constant(value):
    """Every element is value."""
    return Initializer(lib.SL_INIT_CONSTANT, value)


def zeros():
    """Every element is 0."""
    return constant(0)


def ones():
    """Every element is 1."""
    return constant(1)


def normal(sigma=0.01):
    """Normal numbers around 0 with standard deviation sigma."""
    return Initializer(lib.SL_INIT_NORMAL, sigma)


def uniform(bound=0.07):
    """Uniform numbers between -bound and bound."""
    return Initializer(lib.SL_INIT_UNIFORM, bound)


def xavier(magnitude=3, *, fan="avg", gaussian=False):
    """Glorot and Bengio's: uniform (or normal) numbers whose spread is sqrt(magnitude / fan)."""
    return Initializer(lib.SL_INIT_XAVIER, magnitude, fan, gaussian)


def he(gain=2**0.5, *, fan="in", gaussian=True):
    """He's: normal (or uniform) numbers whose spread is gain / sqrt(fan)."""
    return Initializer(lib.SL_INIT_HE, gain, fan, gaussian)
