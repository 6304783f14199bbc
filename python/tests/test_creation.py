"""Making tensors as NumPy does, numbers beside tensors, copies, indices that run backwards."""
import copy
import operator
import pickle
import unittest

import numpy as np

import starling as sl


class Creation(unittest.TestCase):
    def same(self, mine, theirs):
        self.assertEqual((mine.shape, mine.tolist()), (np.shape(theirs), np.asarray(theirs).tolist()))

    def test_forms(self):
        self.same(sl.arange(4), np.arange(4))
        self.same(sl.arange(2, 5), np.arange(2, 5))
        self.same(sl.arange(5, 0, -2), np.arange(5, 0, -2))
        self.assertEqual((sl.arange(3).dtype, sl.arange(3, dtype="int64").dtype), (np.float32, np.int64))
        self.same(sl.linspace(0, 1, 5), np.linspace(0, 1, 5))
        self.same(sl.eye(2, 3), np.eye(2, 3))
        x = sl.array([[1, 2, 3]], dtype="float64")
        for made, value in ((sl.zeros_like(x), 0), (sl.ones_like(x), 1), (sl.full_like(x, 2.5), 2.5)):
            self.assertEqual((made.dtype, made.tolist()), (np.float64, [[value] * 3]))
        self.assertEqual(sl.zeros_like(x, dtype="int32").dtype, np.int32)
        self.assertRaisesRegex(TypeError, "arange: start is str", lambda: sl.arange("3", 4))
        self.assertRaisesRegex(TypeError, "x is list", lambda: sl.zeros_like([1]))

    def test_random_defaults(self):
        for t, mean, low, high in ((sl.uniform((20000,)), 0.5, 0, 1), (sl.normal((20000,)), 0, -7, 7)):
            values = t.numpy()
            self.assertLess(abs(values.mean() - mean), 0.05)
            self.assertTrue(low <= values.min() and values.max() <= high)

    def test_nothing_to_do(self):
        """What C gives back as it is belongs to one object only."""
        y = sl.lt(sl.array([1.0, 3]), sl.array([2.0, 2]))
        for _ in range(20):
            self.assertEqual([t.tolist() for t in (sl.compared(y), sl.einsum("...", [y]), sl.compared(y, dtype="bool"))], [[1, 0], [1, 0], [True, False]])
            sl.zeros(2).wait()
        self.assertEqual(y.tolist(), [1, 0])

    def test_truths(self):
        self.assertEqual(sl.array([True, False]).dtype, np.bool_)
        self.assertEqual(sl.array([True, 2]).dtype, np.int32)


class Numbers(unittest.TestCase):
    def test_integers(self):
        """A quotient, and what meets a number with a fraction, is float32, as in PyTorch; whole numbers stay integers."""
        a = np.array([1, 2, 5], "int32")
        for dtype in ("int32", "int64", "uint8"):
            x = sl.array(a, dtype=dtype)
            for f in (operator.truediv, operator.add, operator.mul, operator.sub, operator.pow):
                for y in (2, 2.5, 0.5):
                    for mine, theirs in ((f(x, y), f(a, y)), (f(y, x), f(y, a))):
                        whole = isinstance(y, int) and f is not operator.truediv
                        self.assertEqual(mine.dtype, np.dtype(dtype) if whole else np.float32, (f, y))
                        if dtype != "uint8" or theirs.min() >= 0:  # those hold nothing below 0
                            np.testing.assert_allclose(mine.numpy(), theirs, rtol=1e-6)
            np.testing.assert_allclose((x / x).numpy(), 1)
        with self.assertRaisesRegex(TypeError, "/= gives fractions"):
            x /= 2
        with self.assertRaisesRegex(TypeError, "add_scalar"):  # too large: the engine's own error
            sl.array(a) + 3_000_000_000

    def test_beside_tensors(self):
        x = sl.array([[1.0, -2], [3, -4]])
        self.assertEqual(sl.where(x > 0, x, 0).tolist(), [[1, 0], [3, 0]])
        self.assertEqual(sl.where(x > 0, 1.5, x).tolist(), [[1.5, -2], [1.5, -4]])
        self.assertEqual(sl.where(x > 0, 1, 0).tolist(), [[1, 0], [1, 0]])
        self.assertEqual(sl.where(x > 0, sl.array([[1, 2], [3, 4]]), 0).dtype, np.int32)
        self.assertEqual((sl.maximum(x, 2).tolist(), sl.minimum(0, x).tolist()), ([[2, 2], [3, 2]], [[0, -2], [0, -4]]))
        self.assertRaisesRegex(TypeError, "where: b is str", lambda: sl.where(x > 0, x, "0"))
        x.attach_grad()
        with sl.record():
            y = sl.where(x > 0, x * x, 0.0).sum()
        y.backward()
        self.assertEqual(x.grad.tolist(), [[2, 0], [6, 0]])

    def test_axis(self):
        x = sl.array([[1.0, 2], [3, 4]])
        self.assertEqual((sl.sum(x, axis=1).tolist(), x.max(axis=(0, 1)).item(), x.mean(axis=-1, keepdims=True).tolist()), ([3, 7], 4, [[1.5], [3.5]]))
        self.assertEqual((x.var(axis=0).tolist(), x.std(ddof=1).item()), ([1, 1], sl.std(x, ddof=1).item()))


class Copies(unittest.TestCase):
    def test_copies(self):
        for dtype in ("float32", "float64", "bfloat16", "float16", "int32", "int64", "uint8", "bool"):
            x = sl.array([[1, 0], [3, 1]]).astype(dtype)
            for other in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
                self.assertEqual((other.dtype, other.tolist()), (x.dtype, x.tolist()))
            other.__setitem__(slice(None), 0)
            self.assertEqual(x.astype("int32").tolist(), [[1, 0], [1 if dtype == "bool" else 3, 1]])

    def test_format(self):
        self.assertEqual(f"{sl.array(2.5):.2f} {sl.array([1, 2])}", "2.50 " + str(sl.array([1, 2])))

    def test_backwards(self):
        a = np.arange(24).reshape(4, 6)
        x = sl.array(a)
        for key in (np.s_[::-1], np.s_[3:0:-2], np.s_[:, ::-2], np.s_[1, 4:1:-1], np.s_[-2::-1, ::-1], np.s_[0:3:-1], np.s_[::-7], np.s_[..., None, ::-3]):
            self.assertEqual((x[key].shape, x[key].tolist()), (a[key].shape, a[key].tolist()), key)
        y = sl.array(a.astype("float32")).attach_grad()
        with sl.record():
            z = (y[::-2] * sl.array([[1.0], [2]])).sum()
        z.backward()
        self.assertEqual(y.grad[:, 0].tolist(), [0, 2, 0, 1])


if __name__ == "__main__":
    unittest.main()
