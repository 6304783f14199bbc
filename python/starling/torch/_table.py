"""The table: what each ATen operation is in the text of programs.  This file: elementwise, reductions.

A function of the table gets the program and the operation's arguments, values in the place of tensors, and returns a value, or
a list for several results; p.shape and p.dtype are those of its (first) result.  It raises Unsupported for what it cannot say.
"""
import functools
import math

import torch

from ._text import DTYPES, MOST_AXES, NUMBERS, Unsupported, Value

aten = torch.ops.aten
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
WHOLE = (torch.int64, torch.int32, torch.uint8)
MOST_FLOAT = 3.4028234663852886e38  # float32's
LOWER: dict = {}  # ATen operation: function
integers: dict = {}  # arithmetic of integers, by the name of that of floats: _whole.py
OF_NOTHING: set = set()  # operations of the table that take tensors without elements
ANY: set = set()  # operations of the table that check types by themselves; all others take and give floats


def lower(*targets, any_type=False):
    """Enters a function into the table."""

    def keep(function):
        LOWER.update(dict.fromkeys(targets, function))
        if any_type:
            ANY.update(targets)
        return function

    return keep


def need(condition, reason):
    """Leaves the operation to PyTorch unless the condition holds."""
    if not condition:
        raise Unsupported(reason)


def values_in(args):
    """All values among arguments."""
    for a in args:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from values_in(a)


def lined(p, x):
    """x, or the element of a tensor without axes as a line of one."""
    return x if x.ndim else typed(p, p.op("reshape", x, shape=[1]), [1], x.dtype)


def typed(p, v, shape, dtype):
    """Gives a value that is part of a computation its type."""
    v.shape, v.dtype = tuple(shape), dtype
    return v


def lowered(p, target, args, kwargs, results):
    """The values of an ATen operation; results: (shape, dtype) of each, None where there is none."""
    if target not in LOWER:
        raise Unsupported("it is not in the table")
    if target is aten._native_batch_norm_legit_no_training.default:
        results = results[:1]  # the others are empty
    p.shape, p.dtype = next(r for r in results if r is not None)
    p.results = results
    if target is aten.cat.default:
        args = [x for x in args[0] if x.size] or args[0], *args[1:]
    if target is aten.native_batch_norm_backward.default:  # there are no moments of inference
        args = [None if isinstance(a, Value) and not a.size else a for a in args]
    given = list(values_in(args)) + list(values_in(kwargs.values()))
    for shape, dtype in [(v.shape, v.dtype) for v in given] + [r for r in results if r is not None]:
        need(dtype in DTYPES and (target in ANY or dtype in FLOATS), f"of {str(dtype)[6:]}")
        need(len(shape) <= MOST_AXES, f"of {len(shape)} axes")
        need(math.prod(shape) or target in OF_NOTHING, "of empty tensors")
    lines, inputs = len(p.lines), dict(p.inputs)
    try:
        y = LOWER[target](p, *args, **kwargs)
    except (Unsupported, TypeError) as error:  # a TypeError: arguments that the function does not have
        del p.lines[lines:]
        p.inputs = inputs
        raise error if isinstance(error, Unsupported) else Unsupported("with these arguments") from None
    listed = y if isinstance(y, list) else [y]
    for v, r in zip(listed, results):
        if v is not None and v.shape is None:
            v.shape, v.dtype = r
    return listed


# ---- elementwise ------------------------------------------------------------------------------------------------------


def unary(name):
    """A function of one tensor; of integers, one that gives floats."""

    def function(p, x):
        if p.dtype not in FLOATS:
            need(name in integers, "of integers")
            return integers[name](p, x)
        return p.op(name, p.cast(x, p.dtype))

    return function


for _name in (
    "neg abs exp log sqrt reciprocal sigmoid tanh sin cos tan asin acos atan sinh cosh asinh acosh atanh erf erfc log1p expm1 rsqrt floor ceil round silu"
).split():
    lower(getattr(aten, _name).default, any_type=True)(unary(_name))


@lower(aten.relu.default, any_type=True)
def _(p, x):
    need(x.dtype in FLOATS or x.dtype in WHOLE, "of truth values")
    return p.op("relu", x)


def number(x):
    """A Python number as an attribute: infinities and NaN have no text."""
    need(isinstance(x, (int, float)), "of numbers that are not real")
    need(math.isfinite(x) and abs(x) < 2**1000, "with a number that is not finite")
    return float(x)


def arithmetic(name):
    """A function of two tensors, or a tensor and a number, broadcast."""

    def function(p, a, b, alpha=1):
        if p.dtype not in FLOATS:
            need(name in integers, "of integers")
            return integers[name](p, a, b, alpha)
        if not isinstance(a, Value):
            need(name in ("sub", "div", "pow") and alpha == 1, "with these arguments")
            return p.op(f"r{name}_scalar", p.cast(b, p.dtype), value=number(a))
        a = p.cast(a, p.dtype)
        if not isinstance(b, Value):
            return p.op(f"{name}_scalar", a, value=number(b) * alpha)
        b = p.cast(b, p.dtype)
        return p.op(name, a, b if alpha == 1 else typed(p, p.op("mul_scalar", b, value=number(alpha)), b.shape, b.dtype))

    return function


def beside(p, v):
    """An operand, a tensor or a number, in the type of the result."""
    if isinstance(v, Value):
        return p.cast(v, p.dtype)
    return typed(p, p.op("fill", shape=[], value=number(v), dtype=NUMBERS[p.dtype]), (), p.dtype)


def of_floats(name):
    """A function of two tensors, or a tensor and a number, that has no form with a number in programs."""

    def function(p, a, b):
        if p.dtype in FLOATS:
            return p.op(name, beside(p, a), beside(p, b))
        need(name in integers, "of integers")
        return integers[name](p, a, b)

    return function


def overloads(name):
    """The overloads of an operation that take two operands."""
    packet = getattr(aten, name)
    known = ("Tensor", "Scalar", "Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor", "default")
    return [getattr(packet, o) for o in known if o in packet.overloads()]


for _name in "add sub mul div maximum minimum".split():
    lower(*overloads(_name), any_type=True)(arithmetic(_name))
POWERS = {0.5: ("sqrt",), -0.5: ("rsqrt",), 2: ("square",), -1: ("reciprocal",)}  # as PyTorch's kernel has them, and faster


@lower(*overloads("pow"), aten.pow.Scalar, any_type=True)
def _(p, a, b):
    if isinstance(b, (int, float)) and b in POWERS and p.dtype in FLOATS:
        return p.op(*POWERS[b], p.cast(a, p.dtype))
    return arithmetic("pow")(p, a, b)


for _name in "atan2 fmod remainder floor_divide fmax fmin copysign".split():
    lower(*overloads(_name), any_type=True)(of_floats(_name))


@lower(aten.hypot.default)
def _(p, a, b):
    a, b = p.op("abs", a), p.op("abs", b)
    low, high, most = p.op("minimum", a, b), p.op("maximum", a, b), p.op("fmax", a, b)
    equal = p.op("eq", low, high)  # zeros have no quotient
    q = p.op("add", p.op("take_unless", equal, p.op("div", low, high)), equal)
    y = p.op("mul", high, p.op("sqrt", p.op("add_scalar", p.op("square", q), value=1.0)))
    finite = p.op("isfinite", most)  # beside an infinity, NaN does not count
    return p.op("add", p.op("take_if", finite, y), p.op("take_unless", finite, most))


def shared(p, dy, reduction):
    """The gradient of a loss for each element; 1: of their mean."""
    return dy if reduction != 1 else typed(p, p.op("mul_scalar", dy, value=1 / math.prod(p.shape)), dy.shape, dy.dtype)


@lower(aten.smooth_l1_loss_backward.default)
def _(p, dy, x, target, reduction, beta):
    need(beta > 0 and x.dtype == target.dtype in (torch.float32, torch.float64), "of this type, or without a square part")
    slope = p.op("mul_scalar", p.op("sub", x, target), value=1 / number(beta))
    slope = p.op("minimum_scalar", p.op("maximum_scalar", slope, value=-1.0), value=1.0)  # NaN stays
    return p.op("mul", slope, shared(p, dy, reduction))


@lower(aten.soft_margin_loss_backward.default)
def _(p, dy, x, target, reduction):
    need(x.dtype == target.dtype in (torch.float32, torch.float64), "of this type")
    away = p.op("neg", target)
    slope = p.op("mul", away, p.op("sigmoid", p.op("mul", away, x)))
    return p.op("mul", slope, shared(p, dy, reduction))


@lower(aten.sign.default)
def _(p, x):
    """PyTorch's sign of NaN is 0."""
    return p.op("sub", p.op("gt_scalar", x, value=0.0), p.op("lt_scalar", x, value=0.0))


@lower(aten.signbit.default, any_type=True)
def _(p, x):
    need(x.dtype in FLOATS, "of integers")
    one = typed(p, p.op("fill", shape=[], value=1.0, dtype=NUMBERS[x.dtype]), (), x.dtype)
    return p.op("cast", p.op("lt_scalar", p.op("copysign", one, x), value=0.0), dtype=NUMBERS[torch.bool])


@lower(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _(p, a, b, rounding_mode=None):
    if rounding_mode == "floor":
        return of_floats("floor_divide")(p, a, b)
    y = arithmetic("div")(p, a, b)
    if rounding_mode is None:
        return y
    return p.op("mul", p.op("sign", y), p.op("floor", p.op("abs", y)))


@lower(aten.rsub.Scalar, aten.rsub.Tensor, any_type=True)
def _(p, a, b, alpha=1):
    if isinstance(b, Value) or alpha == 1:
        return arithmetic("sub")(p, b, a, alpha)
    need(p.dtype in FLOATS, "of integers")
    return p.op("rsub_scalar", p.op("mul_scalar", a, value=number(alpha)), value=number(b))


def common(a, b):
    """The type in which two operands are compared."""
    if not isinstance(b, Value):
        return a.dtype
    if a.dtype == b.dtype:
        return a.dtype
    meta = [torch.empty(v.shape, dtype=v.dtype, device="meta") for v in (a, b)]
    return torch.result_type(*meta)


def infinite(p, x, b, name):
    """Whether x is, or is not, this infinity: beyond float32's largest number."""
    need(x.dtype in (torch.float32, torch.bfloat16), "with an infinity, of this type")
    y = p.op("gt_scalar" if b > 0 else "lt_scalar", p.cast(x, torch.float32), value=math.copysign(MOST_FLOAT, b))
    return y if name == "eq" else p.op("rsub_scalar", y, value=1.0)


def comparison(name):
    """A comparison: operations of programs give numbers."""

    def function(p, a, b):
        dtype = common(a, b)
        need(dtype in FLOATS or (dtype == torch.bool and isinstance(b, Value)) or (dtype in WHOLE and (isinstance(b, Value) or (isinstance(b, int) and abs(b) < 2**31))), "of integers")
        a = p.cast(a, dtype)
        if isinstance(b, float) and math.isinf(b) and name in ("eq", "ne"):
            y = infinite(p, a, b, name)
        else:
            y = p.op(name, a, p.cast(b, dtype)) if isinstance(b, Value) else p.op(f"{name}_scalar", a, value=number(b))
        return p.op("cast", y, dtype=NUMBERS[p.dtype])

    return function


for _name in "eq ne lt le gt ge".split():
    lower(*overloads(_name), any_type=True)(comparison(_name))


def truth(p, x):
    """A condition as numbers 1 and 0, in float32."""
    return p.cast(p.cast(x, torch.bool), torch.float32)


@lower(aten.logical_not.default, any_type=True)
def _(p, x):
    return p.op("cast", p.op("rsub_scalar", truth(p, x), value=1.0), dtype=NUMBERS[torch.bool])


def logical(name):
    """Of two truth values."""

    def function(p, a, b):
        b = b if isinstance(b, Value) else typed(p, p.op("fill", shape=[], value=float(bool(b))), (), torch.float32)
        need(all(x.dtype == torch.bool or x.dtype in FLOATS for x in (a, b)), "of integers")
        return p.op("cast", p.op(name, truth(p, a), truth(p, b)), dtype=NUMBERS[torch.bool])

    return function


for _name in ("and", "or", "xor"):
    lower(getattr(aten, f"logical_{_name}").default, any_type=True)(logical(f"logical_{_name}"))


@lower(aten.where.self, any_type=True)
def _(p, c, a, b):
    c = p.cast(p.cast(c, torch.bool), p.dtype)
    return p.op("logical_or" if p.dtype == torch.bool else "add", p.op("take_if", c, p.cast(a, p.dtype)), p.op("take_unless", c, p.cast(b, p.dtype)))


@lower(aten.clamp.default, any_type=True)
def _(p, x, low=None, high=None):
    need(low is None or high is None or low <= high, "with limits that cross")
    if p.dtype not in FLOATS:
        x = x if low is None else typed(p, integers["maximum"](p, x, low), p.shape, p.dtype)
        return x if high is None else integers["minimum"](p, x, high)
    if low is not None and math.isfinite(low):
        x = p.op("maximum_scalar", x, value=number(low))
    if high is not None and math.isfinite(high):
        x = p.op("minimum_scalar", x, value=number(high))
    return x


@lower(aten.hardtanh.default)
def _(p, x, low=-1.0, high=1.0):
    return p.op("minimum_scalar", p.op("maximum_scalar", x, value=number(low)), value=number(high))


@lower(aten.hardtanh_backward.default)
def _(p, dy, x, low, high):
    outside = p.op("logical_or", p.op("le_scalar", x, value=number(low)), p.op("ge_scalar", x, value=number(high)))
    return p.op("take_unless", outside, dy)  # NaN is not outside


@lower(aten.round.decimals)
def _(p, x, *, decimals):
    k = 10.0 ** abs(decimals)
    first, then = ("mul_scalar", "div_scalar") if decimals >= 0 else ("div_scalar", "mul_scalar")
    return p.op(then, p.op("round", p.op(first, x, value=k)), value=k)


@lower(aten.clamp.Tensor)
def _(p, x, low=None, high=None):
    if low is not None:
        x = p.op("maximum", p.cast(x, p.dtype), p.cast(low, p.dtype))
        x.shape, x.dtype = p.shape, p.dtype
    return x if high is None else p.op("minimum", p.cast(x, p.dtype), p.cast(high, p.dtype))


@lower(aten.trunc.default)
def _(p, x):
    return p.op("mul", p.op("sign", x), p.op("floor", p.op("abs", x)))


@lower(aten.angle.default)
def _(p, x):
    return p.op("add", p.op("mul_scalar", p.op("lt_scalar", x, value=0.0), value=math.pi), p.op("take_if", p.op("isnan", x), x))


def polynomial(p, x, coefficients):
    """A polynomial, the highest power first."""
    y = p.op("add_scalar", p.op("mul_scalar", x, value=coefficients[0]), value=coefficients[1])
    for c in coefficients[2:]:
        y = p.op("add_scalar", p.op("mul", y, x), value=c)
    return y


@lower(aten.erfinv.default)
def _(p, x):
    """M. Giles, Approximating the erfinv function, 2011, and a step of Newton's method."""
    w = p.op("neg", p.op("log1p", p.op("neg", p.op("square", x))))
    near = polynomial(p, p.op("add_scalar", w, value=-2.5), (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941))
    far = polynomial(p, p.op("add_scalar", p.op("sqrt", w), value=-3.0), (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682))
    low = p.op("lt_scalar", w, value=5.0)
    y = p.op("mul", x, p.op("add", p.op("take_if", low, near), p.op("take_unless", low, far)))
    step = p.op("mul", p.op("sub", p.op("erf", y), x), p.op("exp", p.op("square", y)))
    y = p.op("sub", y, p.op("take_if", low, p.op("mul_scalar", step, value=math.sqrt(math.pi) / 2)))
    end = p.op("eq_scalar", p.op("abs", x), value=1.0)
    return p.op("add", p.op("take_unless", end, y), p.op("take_if", end, p.op("div_scalar", x, value=0.0)))


@lower(aten.isinf.default, any_type=True)
def _(p, x):
    need(x.dtype in FLOATS, "of integers")
    far = typed(p, p.op("abs", x), x.shape, x.dtype)
    return p.op("cast", infinite(p, far, math.inf, "eq"), dtype=NUMBERS[torch.bool])


LOWER[aten.exp2.default] = lambda p, x: p.op("rpow_scalar", p.cast(x, p.dtype), value=2.0)
ANY.add(aten.exp2.default)
for _name, _base in (("log2", 2), ("log10", 10)):
    LOWER[getattr(aten, _name).default] = lambda p, x, base=_base: p.op("mul_scalar", p.op("log", x), value=1 / math.log(base))


@lower(aten.square.default)
def _(p, x):
    return p.op("square", x)


@lower(aten.leaky_relu.default)
def _(p, x, slope=0.01):
    below = p.op("mul_scalar", p.op("minimum_scalar", x, value=0.0), value=number(slope))
    return p.op("add", p.op("relu", x), below)


@lower(aten.elu.default)
def _(p, x, alpha=1.0, scale=1.0, input_scale=1.0):
    need(input_scale == 1, "with input_scale")
    below = p.op("mul_scalar", p.op("expm1", p.op("minimum_scalar", x, value=0.0)), value=number(alpha) * number(scale))
    above = p.op("relu", x)
    return p.op("add", above if scale == 1 else p.op("mul_scalar", above, value=number(scale)), below)


@lower(aten.isnan.default, any_type=True)
def _(p, x):
    need(x.dtype in FLOATS, "of integers")
    return p.op("cast", p.op("isnan", x), dtype=NUMBERS[torch.bool])


@lower(aten.gelu.default)
def _(p, x, approximate="none"):
    return p.op("gelu_tanh" if approximate == "tanh" else "gelu", x)


@lower(aten.gelu_backward.default)
def _(p, dy, x, approximate="none"):
    return p.op("gelu_tanh_grad" if approximate == "tanh" else "gelu_grad", dy, x)


@lower(aten.threshold_backward.default)
def _(p, dy, y, threshold):
    return p.op("take_unless", p.op("le_scalar", y, value=number(threshold)), dy) if threshold else p.op("relu_grad", dy, y)


@lower(aten.hardshrink_backward.default, aten.softshrink_backward.default)
def _(p, dy, x, limit):
    inside = p.op("logical_and", p.op("ge_scalar", x, value=-number(limit)), p.op("le_scalar", x, value=number(limit)))
    return p.op("take_unless", inside, dy)


LOWER[aten.sigmoid_backward.default] = lambda p, dy, y: p.op("sigmoid_grad", dy, y)
LOWER[aten.tanh_backward.default] = lambda p, dy, y: p.op("tanh_grad", dy, y)
LOWER[aten.silu_backward.default] = lambda p, dy, x: p.op("silu_grad", dy, x)


@lower(aten._to_copy.default, any_type=True)
def _(p, x, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    # From floats to integers, what is out of range is undefined in PyTorch; between integers it loses its upper bits.
    if x.dtype in WHOLE and p.dtype in WHOLE:
        return x if x.dtype == p.dtype else p.op("wrap", x, dtype=NUMBERS[p.dtype])
    if p.dtype == torch.bool and x.dtype in WHOLE:
        x = typed(p, p.op("ne_scalar", x, value=0.0), x.shape, x.dtype)
    return p.cast(x, p.dtype)


@lower(aten.full_like.default, any_type=True)
def _(p, x, value, **_):
    return p.op("fill", shape=list(p.shape), value=number(value), dtype=NUMBERS[p.dtype])


@lower(aten.new_empty_strided.default, aten.new_empty.default)
def _(p, x, *_, **__):
    return p.op("fill", shape=list(p.shape), value=0.0, dtype=NUMBERS[p.dtype])


@lower(aten.copy.default, any_type=True)
def _(p, x, source, non_blocking=False):
    need(p.dtype in FLOATS or source.dtype == p.dtype, f"to {str(p.dtype)[6:]}")
    shape = source.shape
    y = typed(p, p.cast(source, p.dtype), shape, p.dtype)
    return y if tuple(shape) == tuple(p.shape) else p.op("broadcast_to", y, shape=list(p.shape))


# ---- reductions -------------------------------------------------------------------------------------------------------


def reduction(p, x, axes=None, keepdims=False, dtype=None, *, name="sum"):
    """A reduction over axes; none given: over all."""
    need(p.dtype != torch.bool, "of truth values")
    if name in integers and p.dtype not in FLOATS:
        return integers[name](p, x, axes)
    if isinstance(axes, int):
        axes = [axes]
    x = p.cast(x, p.dtype)
    if not x.ndim:
        return p.op("copy", x)
    axes = sorted(k % x.ndim for k in axes) if axes else list(range(x.ndim))
    return p.op(name, x, axes=axes, keepdims=bool(keepdims))


for _name, _targets in (
    ("mean", (aten.mean.default, aten.mean.dim)), ("max", (aten.amax.default,)), ("min", (aten.amin.default,)),
    ("max", (aten.max.default,)), ("min", (aten.min.default,)), ("prod", (aten.prod.default, aten.prod.dim_int)),
):  # fmt: skip
    lower(*_targets, any_type=_name in ("max", "min", "prod"))(functools.partial(reduction, name=_name))


@lower(aten.sum.default, aten.sum.dim_IntList, any_type=True)
def _(p, x, axes=None, keepdims=False, dtype=None):
    if x.dtype == torch.bool and p.dtype == torch.int64:  # how many are true
        need(x.size < 2**31, "of so many elements")
        p.dtype = torch.int32
        return p.op("cast", reduction(p, x, axes, keepdims), dtype=NUMBERS[torch.int64])
    return reduction(p, x, axes, keepdims)


def truths(name):
    """Whether any, or all, are true."""

    def function(p, x, axes=None, keepdims=False):
        need(x.dtype == torch.bool or x.dtype in FLOATS, "of integers")
        axes = [axes] if isinstance(axes, int) else axes
        x = typed(p, truth(p, x), x.shape, torch.float32)
        if not x.ndim:
            return p.op("cast", x, dtype=NUMBERS[torch.bool])
        axes = sorted(k % x.ndim for k in axes) if axes else list(range(x.ndim))
        return p.op("cast", p.op(name, x, axes=axes, keepdims=bool(keepdims)), dtype=NUMBERS[torch.bool])

    return function


lower(aten.any.default, aten.any.dim, aten.any.dims, any_type=True)(truths("max"))
lower(aten.all.default, aten.all.dim, aten.all.dims, any_type=True)(truths("min"))


@lower(aten.var_mean.correction)
def _(p, x, axes=None, *, correction=1, keepdim=False):
    variance = LOWER[aten.var.correction](p, x, axes, correction=correction, keepdim=keepdim)
    return [variance, reduction(p, x, axes, keepdim, name="mean")]


@lower(aten.var.correction)
def _(p, x, axes=None, *, correction=1, keepdim=False):
    need(x.ndim, "of a scalar")
    axes = [axes] if isinstance(axes, int) else axes
    axes = sorted(k % x.ndim for k in axes) if axes else list(range(x.ndim))
    n = math.prod(x.shape[k] for k in axes)
    rest = n - (1 if correction is None else correction)
    need(rest > 0, "of too few elements")
    off = p.op("sub", x, p.op("mean", x, axes=axes, keepdims=True))
    return p.op("mul_scalar", p.op("sum", p.op("square", off), axes=axes, keepdims=bool(keepdim)), value=1 / rest)


@lower(aten.cumsum.default, any_type=True)
def _(p, x, dim, dtype=None):
    x = p.cast(lined(p, x), p.dtype)
    more = {} if p.dtype in FLOATS else {"wraps": True}
    need(p.dtype in FLOATS or p.dtype == torch.int64, "of integers")
    return p.op("reshape", p.op("cumsum", x, axis=dim % x.ndim, **more), shape=list(p.shape))
