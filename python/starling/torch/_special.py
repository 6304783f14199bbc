"""The table, continued: special functions, as precise as float32.

Polynomials of Bessel functions: Abramowitz and Stegun, Handbook of Mathematical Functions, 9.4 and 9.8; of the gamma function:
C. Lanczos, A precision approximation of the gamma function, 1964, with nine terms.
"""
import math

import torch

from ._table import MOST_FLOAT, aten, lower, need, number, overloads, polynomial
from ._text import NUMBERS, Value

LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012,
    9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


class Writer:
    """Arithmetic in a program: add, mul, exp and the like are its operations, the methods below those with a number."""

    def __init__(self, p):
        self.p = p

    def __getattr__(self, name):
        return lambda *args: self.p.op(name, *args)

    def plus(self, x, c):
        return self.p.op("add_scalar", x, value=float(c))

    def times(self, x, c):
        return self.p.op("mul_scalar", x, value=float(c))

    def less(self, c, x):
        """c - x."""
        return self.p.op("rsub_scalar", x, value=float(c))

    def over(self, c, x):
        """c / x."""
        return self.p.op("rdiv_scalar", x, value=float(c))

    def below(self, x, c):
        return self.p.op("lt_scalar", x, value=float(c))

    def equals(self, x, c):
        return self.p.op("eq_scalar", x, value=float(c))

    def least(self, x, c):
        return self.p.op("maximum_scalar", x, value=float(c))

    def most(self, x, c):
        return self.p.op("minimum_scalar", x, value=float(c))

    def infinite(self, x):
        return self.p.op("gt_scalar", self.abs(x), value=MOST_FLOAT)

    def either(self, condition, a, b):
        """a where the condition is 1, b where it is 0."""
        return self.add(self.take_if(condition, a), self.take_unless(condition, b))

    def series(self, x, *rising):
        """A polynomial, the lowest power first."""
        return polynomial(self.p, x, rising[::-1])


def rounded(p, y):
    """A result in float32 in its own type: half types would lose digits in each operation."""
    return y if p.dtype == torch.float32 else p.op("cast", y, dtype=NUMBERS[p.dtype])


def of_one(*targets):
    """Enters a function of a writer and a value; only float32, and types that are computed in it, have this precision."""

    def keep(function):
        def lowering(p, x):
            need(x.dtype == p.dtype and p.dtype != torch.float64, f"of {str(x.dtype)[6:]}")
            return rounded(p, function(Writer(p), p.cast(x, torch.float32)))

        lower(*targets, any_type=True)(lowering)
        return function

    return keep


# ---- the gamma function and its derivatives -----------------------------------------------------------------------------


def part_of_turns(w, x):
    """x less the nearest whole number: the sine of pi times this has the size of that of x, and is 0 at whole numbers."""
    return w.sub(x, w.round(x))


def log_gamma_above(w, x):
    """log(gamma(x)) for x from 0.5 on."""
    total = None
    for k, c in enumerate(LANCZOS):
        term = w.over(c, w.plus(x, k))
        total = term if total is None else w.add(total, term)
    rest, g = w.log(w.plus(total, 0.99999999999980993)), len(LANCZOS) - 1
    y = w.mul(w.plus(x, -0.5), w.plus(w.log(w.plus(x, g - 0.5)), -1))
    return w.add(y, w.plus(rest, 0.5 * math.log(2 * math.pi) - g))


@of_one(aten.lgamma.default)
def log_gamma(w, x):
    low = w.below(x, 0.5)
    above = log_gamma_above(w, w.either(low, w.less(1, x), x))
    sine = w.sin(w.times(part_of_turns(w, x), math.pi))
    turned = w.sub(w.less(math.log(math.pi), w.log(w.abs(sine))), w.most(above, MOST_FLOAT))  # all large negative ones are poles
    return w.either(w.infinite(x), w.abs(x), w.either(low, turned, above))


STEPS = 6  # from x to where the asymptotic series of the derivatives are exact enough


@of_one(aten.digamma.default)
def digamma(w, x):
    low = w.below(x, 0)
    z = w.either(low, w.less(1, x), x)
    total = w.over(1, z)
    for k in range(1, STEPS):
        total = w.add(total, w.over(1, w.plus(z, k)))
    z = w.plus(z, STEPS)
    q = w.reciprocal(w.square(z))
    tail = w.mul(q, w.series(q, 1 / 12, -1 / 120, 1 / 252, -1 / 240))
    above = w.sub(w.sub(w.sub(w.log(z), w.over(0.5, z)), tail), total)
    r = part_of_turns(w, x)
    turned = w.sub(above, w.over(math.pi, w.tan(w.times(r, math.pi))))
    y = w.add(w.either(low, turned, above), w.take_if(w.mul(low, w.equals(r, 0)), w.over(0, w.times(r, 0))))  # NaN below 0
    return w.either(w.equals(x, 0), w.over(-1, x), y)


def trigamma(w, x):
    low = w.below(x, 0.5)
    z = w.either(low, w.less(1, x), x)
    total = w.over(1, w.square(z))
    for k in range(1, STEPS):
        total = w.add(total, w.over(1, w.square(w.plus(z, k))))
    z = w.plus(z, STEPS)
    q = w.reciprocal(w.square(z))
    tail = w.mul(w.reciprocal(z), w.mul(q, w.series(q, 1 / 6, -1 / 30, 1 / 42, -1 / 30)))
    above = w.add(w.add(total, w.add(w.reciprocal(z), w.times(q, 0.5))), tail)
    sine = w.sin(w.times(part_of_turns(w, x), math.pi))
    return w.either(low, w.sub(w.over(math.pi**2, w.square(sine)), above), above)


TERMS = 8  # that are added before the Euler-Maclaurin series
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30)


def zeta_above(w, s, q):
    """The sum of (q + k) to the power of -s over all k from 0 on, for s above 1 and q above 0."""
    minus, total = w.neg(s), None
    for k in range(TERMS):
        term = w.pow(w.plus(q, k), minus)
        total = term if total is None else w.add(total, term)
    z = w.plus(q, TERMS)
    power = w.pow(z, minus)
    total = w.add(total, w.mul(power, w.plus(w.div(z, w.plus(s, -1)), 0.5)))
    factor, square = w.div(w.mul(power, s), z), w.reciprocal(w.square(z))
    for j, b in enumerate(BERNOULLI, 1):
        total = w.add(total, w.times(factor, b / math.factorial(2 * j)))
        factor = w.mul(w.mul(factor, square), w.mul(w.plus(s, 2 * j - 1), w.plus(s, 2 * j)))
    return total


def zeta(w, s, q):
    """The same for any q: terms below 0 are a difference of two such sums."""
    low, whole = w.below(q, 0), w.floor(q)
    part = w.sub(q, whole)
    turned = w.sub(w.plus(whole, 1), q)  # 1 less the part, without its rounding
    first = w.either(low, w.either(w.equals(part, 0), w.plus(part, 1), part), w.either(w.equals(q, 0), w.plus(q, 1), q))
    below = w.sub(zeta_above(w, s, turned), zeta_above(w, s, w.sub(turned, w.most(whole, 0))))
    even = w.equals(w.sub(s, w.times(w.floor(w.times(s, 0.5)), 2)), 0)
    y = w.add(zeta_above(w, s, first), w.take_if(low, w.either(even, below, w.neg(below))))
    pole = w.mul(w.most(w.add(low, w.equals(q, 0)), 1), w.equals(part, 0))
    return w.either(pole, w.over(1, w.times(part, 0)), y)


@lower(aten.special_zeta.default)
def _(p, s, q):
    need(s.dtype == q.dtype == p.dtype != torch.float64, "of several types")
    w = Writer(p)
    few = w.p.op("le_scalar", s, value=1.0)  # has no sum
    y = zeta(w, w.either(few, w.plus(few, 1), s), q)
    y = w.either(w.infinite(q), w.over(1, w.abs(q)), y)
    none = w.sub(w.over(0, w.times(s, 0)), w.over(0, w.times(s, 0)))  # NaN
    broken = w.mul(w.mul(w.below(q, 0), w.ne(q, w.floor(q))), w.ne(s, w.floor(s)))
    return w.either(w.equals(s, 1), w.over(1, w.times(w.abs(s), 0)), w.either(w.most(w.add(w.below(s, 1), broken), 1), none, y))


@lower(aten.polygamma.default)
def _(p, n, x):
    need(0 <= n <= 16 and x.dtype == p.dtype != torch.float64, f"of order {n}")
    w, x = Writer(p), p.cast(x, torch.float32)
    if n < 2:
        return rounded(p, (digamma, trigamma)[n](w, x))
    s = p.op("fill", shape=[1] * x.ndim, value=n + 1.0)
    return rounded(p, w.times(zeta(w, s, x), (-1) ** (n + 1) * math.factorial(n)))


# ---- Bessel functions ---------------------------------------------------------------------------------------------------


def of_bessel(name):
    """An operation special_name, if PyTorch has it."""
    packet = getattr(aten, name, None) or getattr(aten, f"special_{name}")
    return packet.default


def i0_near(w, x):
    t = w.square(w.times(x, 1 / 3.75))
    return w.series(t, 1, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)


def i1_near(w, x):
    t = w.square(w.times(x, 1 / 3.75))
    return w.mul(x, w.series(t, 0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411))


def i_far(w, size, order):
    """I0 or I1 times exp(-x), for x from 3.75 on."""
    t = w.over(3.75, size)
    falling = (
        (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
        (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
    )[order]  # fmt: skip
    return w.mul(w.series(t, *falling), w.rsqrt(size))


def modified(order, scaled):
    """I0, I1; scaled: times exp(-|x|)."""

    def function(w, x):
        size = w.abs(x)
        near, far = (i0_near, i1_near)[order](w, w.least(w.most(x, 3.75), -3.75)), i_far(w, w.least(size, 3.75), order)
        far = far if scaled else w.mul(w.exp(w.times(size, 0.5)), w.mul(far, w.exp(w.times(size, 0.5))))  # does not overflow too early
        near = w.mul(near, w.exp(w.neg(size))) if scaled else near
        return w.either(w.below(size, 3.75), near, w.mul(far, w.sign(x)) if order else far)

    return function


for _name, _order, _scaled in (("i0", 0, False), ("i0e", 0, True), ("i1", 1, False), ("i1e", 1, True)):
    of_one(of_bessel(_name))(modified(_order, _scaled))
of_one(aten.special_modified_bessel_i0.default)(modified(0, False))
of_one(aten.special_modified_bessel_i1.default)(modified(1, False))


def decreasing(order, scaled):
    """K0, K1; scaled: times exp(x)."""

    def function(w, x):
        low = w.most(x, 2)
        q = w.square(w.times(low, 0.5))
        if order:
            rest = w.series(q, 1, 0.15443144, -0.67278579, -0.18156897, -0.01919402, -0.00110404, -0.00004686)
            near = w.add(w.mul(w.log(w.times(low, 0.5)), i1_near(w, low)), w.div(rest, low))
            falling = (1.25331414, 0.23498619, -0.03655620, 0.01504268, -0.00780353, 0.00325614, -0.00068245)
        else:
            rest = w.series(q, -0.57721566, 0.42278420, 0.23069756, 0.03488590, 0.00262698, 0.00010750, 0.00000740)
            near = w.sub(rest, w.mul(w.log(w.times(low, 0.5)), i0_near(w, low)))
            falling = (1.25331414, -0.07832358, 0.02189568, -0.01062446, 0.00587872, -0.00251540, 0.00053208)
        high = w.least(x, 2)
        far = w.mul(w.series(w.over(2, high), *falling), w.rsqrt(high))
        near, far = (w.mul(near, w.exp(low)), far) if scaled else (near, w.mul(far, w.exp(w.neg(high))))
        y = w.either(w.below(x, 2), near, far)
        pole = w.equals(x, 0)
        return w.either(pole, w.over(1, w.abs(x)), y)

    return function


for _order in (0, 1):
    of_one(of_bessel(f"modified_bessel_k{_order}"))(decreasing(_order, False))
    of_one(of_bessel(f"scaled_modified_bessel_k{_order}"))(decreasing(_order, True))


def waves(w, size, order, of):
    """J or Y, whose `of` is cos or sin, for x from 3 on."""
    t = w.over(3, size)
    f, turn = (
        ((0.79788456, -0.00000077, -0.00552740, -0.00009512, 0.00137237, -0.00072805, 0.00014476),
         (-0.78539816, -0.04166397, -0.00003954, 0.00262573, -0.00054125, -0.00029333, 0.00013558)),
        ((0.79788456, 0.00000156, 0.01659667, 0.00017105, -0.00249511, 0.00113653, -0.00020033),
         (-2.35619449, 0.12499612, 0.00005650, -0.00637879, 0.00074348, 0.00079824, -0.00029166)),
    )[order]  # fmt: skip
    angle = w.add(size, w.series(t, *turn))
    return w.mul(w.mul(w.series(t, *f), of(angle)), w.rsqrt(size))


def j_near(w, x, order):
    q = w.square(w.times(x, 1 / 3))
    if order:
        return w.mul(x, w.series(q, 0.5, -0.56249985, 0.21093573, -0.03954289, 0.00443319, -0.00031761, 0.00001109))
    return w.series(q, 1, -2.2499997, 1.2656208, -0.3163866, 0.0444479, -0.0039444, 0.0002100)


def first_kind(order):
    """J0, J1."""

    def function(w, x):
        size = w.abs(x)
        far = waves(w, w.least(size, 3), order, w.cos)
        far = w.mul(far, w.sign(x)) if order else far
        return w.either(w.infinite(x), w.times(w.over(1, x), 1), w.either(w.below(size, 3), j_near(w, w.least(w.most(x, 3), -3), order), far))

    return function


def second_kind(order):
    """Y0, Y1: NaN below 0, minus infinity at 0."""

    def function(w, x):
        low, scale = w.most(x, 3), 2 / math.pi
        q = w.square(w.times(low, 1 / 3))
        logs = w.times(w.mul(w.log(w.times(low, 0.5)), j_near(w, low, order)), scale)
        if order:
            near = w.add(logs, w.div(w.series(q, -0.6366198, 0.2212091, 2.1682709, -1.3164827, 0.3123951, -0.0400976, 0.0027873), low))
        else:
            near = w.add(logs, w.series(q, 0.36746691, 0.60559366, -0.74350384, 0.25300117, -0.04261214, 0.00427916, -0.00024846))
        y = w.either(w.below(x, 3), near, waves(w, w.least(x, 3), order, w.sin))
        return w.either(w.equals(x, 0), w.over(-1, w.abs(x)), y)

    return function


for _order in (0, 1):
    of_one(of_bessel(f"bessel_j{_order}"))(first_kind(_order))
    of_one(of_bessel(f"bessel_y{_order}"))(second_kind(_order))


@of_one(aten.special_spherical_bessel_j0.default)
def _(w, x):
    q = w.square(w.least(w.most(x, 0.5), -0.5))
    return w.either(w.below(w.abs(x), 0.5), w.series(q, 1, -1 / 6, 1 / 120, -1 / 5040), w.either(w.infinite(x), w.over(1, w.abs(x)), w.div(w.sin(x), x)))


# ---- error functions ----------------------------------------------------------------------------------------------------


@of_one(aten.special_erfcx.default)
def _(w, x):
    """exp(x²) erfc(x): by its factors up to 5, then by the asymptotic series."""
    low, high = w.most(x, 5), w.least(x, 5)
    q = w.over(0.5, w.square(high))
    far = w.mul(w.over(1 / math.sqrt(math.pi), high), w.series(q, 1, -1, 3, -15, 105))
    return w.either(w.below(x, 5), w.mul(w.exp(w.square(low)), w.erfc(low)), far)


@of_one(aten.special_ndtri.default)
def _(w, p):
    """Newton's method for the logarithm of the smaller one of p and 1 - p, from the first term of its tail's series."""
    high = w.below(w.less(1, p), 0.5)
    q = w.either(high, w.less(1, p), p)
    wanted = w.log(q)
    x = w.neg(w.sqrt(w.least(w.times(w.plus(wanted, math.log(2)), -2), 0)))
    for _ in range(5):
        share = w.times(w.erfc(w.times(x, -math.sqrt(0.5))), 0.5)
        density = w.times(w.exp(w.times(w.square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
        x = w.sub(x, w.mul(w.sub(w.log(share), wanted), w.div(share, density)))
    x = w.either(w.equals(q, 0), w.over(-1, w.abs(q)), x)
    return w.either(high, w.neg(x), x)


# ---- Chebyshev polynomials ----------------------------------------------------------------------------------------------


def outside(w, k, angle, odd):
    """sinh(k angle) / sinh(angle) if odd, else cosh(k angle) / cosh(angle), for angles from 0 on; at 0 the former is k."""
    if not odd:
        return w.div(w.cosh(w.mul(k, angle)), w.cosh(angle))
    zero = w.equals(angle, 0)
    return w.either(zero, k, w.div(w.sinh(w.mul(k, angle)), w.add(w.sinh(angle), zero)))


def inside(w, k, angle, odd):
    """The same with sin and cos; where the divisor is 0, the limit is given elsewhere."""
    if not odd:
        return w.div(w.cos(w.mul(k, angle)), w.cos(angle))
    zero = w.equals(angle, 0)
    return w.either(zero, k, w.div(w.sin(w.mul(k, angle)), w.add(w.sin(angle), zero)))


def chebyshev(kind):
    """T, U, V or W of x and a degree, by angles: cos(x) = angle, or cosh(|x|) = angle; the sign of x below 0 is that of (-1)ⁿ."""

    def function(w, x, n):
        size, negative = w.abs(x), w.below(x, 0)
        n = w.mul(w.sign(n), w.floor(w.abs(n)))
        even = w.equals(w.sub(n, w.times(w.floor(w.times(n, 0.5)), 2)), 0)
        turn = w.plus(w.times(w.mul(negative, w.less(1, even)), -2), 1)  # (-1)ⁿ below 0, else 1
        near, far = w.acos(w.most(size, 1)), w.acosh(w.least(size, 1))
        if kind in "tu":
            k = w.plus(n, 1) if kind == "u" else n
            low = w.cos(w.mul(k, near)) if kind == "t" else inside(w, k, near, True)
            high = w.cosh(w.mul(k, far)) if kind == "t" else outside(w, k, far, True)
        else:  # V of -x is W of x with that sign, and W is V
            k, near, far = w.times(w.plus(n, 0.5), 2), w.times(near, 0.5), w.times(far, 0.5)
            first, second = ([f(w, k, a, kind == "w") for f, a in ((inside, near), (outside, far))],
                             [f(w, k, a, kind == "v") for f, a in ((inside, near), (outside, far))])  # fmt: skip
            low, high = (w.either(negative, b, a) for a, b in zip(first, second))
        y = w.mul(turn, w.either(w.p.op("gt_scalar", size, value=1.0), high, low))
        first = w.equals(n, 0)  # 1, of NaN, too
        return w.add(w.take_unless(w.most(w.add(w.below(n, 0), first), 1), y), first)

    return function


def of_degree(kind, shifted):
    """The table's function: the degree may be a number."""

    def lowering(p, x, n):
        w = Writer(p)
        need(p.dtype == torch.float32 and all(t.dtype == p.dtype for t in (x, n) if isinstance(t, Value)), "of several types")
        x, n = (t if isinstance(t, Value) else p.op("fill", shape=[], value=number(t), dtype=NUMBERS[p.dtype]) for t in (x, n))
        return chebyshev(kind)(w, w.plus(w.times(x, 2), -1) if shifted else x, n)

    return lowering


for _kind in "tuvw":
    for _shifted in (False, True):
        lower(*overloads(f"special_{'shifted_' * _shifted}chebyshev_polynomial_{_kind}"), any_type=True)(of_degree(_kind, _shifted))


# ---- parts of numbers ---------------------------------------------------------------------------------------------------


@lower(aten.frexp.Tensor, any_type=True)
def _(p, x):
    """[a fraction from 0.5 to 1, its exponent]: by the logarithm, which may be one off."""
    need(x.dtype == torch.float32, "of this type")
    size, zero = p.op("abs", x), p.op("eq_scalar", x, value=0.0)
    none = p.op("logical_or", zero, p.op("logical_or", p.op("gt_scalar", size, value=MOST_FLOAT), p.op("isnan", x)))
    e = p.op("add_scalar", p.op("floor", p.op("mul_scalar", p.op("log", p.op("add", p.op("take_unless", none, size), none)), value=1 / math.log(2))), value=1.0)
    half = lambda k: p.op("rpow_scalar", k, value=2.0)
    first = p.op("floor", p.op("mul_scalar", e, value=0.5))  # 2 to the power of -e may be too large for the type
    scaled = lambda e: p.op("mul", p.op("mul", size, half(p.op("neg", first))), half(p.op("sub", first, e)))
    e = p.op("sub", p.op("add", e, p.op("ge_scalar", scaled(e), value=1.0)), p.op("lt_scalar", scaled(e), value=0.5))
    e = p.op("take_unless", none, e)
    m = p.op("add", p.op("take_if", none, x), p.op("take_unless", none, p.op("mul", p.op("sign", x), scaled(e))))
    return [m, p.op("cast", e, dtype=NUMBERS[torch.int32])]
