"""Python's operators of tensors, and the data types of their results: the table of doc/python.md.

Operands of equal types go to the library directly; only for calls that it refuses, and for operands other than tensors and
plain numbers, the types are examined.
"""
import functools
import math

import numpy

from . import _core
from ._core import NULL, here, lib, raise_error
from ._tensor import Tensor, _dtype_names, _numpy, array, wrap

_EXACT = 2**53  # doubles hold all integers up to this one

# ---- data types -------------------------------------------------------------------------------------------------------

_KINDS = {"bool": 0, "uint8": 1, "int32": 1, "int64": 1, "float16": 2, "bfloat16": 2, "float32": 2, "float64": 2}
_WIDER = list(_KINDS)  # within a kind
_SMALL = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}  # beside others: as these
_KINDS.update(dict.fromkeys(_SMALL, 1))
_HALVES = (lib.SL_FLOAT16, lib.SL_BFLOAT16)
_AXES, _NO_AXES, _NUMBER = 2, 1, 0  # weights of operands' types


def _held(dtype):
    """The name of the data type that holds the values of a NumPy type; None if there is none."""
    if dtype.name in _WIDER:
        return dtype.name
    if dtype.kind in "iu":
        return "int32" if dtype.itemsize <= 2 else "int64"
    return "float64" if dtype.kind == "f" else None


def _name(t):
    return _dtype_names[lib.sl_tensor_dtype(t._p)]


def _common(x, y):
    """The data type for values of two."""
    if x == y or _KINDS[x] != _KINDS[y]:
        return x if _KINDS[x] >= _KINDS[y] else y
    x, y = _SMALL.get(x, x), _SMALL.get(y, y)
    return "float32" if {x, y} == {"float16", "bfloat16"} else max(x, y, key=_WIDER.index)


def result_type(*operands):
    """The data type of the result: from operands with axes; scalars and numbers count only if they are of a higher kind.

    operands: (name of the data type, _AXES, _NO_AXES or _NUMBER) of each.
    """
    found = None
    for weight in (_AXES, _NO_AXES, _NUMBER):
        of_weight = [name for name, w in operands if w == weight]
        if of_weight:
            name = functools.reduce(_common, of_weight)
            found = name if found is None or _KINDS[name] > _KINDS[found] else found
    return found


def _plain(x):
    """A number of NumPy or another library as a Python number; None if it is no number."""
    if isinstance(x, numpy.generic):
        return None if x.dtype.kind not in "fiub" else float(x) if x.dtype.kind == "f" else x.item()
    if isinstance(x, (bool, int, float)):
        return x
    if isinstance(x, (Tensor, numpy.ndarray, str, complex)) or not (hasattr(x, "__float__") or hasattr(x, "__index__")):
        return None
    return x.__index__() if hasattr(x, "__index__") else float(x)


def operand(x):
    """An operand as (value, (name of its type, its weight)); None if it is no operand."""
    if isinstance(x, Tensor):
        return x, (_name(x), _AXES if x.ndim else _NO_AXES)
    if isinstance(x, numpy.ndarray):
        held = _held(x.dtype)
        if held is None:
            raise _core.DTypeError(f"NumPy's {x.dtype} has no place in an expression with tensors")
        return x, (held, _AXES if x.ndim else _NO_AXES)
    if isinstance(x, (list, tuple)):
        x = numpy.asarray(x)
        kind = {"b": "bool", "i": "int64", "u": "int64", "f": "float32"}.get(x.dtype.kind)
        if kind is None:
            raise _core.DTypeError(f"a list of {x.dtype} has no place in an expression with tensors")
        return x, (kind if x.size else "bool", _NUMBER)
    x = _plain(x)
    if x is None:
        return None
    return x, ("bool" if isinstance(x, bool) else "float32" if isinstance(x, float) else "int64", _NUMBER)


def as_tensor(x, dtype, like):
    """An operand as a tensor of the data type, beside another tensor."""
    if isinstance(x, Tensor):
        return x if _name(x) == dtype else x.astype(dtype)
    return array(x, dtype, like.device, type(like))


# ---- arithmetic -------------------------------------------------------------------------------------------------------


def _check_power(base, exponent):
    """Refuses integers to a negative power, as NumPy and PyTorch do, if the exponent is known."""
    if not isinstance(exponent, Tensor) and numpy.size(exponent) and numpy.min(exponent) < 0:
        raise _core.InvalidArgument(f"{base} to a negative power is no whole number; use floats, as in x ** -1.0")


def _arithmetic_type(operator, a, b):
    """The data type that an operator computes in: never bool, and floats for /."""
    dtype = result_type(a, b)
    if operator == "div" and _KINDS[dtype] < 2:
        return "float32"
    return "int64" if dtype == "bool" else dtype


def arithmetic_operands(a, b):
    """(a, b, the name of their type) of a tensor and another operand, as tensors of one type; None if b is no operand."""
    found = operand(b)
    if found is None:
        return None
    dtype = _arithmetic_type("", operand(a)[1], found[1])
    return as_tensor(a, dtype, a), as_tensor(found[0], dtype, a), dtype


class _Arithmetic:
    """An operator: its functions of two tensors and of a tensor and a number, in this order and the other."""

    def __init__(self, name, symbol, swapped=None):
        self.name, self.symbol = name, symbol
        self.tensors = getattr(lib, f"sl_{name}_at")
        self.scalar = getattr(lib, f"sl_{name}_scalar_at")
        self.swapped = getattr(lib, f"sl_{swapped or name}_scalar_at")

    def typed(self, a, b, swap, dtype=None):
        """The result for a and b of different types, or other operands: in the type of the table.  NULL: an error is pending."""
        found = operand(b)
        if found is None:
            if isinstance(b, numpy.generic):
                raise _core.DTypeError(f"NumPy's {b.dtype} has no place in an expression with tensors")
            return NotImplemented
        b, of_b = found
        dtype = _arithmetic_type(self.name, operand(a)[1], of_b)
        if self.name == "pow" and _KINDS[dtype] < 2:
            _check_power(*((b, a) if swap else (a.dtype, b)))
        a = as_tensor(a, dtype, a)
        if not isinstance(b, (Tensor, numpy.ndarray)) and (dtype != "int64" or -_EXACT <= b <= _EXACT):
            return (self.swapped if swap else self.scalar)(here(), a._p, b)
        b = as_tensor(b, dtype, a)
        first, second = (b, a) if swap else (a, b)
        return self.tensors(here(), first._p, second._p)

    def of_mxnet(self, a, b, swap):
        """The same for MXNet's arrays: numbers and NumPy's arrays take the array's type."""
        truths = lib.slpy_truths(a._p, b._p if isinstance(b, Tensor) else NULL)
        if isinstance(b, (numpy.ndarray, list, tuple)) and numpy.ndim(b):
            b = array(b, dtype=None if truths else a.dtype, device=a.device, like=type(a))
        if not isinstance(b, Tensor):
            a = a.astype("float32" if isinstance(b, (float, numpy.floating)) else "int64") if truths else a
            return (self.swapped if swap else self.scalar)(here(), a._p, b) if hasattr(b, "__float__") else NotImplemented
        if truths := lib.slpy_truths(a._p, b._p):
            dtype = "int64" if truths == 3 else b.dtype if truths == 1 else a.dtype
            a, b = as_tensor(a, numpy.dtype(dtype).name, a), as_tensor(b, numpy.dtype(dtype).name, a)
        first, second = (b, a) if swap else (a, b)
        return self.tensors(here(), first._p, second._p)

    def slowly(self, a, b, swap=False):
        """The result for operands that the library refused, or that are not tensors."""
        lib.sl_error_clear()
        p = (self.typed if a._truths else self.of_mxnet)(a, b, swap)
        return p if p is NotImplemented else wrap(p, type(a))


def _equal_types(a, b):
    """Whether the operands' types are equal, so that a call was refused for another reason."""
    return lib.sl_tensor_dtype(a._p) == lib.sl_tensor_dtype(b._p) and not lib.slpy_truths(a._p, NULL)


def _binary(arithmetic):
    tensors, scalar, swapped, slowly = arithmetic.tensors, arithmetic.scalar, arithmetic.swapped, arithmetic.slowly
    divides, power = arithmetic.name == "div", arithmetic.name == "pow"

    def forward(a, b):
        if isinstance(b, Tensor):
            if divides and a._truths and lib.slpy_whole(a._p, b._p):
                return slowly(a, b)
            p = tensors(here(), a._p, b._p)
            return wrap(p, type(a)) if p or _equal_types(a, b) else slowly(a, b)
        if not a._truths or not _taken(a, b, divides) or (power and b < 0 and b.__class__ is int):
            return slowly(a, b)
        p = scalar(here(), a._p, b)
        return wrap(p, type(a)) if p or not lib.slpy_truths(a._p, NULL) else slowly(a, b)

    def backward(a, b):
        if not a._truths or not _taken(a, b, divides):
            return slowly(a, b, True)
        p = swapped(here(), a._p, b)
        return wrap(p, type(a)) if p or not lib.slpy_truths(a._p, NULL) else slowly(a, b, True)

    return forward, backward


def _taken(a, b, divides):
    """Whether b is a plain number that the library itself takes beside a, or refuses."""
    if b.__class__ is int:
        return -_EXACT <= b <= _EXACT and not (divides and lib.slpy_whole(a._p, NULL))
    return b.__class__ is float and not lib.slpy_whole(a._p, NULL)


# ---- in place ---------------------------------------------------------------------------------------------------------


def _replaced(a, value):
    """a with the values of another tensor."""
    if not lib.sl_copy_inplace_at(here(), a._p, value._p):
        raise_error()
    return a


def _is_recorded_part(a):
    return getattr(a, "_part", False) and lib.sl_is_recording()


def _inplace(arithmetic, operator):
    name = arithmetic.name
    tensors, scalar = (getattr(lib, f"sl_{name}{of}_inplace_at", None) for of in ("", "_scalar"))  # none for powers

    def by_way_of_another(a, b):
        value = getattr(a, f"__{operator}__")(b)
        if value is NotImplemented or _is_recorded_part(a):  # t[0] += 1 stores it
            return value
        return _replaced(a, value if _name(value) == _name(a) else value.astype(_name(a)))

    def typed(a, b):
        found = operand(b)
        if found is None:
            return NotImplemented
        dtype = _arithmetic_type(name, operand(a)[1], found[1])
        if _KINDS[dtype] > _KINDS[_name(a)]:
            gives = "fractions" if _KINDS[dtype] == 2 else "whole numbers"
            raise _core.DTypeError(f"{arithmetic.symbol}= gives {gives}, which a tensor of {a.dtype} cannot hold")
        if tensors is None or dtype != _name(a) or not isinstance(found[0], (Tensor, numpy.ndarray)):
            return by_way_of_another(a, b)
        b = as_tensor(found[0], dtype, a)
        p = tensors(here(), a._p, b._p)
        return a if p else refused(a, b)

    def refused(a, b):
        if not _is_recorded_part(a):
            raise_error()
        lib.sl_error_clear()
        return by_way_of_another(a, b)

    def of_mxnet(a, b):
        try:
            p = tensors(here(), a._p, b._p) if isinstance(b, Tensor) else scalar(here(), a._p, b)
        except TypeError:
            return NotImplemented
        if not p and isinstance(b, Tensor) and lib.slpy_truths(a._p, b._p) == 2:
            lib.sl_error_clear()
            b = b.astype(a.dtype)
            p = tensors(here(), a._p, b._p)
        return a if p else refused(a, b)

    def method(a, b):
        if not a._truths:
            return of_mxnet(a, b) if tensors is not None else by_way_of_another(a, b)
        if tensors is not None and isinstance(b, Tensor) and not (name == "div" and lib.slpy_whole(a._p, NULL)):
            if tensors(here(), a._p, b._p):
                return a
            if _equal_types(a, b):
                return refused(a, b)
            lib.sl_error_clear()
        elif scalar is not None and _taken(a, b, name == "div"):
            if scalar(here(), a._p, b):
                return a
            if not lib.slpy_truths(a._p, NULL):
                return refused(a, b)
            lib.sl_error_clear()
        return typed(a, b)

    return method


# ---- comparisons ------------------------------------------------------------------------------------------------------


def _truths_of(p, a):
    t = wrap(p, type(a))
    return t if not t._truths or lib.slpy_truths(t._p, NULL) else wrap(lib.sl_cast_at(here(), t._p, lib.SL_BOOL), type(a))


def _listed(a, b):
    """A list or NumPy array as the tensor that a is compared with, or None; its type holds its values."""
    b = numpy.asarray(b)
    held = _held(b.dtype)
    if held is None:
        return None
    if not a._truths:
        return array(b, dtype=b.dtype if b.dtype.name in _numpy else None, device=a.device, like=type(a))
    return array(b, held, a.device, type(a))


def _rounded(a, numbers):
    """Numbers to compare floats with, in the floats' type; NumPy's may become infinite."""
    with numpy.errstate(over="ignore"):
        numbers = numpy.asarray(numbers).astype(_numpy.get(_name(a), numpy.float32))
    return array(numbers, None, a.device, type(a)).astype(_name(a))


def _comparison(name):
    tensors, scalar = getattr(lib, f"sl_{name}_at"), getattr(lib, f"sl_{name}_scalar_at")

    def large(a, b):
        """Whether a number beside integers is too large for a double to hold exactly."""
        if -(2**63) <= b < 2**63:
            b = array(b, "int64", a.device, type(a))
            return _truths_of(tensors(here(), a._p, b._p), a)
        return _truths_of(scalar(here(), a._p, math.copysign(math.inf, b)), a)

    def other(a, b):
        if isinstance(b, (list, tuple)):
            if not a._truths:
                return NotImplemented
            b = numpy.asarray(b)
            b = _rounded(a, b) if "float" in _name(a) and b.dtype.kind in "fiub" else _listed(a, b)
            return NotImplemented if b is None else method(a, b)
        if isinstance(b, numpy.ndarray) and b.ndim:
            b = _listed(a, b)
            return NotImplemented if b is None else method(a, b)
        b = _plain(b.item() if isinstance(b, numpy.ndarray) else b)
        if b is None:
            return NotImplemented
        if isinstance(b, float) and a._truths and lib.sl_tensor_dtype(a._p) in _HALVES:
            return method(a, float(b))
        if math.isfinite(b) and lib.slpy_integers(a._p, NULL) and not -_EXACT < b < _EXACT:
            return large(a, int(b))
        return _truths_of(scalar(here(), a._p, b), a)

    def method(a, b):
        if isinstance(b, Tensor):
            p = tensors(here(), a._p, b._p)
            if not p and {_name(a), _name(b)} == {"float16", "bfloat16"}:
                lib.sl_error_clear()
                return method(a.astype("float32"), b)
            t = wrap(p, type(a))
        elif b.__class__ is float and lib.sl_tensor_dtype(a._p) in _HALVES and a._truths:
            return method(a, _rounded(a, b))  # the library compares with the number itself
        elif (b.__class__ is int or b.__class__ is float) and -_EXACT < b < _EXACT:
            t = wrap(scalar(here(), a._p, b), type(a))
        else:
            return other(a, b)
        return t if not t._truths or lib.slpy_truths(t._p, NULL) else wrap(lib.sl_cast_at(here(), t._p, lib.SL_BOOL), type(a))

    return method


# ---- truth values, products -------------------------------------------------------------------------------------------


def _logical(name, symbol):
    function = getattr(lib, f"sl_logical_{name}_at")

    def method(a, b):
        if isinstance(b, (numpy.ndarray, numpy.generic)) and b.dtype != bool:
            raise TypeError(f"{symbol} takes bools, not NumPy's {b.dtype}")  # NumPy would compute something
        if not isinstance(b, Tensor) and isinstance(b, (bool, numpy.bool_, numpy.ndarray, list, tuple)):
            b = numpy.asarray(b)
            b = array(b, "bool", a.device, type(a)) if b.dtype == bool else None
        if not isinstance(b, Tensor) or lib.slpy_truths(a._p, b._p) != 3:
            return NotImplemented  # there are no operations bit by bit
        return wrap(function(here(), a._p, b._p), type(a))

    def inplace(a, b):
        value = method(a, b)
        return value if value is NotImplemented or _is_recorded_part(a) else _replaced(a, value)

    return method, inplace


def _invert(a):
    if not lib.slpy_truths(a._p, NULL):
        raise TypeError(f"~ takes a tensor of bools, not of {a.dtype}")
    return wrap(lib.sl_logical_not_at(here(), a._p), type(a))


def _product(a, b, swap=False):
    if not isinstance(b, Tensor):
        if not a._truths or not isinstance(b, (numpy.ndarray, list, tuple)):
            return NotImplemented
        b, of_b = operand(b)
        b = as_tensor(b, result_type(operand(a)[1], of_b), a)
    if a._truths and lib.sl_tensor_dtype(a._p) != lib.sl_tensor_dtype(b._p):
        dtype = result_type(operand(a)[1], operand(b)[1])
        a, b = as_tensor(a, dtype, a), as_tensor(b, dtype, a)
    first, second = (b, a) if swap else (a, b)
    flat = first.ndim <= 2 and second.ndim <= 2
    return wrap((lib.sl_dot_at if flat else lib.sl_matmul_at)(here(), first._p, second._p, (False, False)), type(a))


# ---- of two operands that need not be tensors -------------------------------------------------------------------------


def together(name, a, b):
    """Two arguments, tensors, arrays, lists or numbers, as tensors of the type of the table."""
    found = [operand(a), operand(b)]
    for which, value, one in zip("ab", (a, b), found):
        if one is None:
            raise _core.wrong(f"{name}: {which}", value, "a number")
    like = next((x for x in (a, b) if isinstance(x, Tensor)), None)
    dtype = result_type(found[0][1], found[1][1])
    if like is None:
        return tuple(array(x, "int32" if dtype == "int64" else dtype) for x, _ in found)
    return tuple(as_tensor(x, dtype, like) for x, _ in found)


# ---- methods ----------------------------------------------------------------------------------------------------------

for _name_, _c, _symbol, _swapped in (
    ("add", "add", "+", None), ("sub", "sub", "-", "rsub"), ("mul", "mul", "*", None), ("truediv", "div", "/", "rdiv"), ("pow", "pow", "**", "rpow"),
):  # fmt: skip
    _operator = _Arithmetic(_c, _symbol, _swapped)
    _forward, _backward = _binary(_operator)
    setattr(Tensor, f"__{_name_}__", _forward)
    setattr(Tensor, f"__r{_name_}__", _backward)
    setattr(Tensor, f"__i{_name_}__", _inplace(_operator, _name_))
for _name_ in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name_}__", _comparison(_name_))
for _name_, _symbol in (("and", "&"), ("or", "|"), ("xor", "^")):
    _method, _in_place = _logical(_name_, _symbol)
    setattr(Tensor, f"__{_name_}__", _method)
    setattr(Tensor, f"__r{_name_}__", _method)
    setattr(Tensor, f"__i{_name_}__", _in_place)
setattr(Tensor, "__invert__", _invert)
setattr(Tensor, "__neg__", lambda a: wrap(lib.sl_neg_at(here(), a._p), type(a)))
setattr(Tensor, "__pos__", lambda a: a)
setattr(Tensor, "__abs__", lambda a: wrap(lib.sl_abs_at(here(), a._p), type(a)))
setattr(Tensor, "__matmul__", _product)
setattr(Tensor, "__rmatmul__", lambda a, b: _product(a, b, True))
