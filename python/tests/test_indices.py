"""Indices: random expressions, read and assigned, against NumPy's.

    STARLING_EXPRESSIONS=5000 STARLING_SEED=8 python -m unittest test_indices    # more than the sample, and others
"""
import os
import random
import unittest
import warnings

import numpy as np
import starling as sl

COUNT, SEED = int(os.environ.get("STARLING_EXPRESSIONS", "300")), int(os.environ.get("STARLING_SEED", "5"))


class Named:
    """An index as NumPy has it, and the same for tensors."""

    def __init__(self, theirs, mine=None):
        self.theirs, self.mine = theirs, theirs if mine is None else mine


def one(rng, n):
    """A random index of an axis of n elements, now and then one that is outside."""
    def at():
        return rng.randrange(-n - (rng.random() < 0.03), n + (rng.random() < 0.03))

    def numbers():
        return [at() for _ in range(rng.randrange(1, 4))]

    def truths():
        return [rng.random() < 0.5 for _ in range(n)]

    kind = rng.randrange(14)
    if kind < 6:
        return Named(at() if kind < 3 else slice(rng.choice([None, at()]), rng.choice([None, at(), n + 3]), rng.choice([None, 1, 2, -1, -2, 3])))
    if kind == 6:
        places = numbers()
        return Named(np.array(places), sl.array(places, "int32"))
    return Named((lambda: numbers(), lambda: np.array(numbers()), lambda: np.array([numbers()[:1] * 2] * 2), lambda: rng.choice([None, Ellipsis]),
                  lambda: rng.choice([True, False, np.True_]), truths, lambda: np.array(truths()))[kind - 7]())  # fmt: skip


def expression(rng):
    shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(0, 4)))
    if shape and rng.random() < 0.1:
        return shape, Named(np.array([rng.random() < 0.5 for _ in range(np.prod(shape))]).reshape(shape))
    parts = [one(rng, shape[i] if i < len(shape) else 2) for i in range(rng.randrange(1, min(len(shape) + 2, 5)))]
    if len(parts) == 1 and rng.random() < 0.7:
        return shape, parts[0]
    return shape, Named(tuple(p.theirs for p in parts), tuple(p.mine for p in parts))


# What NumPy refuses; before 2.0 an index that is outside, of a part without elements, was a warning only.
OUTSIDE = IndexError, DeprecationWarning


class Indices(unittest.TestCase):
    def setUp(self):
        caught = warnings.catch_warnings()
        caught.__enter__()
        self.addCleanup(caught.__exit__, None, None, None)
        warnings.filterwarnings("error", "Out of bound index found", DeprecationWarning)

    def test_read(self):
        rng, same = random.Random(SEED), 0
        for i in range(COUNT):
            shape, key = expression(rng)
            a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            what = f"{i}: {shape}[{key.theirs}]"
            try:
                wanted = a[key.theirs]
            except OUTSIDE:
                with self.assertRaises((*OUTSIDE, sl.Error), msg=what):
                    sl.array(a)[key.mine].wait()
                continue
            try:
                got = sl.array(a)[key.mine].numpy()
            except IndexError as error:
                self.assertIn("side by side", str(error), what)  # tensors among others: the only ones refused
                continue
            same += 1
            self.assertEqual(got.shape, wanted.shape, what)
            np.testing.assert_array_equal(got, wanted, what)
        self.assertGreater(same, COUNT / 2)

    def test_assigned(self):
        rng = random.Random(SEED + 1)
        for i in range(COUNT):
            shape, key = expression(rng)
            a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            t, what = sl.array(a), f"{i}: {shape}[{key.theirs}] ="
            try:
                part = a[key.theirs]
            except OUTSIDE:
                self.assertRaises(OUTSIDE, t.__setitem__, key.mine, 7)
                continue
            value = rng.choice([7, np.arange(part.size, dtype=np.float32).reshape(part.shape) + 100, np.float32(3)])
            try:
                a[key.theirs] = value
            except ValueError:
                self.assertRaises(ValueError, t.__setitem__, key.mine, value)
                continue
            t[key.mine] = value
            np.testing.assert_array_equal(t.numpy(copy=True), a, what)

    def test_recorded(self):
        """The same with gradients: those of the places that were taken, and of what stayed."""
        rng, seen = random.Random(SEED + 2), 0
        for _ in range(COUNT // 3):
            shape, key = expression(rng)
            a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            try:
                part, taken = a[key.theirs], np.zeros(shape)
                np.add.at(taken, key.theirs, 1)
            except OUTSIDE:
                continue
            t = sl.array(a).attach_grad()
            with sl.record():
                try:
                    y = t[key.mine]
                except IndexError:
                    continue
                y = y.sum() if part.size else y
            if part.size:
                y.backward()
                np.testing.assert_array_equal(t.grad.numpy(), taken, str((shape, key.theirs)))
                seen += 1
        self.assertGreater(seen, COUNT / 10)

    def test_named(self):
        a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        t = sl.array(a)
        for key in (True, False, (0, slice(None), [0, 1]), (slice(None), 0, [0, 1]), ([0, 1], slice(None), [0, 1]), ((0, 1),), [], ([], 0), np.array(1),
                    (np.array(0), None, [[1, 2]]), [[True, False, True], [False] * 3], (Ellipsis, [True, False, False, True])):  # fmt: skip
            wanted = a[key]
            self.assertEqual(t[key].shape, wanted.shape, key)
            np.testing.assert_array_equal(t[key].numpy(), wanted, str(key))
        for wrong in ([0.5], np.array([0.0]), "a", 1.0, [True, False, True], np.array([[True]]), (0, 0, 0, 0), [2], [[3, 0]], (0, [3]), None.__class__):
            self.assertRaises(IndexError if not isinstance(wrong, (str, float, type)) else (IndexError, TypeError), t.__getitem__, wrong)
        places = sl.array([-1, 0, -2])
        np.testing.assert_array_equal(t[:, places].numpy(), a[:, [-1, 0, -2]])
        np.testing.assert_array_equal(t[:, places.astype("int64"), sl.array([0, 1, 1], "uint8")].numpy(), a[:, [-1, 0, -2], [0, 1, 1]])
        np.testing.assert_array_equal(t[:, sl.array([2, 0], "uint8")].numpy(), a[:, [2, 0]])
        for rows, columns in (([0, 1], [3, 0]), ([0, 1], [-4, 0]), ([-3, 0], [0, 0])):  # outside of one axis, inside of all
            with self.assertRaises(sl.Error):
                t[sl.array(rows), sl.array(columns)].wait()
        sl._core.lib.sl_error_clear()


if __name__ == "__main__":
    unittest.main()
