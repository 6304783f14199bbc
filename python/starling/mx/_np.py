"""What the modules of mx.np share."""
from .._tensor import Tensor


def as_array(x, dtype=None):
    """An argument as an array of mx.np; dtype: of one that is made."""
    from .np import array

    return x if isinstance(x, Tensor) else array(x, dtype)


def flat(a, axis):
    """An array and the axis to work along; without an axis, all elements in one."""
    return (a.reshape((-1,)), 0) if axis is None else (a, axis)


def named(function, name, doc):
    """A function that another one has made, with its name and what help() says."""
    function.__name__, function.__doc__ = name, doc
    return function
