"""The operators //, % and divmod of tensors, made of operations: as in Python and NumPy, quotients are rounded down, and a
remainder has the divisor's sign.  Integers divided by 0 are 0."""
from . import _ops
from ._core import DTypeError, lib
from ._creation import where
from ._operators import _KINDS, _is_recorded_part, _name, _replaced, arithmetic_operands
from ._tensor import Tensor

_SPLIT = 2.0**27 + 1  # cuts a float64 into two halves of 26 bits
_STEPS = 4  # each leaves a quotient that is 2**25 times as small


def _whole(a, b):
    """Of integers, whose division loses the fraction."""
    q = _ops.div(a, b)
    r = a - q * b
    if _name(a) != "uint8":
        r = r * (b != -1)  # of the smallest number, whose quotient saturates
        down = (r != 0) & ((r < 0) != (b < 0))
        q, r = q - down, r + down * b
    zero = b == 0
    return q.masked_fill(zero, 0), r.masked_fill(zero, 0)


def _high(x):
    """The upper 26 bits of float64."""
    cut = x * _SPLIT
    return where(_ops.isfinite(cut), cut - (cut - x), x)


def _step(x, y, high, low):
    """(q, x - q y) for a whole q near x / y, of 26 bits: its products with either half of y are exact, and so is the rest."""
    q = x / y
    q = _high(_ops.floor(abs(q)) * _ops.sign(q))
    return q, (x - q * high) - q * low


def _fractions(x, y):
    """Of float64: quotients up to 2**53 are exact, larger ones rounded; remainders are exact, or NaN for quotients beyond 2**100."""
    given, high = x / y, _high(y)
    sign, low = _ops.sign(given), y - high
    q, r = _step(x, y, high, low)
    for _ in range(_STEPS - 1):
        more, r = _step(r, y, high, low)
        q = q + more
    far = ~(abs(r) < abs(y)) | (abs(given) > 2.0**100)
    q = where(_ops.isfinite(given), q, given)
    off = (r != 0) & ((r < 0) != (x < 0))  # a quotient was rounded up
    q, r = q - off * sign, r + off * sign * y
    down = (r != 0) & ((r < 0) != (y < 0))
    q, r = q - down, r + where(down, y, 0.0)
    endless = (_ops.isfinite(x, dtype="bool")) & (y == y) & ~_ops.isfinite(y, dtype="bool")
    turned = ((x < 0) != (y < 0)) & (x != 0)
    q = where(endless, 0.0 - turned.astype("float64"), q)
    r = where(endless, where(turned, y, x), r)
    lost = ~_ops.isfinite(x, dtype="bool") & (y != 0)
    r = r.masked_fill(far & ~endless, float("nan"))
    return q.masked_fill(lost, float("nan")), r.masked_fill(lost | (y == 0), float("nan"))


def _divided(a, b, swap):
    """(quotient, remainder) of operands in the type of the table; None where they do not go together."""
    found = arithmetic_operands(a, b)
    if found is None:
        return None
    a, b, dtype = found
    if swap:
        a, b = b, a
    if _KINDS[dtype] < 2:
        return _whole(a, b)
    x, y = a.detach().astype("float64"), b.detach().astype("float64")
    q, r = (t.astype(dtype) for t in _fractions(x, y))
    if lib.sl_is_recording():
        q = q.detach()
        through = a - q * b
        r = through + (r - through).detach()
    return q, r


def _method(which, swap):
    def method(a, b):
        if not a._truths:
            return NotImplemented
        found = _divided(a, b, swap)
        return NotImplemented if found is None else found if which is None else found[which]

    return method


def _in_place(which):
    forward = _method(which, False)

    def method(a, b):
        value = forward(a, b)
        if value is NotImplemented or _is_recorded_part(a):
            return value
        if _KINDS[_name(value)] > _KINDS[_name(a)]:
            raise DTypeError(f"the result is {value.dtype}, which a tensor of {a.dtype} cannot hold")
        return _replaced(a, value if _name(value) == _name(a) else value.astype(_name(a)))

    return method


for _operator, _which in (("floordiv", 0), ("mod", 1), ("divmod", None)):
    setattr(Tensor, f"__{_operator}__", _method(_which, False))
    setattr(Tensor, f"__r{_operator}__", _method(_which, True))
    if _which is not None:
        setattr(Tensor, f"__i{_operator}__", _in_place(_which))
