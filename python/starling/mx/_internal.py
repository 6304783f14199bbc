"""mx.nd._internal and mx.sym._internal: MXNet's functions with an underscore in front, by the functions that programs use."""
import operator
import types

from . import _later
from ._signed import into
from ._sparse import dense_of, labelled, mapped, stype_of
from ._storage import elementwise
from .unsupported import missing

_OPERATORS = {"plus": operator.add, "minus": operator.sub, "mul": operator.mul, "div": operator.truediv, "power": operator.pow, "mod": operator.mod,
              "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt, "greater_equal": operator.ge, "lesser": operator.lt,
              "lesser_equal": operator.le}  # fmt: skip


def _square_sum(data, axis=None, keepdims=False, exclude=False):
    """The sum of squares."""
    from . import nd

    total = nd.sum(nd.square(dense_of(data)), axis=axis, keepdims=keepdims, exclude=exclude)
    return labelled(total, "row_sparse") if stype_of(data) == "row_sparse" and axis in (1, (1,)) and keepdims else total


def _of_stored(operate):
    """A function of the stored elements alone."""

    def call(data, scalar):
        return mapped(data, lambda x: operate(x, scalar)) if stype_of(data) in ("csr", "row_sparse") else operate(data, scalar)

    return call


def _crop_assign(lhs, rhs, begin, end, step=(), out=None):
    """lhs with a part replaced by rhs; out may be lhs."""
    result = lhs if out is lhs else lhs.copy()
    result[tuple(slice(*each) for each in zip(begin, end, step or (None,) * len(begin)))] = rhs
    return into(result, None if out is lhs else out)


def _crop_assign_scalar(data, scalar=0.0, begin=(), end=(), step=(), out=None):
    """The same with a number."""
    return _crop_assign(data, scalar, begin, end, step, out)


def _scatter_elemwise_div(lhs, rhs):
    """The quotients of the stored rows."""
    if stype_of(lhs) != "row_sparse":
        return dense_of(lhs) / dense_of(rhs)
    return mapped(lhs, lambda x: x / dense_of(rhs)[lhs.indices])


def _of_pairs(name):
    """A function of two arrays of one shape that is 0 at (0, 0): of sparse arrays of one kind it is sparse."""

    def call(lhs, rhs):
        from . import nd

        compute = getattr(nd, name)
        return elementwise(name, compute, lhs, rhs) if "default" not in (stype_of(lhs), stype_of(rhs)) else compute(lhs, rhs)

    call.__name__ = name
    return call


def _identity_with_attr_like_rhs(lhs, rhs):
    """lhs; in programs of symbols its shape is that of rhs."""
    from . import nd

    return nd.identity(lhs)


class _Internal(types.ModuleType):
    """The functions, found by their names."""

    _square_sum, _identity_with_attr_like_rhs = staticmethod(_square_sum), staticmethod(_identity_with_attr_like_rhs)
    _scatter_plus_scalar, _scatter_minus_scalar = (staticmethod(_of_stored(_OPERATORS[n])) for n in ("plus", "minus"))
    _maximum, _minimum, _hypot = map(staticmethod, (_of_pairs("maximum"), _of_pairs("minimum"), _of_pairs("broadcast_hypot")))
    _scatter_elemwise_div = staticmethod(_scatter_elemwise_div)
    _crop_assign, _crop_assign_scalar = staticmethod(_crop_assign), staticmethod(_crop_assign_scalar)
    _slice_assign, _slice_assign_scalar = _crop_assign, _crop_assign_scalar

    def __init__(self, nd):
        super().__init__("starling.mx.nd._internal")
        self._nd = nd

    def __getattr__(self, name):
        if name.startswith("__") or not name.startswith("_"):
            return missing("mx.nd._internal")(name)
        plain = name[1:]
        if plain.endswith("_scalar") and plain[:-7] in _OPERATORS:
            operate = _OPERATORS[plain[:-7]]
            return lambda data, scalar, **_: operate(data, scalar)
        if plain in _OPERATORS:
            operate = _OPERATORS[plain]
            return lambda lhs, rhs, **_: operate(lhs, rhs)
        found = vars(self._nd).get({"hypot": "broadcast_hypot", "copy": "identity"}.get(plain, plain))
        return found if callable(found) else missing("mx.nd._internal")(name)


def of_arrays(nd):
    """mx.nd._internal."""
    return _Internal(nd)


class _OfSymbols(_later.Kept):
    """The functions for symbols: those of mx.sym first, which make weights."""

    def __getattr__(self, name):
        from . import sym

        found = vars(sym).get(name)
        return found if callable(found) and not name.startswith("_") else super().__getattr__(name)


def of_symbols(module):
    """A module of functions of arrays for symbols."""
    return _OfSymbols(module)
