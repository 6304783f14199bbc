"""Pairs of options of all functions, layers, optimisers, schedules and data sets: an option that is given has an effect, alone
or beside the others that are given, or is refused.  The options come from signatures.  OPTION_PAIRS=1 lists the results."""
import inspect
import itertools
import os
import unittest

import numpy as np
import starling as sl
import test_every_option as every
from starling import _ops, data, init, nn

one = sl.ones(4, dtype="float64")

# A value of each option by its name, other than its default; those of a function stand before.
VALUES = {
    "activation": "relu", "align_corners": True, "alpha": 0.5, "area": (0.3, 0.5), "average": 0.5, "axes": 0, "axis": 0, "backoff": 0.25,
    "batch_first": True, "batch_size": 3, "beta1": 0.5, "beta2": 0.5, "bias_init": init.constant(2), "bidirectional": True, "bilinear": True, "brightness": 0.5,
    "bytes": 4, "causal": True, "ceil": True, "centered": True, "channels": 1, "classes": 5, "clip_norm": 0.125, "clip_value": 0.0625, "contrast": 0.5, "copy": True, "ddof": 1,
    "decoupled": True, "delta": 0.5, "descending": True, "dilation": 2, "dropout": 0.5, "drop_last": True, "bound": 0.5, "sigma": 0.5, "gain": 0.5, "eps": 0.5, "every": 1, "exclude_pad": True, "factor": 0.5, "groups": 2,
    "fan": "out", "final_lr": 0.05, "floor": 0.05, "gaussian": True, "global_": True, "growth": 4.0, "header": True, "ignore": True,
    "ignore_index": 3, "init": init.constant(0.5), "keepdims": True, "kernel": 3, "label": 0, "label_smoothing": 0.25, "last": "discard", "layers": 2, "lengths": True,
    "limit": 4, "lr": 0.5, "lr_scale": 0.5, "magnitude": 1.5, "mask": sl.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], "bool"), "mean": 0.5, "momentum": 0.25, "momentum_decay": 0.5, "nesterov": True,
    "no_bias": True, "no_center": True, "no_flatten": True, "no_scale": True, "output_pad": 1, "p": 0.25, "pad": 1, "power": 3, "prefetch": 0, "rank": 1, "ranks": 2,
    "ratio": (1.0, 1.0), "reflect": True, "regression": True, "relu": True, "rescale": 0.1, "saturation": 0.5, "scale": 0.25, "seed": 7, "separator": ";",
    "shuffle": True, "skipped": 1, "state": None, "std": 0.5, "stride": 3, "sum": True, "ta": True, "tb": True, "times": 3, "total": 4, "tw": True, "type": "avg", "use_global_stats": True, "velocity": True, "value": 2.5, "vertical": True,
    "warmup": 2, "weight_decay": 0.25, "weight_init": init.constant(0.125), "weights": sl.array([1.0, 2.0, 0.5, 0.25], "float64"), "workers": 1, "missing": True, "step": 3,
}  # fmt: skip

OF_FUNCTION = {
    ("he", "gaussian"): False, ("Loader", "shuffle"): False, ("Loader", "limit"): 5, ("random_flip", "p"): 1.0,
    **{(n, "stride"): 4 for n in ("pool2d", "MaxPool2d", "AvgPool2d")}, **{(n, "kernel"): 2 for n in ("pool2d", "MaxPool2d", "AvgPool2d")},
    **{(n, o): v for n in ("sgd_update", "adam_update", "rmsprop_update") for o, v in (("rescale", 0.75), ("clip_norm", 3.0), ("clip_value", 2.0))},
}  # fmt: skip
odd = every.wave(1, 4, 7, 9)
square = every.wave(4, 4)


def normalised(given):
    """The results and parameters of a batch normalisation after a step of training."""
    layer, x = nn.BatchNorm(**given), every.x * 1e-3
    layer.initialize(init.constant(1), dtype="float64")
    trainer = sl.Trainer(layer, "sgd", lr=0.5)
    with sl.record():
        y = layer(x)
        loss = sl.sum(y * sl.sin(every.x * 3))
    loss.backward()
    trainer.step(1)
    return np.concatenate([np.ravel(np.asarray(t.tolist(), "f8")) for t in (y, layer(x), *(p.data() for p in layer.params()))])


def through(layer, x):
    """The results, which depend on a bias's first value, and how many parameters there are."""
    return np.concatenate([np.asarray(every.through(layer, x).tolist(), "f8"), [len(layer.params())]])


def rates(kind, given):
    """The learning rates of eight steps."""
    needed = {"steps": {"every": 2}, "cosine": {"total": 7}, "polynomial": {"total": 7}}
    net = nn.Dense(1, in_units=3)
    net.initialize(init.constant(0.5), dtype="float64")
    schedule = sl.Schedule(kind, **{**needed.get(kind, {}), **{k if k != "floor" else "final_lr": v for k, v in given.items()}})
    trainer = sl.Trainer(net, "sgd", lr=0.1, schedule=schedule)
    seen = []
    for _ in range(8):
        with sl.record():
            loss = sl.square(net(every.wave(2, 3)))
        loss.backward()
        seen.append(trainer.lr)
        trainer.step(2)
    return np.array(seen)


def flipped(given):
    """Many pictures, some of which are flipped."""
    pictures = data.arrays(np.sin(np.arange(24 * 64, dtype="f")).reshape(8, 3, 8, 8)).transform(data.random_flip(**given))
    return np.concatenate([np.asarray(b.tolist(), "float64").ravel() for b in data.Loader(pictures, 8, seed=3)])


def of_table(given):
    """The first sample of a table, which has an empty field if such are allowed."""
    path = os.path.join(every.folder.name, "given.csv")
    with open(path, "w") as out:
        first, second = ("", "") if given.get("missing") else (2.5, 7)
        out.write(f"0,{first},1\n2,{second},3\n5,1,0\n")
    x, y = data.csv(path, **given)[0]
    return np.concatenate([np.ravel(np.asarray(x, "f8")), np.ravel(np.asarray(y, "f8")), [np.asarray(y).dtype.kind == "f"]])


FUNCTIONS = {
    **{n: f for n, f in every.FUNCTIONS.items() if f},
    "pool2d": lambda o: _ops.pool2d(odd, **({} if "kernel" in o or "global_" in o else {"kernel": 3}), **o),
    "conv2d": lambda o: _ops.conv2d(every.image, every.kernel, groups=2, **o), "conv1d": lambda o: _ops.conv1d(every.row, every.row_kernel, groups=2, **o),
    "conv_transpose2d": lambda o: _ops.conv_transpose2d(every.image, every.wave(4, 2, 3, 3), **{"stride": 2, **o}),
    "cross_entropy": lambda o: _ops.cross_entropy(every.x, sl.array([0, 3, 1], "int32"), **o),
    "resize2d": lambda o: _ops.resize2d(every.image, 4, 9, **o), "dot": lambda o: _ops.dot(square, square * square, **o), "matmul": lambda o: _ops.matmul(square, square * square, **o),
    "linear": lambda o: _ops.linear(square, square * square, **o), "sum": lambda o: _ops.sum(every.square, **o), "mean": lambda o: _ops.mean(every.square, **o),
    "max": lambda o: _ops.max(every.square, **o), "min": lambda o: _ops.min(every.square, **o), "norm": lambda o: _ops.norm(every.square, **o), "prod": lambda o: _ops.prod(every.square, **o),
    "any": lambda o: _ops.any(every.square, **o), "all": lambda o: _ops.all(every.square, **o), "transpose": lambda o: _ops.transpose(every.square, **o),
    "pad": lambda o: _ops.pad(every.x, axis=1, before=1, after=2, **o),
}  # fmt: skip
LAYERS = {
    **every.LAYERS, "BatchNorm": normalised, "Dense": lambda o: through(nn.Dense(3, **o), every.square), "Conv2d": lambda o: through(nn.Conv2d(4, **{"kernel": 2, **o}), every.wave(1, 4, 7, 7)),
    **{n: (lambda o, n=n: through(getattr(nn, n)(3, **o), every.square)) for n in ("Rnn", "Lstm", "Gru")},
    "MaxPool2d": lambda o: every.through(nn.MaxPool2d(3, **o), odd), "AvgPool2d": lambda o: every.through(nn.AvgPool2d(3, **o), odd),
    "MultiHeadAttention": lambda o: through(nn.MultiHeadAttention(4, 2, **o), every.square),
}  # fmt: skip
INITIALISERS = {n: every.INITIALISERS[n] for n in ("he", "xavier", "normal", "uniform")}
DATA = {
    **{n: f for n, f in every.DATA.items() if f}, "random_flip": flipped, "csv": of_table, "Loader": lambda o: every.loaded({"batch_size": 4, **o}),
    "arrays": lambda o: np.array([data.arrays(np.ones((3, 2), "f"), np.arange(3), **o).classes]),
}
TRAINERS = {k: n.split() for k, n in (("sgd", "lr momentum nesterov weight_decay clip_norm clip_value"), ("adam", "lr beta1 beta2 eps weight_decay clip_norm clip_value"),
            ("adamw", "lr beta1 beta2 eps weight_decay clip_norm clip_value"), ("rmsprop", "lr alpha eps momentum weight_decay clip_norm clip_value"),
            ("nadam", "lr beta1 beta2 eps momentum_decay weight_decay"), ("lion", "lr beta1 beta2 weight_decay"),
            ("lamb", "lr beta1 beta2 eps weight_decay clip_norm"))}  # fmt: skip
SCHEDULES = {k: n.split() for k, n in (("constant", "warmup every factor total floor power"), ("steps", "warmup every factor total floor power"),
             ("cosine", "warmup total floor every factor power"), ("polynomial", "warmup total floor power every factor"))}  # fmt: skip

# How something is done, not what; and operands.
ELSEWHERE = {"device", "dtype", "copy", "prefetch", "workers", "num_workers", "processes", "collate", "in_units", "in_channels", "synchronised", "kind"}
OPERANDS = {"b", "y", "beta", "gamma", "means", "momenta", "squares", "vars"}
# (function, option): the same alone; (function, option, other): the same beside another; why.
SAME = {
    ("pool2d", "exclude_pad", "type"): "there is no padding", ("AvgPool2d", "exclude_pad"): "there is no padding",
    ("batch_norm", "momentum", "use_global_stats"): "running statistics stay as they are: one program trains and freezes them",
    ("Loader", "seed", "shuffle"): "random transforms use it, too", ("Loader", "rank"): "it needs ranks",
    ("Trainer lion", "beta1"): "the sign of a steady gradient", ("Trainer lion", "beta2"): "the sign of a steady gradient",
    **{(n, "rescale", "clip_norm"): "the gradient has the limit's length" for n in ("sgd_update", "adam_update", "rmsprop_update")},
    ("adam_update", "decoupled"): "without weight_decay Adam and AdamW are the same",
}  # fmt: skip


def options_of(function):
    function = function.__init__ if isinstance(function, type) else function
    return [p.name for p in inspect.signature(function).parameters.values() if p.default is not inspect.Parameter.empty and p.name not in ELSEWHERE | OPERANDS]


def everything():
    for module, calls in ((_ops, FUNCTIONS), (nn, LAYERS), (data, DATA), (init, INITIALISERS)):
        for name, call in calls.items():
            yield name, options_of(getattr(module, name)), call
    for kind, names in TRAINERS.items():
        yield f"Trainer {kind}", names, lambda o, kind=kind: every.trained(kind, o)
    for kind, names in SCHEDULES.items():
        yield f"Schedule {kind}", names, lambda o, kind=kind: rates(kind, o)


class OptionPairs(unittest.TestCase):
    def check(self, function, call, a, b, results):
        """Whether b has an effect beside a, or is refused."""
        together = results((a, b))
        if isinstance(together, str) or not every.is_same(together, results((a,))):
            return
        self.assertTrue((function, b, a) in SAME, f"{function}({a}, {b}): {b} has no effect beside {a}")

    def test_pairs(self):
        count = 0
        for function, names, call in everything():
            known = {}

            def results(given):
                given = tuple(sorted(given))
                if given not in known:
                    known[given] = every.result(call, {n: OF_FUNCTION.get((function, n), VALUES[n]) for n in given})
                return known[given]

            otherwise = results(())
            with self.subTest(function):
                self.assertNotIsInstance(otherwise, str, function)
                for n in names:
                    self.assertTrue(n in VALUES, f"{function} has the option {n}, which has no value here")
            names = [n for n in names if n in VALUES]
            for n in names:
                with self.subTest(f"{function}({n})"):
                    alone = results((n,))
                    if not isinstance(alone, str) and every.is_same(alone, otherwise):
                        self.assertTrue((function, n) in SAME, f"{function}({n}) has no effect")
            for a, b in itertools.permutations(names, 2):
                with self.subTest(f"{function}({a}, {b})"):
                    if isinstance(results((a,)), str) or (function, b) in SAME:
                        continue
                    count += 1
                    if os.environ.get("OPTION_PAIRS"):
                        y = results((a, b))
                        print(f"{function}({a}, {b}): {'refused: ' + y if isinstance(y, str) else 'taken'}")
                    self.check(function, call, a, b, results)
        self.assertGreater(count, 500)


if __name__ == "__main__":
    unittest.main()
