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

    def as_np_ndarray(self):
        """The same symbol for mx.np."""
        from .np import _Symbol

        self.__class__ = _Symbol
        return self


NDArray._array, NDArray._symbol = NDArray, Symbol


def classify(t):
    """Gives an array the class that fits it: with a symbol among its arguments a result is one."""
    t.__class__ = t._symbol if lib.sl_is_symbol(t._p) else t._array
    return t
