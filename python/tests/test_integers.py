"""Integers at the edge: every operator, function and reduction of uint8, int32, int64 and bool on the smallest, the largest and
the numbers around 0, against Python's exact integers, which saturate as doc/python.md says; eager and compiled."""
import itertools
import operator
import unittest

import numpy as np
import starling as sl

from compiled import both

LIMITS = {"uint8": (0, 255), "int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def numbers(name):
    low, high = LIMITS[name]
    return sorted({n for n in (low, low + 1, -100, -7, -3, -2, -1, 0, 1, 2, 3, 7, 100, 200, high - 1, high, 2**24 + 1, 2**53 + 1) if low <= n <= high})


def pairs(name):
    a, b = zip(*itertools.product(numbers(name), repeat=2))
    return list(a), list(b)


def saturated(n, name):
    return max(LIMITS[name][0], min(LIMITS[name][1], n))


def quotient(a, b):
    """Of C: towards 0; by 0 as large as can be."""
    if b == 0:
        return 0 if a == 0 else 2**70 if a > 0 else -(2**70)
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


BINARY = {
    "add": (sl.add, operator.add), "sub": (sl.sub, operator.sub), "mul": (sl.mul, operator.mul), "maximum": (sl.maximum, max), "minimum": (sl.minimum, min), "div": (sl.div, quotient),
}  # fmt: skip
COMPARISONS = {n: (getattr(operator, n), getattr(operator, n)) for n in ("eq", "ne", "lt", "le", "gt", "ge")}
UNARY = {"neg": operator.neg, "abs": abs, "sign": lambda n: (n > 0) - (n < 0), "square": lambda n: n * n, "relu": lambda n: max(n, 0),
         "floor": int, "ceil": int, "round": int}  # fmt: skip


class Integers(unittest.TestCase):
    def test_binary(self):
        for name in LIMITS:
            a, b = pairs(name)
            x, y = sl.array(a, name), sl.array(b, name)
            for what, (function, exact) in BINARY.items():
                got = both(function, x, y)
                self.assertEqual(str(got.dtype), name, what)
                self.assertEqual(got.tolist(), [saturated(exact(m, n), name) for m, n in zip(a, b)], f"{what} of {name}")
            for what, (function, exact) in COMPARISONS.items():
                self.assertEqual([bool(v) for v in both(function, x, y).tolist()], [exact(m, n) for m, n in zip(a, b)], f"{what} of {name}")

    def test_scalars(self):
        for name in LIMITS:
            a = numbers(name)
            x = sl.array(a, name)
            for n in a:
                for what, exact in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul)):
                    got = getattr(operator, what)(x, n)
                    self.assertEqual((str(got.dtype), got.tolist()), (name, [saturated(exact(m, n), name) for m in a]), f"{name} {what} {n}")
                for what in COMPARISONS:
                    got = getattr(operator, what)(x, n)
                    self.assertEqual([bool(v) for v in got.tolist()], [getattr(operator, what)(m, n) for m in a], f"{name} {what} {n}")

    def test_division(self):
        """// and % are Python's; by 0 they are 0."""
        for name in LIMITS:
            a, b = pairs(name)
            x, y = sl.array(a, name), sl.array(b, name)
            self.assertEqual((x // y).tolist(), [saturated(m // n, name) if n else 0 for m, n in zip(a, b)], f"// of {name}")
            self.assertEqual((x % y).tolist(), [m % n if n else 0 for m, n in zip(a, b)], f"% of {name}")

    def test_unary(self):
        for name in LIMITS:
            a = numbers(name)
            for what, exact in UNARY.items():
                got = both(getattr(sl, what), sl.array(a, name))
                self.assertEqual((str(got.dtype), got.tolist()), (name, [saturated(exact(n), name) for n in a]), f"{what} of {name}")
            for what in ("exp", "log", "sin", "sqrt", "sigmoid", "tanh", "softmax"):
                self.assertRaises(sl.DTypeError, getattr(sl, what), sl.array(a, name))
            self.assertEqual([bool(v) for v in sl.isnan(sl.array(a, name)).tolist()], [False] * len(a))

    def test_reductions(self):
        for name in LIMITS:
            a = np.array([numbers(name), numbers(name)[::-1]], dtype=name)
            rows = [[int(v) for v in row] for row in a]
            x = sl.array(a, name)
            for what, exact in (("max", max), ("min", min)):
                self.assertEqual(both(lambda t: getattr(sl, what)(t, axis=1), x).tolist(), [exact(r) for r in rows], f"{what} of {name}")
            for what, exact in (("argmax", max), ("argmin", min)):
                if hasattr(sl, what):
                    self.assertEqual(both(lambda t: getattr(sl, what)(t, axis=1), x).tolist(), [r.index(exact(r)) for r in rows], f"{what} of {name}")
            for descending in (False, True):
                self.assertEqual(both(lambda t: sl.sort(t, descending=descending), x).tolist(), [sorted(r, reverse=descending) for r in rows])
            self.assertEqual(sl.topk(x, 3)[0].tolist(), [sorted(r, reverse=True)[:3] for r in rows])
            small = sl.array([[1, 2, 3], [4, 0, 6]], name)
            self.assertEqual(both(lambda t: sl.sum(t, axis=1), small).tolist(), [6, 10])
            self.assertEqual(both(lambda t: sl.prod(t, axis=1), small).tolist(), [6, 0])
            self.assertEqual(both(lambda t: sl.cumsum(t, axis=1), small).tolist(), [[1, 3, 6], [4, 4, 10]])
            self.assertEqual(both(lambda t: sl.mean(t, axis=1), small).dtype, np.float32)
            self.assertEqual([bool(v) for v in both(lambda t: sl.all(t, axis=1), small).tolist()], [True, False])
            self.assertEqual([bool(v) for v in both(lambda t: sl.any(t, axis=1), small).tolist()], [True, True])
            high = LIMITS[name][1]
            over = sl.array([[high, 1], [high, high]], name)
            self.assertEqual(both(lambda t: sl.sum(t, axis=1), over).tolist(), [high, high], f"sum of {name}")
            self.assertEqual(both(lambda t: sl.prod(t, axis=1), over).tolist(), [high, high], f"prod of {name}")
            self.assertEqual(both(lambda t: sl.cumsum(t, axis=1), over).tolist(), [[high, high]] * 2, f"cumsum of {name}")
            for what in ("max", "min"):
                self.assertRaises(sl.ShapeError, getattr(sl, what), sl.zeros((0,), dtype=name))
            self.assertEqual((sl.sum(sl.zeros((0,), dtype=name)).item(), sl.prod(sl.zeros((0,), dtype=name)).item()), (0, 1))
            self.assertEqual(sl.sum(sl.array([5], name)).item(), 5)

    def test_bools(self):
        a, b = [False, False, True, True], [False, True, False, True]
        x, y = sl.array(a), sl.array(b)
        for what in ("and_", "or_", "xor", *COMPARISONS):
            got = both(getattr(operator, what), x, y)
            self.assertEqual([bool(v) for v in got.tolist()], [bool(getattr(operator, what)(m, n)) for m, n in zip(a, b)], what)
        self.assertEqual([bool(v) for v in (~x).tolist()], [not v for v in a])
        self.assertEqual((sl.sum(x).item(), sl.mean(x).item()), (2, 0.5))
        for what in ("max", "min", "argmax"):
            self.assertRaises(sl.DTypeError, getattr(sl, what), x)
        self.assertEqual((x + 1).tolist(), [1, 1, 2, 2])


if __name__ == "__main__":
    unittest.main()
