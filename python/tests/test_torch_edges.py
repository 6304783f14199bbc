"""Elementwise operations of starling.torch at the ends of their types against eager PyTorch, values and gradients: NaN, infinities,
zeros, kinks, denormal and huge numbers, in float32 and bfloat16.  Skipped where PyTorch is not installed.

PyTorch's loops over vectors and over single numbers differ in places, such as the gradient of hardtanh at NaN: one of the two is
right here, or PyTorch's in float64.  So is a number where both have NaN for an infinite argument: the limit, as of gelu.
"""
import math
import unittest

try:
    import torch
    from torch.nn import functional as F
except ImportError as error:
    raise unittest.SkipTest(f"needs PyTorch: {error}") from None

import starling.torch  # noqa: F401 - the backend
from test_torch_ops import Case

S, inf, nan = torch.special, math.inf, math.nan
SIZES = (
    0.0, 1e-45, 1e-40, 1.1754944e-38, 1e-20, 1e-5, 0.1, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 2.5, 3.0, 6.0, 7.0, 11.0, 20.0, 21.0, 50.0, 87.0,
    103.0, 1000.0, 8388609.0, 1e19, 3e38, inf,
)  # fmt: skip
NUMBERS = [nan, *SIZES, *(-x for x in SIZES)]
FEW = [nan, *(s * x for x in (0.0, 1e-38, 0.5, 1.0, 2.0, 3.0, 1e20, 3e38, inf) for s in (1, -1))]
SLOPES = (1.0, -2.5, 0.0, inf, nan)  # gradients of the results
CHUNK = 40  # functions in a graph
TAKEN_APART = "softshrink"  # by Dynamo, into products with 0: infinite slopes are not PyTorch's


def both(name):
    """A function of torch or of torch.nn.functional."""
    return getattr(F, name, None) or getattr(torch, name)


KINKED = {name: getattr(F, name) for name in "relu relu6 hardtanh hardsigmoid hardswish hardshrink softshrink leaky_relu elu celu selu".split()}
KINKED.update({
    "elu 2.5": lambda x: F.elu(x, 2.5), "leaky_relu -0.5": lambda x: F.leaky_relu(x, -0.5), "leaky_relu 2": lambda x: F.leaky_relu(x, 2.0),
    "hardtanh 0 to 1": lambda x: F.hardtanh(x, 0.0, 1.0), "hardshrink 2": lambda x: F.hardshrink(x, 2.0), "softshrink 2": lambda x: F.softshrink(x, 2.0),
    "softshrink 0": lambda x: F.softshrink(x, 0.0), "threshold 0": lambda x: F.threshold(x, 0.0, 0.0), "threshold 1": lambda x: F.threshold(x, 1.0, -7.0),
    "threshold -2": lambda x: F.threshold(x, -2.0, 3.0), "clamp": lambda x: x.clamp(-1.0, 2.0), "clamp from": lambda x: x.clamp(min=0.5),
    "clamp to": lambda x: x.clamp(max=0.5), "clamp to 0": lambda x: x.clamp(0.0, 0.0), "clamp by tensors": lambda x: x.clamp(x.new_tensor(-1.0), x.new_tensor(2.0)),
    "prelu": lambda x: F.prelu(x, x.new_tensor([0.25])), "rrelu": F.rrelu, "abs": torch.abs, "sign": torch.sign, "maximum": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "where": lambda x: torch.where(x > 0, x.log(), x * 2), "masked_fill": lambda x: x.masked_fill(x < 0, -inf), "nan_to_num": torch.nan_to_num,
    "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.ones_like(x), reduction="none"), "huber": lambda x: F.huber_loss(x, torch.ones_like(x), reduction="none", delta=2.0),
    "l1": lambda x: F.l1_loss(x, torch.ones_like(x), reduction="none"), "hinge": lambda x: F.hinge_embedding_loss(x, -torch.ones_like(x), reduction="none"),
})  # fmt: skip
SMOOTH = {name: both(name) for name in (
    "neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc sigmoid "
    "sinc logit silu gelu tanhshrink softplus softsign logsigmoid mish floor ceil round trunc frac").split()}  # fmt: skip
SMOOTH.update({
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"), "softplus 2": lambda x: F.softplus(x, 2.0, 4.0), "isnan": lambda x: x.isnan() * 1.0,
    "isinf": lambda x: x.isinf() * 1.0, "isfinite": lambda x: x.isfinite() * 1.0, "signbit": lambda x: x.signbit() * 1.0, "bool": lambda x: x.bool() * 1.0,
    "0 x": lambda x: x * 0.0, "x / 0": lambda x: x / 0.0, "1 / x": lambda x: 1.0 / x, "1 - x": lambda x: 1.0 - x, "ndtr": S.ndtr, "entr": S.entr,
    **{f"x ** {k}": lambda x, k=k: x**k for k in (0, 0.5, 1, 2, 3, -1, -0.5, 2.5)}, **{f"{k} ** x": lambda x, k=k: torch.pow(k, x) for k in (0.0, 0.5, 2.0, -1.0)},
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.3), reduction="none"),
})  # fmt: skip
OF_TWO = {name: getattr(torch, name) for name in "add sub mul div maximum minimum fmax fmin atan2 fmod remainder copysign hypot logaddexp xlogy".split()}
OF_TWO.update({
    "pow": lambda a, b: torch.pow(a.detach(), b), "where": lambda a, b: torch.where(a > b, a, b), "clamp from": lambda a, b: a.clamp(min=b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3), "truncated": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "floored": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    **{name: lambda a, b, name=name: getattr(torch, name)(a, b) * 1.0 for name in "eq ne lt le gt ge logical_and logical_or logical_xor".split()},
})  # fmt: skip


def spread(x, apart):
    """The same numbers: in order, or a place apart from each other, where PyTorch's loops take them one by one."""
    return x.repeat_interleave(2)[::2] if apart else x.clone()


def eager(f, inputs, slopes, apart):
    """[the result, the gradient of each input or None]"""
    inputs = [spread(x, apart).requires_grad_() for x in inputs]
    y = f(*inputs)
    if not y.requires_grad:
        return [y] + [None] * len(inputs)
    return [y.detach(), *torch.autograd.grad(y, inputs, spread(slopes, apart), allow_unused=True)]


def compiled(functions, inputs, slopes):
    """A list like that of eager for each function; all functions are compiled as one graph, and each has inputs of its own."""
    n = len(inputs)
    given = [x.clone().requires_grad_() for _ in functions for x in inputs]
    results = torch.compile(lambda *given: tuple(f(*given[i * n : i * n + n]) for i, f in enumerate(functions)), backend="starling", dynamic=False)(*given)
    wanted = [y for y in results if y.requires_grad]
    gradients = torch.autograd.grad(wanted, given, [slopes] * len(wanted), allow_unused=True) if wanted else [None] * len(given)
    return [[y.detach(), *gradients[i * n : i * n + n]] for i, y in enumerate(results)]


def least(name, dtype):
    """Differences that are no matter: PyTorch's gelu has the rounding of 1 + erf, denormal numbers and bfloat16 have few digits."""
    return 1e-6 if name.startswith("gelu") else 1e-12 if dtype == torch.bfloat16 else 1e-42


def right(ours, theirs, tolerance, floor):
    """Where a number is PyTorch's."""
    a, b = ours.double(), theirs.double()
    return (a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= tolerance * b.abs() + floor)


class Edges(Case):
    def compare(self, name, inputs, slopes, ours, theirs, tolerance):
        for k, (a, *known) in enumerate(zip(ours, *theirs)):
            if known[0] is None or a is None:
                self.assertTrue(a is None or not a.any(), f"{name}: gradient {k}")
                continue
            self.assertEqual((a.shape, a.dtype), (known[0].shape, known[0].dtype), name)
            limit = sum(x.isinf() for x in inputs).bool() & ~a.isnan() & known[0].isnan() & known[1].isnan()
            floor = least(name, a.dtype)
            wrong = ~(limit | sum(right(a, b.to(a.dtype), tolerance, floor) for b in known).bool())
            wrong &= slopes.isfinite() | (not name.startswith(TAKEN_APART))
            shown = [(*(x[i].item() for x in inputs), slopes[i].item(), a[i].item(), known[0][i].item()) for i in wrong.nonzero()[:5, 0]]
            self.assertFalse(shown, f"{name}, {'gradient %d' % k if k else 'value'}: (arguments, slope, ours, PyTorch's)")

    def sweep(self, table, columns):
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 4e-2)):
            inputs = [torch.tensor(c, dtype=torch.float64).to(dtype).repeat(len(SLOPES)) for c in columns]
            slopes = torch.tensor(SLOPES, dtype=dtype).repeat_interleave(len(columns[0]))
            names = list(table)
            for some in (names[i : i + CHUNK] for i in range(0, len(names), CHUNK)):
                torch._dynamo.reset()
                for name, ours in zip(some, compiled([table[name] for name in some], inputs, slopes)):
                    theirs = [eager(table[name], inputs, slopes, apart) for apart in (False, True)]
                    theirs.append(eager(table[name], [x.double() for x in inputs], slopes.double(), False))
                    with self.subTest(name, dtype=dtype):
                        self.compare(name, inputs, slopes, ours, theirs, tolerance)

    def test_kinks(self):
        self.sweep(KINKED, [NUMBERS])

    def test_smooth(self):
        self.sweep(SMOOTH, [NUMBERS])

    def test_of_two(self):
        self.sweep(OF_TWO, list(zip(*((a, b) for a in FEW for b in FEW))))


if __name__ == "__main__":
    unittest.main()
