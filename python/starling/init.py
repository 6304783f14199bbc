"""Initialisers: the first values of parameters."""
from ._blocks import Initializer
from ._core import lib

__all__ = ["constant", "he", "normal", "ones", "uniform", "xavier", "zeros"]


def constant(value):
    """Sets every element to value."""
    return Initializer(lib.SL_INIT_CONSTANT, value)


def zeros():
    """Sets every element to 0."""
    return constant(0)


def ones():
    """Sets every element to 1."""
    return constant(1)


def normal(sigma=0.01):
    """Normal numbers around 0 with standard deviation sigma."""
    return Initializer(lib.SL_INIT_NORMAL, sigma)


def uniform(bound=0.07):
    """Uniform numbers between -bound and bound."""
    return Initializer(lib.SL_INIT_UNIFORM, bound)


def xavier(magnitude=3, *, fan="avg", gaussian=False):
    """Glorot and Bengio's initialiser: uniform (or normal) numbers with the spread sqrt(magnitude / fan)."""
    return Initializer(lib.SL_INIT_XAVIER, magnitude, fan, gaussian)


def he(gain=2**0.5, *, fan="in", gaussian=True):
    """He's initialiser: normal (or uniform) numbers with the spread gain / sqrt(fan)."""
    return Initializer(lib.SL_INIT_HE, gain, fan, gaussian)
