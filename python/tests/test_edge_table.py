"""One table of all elementwise functions and reductions: NaN, zeros with signs, infinities, subnormal, smallest and largest numbers,
ties, empty tensors, single elements, in all data types, eager and compiled, against NumPy and, where it is installed, PyTorch.
Differences are in the table, by name.  tests/test_edges.c compares the same functions with the C library, on GPUs too."""
import math
import os
import re
import unittest
import warnings

import numpy as np
import starling as sl

import compiled

try:
    import torch
except ImportError:
    torch = None

FLOATS, INTEGERS = ("float64", "float32", "float16", "bfloat16"), ("uint8", "int32", "int64")
TYPES = (*FLOATS, *INTEGERS, "bool")
LIMITS = {"uint8": (0, 255), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
LARGEST = {"float64": np.finfo("f8").max, "float32": float(np.finfo("f4").max), "float16": 65504.0, "bfloat16": float.fromhex("0x1.fep127")}
NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
STEP = {"float64": 2e-14, "float32": 4e-6, "float16": 2.0**-9, "bfloat16": 2.0**-6}
SPECIAL = (math.nan, 0.0, -0.0, math.inf, -math.inf, 2.0**-149, -(2.0**-149), 2.0**-126, 3.4028234663852886e38, -3.4028234663852886e38, 1e25, 5e19, -5e19, 1.0, -1.0,
           0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 8388609.0, -8388609.0, 16777215.0, 0.3, 88.0, 89.0, -88.0, -104.0, 1e-20, 3.125, 1e6, 7.0, -7.0, 255.0, 65504.0, 6e-8)  # fmt: skip

erf = np.vectorize(math.erf, otypes=["f8"])
erfc = np.vectorize(math.erfc, otypes=["f8"])


def sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / (1 + np.exp(np.minimum(x, 0))), 1 / (1 + np.exp(-np.maximum(x, 0))))


def vanishing(x, factor):
    return np.where((factor == 0) & ~np.isnan(x), np.copysign(0, x), x * factor)


F = lambda name: (lambda x: getattr(torch.nn.functional, name)(x))
T = lambda name: (lambda *x: getattr(torch, name)(*x))
gelu_tanh = lambda x: vanishing(x, sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x)))

# Name: NumPy's, PyTorch's (None: it has none).
UNARY = {
    "neg": (np.negative, T("neg")), "abs": (np.abs, T("abs")), "exp": (np.exp, T("exp")), "log": (np.log, T("log")), "sqrt": (np.sqrt, T("sqrt")), "square": (np.square, T("square")),
    "reciprocal": (lambda x: 1 / x, T("reciprocal")), "relu": (lambda x: np.where(x < 0, x * 0 * 0 if x.dtype != float else 0.0, x), T("relu")), "sigmoid": (sigmoid, T("sigmoid")), "tanh": (np.tanh, T("tanh")),
    "gelu": (lambda x: vanishing(x, erfc(-x * math.sqrt(0.5)) / 2), F("gelu")), "softplus": (lambda x: np.where(x > 40, x, np.log1p(np.exp(np.minimum(x, 40)))), F("softplus")),
    "sin": (np.sin, T("sin")), "cos": (np.cos, T("cos")), "tan": (np.tan, T("tan")), "asin": (np.arcsin, T("asin")), "acos": (np.arccos, T("acos")), "atan": (np.arctan, T("atan")),
    "sinh": (np.sinh, T("sinh")), "cosh": (np.cosh, T("cosh")), "asinh": (np.arcsinh, T("asinh")), "acosh": (np.arccosh, T("acosh")), "atanh": (np.arctanh, T("atanh")),
    "erf": (erf, T("erf")), "erfc": (erfc, T("erfc")), "log1p": (np.log1p, T("log1p")), "expm1": (np.expm1, T("expm1")), "rsqrt": (lambda x: 1 / np.sqrt(x), T("rsqrt")), "silu": (lambda x: vanishing(x, sigmoid(x)), F("silu")),
    "hard_swish": (lambda x: np.where(x <= -3, 0, np.where(x >= 3, x, x * (x + 3) / 6)), F("hardswish")),
    "gelu_tanh": (gelu_tanh, lambda x: torch.nn.functional.gelu(x, approximate="tanh")), "sign": (np.sign, T("sign")), "floor": (np.floor, T("floor")), "ceil": (np.ceil, T("ceil")), "round": (np.rint, T("round")),
    "isnan": (np.isnan, T("isnan")), "isfinite": (np.isfinite, T("isfinite")), "logical_not": (np.logical_not, T("logical_not")),
}  # fmt: skip
BINARY = {
    "add": (np.add, T("add")), "sub": (np.subtract, T("sub")), "mul": (np.multiply, T("mul")), "div": (np.divide, T("div")), "pow": (np.power, T("pow")), "maximum": (np.maximum, T("maximum")), "minimum": (np.minimum, T("minimum")),
    "atan2": (np.arctan2, T("atan2")), "fmod": (np.fmod, T("fmod")), "remainder": (np.remainder, T("remainder")), "floor_divide": (np.floor_divide, T("floor_divide")),
    "fmax": (np.fmax, T("fmax")), "fmin": (np.fmin, T("fmin")), "copysign": (np.copysign, T("copysign")),
    "eq": (np.equal, T("eq")), "ne": (np.not_equal, T("ne")), "lt": (np.less, T("lt")), "le": (np.less_equal, T("le")), "gt": (np.greater, T("gt")), "ge": (np.greater_equal, T("ge")),
    "logical_and": (np.logical_and, T("logical_and")), "logical_or": (np.logical_or, T("logical_or")), "logical_xor": (np.logical_xor, T("logical_xor")),
}  # fmt: skip
REDUCTIONS = {
    "sum": (np.sum, lambda x: torch.sum(x, dtype=x.dtype)), "mean": (np.mean, T("mean")), "max": (np.max, T("amax")), "min": (np.min, T("amin")),
    "norm": (lambda x: np.hypot.reduce(x) if x.size else 0.0, lambda x: torch.linalg.vector_norm(x)), "prod": (np.prod, lambda x: torch.prod(x, dtype=x.dtype)),
    "any": (np.any, T("any")), "all": (np.all, T("all")), "argmax": (np.argmax, T("argmax")), "cumsum": (np.cumsum, lambda x: torch.cumsum(x, 0, dtype=x.dtype)),
}  # fmt: skip
ROWS = ((), (7,), (math.nan,), (1e25, 1e25), (5e19, -5e19), (math.nan, 1), (1, math.nan), (math.inf, -math.inf), (math.inf, 1), (-math.inf, -math.inf), (1, 1), (0.0, -0.0),
        (2.0**-140, 2.0**-140), (3.4028234663852886e38, 3.4028234663852886e38), (255, 200, 3), (2**31 - 1, 2**31 - 1, -(2**31)), (3, 5, 5), (0, 0), (2**62, 2**62, -7), (-1, -3))  # fmt: skip

# (function, peer): where its result may differ, and why.
large_quotient = lambda a, b: ~(np.abs(a / b) < 2.0**52)
nan, minus_inf = lambda x, *_: np.isnan(x), lambda x, *_: np.isneginf(x)
DIFFERENT = {
    ("sign", "torch"): (nan, "PyTorch's sign of NaN is 0"),
    ("silu", "torch"): (lambda x, *_: x < -80, "PyTorch's is NaN at minus infinity"),
    ("gelu", "torch"): (lambda x, *_: (x < -3) | np.isinf(x), "PyTorch's is NaN at infinities, and loses digits before"),
    ("gelu_tanh", "torch"): (lambda x, *_: (x < -3) | np.isinf(x), "PyTorch's loses digits, and is NaN at infinities"),
    ("hard_swish", "torch"): (lambda x, *_: ~(np.abs(x) > 1e-3) | np.isinf(x), "zeros keep their sign; PyTorch's of minus infinity is NaN"),
    ("erf", "torch"): (lambda x, *_: np.abs(x) < 1e-6, "PyTorch's of bfloat16 is 0"),
    ("relu", "torch"): (lambda x, *_: x == 0, "PyTorch's of -0 is 0"),
    ("softplus", "torch"): (lambda x, *_: x > 15, "PyTorch's is x from 20 on"),
    ("fmod", "torch"): (large_quotient, "PyTorch's is NaN, or loses digits, in vectors"),
    ("remainder", "torch"): (large_quotient, "PyTorch's is NaN, or loses digits, in vectors"),
    ("floor_divide", "torch"): (large_quotient, "PyTorch's depends on the length of the tensor"),
    ("copysign", "torch"): (lambda a, b: np.isnan(b), "the sign of NaN"),
    ("maximum", "both"): (lambda a, b: (a == 0) & (b == 0), "of zeros the first"),
    ("minimum", "both"): (lambda a, b: (a == 0) & (b == 0), "of zeros the first"),
}  # fmt: skip
HALF_STEPS = {"pow": 60, "gelu": 60, "gelu_tanh": 60, "softplus": 8, "silu": 8}


def both(function, *x):
    """Eager and compiled; None: the type is refused."""
    return compiled.both(function, *x, refused=(sl.DTypeError, sl.ShapeError, sl.InvalidArgument))


def numbers(name):
    """The special numbers that the type has."""
    if name == "bool":
        return np.array([False, True])
    if name in LIMITS:
        low, high = LIMITS[name]
        return np.array(sorted({n for n in (low, low + 1, -100, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, 200, high - 1, high, 2**24 + 1, 2**53 + 1) if low <= n <= high}), object)
    kept = sl.array(np.array(SPECIAL), "float64").astype(name).astype("float64")
    more = [LARGEST[name], -LARGEST[name], NORMAL[name]]
    return np.array([*(np.asarray(kept.tolist(), "f8")), *more], "f8")


def tensor_of(x, name):
    return sl.array([int(v) for v in x], name) if name in LIMITS else sl.array(np.asarray(x, "f8"), "float64").astype(name)


def rounded(x, name):
    """Numbers of double precision as the type has them."""
    return np.asarray(sl.array(np.asarray(x, "f8"), "float64").astype(name).astype("float64").tolist(), "f8") if name in FLOATS else np.asarray(x)


def as_torch(x, name):
    return torch.tensor([int(v) for v in x], dtype=getattr(torch, name)) if name in LIMITS else torch.tensor(np.asarray(x, "f8" if name != "bool" else bool)).to(getattr(torch, name))


class EdgeTable(unittest.TestCase):
    def setUp(self):
        self.compared = 0
        self.addCleanup(warnings.resetwarnings)
        warnings.simplefilter("ignore")
        self.enterContext(np.errstate(all="ignore"))

    def same_floats(self, what, name, got, wanted, given, slack=1.0):
        for i, (g, w) in enumerate(zip(np.ravel(got), np.ravel(wanted), strict=True)):
            self.compared += 1
            ok = (math.isnan(g) and math.isnan(w)) or (g == w and (g != 0 or math.copysign(1, g) == math.copysign(1, w)))
            ok = ok or abs(g - w) <= slack * STEP[name] * abs(w) or (abs(g) <= 2 * NORMAL[name] and abs(w) <= 2 * NORMAL[name])
            finite = g if math.isinf(w) else w
            ok = ok or ((math.isinf(g) or math.isinf(w)) and abs(finite) > LARGEST[name] * 0.98 and (g > 0) == (w > 0))
            self.assertTrue(ok, f"{what} of {name}: {[float(x[i]) for x in given]} gives {g}, not {w}")

    def same_integers(self, what, name, got, peer, exact, given):
        """Where the exact result is in range, the peer's; elsewhere ours is the nearest number of the type."""
        low, high = LIMITS.get(name, (0, 1))
        for i, (g, p, e) in enumerate(zip(got, peer, exact, strict=True)):
            self.compared += 1
            inside = low <= e <= high
            if p is not None and inside:
                self.assertEqual(int(g), int(p), f"{what} of {name}: {[int(x[i]) for x in given]}")
            self.assertEqual(int(g), min(max(int(e), low), high), f"{what} of {name}: {[int(x[i]) for x in given]}")

    def kept(self, function, peer, given):
        """Where the table has no difference."""
        keep = np.ones(len(given[0]), bool)
        for key in ((function, peer), (function, "both")):
            if key in DIFFERENT:
                keep &= ~np.asarray(DIFFERENT[key][0](*given), bool)
        return keep

    def against(self, function, name, got, given, peers):
        """An elementwise function of floats, or one that gives truth values."""
        values = np.asarray(got.astype("float64").tolist(), "f8")
        of_truth = function in ("isnan", "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor", "eq", "ne", "lt", "le", "gt", "ge")
        for peer, wanted in peers.items():
            keep = self.kept(function, peer, given)
            wanted = np.asarray(wanted, "f8")
            wanted = wanted if of_truth or peer == "torch" else rounded(wanted, name)
            slack = HALF_STEPS.get(function, 1)
            self.same_floats(f"{function} ({peer})", name, values[keep], wanted[keep], [g[keep] for g in given], slack)

    def elementwise(self, table, given_of):
        for function, (numpy_s, torch_s) in table.items():
            for name in FLOATS:
                given = given_of(name)
                got = both(getattr(sl, function), *(tensor_of(x, name) for x in given))
                self.assertIsNotNone(got, f"{function} of {name}")
                peers = {"numpy": numpy_s(*given)}
                if torch is not None and torch_s is not None:
                    peers["torch"] = torch_s(*(as_torch(x, name) for x in given)).double().numpy()
                self.against(function, name, got, given, peers)

    def test_unary(self):
        self.elementwise(UNARY, lambda name: [numbers(name)])
        self.assertGreater(self.compared, 5000)

    def test_binary(self):
        def pairs(name):
            x = numbers(name)
            return [np.repeat(x, len(x)), np.tile(x, len(x))]

        self.elementwise(BINARY, pairs)

    WHOLE = {
        "neg": lambda n: -n, "abs": abs, "sign": lambda n: (n > 0) - (n < 0), "square": lambda n: n * n, "relu": lambda n: max(n, 0), "floor": int, "ceil": int, "round": int,
        "logical_not": lambda n: n == 0, "isnan": lambda n: 0, "isfinite": lambda n: 1,
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "maximum": max, "minimum": min, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b), "logical_xor": lambda a, b: bool(a) != bool(b),
        "pow": lambda a, b: a**b, "div": lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1),
    }  # fmt: skip

    def test_integers(self):
        """Each function that takes integers; the others refuse them."""
        for function, peers in {**UNARY, **BINARY}.items():
            for name in (*INTEGERS, "bool"):
                x = numbers(name)
                given = [x] if function in UNARY else [np.repeat(x, len(x)), np.tile(x, len(x))]
                if function == "pow":  # exponents that Python can raise to
                    keep = (given[1] >= 0) & (given[1] <= 200)
                    given = [g[keep] for g in given]
                if function == "div":  # the smallest by -1 ends a program with PyTorch
                    keep = (given[1] != 0) & ~((given[0] == LIMITS.get(name, (0, 1))[0]) & (given[1] == -1))
                    given = [g[keep] for g in given]
                got = both(getattr(sl, function), *(tensor_of(g, name) for g in given))
                self.assertEqual(got is None, function not in self.WHOLE or (name == "bool" and got is None), f"{function} of {name}")
                if got is None:
                    continue
                exact = [self.WHOLE[function](*(int(v) for v in row)) for row in zip(*given)]
                values = [int(v) for v in got.tolist()]
                arrays = [np.array([int(v) for v in g], name) for g in given]
                theirs = {"numpy": np.floor_divide(*arrays) if function == "div" else peers[0](*arrays)}
                if function in ("div", "floor", "ceil", "round"):
                    theirs = {"numpy": [None] * len(exact)}  # it makes fractions
                if torch is not None and not (name == "bool" and function in ("neg", "abs", "sub", "sign", "relu", "square", "pow", "div", "floor", "ceil", "round")):
                    t = [as_torch(g, name) for g in given]
                    theirs["torch"] = (torch.div(*t, rounding_mode="trunc") if function == "div" else peers[1](*t)).tolist()
                for peer, wanted in theirs.items():
                    if name == "bool" and function in ("add", "mul", "maximum", "minimum", "sub", "neg", "abs", "square", "pow", "div"):
                        continue
                    self.same_integers(f"{function} ({peer})", name if function not in BINARY or str(got.dtype) == name else "bool", values, list(wanted), exact, given)
        self.assertGreater(self.compared, 20000 if torch is not None else 10000)

    def test_division(self):
        """// and % of integers: Python's, as NumPy's and PyTorch's, but by 0 it is 0."""
        for name in INTEGERS:
            x = numbers(name)
            a, b = np.repeat(x, len(x)), np.tile(x, len(x))
            keep = (b != 0) & ~((a == LIMITS[name][0]) & (b == -1))
            a, b = a[keep], b[keep]
            for what, exact in (("floor_divide", [int(m) // int(n) for m, n in zip(a, b)]), ("remainder", [int(m) % int(n) for m, n in zip(a, b)])):
                got = tensor_of(a, name) // tensor_of(b, name) if what == "floor_divide" else tensor_of(a, name) % tensor_of(b, name)
                theirs = {"numpy": getattr(np, what)(a.astype(name), b.astype(name))}
                if torch is not None:
                    theirs["torch"] = getattr(torch, what)(as_torch(a, name), as_torch(b, name)).tolist()
                for peer, wanted in theirs.items():
                    self.same_integers(f"{what} ({peer})", name, got.tolist(), list(wanted), exact, [a, b])

    EXACT = {"sum": sum, "prod": math.prod, "max": max, "min": min, "any": lambda r: any(v != 0 for v in r), "all": lambda r: all(v != 0 for v in r), "argmax": lambda r: r.index(max(r))}

    def test_reductions(self):
        for function, (numpy_s, torch_s) in REDUCTIONS.items():
            for name in TYPES:
                for row in ROWS:
                    self.reduce(function, name, row, numpy_s, torch_s)
        self.assertGreater(self.compared, 700)

    def reduce(self, function, name, row, numpy_s, torch_s):
        if name in LIMITS and not all(math.isfinite(v) and v == int(v) and LIMITS[name][0] <= v <= LIMITS[name][1] and abs(v) < 2**62 + 1 for v in row):
            return
        if name == "bool" and not all(v in (0, 1) for v in row):
            return
        x = np.array([int(v) for v in row], object) if name in LIMITS else rounded(np.array(row, "f8"), name) if name in FLOATS else np.array(row, bool)
        axis = {"axis": 0} if function in ("argmax", "cumsum") else {}
        got = both(lambda t: getattr(sl, function)(t, **axis), tensor_of(x, name) if len(row) else sl.zeros((0,), dtype=name))
        if got is None:  # none has no largest, for NumPy and PyTorch neither; bools, and norms of integers, are refused
            self.assertTrue(not len(row) or name == "bool" or function == "norm", f"{function} of {name}: {row}")
            return
        what = f"{function} of {list(row)}"
        if name in FLOATS:
            values = np.ravel(np.asarray(got.astype("float64").tolist(), "f8"))
            wanted = np.ravel(numpy_s(x.astype({"float16": "f4", "bfloat16": "f4", "float32": "f4"}.get(name, "f8"))) if function != "norm" else numpy_s(x))
            truth = function in ("any", "all", "argmax")
            zeros = function in ("max", "min") and len(row) == 2 and not any(row)
            if not zeros:  # of zeros the first, or either
                self.same_floats(f"{what} (numpy)", name, values, wanted if truth else rounded(wanted, name), [np.zeros(len(values))], 4)
            if torch is not None and len(row) and not zeros:
                theirs = np.ravel(torch_s(as_torch(x, name)).double().numpy())
                # PyTorch adds squares of float32 in float32
                if not (function == "norm" and np.isfinite(x).all() and (np.abs(x).max() > 1e18 or np.abs(x).max() < 1e-18)):
                    self.same_floats(f"{what} (torch)", name, values, theirs, [np.zeros(len(values))], 4)
        elif function in self.EXACT and (len(row) or function in ("sum", "prod", "any", "all")):
            exact = self.EXACT[function]([int(v) for v in row])
            kind = str(got.dtype)
            kind = kind if kind in LIMITS and kind != "bool" else "int64" if kind in LIMITS else "bool"
            theirs = None
            if torch is not None and len(row) and name != "bool":
                theirs = torch_s(as_torch(x, name)).item()
            self.same_integers(what, kind, [got.item()], [theirs], [exact], [[0]])

    def test_conversions(self):
        """Of tensors: integers lose the fraction and saturate, NaN becomes 0; in range as NumPy's and PyTorch's."""
        for source in TYPES:
            x = numbers(source)
            plain = [v.item() if hasattr(v, "item") else v for v in x]
            for target in TYPES:
                got = tensor_of(x, source).astype(target)
                if target in LIMITS:
                    low, high = LIMITS[target]
                    exact = [0 if isinstance(v, float) and math.isnan(v) else high if v > high else low if v < low else int(v) for v in plain]
                    self.assertEqual([int(v) for v in got.tolist()], exact, f"{source} to {target}")
                    if torch is not None:
                        inside = [i for i, v in enumerate(plain) if (not isinstance(v, float) or math.isfinite(v)) and low <= v <= high]
                        theirs = as_torch(x[inside], source).to(getattr(torch, target)).tolist()
                        self.assertEqual([int(got.tolist()[i]) for i in inside], [int(v) for v in theirs], f"{source} to {target} (torch)")
                elif target == "bool":
                    self.assertEqual([bool(v) for v in got.tolist()], [bool(v != 0) for v in x], f"{source} to bool")
                elif torch is not None:
                    theirs = as_torch(x, source).to(getattr(torch, target)).double().numpy()
                    ours = np.asarray(got.astype("float64").tolist(), "f8")
                    self.assertTrue(np.array_equal(ours, theirs, equal_nan=True), f"{source} to {target} (torch): {x[ours != theirs]} {ours[ours != theirs]} {theirs[ours != theirs]}")

    def test_all_are_here(self):
        """Every function of the lists by which the library is built."""
        source = os.environ.get("STARLING_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
        for path, table in (("elementwise/unary.def", UNARY), ("elementwise/activations.def", UNARY), ("elementwise/elementary.def", UNARY), ("elementwise/rounding.def", UNARY), ("elementwise/binary.def", BINARY), ("reduce/reduce.def", REDUCTIONS)):
            with open(os.path.join(source, "codelets", path)) as file:
                names = re.findall(r"^(?:UNARY|LINEAR|FLAT|TRUTH|BINARY|FLOATS|COMPARE|X)\(([a-z_0-9]+),", file.read(), re.M)
            for name in names:
                self.assertTrue(name in table or not hasattr(sl, name), f"{name} has no row")
            self.assertTrue(names or "activations" in path, path)


if __name__ == "__main__":
    unittest.main()
