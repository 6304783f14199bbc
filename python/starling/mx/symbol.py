"""Symbol: an array without values, in programs."""
from .._core import ffi, lib
from .ndarray import NDArray


class Symbol(NDArray):
    """What sym.var makes, and what blocks see while they are traced."""

    __slots__ = ()

    @property
    def name(self):
        """The name of the operation behind it."""
        return ffi.string(lib.sl_symbol_name(self._p)).decode()


def kind_of(p):
    """The class of a C tensor's Python object."""
    return Symbol if lib.sl_is_symbol(p) else NDArray


def classify(t):
    """Gives an array the class that fits it: with a symbol among its arguments a result is one."""
    t.__class__ = kind_of(t._p)
    return t
