"""NumPy's functions and operators on tensors: generated expressions, whose results equal NumPy's, or are refused.

    STARLING_EXPRESSIONS=5000 python -m unittest test_numpy    # more than the sample
"""
import os
import random
import unittest

import numpy as np
import starling as sl

COUNT = int(os.environ.get("STARLING_EXPRESSIONS", "400"))

ONE = "exp log1p sqrt square sin cos tanh arctan sinh absolute negative sign floor ceil rint isfinite isnan cbrt exp2 log2 degrees trunc".split()
TWO = "add subtract multiply divide maximum minimum power floor_divide remainder less less_equal greater equal not_equal hypot arctan2 fmod copysign".split()
OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "<": lambda a, b: a < b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
REDUCE = "sum mean max min amax prod std var median argmax argmin any all cumsum ptp".split()
SHAPED = {
    "transpose": lambda a: np.transpose(a), "reshape": lambda a: np.reshape(a, (-1,)), "concatenate": lambda a: np.concatenate([a, a]),
    "stack": lambda a: np.stack([a, a]), "where": lambda a: np.where(a > 0, a, -a), "clip": lambda a: np.clip(a, -1, 1),
    "sort": lambda a: np.sort(a), "expand_dims": lambda a: np.expand_dims(a, 0), "flip": lambda a: np.flip(a),
    "roll": lambda a: np.roll(a, 1), "tile": lambda a: np.tile(a, 2), "diff": lambda a: np.diff(a), "ravel": lambda a: np.ravel(a),
    "broadcast_to": lambda a: np.broadcast_to(a, (2, *a.shape)), "squeeze": lambda a: np.squeeze(a), "shape": lambda a: np.shape(a),
    "isclose": lambda a: np.isclose(a, a), "nonzero": lambda a: np.nonzero(a), "unique": lambda a: np.unique(a),
}  # fmt: skip
TYPES = ("float32", "float32", "float64", "int32", "uint8", "bool")


def values(rng, shape, dtype):
    size = int(np.prod(shape))
    if dtype == "bool":
        numbers = [rng.random() < 0.5 for _ in range(size)]
    elif dtype == "uint8":
        numbers = [rng.randrange(0, 6) for _ in range(size)]
    elif dtype == "int32":
        numbers = [rng.randrange(-6, 7) for _ in range(size)]
    else:
        numbers = [rng.choice([rng.uniform(-3, 3), rng.randrange(-3, 4)]) for _ in range(size)]
    return np.array(numbers, dtype).reshape(shape)


def operand(rng, shape, dtype):
    """(NumPy's, ours): an array, a tensor of the same values, or a number."""
    kind = rng.randrange(6)
    if kind == 0:
        number = rng.choice([2, -1, 0.5, 3])
        return (number, number) if dtype not in ("uint8", "bool") or number in (2, 3) else (2, 2)
    cut = rng.randrange(len(shape) + 1)
    a = values(rng, tuple(n if rng.random() < 0.8 else 1 for n in shape[cut:]), dtype)
    return a, (sl.array(a) if kind < 5 else a)


def expression(rng):
    """(its text, a function of NumPy's array or the tensor, for one or the other)."""
    shape = tuple(rng.randrange(1, 4) for _ in range(rng.randrange(0, 4)))
    dtype = rng.choice(TYPES)
    a = values(rng, shape, dtype)
    t = sl.array(a)
    kind = rng.randrange(5)
    if kind == 0:
        name = rng.choice(ONE)
        return f"{name}({dtype} {shape})", lambda ours: getattr(np, name)(t if ours else a)
    if kind in (1, 2):
        other, mine = operand(rng, shape, dtype)
        swap = rng.random() < 0.4
        if kind == 1:
            name = rng.choice(TWO)
            function = getattr(np, name)
        else:
            name = rng.choice(list(OPERATORS))
            function = OPERATORS[name]
        first = lambda ours: (mine, t) if ours else (other, a)  # noqa: E731
        return f"{dtype} {shape} {name} {np.asarray(other)!r} swapped {swap}", lambda ours: function(*(first(ours) if swap else first(ours)[::-1]))
    if kind == 3:
        name, axes = rng.choice(REDUCE), [None, *range(-len(shape), len(shape))]
        options = {"axis": rng.choice(axes)} if rng.random() < 0.7 else {}
        if rng.random() < 0.3 and name not in ("argmax", "argmin", "cumsum"):
            options["keepdims"] = True
        return f"{name}({dtype} {shape}, {options})", lambda ours: getattr(np, name)(t if ours else a, **options)
    name = rng.choice(list(SHAPED))
    return f"{name}({dtype} {shape})", lambda ours: SHAPED[name](t if ours else a)


def differs(text):
    """Whether doc/python.md names a difference: integers saturate, bools count, negative powers in a tensor are not looked at."""
    kind = text.split(" ")[0]
    if kind == "uint8":
        return any(word in text for word in (" - ", "subtract", "negative", "power"))
    if kind in ("bool", "int32"):
        return any(word in text for word in ((" + ", " add ", " - ", " subtract ", " power ") if kind == "bool" else (" power ",)))
    return "uint8" in text and "negative" in text


class Expressions(unittest.TestCase):
    def test_generated(self):
        rng, same, refused = random.Random(11), 0, 0
        for i in range(COUNT):
            text, function = expression(rng)
            what = f"{i}: {text}"
            with np.errstate(all="ignore"):
                try:
                    wanted = function(False)
                except Exception as error:  # what NumPy refuses is refused
                    if differs(text):
                        continue
                    with self.assertRaises((type(error), TypeError, ValueError, IndexError, NotImplementedError, sl.Error), msg=what):
                        np.asarray(function(True))
                    continue
                try:
                    got = function(True)
                    got = tuple(map(np.asarray, got)) if isinstance(got, tuple) else np.asarray(got)
                except (TypeError, ValueError, NotImplementedError) as error:
                    self.assertTrue(str(error), what)
                    refused += 1
                    continue
            if differs(text):
                self.assertEqual(np.shape(got), np.shape(wanted), what)
                continue
            same += 1
            for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, wanted)), strict=True):
                self.assertEqual(np.shape(g), np.shape(w), what)
                self.assertEqual(np.asarray(g).dtype.kind in "biu", np.asarray(w).dtype.kind in "biu", f"{what}: {np.asarray(g).dtype}")
                np.testing.assert_allclose(np.asarray(g, float), np.asarray(w, float), rtol=3e-6, atol=3e-6, err_msg=what)
        self.assertGreater(same, COUNT * 0.6)
        self.assertLess(refused, COUNT * 0.15)


if __name__ == "__main__":
    unittest.main()
