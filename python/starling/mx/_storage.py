"""The storage types of results, by MXNet's rules; functions without a rule compute with the dense values."""
import operator

import numpy

from .._core import StateError, lib
from .._tensor import Tensor
from ._array import NDArray
from ._sparse import KINDS, BaseSparseNDArray, CSRNDArray, RowSparseNDArray, csr_of, dense_of, integers, labelled, made, mapped, rows_of, stype_of
from .base import MXNetError

STYPE_NUMBERS = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}  # MXNet's

# ---- calls of functions


def _dense(value):
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(_dense, value))
    return dense_of(value)


def _has_sparse(value):
    return isinstance(value, BaseSparseNDArray) or isinstance(value, (list, tuple)) and any(map(_has_sparse, value))


def dispatched(full, function, order, args, kwargs):
    """The result of a call with sparse arrays; None if there are none, so that the function itself computes it."""
    name = full.rpartition(".")[2]
    sparse = any(map(_has_sparse, args)) or any(_has_sparse(v) for k, v in kwargs.items() if k != "out")
    if not sparse:
        return None
    out, kwargs = kwargs.get("out"), {k: v for k, v in kwargs.items() if k != "out"}
    rule, several = _RULES.get(name), name in _OF_SEVERAL
    if rule is not None:
        result = rule(function, kwargs, args) if several else rule(function, {**dict(zip(order, args)), **kwargs})
    else:
        result = function(*map(_dense, args), **{k: _dense(v) for k, v in kwargs.items()})
    if out is None:
        return result
    out[slice(None)] = dense_of(result) if stype_of(out) == "default" else result
    return out


def _fallback(function, given):
    return function(**{k: _dense(v) for k, v in given.items()})


def _as_given(function, given):
    """A function that takes sparse arrays as they are."""
    return function._unsigned(**given)


def _of_elements(function, given):
    """A function that is 0 at 0."""
    given = dict(given)
    name = next(iter(given))
    x = given.pop(name)
    if not isinstance(x, BaseSparseNDArray):
        return _fallback(function, {name: x, **given})
    return mapped(x, lambda values: function(values, **given))


def _clip(function, given):
    if not given["a_min"] <= 0 <= given["a_max"]:
        raise MXNetError(f"clip: 0 is not between {given['a_min']} and {given['a_max']}, so that the result would not be sparse")
    return _of_elements(function, given)


# ---- two arrays


def _keys(t):
    """The places of the stored elements, or rows, as numbers."""
    _, places, *begins = (p.asnumpy() for p in t._parts())
    return rows_of(begins[0]) * t.shape[1] + places if begins else places


def _merged(a, b, compute):
    """A function of two arrays of one storage type that is 0 at (0, 0)."""
    if lib.sl_is_recording():
        return labelled(compute(dense_of(a), dense_of(b)), a.stype)
    first, second = _keys(a), _keys(b)
    keys = numpy.union1d(first, second)
    values = compute(*(_spread(t, numpy.searchsorted(keys, k), len(keys)) for t, k in ((a, first), (b, second))))
    if isinstance(a, RowSparseNDArray):
        return made(RowSparseNDArray, (values, integers(keys, a.context)), a.shape)
    rows, columns = numpy.divmod(keys, max(a.shape[1], 1))
    begins = numpy.searchsorted(rows, numpy.arange(a.shape[0] + 1))
    return made(CSRNDArray, (values, integers(columns, a.context), integers(begins, a.context)), a.shape)


def _spread(t, at, count):
    """The stored elements at their places among those of both arrays."""
    data = t._parts()[0].asnumpy()
    values = numpy.zeros((count, *data.shape[1:]), data.dtype)
    numpy.add.at(values, at, data)
    from . import nd

    return nd.array(values, t.context, data.dtype)


def elementwise(name, compute, a, b):
    """The sum, difference or product of arrays of one shape, by the rules of elemwise_…."""
    kinds = stype_of(a), stype_of(b)
    if kinds[0] == kinds[1] != "default":
        return _merged(a, b, compute)
    if name == "mul" and "default" in kinds and kinds != ("default", "default"):
        return labelled(compute(dense_of(a), dense_of(b)), next(k for k in kinds if k != "default"))
    return compute(dense_of(a), dense_of(b))


def _of_two(name):
    def rule(function, given):
        a, b = given["lhs"], given["rhs"]
        if a.shape != b.shape:
            return _fallback(function, given)
        return elementwise(name, lambda x, y: function(x, y), a, b)

    return rule


def _scaled(function, given):
    """A matrix times (or divided by) dense values keeps its storage type."""
    a, b = given["lhs"], given["rhs"]
    result = _fallback(function, given)
    return labelled(result, "csr") if stype_of(a) == "csr" and stype_of(b) == "default" and result.shape == a.shape else result


def _sum_of(function, given, arrays):
    arrays = arrays or given.get("args", ())
    arrays = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)) else arrays
    result = function(*map(_dense, arrays))
    return labelled(result, "row_sparse") if all(stype_of(a) == "row_sparse" for a in arrays) else result


# ---- operators of sparse arrays

_COMPARED = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _keeps_zeros(name, number, swap):
    """Whether the result of an operator is sparse."""
    if name in _COMPARED:
        return not _COMPARED[name](0, number)
    return name == "mul" or name == "truediv" and not swap or name in ("add", "sub") and number == 0 and not (swap and name == "sub")


def _operator(name, swap):
    plain = getattr(NDArray, f"__{'r' if swap else ''}{name}__")

    def method(a, b):
        if isinstance(b, Tensor):
            if b.is_symbol:
                return NotImplemented
            if not swap and name in ("add", "sub", "mul") and a.shape == b.shape:
                return elementwise(name, plain, a, b)
            return plain(dense_of(a), dense_of(b))
        if numpy.ndim(b) == 0 and hasattr(b, "__float__") and _keeps_zeros(name, b, swap):
            return mapped(a, lambda x: plain(x, b))
        return plain(dense_of(a), b)

    return method


def _in_place(name):
    compute = getattr(NDArray, f"__{name}__")

    def method(a, b):
        a[:] = compute(dense_of(a), dense_of(b) if isinstance(b, Tensor) else b)
        return a

    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "mod"):
    for _swap in (False, True):
        setattr(BaseSparseNDArray, f"__{'r' if _swap else ''}{_name}__", _operator(_name, _swap))
    setattr(BaseSparseNDArray, f"__i{_name}__", _in_place(_name))
for _name in _COMPARED:
    setattr(BaseSparseNDArray, f"__{_name}__", _operator(_name, False))
BaseSparseNDArray.__hash__ = Tensor.__hash__
BaseSparseNDArray.__neg__ = lambda a: mapped(a, operator.neg)
BaseSparseNDArray.__abs__ = lambda a: mapped(a, abs)

# ---- products, parts, sums


def _dot_type(a, b, ta, tb):
    kinds = stype_of(a), stype_of(b)
    if kinds[0] == "csr" and kinds[1] != "csr" and ta and not tb:
        return "row_sparse"
    return "csr" if kinds == ("default", "csr") and not ta else "default"


def _product(a, b, transposed):
    """The product of a matrix of stored elements, or its transpose, and dense columns."""
    data, columns, begins = (p.asnumpy() for p in a._parts())
    rows, values = rows_of(begins), dense_of(b).asnumpy()
    to, of = (columns, rows) if transposed else (rows, columns)
    result = numpy.zeros((a.shape[1 if transposed else 0], *values.shape[1:]), data.dtype)
    numpy.add.at(result, to, data.reshape((-1,) + (1,) * (values.ndim - 1)) * values[of])
    return result


def _dot(function, given):
    from . import nd

    given = dict(given)
    wanted = given.pop("forward_stype", None)
    a, b, ta, tb = given["lhs"], given["rhs"], given.get("transpose_a", False), given.get("transpose_b", False)
    stype = wanted or _dot_type(a, b, ta, tb)
    alone = isinstance(a, CSRNDArray) and not isinstance(b, CSRNDArray) and not tb and not lib.sl_is_recording()
    if alone and not b.is_symbol and a.dtype == b.dtype and b.shape[0] == a.shape[0 if ta else 1]:
        result = nd.array(_product(a, b, ta), a.context, a.dtype)
    else:
        result = _fallback(function, given)
    return result if stype == "default" else labelled(result, stype)


def cast_storage(data, stype):
    """The values as an array of another storage type."""
    if isinstance(data, BaseSparseNDArray):
        try:
            return data.tostype(stype)
        except ValueError as error:
            raise MXNetError(str(error)) from None
    if data.is_symbol:
        raise StateError("cast_storage of a symbol: it has no values yet")
    if stype == "default":
        return data
    if stype not in KINDS:
        raise ValueError(f"{stype!r} is not a storage type; these are default, row_sparse and csr")
    KINDS[stype]._check(data.shape)
    return labelled(data if lib.sl_is_recording() else data.copy(), stype)


def _slice(function, given):
    x, begin, end = (given[k] for k in ("data", "begin", "end"))
    result = _fallback(function, given)
    steps = given.get("step") or ()
    whole = all(s in (None, 1) for s in (steps if isinstance(steps, (list, tuple)) else (steps,)))
    return labelled(result, "csr") if stype_of(x) == "csr" and whole and begin is not None and end is not None else result


def _concat(function, given, arrays):
    arrays = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)) else arrays
    result = function(*map(_dense, arrays), dim=given.get("dim", 1))
    return labelled(result, "csr") if given.get("dim", 1) == 0 and all(stype_of(a) == "csr" for a in arrays) else result


def _take(function, given):
    result = _fallback(function, given)
    whole = given.get("axis", 0) == 0 and given["indices"].ndim == 1
    return labelled(result, "csr") if stype_of(given["a"]) == "csr" and whole else result


def _zeros_like(_, given):
    from ._sparse import empty

    x = given["data"]
    return empty(x.stype, x.shape, x.context, x.dtype)


def _linear(function, given):
    """A bias of sparse rows has a second axis."""
    bias = given.get("bias")
    return _fallback(function, given if bias is None else {**given, "bias": dense_of(bias).reshape((-1,))})


def _batch_norm(function, given):
    if given.get("fix_gamma", True):
        raise MXNetError("BatchNorm: fix_gamma=True is not supported for sparse arrays, as in MXNet; use fix_gamma=False")
    return _fallback(function, given)


def _quadratic(function, given):
    result = _fallback(function, given)
    return labelled(result, "csr") if stype_of(given["data"]) == "csr" and not given.get("c") else result


_ZERO_AT_ZERO = """abs arcsin arcsinh arctan arctanh cbrt ceil degrees expm1 fix floor identity log1p negative radians relu rint round sign sin
        sinh sqrt square tan tanh trunc make_loss BlockGrad stop_gradient""".split()
_RULES = {
    **dict.fromkeys(_ZERO_AT_ZERO, _of_elements),
    "clip": _clip,
    "zeros_like": _zeros_like,
    **{f"elemwise_{name}": _of_two(name) for name in ("add", "sub", "mul")},
    **dict.fromkeys(("multiply", "broadcast_mul", "divide", "broadcast_div", "true_divide"), _scaled),
    **dict.fromkeys(("add_n", "ElementWiseSum"), _sum_of),
    "dot": _dot,
    "slice": _slice,
    "crop": _slice,
    **dict.fromkeys(("concat", "Concat"), _concat),
    "take": _take,
    "quadratic": _quadratic,
    "FullyConnected": _linear,
    "BatchNorm": _batch_norm,
    **dict.fromkeys(("split_data", "split_and_load"), _as_given),
}
_OF_SEVERAL = frozenset(("add_n", "ElementWiseSum", "concat", "Concat"))
