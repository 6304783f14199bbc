"""Second derivatives of operations, against PyTorch's, in float64: call by call, in hybridised blocks, and of blocks whose traced forward
computes the first ones itself; needs PyTorch."""
import unittest

import numpy as np
import starling as sl
import torch
import torch.nn.functional as F
from starling import _ops as ops

TOLERANCE = 1e-6
P, UNIT = (0.3, 2.0), (-0.8, 0.8)  # ranges where functions are smooth


def attention(q, k, v):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the only one with second derivatives
        return F.scaled_dot_product_attention(q, k, v)


# name: (ours, PyTorch's, shapes of the inputs, range)
ONE = {name: (getattr(ops, name), getattr(torch, theirs), [(3, 4)], within) for name, theirs, within in (
    ("exp", "exp", UNIT), ("log", "log", P), ("sqrt", "sqrt", P), ("rsqrt", "rsqrt", P), ("square", "square", UNIT), ("reciprocal", "reciprocal", P),
    ("sin", "sin", UNIT), ("cos", "cos", UNIT), ("tan", "tan", UNIT), ("sinh", "sinh", UNIT), ("cosh", "cosh", UNIT), ("tanh", "tanh", UNIT),
    ("asin", "asin", UNIT), ("acos", "acos", UNIT), ("atan", "atan", UNIT), ("asinh", "asinh", UNIT), ("acosh", "acosh", (1.2, 3)), ("atanh", "atanh", UNIT),
    ("log1p", "log1p", P), ("expm1", "expm1", UNIT), ("erf", "erf", UNIT), ("sigmoid", "sigmoid", UNIT), ("abs", "abs", P), ("neg", "neg", UNIT))}  # fmt: skip
ONE |= {name: (getattr(ops, name), function, [(3, 4)], UNIT) for name, function in (
    ("relu", F.relu), ("silu", F.silu), ("softplus", F.softplus), ("softsign", F.softsign), ("gelu", F.gelu), ("hard_swish", F.hardswish),
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh")))}  # fmt: skip
ONE |= {"elu": (lambda x: ops.elu(x, 1.0), F.elu, [(3, 4)], UNIT), "leaky_relu": (lambda x: ops.leaky_relu(x, 0.01), F.leaky_relu, [(3, 4)], UNIT)}
TWO = {name: (getattr(ops, name), getattr(torch, name), [(3, 4), (3, 4)], P) for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum")}
TWO |= {f"{name} of rows": (getattr(ops, name), getattr(torch, name), [(3, 4), (4,)], P) for name in ("add", "mul", "div", "pow")}
ALONG = {
    "sum": (lambda x: ops.sum(x, 1), lambda x: x.sum(1), [(3, 4)], P), "mean": (lambda x: ops.mean(x, 0), lambda x: x.mean(0), [(3, 4)], P),
    "prod": (lambda x: ops.prod(x, 1), lambda x: x.prod(1), [(3, 4)], P), "max": (lambda x: ops.max(x, 1), lambda x: x.max(1).values, [(3, 4)], P),
    "logsumexp": (lambda x: ops.logsumexp(x, 1), lambda x: x.logsumexp(1), [(3, 4)], P), "norm": (lambda x: ops.norm(x, 1), lambda x: x.norm(dim=1), [(3, 4)], P),
    "variance": (lambda x: ops.variance(x, 1), lambda x: x.var(1, correction=0), [(3, 4)], P), "std": (lambda x: ops.std(x, 1), lambda x: x.std(1, correction=0), [(3, 4)], P),
    "cumsum": (lambda x: ops.cumsum(x, 1), lambda x: x.cumsum(1), [(3, 4)], P), "softmax": (lambda x: ops.softmax(x, -1), lambda x: x.softmax(-1), [(3, 4)], UNIT),
    "log_softmax": (lambda x: ops.log_softmax(x, -1), lambda x: x.log_softmax(-1), [(3, 4)], UNIT), "sort": (lambda x: ops.sort(x, 1, descending=False), lambda x: x.sort(1).values, [(3, 4)], P),
}  # fmt: skip
MOVES = {
    "transpose": (lambda x: ops.transpose(x, (1, 0)) ** 3, lambda x: x.T**3, [(3, 4)], P), "flip": (lambda x: ops.flip(x, 1) ** 2, lambda x: x.flip(1) ** 2, [(3, 4)], P),
    "concat": (lambda x, y: ops.concat([x, x * y], 0) ** 2, lambda x, y: torch.cat([x, x * y], 0) ** 2, [(3, 4), (3, 4)], P),
    "slice": (lambda x: x[1:, ::2] ** 3, lambda x: x[1:, ::2] ** 3, [(3, 4)], P), "tile": (lambda x: ops.tile(x, 1, times=3) ** 2, lambda x: x.tile((1, 3)) ** 2, [(3, 4)], P),
    "pad": (lambda x: ops.exp(ops.pad(x, 1, before=1, after=2)), lambda x: F.pad(x, (1, 2)).exp(), [(3, 4)], P),
    "where": (lambda x, y: ops.where(x > y, x**3, y**2), lambda x, y: torch.where(x > y, x**3, y**2), [(3, 4), (3, 4)], P),
    "clip": (lambda x: ops.clip(x, 0.5, 1.5) ** 2, lambda x: x.clamp(0.5, 1.5) ** 2, [(3, 4)], P),
    "gather": (lambda x: ops.gather(x, sl.array([2, 0, 2], "int32")) ** 3, lambda x: x[[2, 0, 2]] ** 3, [(3, 4)], P),
}  # fmt: skip
PRODUCTS = {
    "dot": (ops.dot, torch.matmul, [(3, 4), (4, 2)], UNIT), "matmul": (ops.matmul, torch.matmul, [(2, 3, 4), (2, 4, 2)], UNIT),
    "linear": (lambda x, w, b: ops.tanh(ops.linear(x, w, b)), lambda x, w, b: F.linear(x, w.T, b).tanh(), [(3, 4), (4, 2), (2,)], UNIT),
    "einsum": (lambda x, y: ops.einsum("ij,kj->ik", [x, y]) ** 2, lambda x, y: torch.einsum("ij,kj->ik", x, y) ** 2, [(3, 4), (2, 4)], UNIT),
    "conv2d": (lambda x, w: ops.conv2d(x, w, pad=1), lambda x, w: F.conv2d(x, w, padding=1), [(2, 2, 4, 4), (3, 2, 3, 3)], UNIT),
    "conv1d": (lambda x, w: ops.conv1d(x, w), lambda x, w: F.conv1d(x, w), [(2, 2, 5), (3, 2, 3)], UNIT),
    "layer_norm": (lambda x, g, b: ops.layer_norm(x, g, b, eps=1e-5), lambda x, g, b: F.layer_norm(x, (4,), g, b, 1e-5), [(3, 4), (4,), (4,)], P),
    "rms_norm": (lambda x, g: ops.rms_norm(x, g, eps=1e-6), lambda x, g: F.rms_norm(x, (4,), g, 1e-6), [(3, 4), (4,)], P),
    "group_norm": (lambda x, g, b: ops.group_norm(x, 2, g, b), lambda x, g, b: F.group_norm(x, 2, g, b), [(2, 4, 3), (4,), (4,)], P),
    "attention": (ops.scaled_dot_product_attention, attention, [(1, 2, 3, 4)] * 3, UNIT),
    "max pooling": (lambda x: ops.pool2d(x, kernel=2) ** 2, lambda x: F.max_pool2d(x, 2) ** 2, [(1, 2, 4, 4)], P),
    "l2_loss": (ops.l2_loss, lambda x, y: 0.5 * ((x - y) ** 2).mean(1), [(3, 4), (3, 4)], UNIT),
    "cosine_similarity": (ops.cosine_similarity, F.cosine_similarity, [(3, 4), (3, 4)], P),
}  # fmt: skip
CASES = {**ONE, **TWO, **ALONG, **MOVES, **PRODUCTS}


def numbers(shapes, within):
    drawn = np.random.default_rng(7)
    return [drawn.uniform(*within, s) for s in shapes]


def factors(shape, seed):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def theirs(function, given):
    x = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in given]
    y = function(*x)
    slopes = torch.autograd.grad((y * torch.tensor(factors(y.shape, 1))).sum(), x, create_graph=True)
    whole = sum((s * torch.tensor(factors(s.shape, 2 + i))).sum() for i, s in enumerate(slopes))
    found = torch.autograd.grad(whole, x, allow_unused=True) if whole.requires_grad else [None] * len(x)
    return [np.zeros(a.shape) if g is None else g.numpy(force=True) for a, g in zip(given, found)]


class Function(sl.Block):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def of_slopes(function, x):
    """A sum of the first derivatives, each with its own factors."""
    y = function(*x)
    slopes = sl.grad((y * sl.array(factors(y.shape, 1), "float64")).sum(), x, create_graph=True)
    return sum((s * sl.array(factors(s.shape, 2 + i), "float64")).sum() for i, s in enumerate(slopes))


def ours(function, given, way):
    x = [sl.array(a, "float64").attach_grad() for a in given]
    block = Function((lambda *inputs: of_slopes(function, list(inputs))) if way == "traced" else function)
    if way != "call by call":
        block.hybridize()
    with sl.record():
        whole = block(*x) if way == "traced" else of_slopes(block, x)
        try:
            found = sl.grad(whole, x)
        except sl.StateError as error:  # a first derivative that is constant
            assert "was not computed" in str(error) or "constant" in str(error), error
            found = [None] * len(x)
    return [np.zeros(a.shape) if g is None else g.numpy(copy=True) for a, g in zip(given, found)]


class Second(unittest.TestCase):
    def check(self, way):
        for name, (mine, other, shapes, within) in CASES.items():
            with self.subTest(name, way=way):
                given = numbers(shapes, within)
                for got, wanted in zip(ours(mine, given, way), theirs(other, given)):
                    np.testing.assert_allclose(got, wanted, rtol=TOLERANCE, atol=TOLERANCE)

    def test_call_by_call(self):
        self.check("call by call")

    def test_hybridised(self):
        self.check("hybridised")

    def test_traced(self):
        self.check("traced")


if __name__ == "__main__":
    unittest.main()
