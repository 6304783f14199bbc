"""Operators for all kinds and types of operands, against the table of doc/python.md, NumPy and PyTorch."""
import itertools
import operator
import os
import pathlib
import re
import unittest

import numpy as np
import starling as sl

try:
    import torch
except ImportError:
    torch = None

SOURCE = pathlib.Path(os.environ.get("STARLING_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
TYPES = "bool uint8 int32 int64 float16 bfloat16 float32 float64".split()
KIND = {name: "bool" if name == "bool" else "integer" if "int" in name else "float" for name in TYPES}
RANK = {"bool": 0, "integer": 1, "float": 2}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow}
IN_PLACE = {"+": operator.iadd, "-": operator.isub, "*": operator.imul, "/": operator.itruediv, "**": operator.ipow}
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
OF_NUMPY = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}
NUMPY_1 = int(np.__version__.split(".")[0]) < 2


def table():
    """The table of the page: {(type, type): type}."""
    text = (SOURCE / "doc/python.md").read_text()
    columns = [c.strip() for c in re.search(r"^\| \| (bool.*)\|$", text, re.MULTILINE)[1].split("|")]
    rows = re.findall(r"^\| \*\*(\w+)\*\* \|(.*)\|$", text, re.MULTILINE)
    return {(row, c): cell.strip() for row, cells in rows for c, cell in zip(columns, cells.split("|"))}


TABLE = table()


def type_of(t):
    return str(t.dtype)


def exact(x):
    """An operand's values in float64."""
    if isinstance(x, sl.Tensor):
        x = x.astype("float32").numpy() if type_of(x) == "bfloat16" else x.numpy()
    return np.asarray(x).astype(np.float64)


class Operand:
    """One operand: how it is made, its type, and how much that counts (2: with axes, 1: without, 0: a number)."""

    def __init__(self, label, value, dtype, counts):
        self.label, self.value, self.dtype, self.counts = label, value, dtype, counts

    def __repr__(self):
        return self.label


def tensors():
    for name in TYPES:
        yield Operand(f"tensor {name}", sl.array([1, 0, 1] if name == "bool" else [3, 1, 2], name), name, 2)
        yield Operand(f"tensor {name} without axes", sl.array(1 if name == "bool" else 2, name), name, 1)


def others():
    for name in [t for t in TYPES if t != "bfloat16"] + list(OF_NUMPY):
        held = OF_NUMPY.get(name, name)
        fraction = 0.5 if "float" in name else 0
        yield Operand(f"array {name}", (np.array([2, 1, 3]) + fraction).astype(name), held, 2)
        yield Operand(f"array {name} without axes", np.array(2 + fraction).astype(name), held, 1)
        yield Operand(f"numpy.{name}", np.dtype(name).type(2 + fraction), {"bool": "bool", "integer": "int64", "float": "float32"}[KIND[held]], 0)
    for value, dtype in ((True, "bool"), (2, "int64"), (2.5, "float32"), ([True, False, True], "bool"), ([1, 2, 3], "int64"),
                         ([0.5, 2, 3], "float32"), ((0.5, 1.5, 2.5), "float32"), ([np.float32(0.5)] * 3, "float32")):  # fmt: skip
        yield Operand(f"{value!r}", value, dtype, 0)


def expected(a, b, symbol):
    """The type of the result by the page's rules."""
    if a.counts == b.counts:
        found = TABLE[a.dtype, b.dtype]
    else:
        more, less = (a, b) if a.counts > b.counts else (b, a)
        higher = RANK[KIND[less.dtype]] > RANK[KIND[more.dtype]]
        found = TABLE[a.dtype, b.dtype] if higher or a.dtype == b.dtype == "bool" else more.dtype
    return "float32" if symbol == "/" and KIND[found] != "float" else found


def fits(value, dtype):
    """Whether NumPy's result is one that the type has: others saturate."""
    if KIND[dtype] != "integer":
        return True
    limits = np.iinfo(dtype)
    return bool(np.isfinite(value).all() and (value >= limits.min).all() and (value <= limits.max).all())


class Operators(unittest.TestCase):
    compared = 0

    def compare(self, got, wanted, dtype, what):
        """The type and shape, which are known at once, and of every third result the values, for which one waits."""
        self.assertEqual(type_of(got), dtype, what)
        self.assertEqual(got.shape, np.shape(wanted), what)
        tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
        self.compared += 1
        if self.compared % 3 == 0 and fits(wanted, dtype):
            wanted = np.trunc(wanted) if KIND[dtype] != "float" else wanted
            np.testing.assert_allclose(exact(got), wanted, rtol=tolerance, atol=tolerance, err_msg=str(what))

    def pairs(self):
        """All pairs with a tensor that has axes, and a third of the others."""
        mine = list(tensors())
        pairs = itertools.chain(itertools.product(mine, mine), itertools.product(mine, others()))
        return [(a, b) for i, (a, b) in enumerate(pairs) if a.counts == 2 or i % 3 == 0]

    def test_the_page_has_all_types(self):
        self.assertEqual(set(TABLE), set(itertools.product(TYPES, TYPES)))
        self.assertTrue(all(TABLE[x, y] == TABLE[y, x] for x, y in TABLE))

    def test_arithmetic(self):
        for a, b in self.pairs():
            for symbol, f in ARITHMETIC.items():
                for first, second in ((a, b), (b, a)):
                    if symbol == "**" and isinstance(first.value, np.ndarray) and NUMPY_1 and KIND[second.dtype] == "integer":
                        continue  # it squares by itself where the exponent is an index
                    what = (first, symbol, second)
                    with np.errstate(all="ignore"):
                        wanted = f(exact(first.value), exact(second.value))
                    dtype = expected(a, b, symbol)
                    if "bool" == dtype:
                        dtype = "int64"
                    self.compare(f(first.value, second.value), wanted, dtype, what)

    def test_in_place(self):
        for a, b in self.pairs():
            for symbol, f in IN_PLACE.items():
                with np.errstate(all="ignore"):
                    wanted = ARITHMETIC[symbol](exact(a.value), exact(b.value))
                kind = KIND["int64" if (d := expected(a, b, symbol)) == "bool" else d]
                x, what = a.value.copy(), (a, symbol + "=", b)
                before, same = exact(x), x
                if RANK[kind] > RANK[KIND[a.dtype]]:
                    self.assertRaises(sl.DTypeError, f, x, b.value)
                elif np.shape(wanted) != x.shape:
                    self.assertRaises(sl.ShapeError, f, x, b.value)
                else:
                    self.assertIs(f(x, b.value), same, what)
                    self.compare(same, wanted, a.dtype, what)
                    continue
                np.testing.assert_array_equal(exact(same), before, str(what))

    def test_comparisons(self):
        for i, (a, b) in enumerate(self.pairs()):
            for k, f in enumerate(COMPARISONS):
                for first, second in ((a, b), (b, a)):
                    if (i + k) % 3:  # each operator for a third of the pairs
                        continue
                    got = f(first.value, second.value)
                    self.assertEqual(type_of(got), "bool", (first, f.__name__, second))
                    np.testing.assert_array_equal(got.numpy(), f(exact(first.value), exact(second.value)), str((first, f.__name__, second)))

    def test_where(self):
        mask = [True, False, True]
        for a, b in self.pairs():
            wanted = np.where(mask, exact(a.value), exact(b.value))
            dtype = "bool" if a.dtype == b.dtype == "bool" else expected(a, b, "+")
            self.compare(sl.where(sl.array(mask), a.value, b.value), wanted, dtype, ("where", a, b))
            for mine, theirs in ((sl.maximum, np.maximum), (sl.minimum, np.minimum)):
                self.compare(mine(b.value, a.value), theirs(exact(a.value), exact(b.value)), dtype, (mine.__name__, a, b))

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_as_in_pytorch(self):
        numbers = [Operand(repr(v), v, None, 0) for v in (True, 2, 2.5)]
        for a, b in itertools.chain(itertools.product(tensors(), tensors()), itertools.product(tensors(), numbers)):
            theirs = [torch.ones(3 if x.counts == 2 else (), dtype=getattr(torch, x.dtype)) if x.counts else x.value for x in (a, b)]
            wanted = str(torch.result_type(*theirs)).removeprefix("torch.")
            self.assertEqual(type_of(a.value + b.value), "int64" if wanted == "bool" else wanted, (a, b))

    def test_products(self):
        x = np.array([[1.5, -2], [0.5, 4]], np.float32)
        t = sl.array(x)
        for other in (np.eye(2, dtype=np.float32) * 3, [[1.5, 2], [3, 4]], [2, 1], np.array([[1, 2], [3, 4]], "int32"), np.array([0.5, 2], "float32")):
            self.compare(t @ other, x @ np.asarray(other, np.float64), "float32", "@")
            self.compare(other @ t, np.asarray(other, np.float64) @ x, "float32", "@ reflected")
        self.compare(t @ x.astype("float64"), x.astype("float64") @ x, "float64", "@ float64")
        for _ in range(3):
            self.compare(t @ sl.array([[1, 2], [3, 4]]), x @ [[1, 2], [3, 4]], "float32", "@ int32")
        for wrong in (lambda: t @ 2, lambda: 2 @ t, lambda: t @ "a", lambda: t @ None, lambda: sl.array([1, 2]) @ [1, 2]):
            self.assertRaises(TypeError, wrong)

    def test_truths(self):
        a, b = np.array([True, True, False]), np.array([True, False, False])
        for f, inplace in ((operator.and_, operator.iand), (operator.or_, operator.ior), (operator.xor, operator.ixor)):
            for other in (sl.array(b), b, b.tolist(), True, np.bool_(False)):
                wanted = f(a, exact(other).astype(bool))
                np.testing.assert_array_equal(f(sl.array(a), other).numpy(), wanted)
                np.testing.assert_array_equal(f(other, sl.array(a)).numpy(), wanted)
                x = same = sl.array(a)
                x = inplace(x, other)
                self.assertIs(x, same)
                np.testing.assert_array_equal(same.numpy(), wanted)
            for other in (1, 1.0, [1, 0, 1], np.array([1, 0, 1]), sl.array([1, 0, 1]), None, "a"):
                self.assertRaises(TypeError, f, sl.array(a), other)
                self.assertRaises(TypeError, f, other, sl.array(a))

    def test_division(self):
        """// and % of corners and random numbers are NumPy's, bit for bit."""
        rng = np.random.default_rng(4)
        for name in ("float64", "float32", "float16", "int32", "int64", "uint8"):
            corners = [0, 1, 2, 3, 7, 100] + ([] if name == "uint8" else [-1, -2, -3, -7])
            if KIND[name] == "float":
                corners += [-0.0, 0.1, -0.1, 0.3, 2.5, -2.5, 1e-3, np.inf, -np.inf, np.nan, *rng.normal(size=30) * 10.0 ** rng.uniform(-2, 2, 30)]
            else:
                corners += [np.iinfo(name).max, np.iinfo(name).min + 1]
            a, b = np.meshgrid(*[np.array(corners).astype(name)] * 2)
            x, y = sl.array(a, name), sl.array(b, name)
            with np.errstate(all="ignore"):
                for got, wanted in ((x // y, a // b), (x % y, a % b), *zip(divmod(x, b), divmod(a, b)), *zip(divmod(b, x), divmod(b, a))):
                    self.assertEqual(type_of(got), name)
                    np.testing.assert_array_equal(got.numpy(), wanted, name)
        x = same = sl.array([7, -7])
        x //= 2
        self.assertEqual((x.tolist(), x is same), ([3, -4], True))
        x %= [3, 3]
        self.assertEqual(same.tolist(), [0, 2])
        for f in (operator.ifloordiv, operator.imod):
            self.assertRaises(sl.DTypeError, f, x, 0.5)
        self.assertEqual([type_of(t) for t in (x // 2.0, 7.5 % x, x % [0.5, 1], x // np.array([1.5, 2]))], ["float32"] * 3 + ["float64"])
        for wrong in (None, "a", 1j, {}):
            for f in (operator.mod, operator.floordiv, divmod):
                self.assertRaises(TypeError, f, x, wrong)
        a, b = sl.array([5.5, -3]).attach_grad(), sl.array([2.0, 2]).attach_grad()
        with sl.record():
            z = (a % b).sum() + (a // b).sum()
        z.backward()
        self.assertEqual((a.grad.tolist(), b.grad.tolist()), ([1, 1], [-2, 2]))

    def test_refused(self):
        u, i, f = sl.array([1, 2], "uint8"), sl.array([1, 2]), sl.array([0.5, 2])
        for g in ARITHMETIC.values():
            for x in (u, i, f):
                for other in (None, "1", b"1", 1j, np.array([1j, 2]), np.array(["1", "2"]), ["1", "2"], {}, object(), np.datetime64(1, "s")):
                    self.assertRaises(TypeError, g, x, other)
                    self.assertRaises(TypeError, g, other, x)
        for wrong in (300, -1, [1, 300], [-1, 1], np.int64(300), 2**70):
            for g in (operator.add, operator.sub, operator.mul, operator.iadd, operator.isub, operator.imul):
                self.assertRaises((TypeError, OverflowError), g, u.copy(), wrong)
        for base in (u, i, sl.array([True, False])):
            for exponent in (-1, np.int32(-1), [1, -1], np.array([-2, 1])):
                with self.assertRaisesRegex(ValueError, "negative power"):
                    base**exponent
        self.assertRaises(ValueError, lambda: 2 ** sl.array([1, 2]) ** -1)
        np.testing.assert_allclose((i**-1.0).numpy(), [1, 0.5])

    def test_large_quotients(self):
        """Remainders are exact, as NumPy's and PyTorch's; or NaN, never another number."""
        random = np.random.default_rng(1)
        for name in ("float32", "float64"):
            for size in (1, 1e6, 1e9, 1e15, 1e21):
                a, b = (random.standard_normal(200) * size).astype(name), random.standard_normal(200).astype(name)
                np.testing.assert_array_equal((sl.array(a, name) % sl.array(b, name)).numpy(), np.mod(a, b))
        self.assertTrue(np.isnan((sl.array([1.7e308], "float64") % 1.5).item()))

    def test_large_integers(self):
        n = 2**53 + 1
        x = sl.array([n, 1, -n], "int64")
        for b in (n, n - 1, n + 1, -n, 2**63 - 1, -(2**63), 2**63, 2**70, -(2**70), float(2**60), 1e300, np.inf, -np.inf, np.nan, np.int64(n), np.array(n)):
            value = b.item() if isinstance(b, (np.generic, np.ndarray)) else b
            for f in COMPARISONS:
                self.assertEqual(f(x, b).tolist(), [f(v, value) for v in (n, 1, -n)], (f.__name__, b))
                self.assertEqual(f(b, x).tolist(), [f(value, v) for v in (n, 1, -n)], (f.__name__, b))
        self.assertEqual((x + n).tolist(), [2 * n, n + 1, 0])
        self.assertEqual((n - x).tolist(), [0, n - 1, 2 * n])
        self.assertEqual((x + [n, 1, 2]).tolist(), [2 * n, 2, 2 - n])
        x += n
        self.assertEqual(x.tolist(), [2 * n, n + 1, 0])

    def test_halves(self):
        """A number beside floats is rounded to their type before it is compared."""
        for name in ("float16", "bfloat16", "float32", "float64"):
            x = sl.array([0.1, 3, 0.5], name)
            for b in (0.1, np.float64(0.1), [0.1], np.array(0.1)):
                self.assertEqual(((x == b).tolist(), (x < b).tolist(), (b == x).tolist()), ([True, False, False], [False] * 3, [True, False, False]))
            self.assertEqual(((x < 1e300).tolist(), (x == np.nan).tolist(), (x[0] == 0.1).shape), ([True] * 3, [False] * 3, ()))

    def test_gradients(self):
        """They flow through conversions between floats."""
        x, y = sl.array([1.0, 2]).attach_grad(), sl.array([3, 4], "float64").attach_grad()
        with sl.record():
            z = (x * y + sl.array([1, 2]) * x + x * [2, 3]).sum()
        z.backward()
        self.assertEqual((x.grad.tolist(), y.grad.tolist()), ([3 + 1 + 2, 4 + 2 + 3], [1, 2]))
        self.assertEqual((type_of(x.grad), type_of(y.grad)), ("float32", "float64"))

    def test_traced(self):
        class Net(sl.Block):
            def forward(self, x):
                return x * np.array([2, 3], "int32") + [0.5, 1] - (x > 1) * sl.array([1, 2]) + np.float64(0.1)

        t = sl.array([[1.0, 2], [3, 0]])
        net = Net()
        wanted = net(t).numpy(copy=True)
        net.hybridize()
        np.testing.assert_allclose(net(t).numpy(), wanted)
        np.testing.assert_allclose(wanted, exact(t) * [2, 3] + [0.5, 1] - (exact(t) > 1) * [1, 2] + 0.1, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
