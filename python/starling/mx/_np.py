"""Common helpers of the modules of mx.np."""
from .._tensor import Tensor


def as_array(x, dtype=None):
    """An argument as an array of mx.np; dtype: the type of a new array."""
    from .np import array

    return x if isinstance(x, Tensor) else array(x, dtype)


def flat(a, axis):
    """An array and the axis to work along; without an axis, all elements in one."""
    return (a.reshape((-1,)), 0) if axis is None else (a, axis)


def named(function, name, doc):
    """Sets the name and documentation of a generated function."""
    function.__name__, function.__doc__ = name, doc
    return function
