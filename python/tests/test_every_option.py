"""Every option that is a number, of all functions, layers, optimisers, schedules and data sets: 0, a negative number, NaN, the
largest and text have an effect or are refused.  EVERY_OPTION=1 lists which."""
import inspect
import math
import os
import tempfile
import unittest

import numpy as np
import starling as sl
from starling import _ops, data, init, nn
from starling._defaults import UNSET_INT


def wave(*shape, dtype="float64"):
    return sl.array(np.sin(np.arange(1, 1 + math.prod(shape), dtype=dtype).reshape(shape)))


x, square, image, row = wave(3, 4), wave(2, 3, 4), wave(1, 4, 6, 6), wave(1, 4, 36)
places = sl.array([[0, 2, 1, 0], [2, 1, 0, 0], [1, 1, 2, 2]], "int32")


def updated(name, states, given):
    update, w, s = getattr(_ops, name), wave(3), {n: [sl.full((3,), 0.3, dtype="float64")] for n in states}
    update([w], [wave(3) * 3 + 1], **s, **{"lr": 0.1, **({"step": 2} if name == "adam_update" else {"momentum": 0.5}), **given})
    return w


def normalised(given):
    mean, var = sl.zeros(4, dtype="float64"), sl.ones(4, dtype="float64")
    with sl.record():
        y = _ops.batch_norm(x * 1e-3, sl.ones(4, dtype="float64"), sl.zeros(4, dtype="float64"), mean, var, **given)
    return sl.concat([y.reshape(-1), mean, var], 0)


def attended(given):
    q, keys, values = wave(1, 1, 3, 4), sl.zeros((1, 1, 8, 4), dtype="float64"), sl.zeros((1, 1, 8, 4), dtype="float64")
    return _ops.cached_attention(q, q * 2, q * 3, keys, values, sl.array(0, "int32"), **given)


def drawn(initialiser):
    sl.seed(4)
    net = nn.Dense(3, in_units=4)
    net.initialize(initialiser)
    return net.find("weight").data()


def through(layer, x, *also):
    sl.seed(4)
    layer.initialize(init.normal(0.5), dtype="float64")
    sl.seed(5)
    with sl.record():
        first = layer(x, *also)
    second = layer(x, *also)
    return sl.concat([first.reshape(-1), second.reshape(-1)], 0)


def trained(kind, given):
    net = nn.Dense(1, in_units=3)
    net.initialize(init.constant(0.5), dtype="float64")
    trainer = sl.Trainer(net, kind, **{"lr": 0.1, **given})
    for _ in range(3):
        with sl.record():
            loss = sl.square(net(wave(2, 3)))
        loss.backward()
        trainer.step(2)
    if given.get("average") is not None:
        trainer.use_averages()
    return sl.concat([p.data().reshape(-1) for p in net.params()], 0)


def scheduled(kind, given):
    needed = {"steps": {"every": 2}, "cosine": {"total": 5}, "polynomial": {"total": 5}, "linear": {"total": 5}}
    return trained("sgd", {"schedule": sl.Schedule(kind, **{**needed.get(kind, {}), **given})})


def sample(samples, n=0):
    part = samples[n]
    return np.concatenate([[len(samples), len(part)], *(np.asarray(p, "float64").ravel() for p in (part if isinstance(part, tuple) else (part,)))])


def loaded(given):
    samples = data.arrays(np.arange(12, dtype="f").reshape(6, 2), np.arange(6))
    return np.concatenate([np.asarray(b.tolist(), "float64").ravel() for x, y in data.Loader(samples, **{"batch_size": 2, **given}) for b in (x, y)])


def changed(transform):
    pictures = data.arrays(np.sin(np.arange(3 * 64, dtype="f")).reshape(1, 3, 8, 8)).transform(transform)
    return np.concatenate([np.asarray(b.tolist(), "float64").ravel() for _ in range(6) for b in data.Loader(pictures, 1, seed=3)])


folder = tempfile.TemporaryDirectory()
table, tokens = os.path.join(folder.name, "a.csv"), os.path.join(folder.name, "tokens")
with open(table, "w") as out:
    out.write("1,2,3\n4,5,6\n7,8,9\n")
np.arange(1, 25, dtype="uint16").tofile(tokens)
np.save(os.path.join(folder.name, "x.npy"), np.ones((3, 2)))
np.save(os.path.join(folder.name, "y.npy"), np.arange(3))

one = sl.ones(4, dtype="float64")
kernel, row_kernel = wave(4, 2, 3, 3), wave(4, 2, 3)
windows = {"kernel": 2}

# What each makes of options; the others of its module have no option that is a number.
FUNCTIONS = {
    "adam_update": lambda o: updated("adam_update", ("means", "vars"), o), "sgd_update": lambda o: updated("sgd_update", ("momenta",), o),
    "rmsprop_update": lambda o: updated("rmsprop_update", ("squares", "momenta"), o), "argmax": lambda o: _ops.argmax(x, **o), "argsort": lambda o: _ops.argsort(x, descending=False, **o),
    "batch_norm": normalised, "cached_attention": attended, "concat": lambda o: _ops.concat([x, x * 2], **o),
    "conv1d": lambda o: _ops.conv1d(row, row_kernel, **{"groups": 2, **o}), "conv2d": lambda o: _ops.conv2d(image, kernel, **{"groups": 2, **o}),
    "conv_transpose2d": lambda o: _ops.conv_transpose2d(image, kernel, **{"stride": 2, **o}), "cosine_similarity": lambda o: _ops.cosine_similarity(x, x * x, **o),
    "cross_entropy": lambda o: _ops.cross_entropy(x, sl.array([0, 3, 1], "int32"), **({"ignore": True} if "ignore_index" in o else {}), **o),
    "cumsum": lambda o: _ops.cumsum(x, **o), "group_norm": lambda o: _ops.group_norm(image * 1e-3, 2, **o), "huber_loss": lambda o: _ops.huber_loss(x, x * 5, **o),
    "instance_norm": lambda o: _ops.instance_norm(image * 1e-3, **o), "layer_norm": lambda o: _ops.layer_norm(x * 1e-3, one, one, **o),
    "log_softmax": lambda o: _ops.log_softmax(x, **o), "pad": lambda o: _ops.pad(x, before=1, after=2, **o), "pool2d": lambda o: _ops.pool2d(image, **{**windows, **o}),
    "repeat": lambda o: _ops.repeat(x, times=2, **o), "rms_norm": lambda o: _ops.rms_norm(x * 1e-3, **o),
    "scaled_dot_product_attention": lambda o: _ops.scaled_dot_product_attention(x, x, x, **o), "scatter_add": lambda o: _ops.scatter_add(x, places, x, **o),
    "slice": lambda o: _ops.slice(x, begin=0, end=2, step=1, **o), "softmax": lambda o: _ops.softmax(x, **o), "sort": lambda o: _ops.sort(x, descending=False, **o),
    "stack": lambda o: _ops.stack([x, x * 2], **o), "std": lambda o: _ops.std(x, **o), "variance": lambda o: _ops.variance(x, **o),
    "take_along": lambda o: _ops.take_along(x, places, **o), "tile": lambda o: _ops.tile(x, times=2, **o),
}  # fmt: skip
LAYERS = {
    "AvgPool2d": lambda o: through(nn.AvgPool2d(2, **o), image), "MaxPool2d": lambda o: through(nn.MaxPool2d(2, **o), image),
    "BatchNorm": lambda o: through(nn.BatchNorm(**o), x * 1e-3), "Conv2d": lambda o: through(nn.Conv2d(4, **{"kernel": 2, **o}), image),
    "Dense": lambda o: through(nn.Dense(3, **o), x), "Dropout": lambda o: through(nn.Dropout(**{"p": 0.5, **o}), x), "LayerNorm": lambda o: through(nn.LayerNorm(**o), x * 1e-3),
    **{n: (lambda o, n=n: through(getattr(nn, n)(3, **({"layers": 2} if "dropout" in o else {}), **o), square)) for n in ("Rnn", "Lstm", "Gru")},
}  # fmt: skip
DATA = {
    "Loader": loaded, "arrays": lambda o: sample(data.arrays(np.ones((3, 2), "f"), np.arange(3), **o)), "colour_jitter": lambda o: changed(data.colour_jitter(**o)),
    "csv": lambda o: sample(data.csv(table, **o), 1), "npy": lambda o: sample(data.npy(*(os.path.join(folder.name, n) for n in ("x.npy", "y.npy")), **o)),
    "random_crop": lambda o: changed(data.random_crop(4, 4, **o)), "random_flip": lambda o: changed(data.random_flip(**o)),
    "random_resized_crop": lambda o: changed(data.random_resized_crop(4, 4, **o)), "tokens": lambda o: sample(data.tokens(tokens, 4, **o), 1),
    "images": None,  # no file of images without a library that writes them: tests/test_options.c has these
}  # fmt: skip
INITIALISERS = {n: (lambda o, n=n: drawn(getattr(init, n)(**o))) for n in ("he", "normal", "uniform", "xavier", "constant")}

# Sizes that come from the first input where they are 0, and options that are told from their defaults by other means.
FROM_INPUT = {"in_units", "in_channels"}
# The largest is no limit.
LIMITS = {"clip_norm", "clip_value", "limit"}
# Known and documented: (function, option, value) has the default's effect.
SAME = {
    ("Loader", "workers", "largest"), ("Loader", "prefetch", "largest"), ("Loader", "limit", "largest"),  # how, and at most how many
    ("cross_entropy", "ignore_index", "0"), ("cross_entropy", "ignore_index", "-1"), ("cross_entropy", "ignore_index", "2**31"),  # labels that are ignored
    ("Schedule cosine", "warmup", "0"),
}  # fmt: skip


def is_number(p):
    return isinstance(p.default, (int, float)) and not isinstance(p.default, bool) or (p.default is None and p.name in ("scale", "stride", "clip_norm", "clip_value", "limit", "prefetch", "label"))


def options_of(function):
    function = function.__init__ if isinstance(function, type) else function
    return [p for p in inspect.signature(function).parameters.values() if is_number(p) and p.name not in FROM_INPUT]


class Given:
    """An option's default, for those that signatures do not list."""

    def __init__(self, name, default):
        self.name, self.default = name, default


def everything():
    for module, calls in ((_ops, FUNCTIONS), (nn, LAYERS), (data, DATA), (init, INITIALISERS)):
        for name, call in calls.items():
            for p in options_of(getattr(module, name)) if call else ():
                yield name, p, call
    yield "Dropout", Given("p", 0.5), LAYERS["Dropout"]
    yield "constant", Given("value", 1.0), lambda o: drawn(init.constant(**{"value": 1, **o}))
    for kind, names in (("sgd", "lr momentum weight_decay clip_norm clip_value average"), ("adam", "lr beta1 beta2 eps weight_decay"), ("adamw", "beta1 beta2 eps weight_decay"),
                        ("rmsprop", "lr alpha eps momentum"), ("nadam", "beta1 beta2 eps momentum_decay"), ("lion", "lr beta1 beta2 weight_decay"), ("lamb", "lr beta1 beta2 eps weight_decay")):  # fmt: skip
        for name in names.split():
            yield f"Trainer {kind}", Given(name, None), lambda o, kind=kind: trained(kind, o)
    for kind, names in (("steps", "every factor"), ("cosine", "total floor warmup"), ("polynomial", "total power floor")):
        for name in names.split():
            yield f"Schedule {kind}", Given(name, None), lambda o, kind=kind: scheduled(kind, o)


REFUSED = (sl.Error, TypeError, ValueError, OverflowError, AttributeError)
VALUES = {"0": 0, "-1": -1, "NaN": math.nan, "largest": 1e300, "2**31": 2**31, "2**63": 2**63, "text": "1"}


def result(call, given):
    """As an array of NumPy; None: refused."""
    try:
        y = call(given)
        return np.array(y.tolist() if isinstance(y, sl.Tensor) else y, "float64")
    except REFUSED as error:
        return str(error) or type(error).__name__


def is_same(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=0, equal_nan=True)


class EveryOption(unittest.TestCase):
    def test_all_are_here(self):
        for module, calls in ((_ops, FUNCTIONS), (nn, LAYERS), (data, DATA), (init, INITIALISERS)):
            for name in getattr(module, "__all__", dir(module)):
                f = getattr(module, name)
                if not name.startswith("_") and callable(f) and getattr(f, "__module__", module.__name__) == module.__name__ and inspect.signature(f) and options_of(f):
                    self.assertIn(name, calls, f"{module.__name__}.{name}: {[p.name for p in options_of(f)]}")

    def check(self, function, p, call, what, value, otherwise):
        got = result(call, {p.name: value})
        line = f"{function}({p.name}={what})"
        if os.environ.get("EVERY_OPTION"):
            print(f"{line}: {'refused: ' + got if isinstance(got, str) else 'the same' if is_same(got, otherwise) else 'an effect'}")
        if isinstance(got, str):
            return
        self.assertNotEqual(what, "text", line)
        if what == "NaN":
            self.assertTrue(np.isnan(got).any(), line)
        elif value != p.default and (function, p.name, what) not in SAME and not (p.name in LIMITS and value > 1):
            near = result(call, {p.name: 1e-200}) if what == "0" else ""
            self.assertTrue(not is_same(got, otherwise) or (not isinstance(near, str) and is_same(got, near)), f"{line} has no effect")

    def test_values(self):
        count = 0
        for function, p, call in everything():
            otherwise = result(call, {})
            if isinstance(otherwise, str):
                with self.subTest(function):
                    self.fail(f"{function}: {otherwise}")
                continue
            for what, value in VALUES.items():
                with self.subTest(f"{function}({p.name}={what})"):
                    self.check(function, p, call, what, value, otherwise)
            count += 1
        self.assertGreater(count, 100)
        self.assertEqual(UNSET_INT, -(2**31))


if __name__ == "__main__":
    unittest.main()
