"""Values that a program gives: stored as they are, or refused, by whatever takes values."""
import math
import unittest

import numpy as np
import starling as sl

INTEGERS = ("uint8", "int32", "int64")
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}
TYPES = (*INTEGERS, *LARGEST)


def limits(name):
    return (np.iinfo(name).min, np.iinfo(name).max) if name in INTEGERS else (-LARGEST[name], LARGEST[name])


def values(name):
    """(value, whether the data type has it)."""
    low, high = limits(name)
    whole = name in INTEGERS
    yield from ((v, True) for v in (0, 1, low, high, high - 1, np.float64(1), np.int64(1), True))
    yield from ((v, not whole) for v in (math.nan, math.inf, -math.inf, np.float32("nan")))
    if whole:
        yield from ((v, False) for v in (low - 1, high + 1, 10 * high, float(high) * 2, 1e300, -1e300))
    elif name != "float64":
        yield from ((v, False) for v in (2 * high, -2 * high, 1.5e308))
    if name == "int64":
        yield from ((v, True) for v in (2**53 + 1, -(2**53) - 1, 2**62 + 1, np.int64(2**60 + 1)))


def zeros(name):
    return sl.zeros((2, 2), dtype=name)


def assign(key):
    def assigned(value, name):
        t = zeros(name)
        t[key] = value
        return t[1, 1]

    return assigned


TAKERS = {
    "array": lambda v, name: sl.array([v], name)[0], "array of an array": lambda v, name: sl.array(np.asarray(v), name),
    "array of a list": lambda v, name: sl.array([[v, 0], [0, v]], name)[1, 1], "full": lambda v, name: sl.full((2,), v, dtype=name)[1],
    "full_like": lambda v, name: sl.full_like(zeros(name), v)[1, 1], "whole": assign(slice(None)), "row": assign(1), "element": assign((1, 1)),
    "column": assign((slice(None), 1)), "list": assign([1]), "mask": assign(np.array([[True, False], [False, True]])),
    "tensor of a mask": lambda v, name: assign(sl.array([[True, False], [False, True]]))(v, name),
    "masked_fill": lambda v, name: zeros(name).masked_fill(sl.array([[True, False], [False, True]]), v)[1, 1],
    "where": lambda v, name: sl.where(sl.array([False]), zeros(name)[0, :1], [v])[0] if name in LARGEST or isinstance(v, int) else sl.array(v, name),
}  # fmt: skip


class Values(unittest.TestCase):
    def check(self, got, value, name, what):
        self.assertEqual(str(got.dtype), name, what)
        self.assertEqual(got.size, 1, what)
        wanted = value.item() if isinstance(value, np.generic) else value
        if name in LARGEST:
            wanted = sl.array(float(value), "float64").astype(name).item()
        np.testing.assert_equal(got.item(), wanted, what)

    def test_takers(self):
        for taker, take in TAKERS.items():
            for name in TYPES:
                for value, has in values(name):
                    what = f"{taker}: {value!r} in {name}"
                    if has:
                        self.check(take(value, name), value, name, what)
                    else:
                        with self.assertRaises(sl.DTypeError, msg=what):
                            take(value, name)

    def test_fractions(self):
        """Cut off where the type was named beside them, refused where it was not."""
        for name in INTEGERS:
            self.assertEqual(sl.array([1.9, 0.1], name).tolist(), [1, 0])
            self.assertEqual(sl.full((2,), 2.9, dtype=name).tolist(), [2, 2])
            for key in (0, (0, 0), slice(None), [0], (slice(None), 1), np.array([[True, False]] * 2)):
                for value in (0.5, np.float32(0.5), [0.5], np.array([0.5])):
                    t = zeros(name)
                    with self.assertRaises((sl.DTypeError, ValueError), msg=f"{name} {key} {value}"):
                        t[key] = value
                    self.assertEqual(t.tolist(), [[0, 0], [0, 0]])
            t = zeros(name)
            t[0] = 2.0
            t[1] = sl.array([2.9, 300.7])  # conversions of tensors: as astype
            self.assertEqual(t.tolist(), [[2, 2], [2, min(300, limits(name)[1])]])

    def test_without_a_type(self):
        """Fractions are refused where no type is named; values beyond the type everywhere."""
        for name in INTEGERS:
            t = zeros(name)
            for wrong in (2.9, np.float32(0.5), math.nan, math.inf, 1e300):
                self.assertRaises(sl.DTypeError, sl.full_like, t, wrong)
                self.assertRaises(sl.DTypeError, sl.fill_, t, wrong)
            self.assertEqual(sl.full_like(t, 2.9, dtype=name).tolist(), [[2, 2], [2, 2]])
            self.assertEqual((sl.full_like(t, 2.0).tolist(), t.tolist()), ([[2, 2], [2, 2]], [[0, 0], [0, 0]]))
        for name in ("float16", "bfloat16", "float32"):
            self.assertRaises(sl.DTypeError, sl.fill_, zeros(name), 1e300)
            net = sl.nn.Dense(1, in_units=2)
            self.assertRaises(sl.DTypeError, net.initialize, sl.init.constant(1e300))
        for wrong in ("1", b"1", None, [1]):
            self.assertRaises(TypeError, sl.init.constant, wrong)

    def test_kinds(self):
        """What NumPy makes of lists by itself, masks, long doubles."""
        self.assertRaises(sl.DTypeError, sl.array, [2**63, 1])
        self.assertRaises(sl.DTypeError, sl.array, [2**63 + 5])
        self.assertEqual(sl.array([2.0**63, 1]).tolist(), [2.0**63, 1])
        self.assertEqual(sl.array(np.array([0.1], "g")).tolist(), [0.1])
        masked = np.ma.masked_array([1.0, 2], mask=[0, 1])
        self.assertRaises(sl.DTypeError, sl.array, masked)
        self.assertEqual(sl.array(masked[:1]).tolist(), [1])

    def test_probabilities(self):
        for wrong in (math.nan, -0.1, 1.5, math.inf):
            self.assertRaises(sl.InvalidArgument, lambda: sl.bernoulli(sl.array([0.5, wrong])).numpy())
            if wrong != 1.5:
                self.assertRaises(sl.InvalidArgument, lambda: sl.multinomial(sl.array([[0.5, wrong]]), 2).numpy())
        self.assertEqual(sl.bernoulli(sl.array([[0, 1], [1, 0.0]])).tolist(), [[0, 1], [1, 0]])
        for p in (-0.1, 1, 1.1, math.nan, math.inf):
            self.assertRaises(sl.InvalidArgument, sl.nn.Dropout, p)

    def test_beside_others(self):
        """Options that mean nothing beside, or without, others."""
        x = sl.array([[0.0, 1, 2], [3, 4, 5]])
        labels = sl.array([0, 1], "int32")
        for wrong in (lambda: sl.flip(x, axis=0, keepdims=True), lambda: sl.transpose(x, keepdims=True), lambda: sl.cross_entropy(x, labels, ignore_index=1),
                      lambda: sl.resize2d(sl.ones((1, 1, 4, 4)), 2, 2, align_corners=True), lambda: sl.pad(x, before=1, after=1, value=5, reflect=True)):  # fmt: skip
            self.assertRaises(sl.InvalidArgument, wrong)
        self.assertRaises(TypeError, sl.sum, x, axis=0, axes=(1,))
        self.assertEqual((sl.sum(x, axes=1).tolist(), sl.sum(x, axis=1).tolist(), x.sum(axis=1).tolist()), ([3, 12], [3, 12], [3, 12]))

    def test_seeds(self):
        arrays = sl.data.arrays(np.ones((4, 2), "f"), np.arange(4))
        for take in (sl.seed, lambda seed: sl.data.Loader(arrays, 2, seed=seed), lambda seed: arrays.split(2, seed=seed)):
            for seed in (-1, 2**64):
                self.assertRaisesRegex(sl.InvalidArgument, f"seed is {seed}", take, seed)
            self.assertRaisesRegex(TypeError, "seed is float", take, 1.5)
            take(np.int64(2**40)), take(2**64 - 1)

    def test_others(self):
        for wrong in (["1"], "1", [None], [1j], np.array([1], "M8[s]"), [object()], np.array(["a"]), {"a": 1}, [b"1"]):
            for name in TYPES:
                self.assertRaises((TypeError, ValueError), sl.array, wrong, name)
                self.assertRaises((TypeError, ValueError), zeros(name).__setitem__, 0, wrong)
        self.assertRaises(sl.DTypeError, sl.array, [2**70])
        self.assertRaises(sl.DTypeError, sl.array, [2**70, 1], "int64")
        self.assertEqual(sl.array([2**70], "float32").item(), 2.0**70)

    def test_arange(self):
        n = 2**53
        self.assertEqual(sl.arange(n, n + 4, dtype="int64").tolist(), list(range(n, n + 4)))
        self.assertEqual(sl.arange(n + 3, n - 2, -2, dtype="int64").tolist(), list(range(n + 3, n - 2, -2)))
        self.assertEqual(sl.arange(2**63 - 3, 2**63 - 1, dtype="int64").tolist(), [2**63 - 3, 2**63 - 2])
        self.assertEqual(sl.arange(0, 256, 51, dtype="uint8").tolist(), list(range(0, 256, 51)))
        for name, *ends in (("uint8", 0, 300), ("uint8", -1, 3), ("int32", 2**31 - 1, 2**31 + 1), ("int64", 2**63 - 1, 2**63 + 2), ("int32", 0, 3, 0.5), ("float16", 0, 10**5, 10**4),
                            (None, 2**24, 2**24 + 3), (None, 0, 2**40, 2**38 + 1)):  # fmt: skip
            self.assertRaises(sl.DTypeError, sl.arange, *ends, dtype=name)
        self.assertEqual(sl.arange(2**24, 2**25, 2**22).tolist(), list(range(2**24, 2**25, 2**22)))
        self.assertRaises(sl.DTypeError, sl.full, (2,), 2**24 + 1)
        self.assertEqual(sl.full((1,), 2**24 + 2).item(), 2**24 + 2)

    def test_numbers_of_functions(self):
        """pad, normal, uniform, randint, linspace: what the data type does not have is refused."""
        made = {name: sl.ones(2, dtype=name) for name in TYPES}
        for name in TYPES:
            for value, has in values(name):
                exact = not isinstance(value, (int, np.integer)) or int(float(value)) == int(value)
                if has and exact:
                    self.check(sl.pad(made[name], before=1, after=0, value=value)[0], value, name, f"pad {value} {name}")
                else:
                    self.assertRaises(sl.DTypeError, sl.pad, made[name], before=1, after=0, value=value)
            if name in INTEGERS:
                self.assertRaises(sl.DTypeError, sl.pad, made[name], before=1, after=0, value=0.5)
        for name in ("float16", "bfloat16", "float32"):
            for f in (sl.normal, sl.uniform):
                self.assertRaises(sl.DTypeError, f, (2,), 0, 2 * LARGEST[name], dtype=name)
        n = 2**53
        self.assertRaises(sl.InvalidArgument, sl.randint, (2,), n + 1, n + 3, dtype="int64")
        self.assertEqual(sl.linspace(n, n + 4, 5, dtype="int64").tolist(), [n + i for i in range(5)])
        x = sl.array([n + 1], "int64")
        for f in (sl.add_scalar, sl.maximum_scalar, sl.gt_scalar, sl.fill_):
            self.assertRaises(sl.DTypeError, f, x, n + 1)
        self.assertEqual(sl.maximum_scalar(x, n + 2).item(), n + 2)

    def test_labels(self):
        x = np.zeros((2, 1), np.float32)
        for dtype in ("int64", "uint64", "int16", "uint32", "int8"):
            samples = sl.data.arrays(x, np.array([100, 3], dtype))
            self.assertEqual([int(samples[i][1]) for i in range(2)], [100, 3])
        for wrong in (np.array([2**31, 1]), np.array([1, -(2**31) - 1]), np.array([2**32 + 1, 1], "uint64")):
            self.assertRaises(sl.DTypeError, sl.data.arrays, x, wrong)
            self.assertRaises(sl.DTypeError, lambda: list(sl.data.Loader((x, wrong), 2)))

    def test_parameters(self):
        net = sl.nn.Dense(1, in_units=2)
        net.initialize()
        weight = net.find("weight")
        for given in ([[1, 2]], [[1.0, 2]], np.array([[1.0, 2]]), np.array([[1, 2]]), np.array([[1, 2]], "uint16"), [[True, 2]]):
            weight.set(given)
            self.assertEqual((weight.data().tolist(), weight.data().dtype), ([[1, 2]], np.float32))
        for wrong, error in (([[1e300, 0]], sl.DTypeError), (np.array([[0, -1e300]]), sl.DTypeError), ([1.0, 2], sl.ShapeError), ([["1", "2"]], sl.DTypeError)):
            self.assertRaises(error, weight.set, wrong)
        self.assertEqual(weight.data().tolist(), [[1, 2]])

    def test_conversions_of_tensors(self):
        """The same everywhere: fractions go, what is too large saturates, NaN is 0."""
        given = [0.5, -1.5, 300.7, 1e20, -1e20, math.inf, -math.inf, math.nan]
        t = sl.array(given)
        for name in INTEGERS:
            low, high = limits(name)
            wanted = [0 if v != v else max(low, min(high, v)) if math.isinf(v) else max(low, min(high, int(np.float32(v)))) for v in given]
            for convert in (lambda: t.astype(name), lambda: t.to(name), lambda: sl.array(t, name)):
                self.assertEqual(convert().tolist(), wanted, name)
            into = sl.zeros(len(given), dtype=name)
            into[:] = t
            self.assertEqual(into.tolist(), wanted, name)
            into = sl.zeros((len(given), 2), dtype=name)
            into[:, 1] = t
            self.assertEqual(into[:, 1].tolist(), wanted, name)
        self.assertEqual(t.astype("bool").tolist(), [True] * 8)
        self.assertEqual(sl.array([1e30, -1e30]).astype("float16").tolist(), [math.inf, -math.inf])


if __name__ == "__main__":
    unittest.main()
