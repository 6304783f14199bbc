"""What is not understood is refused: unknown keywords of every function and method, settings that come too late."""
import inspect
import types
import unittest

import numpy as np
import starling as sl
from starling import autograd, checkpoint, data, dist, init, nn

MODULES = (sl, autograd, checkpoint, data, dist, init, nn)
# Functions that look at their keywords themselves; Curves.add names curves by them.
OWN = {"Schedule", "Trainer", "start", "begin", "save", "Tensor", "add"}


def functions():
    """(name, function) of everything that a program can call; methods with the class."""
    for module in MODULES:
        for name in getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]:
            f = getattr(module, name)
            if isinstance(f, types.ModuleType) or not callable(f) or (isinstance(f, type) and issubclass(f, Exception)):
                continue
            yield f"{module.__name__}.{name}", f
            if isinstance(f, type):
                for method, g in inspect.getmembers(f, callable):
                    if not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", g


class Keywords(unittest.TestCase):
    def test_every_function(self):
        seen = 0
        for name, f in functions():
            parameters = inspect.signature(f).parameters.values()
            if any(p.kind is p.VAR_KEYWORD for p in parameters):
                self.assertIn(name.rpartition(".")[2], OWN, f"{name} takes all keywords")
                continue
            needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            with self.assertRaisesRegex(TypeError, "no_such", msg=name):
                f(*[None] * len(needed), no_such=1)
            seen += 1
        self.assertGreater(seen, 250)

    def test_those_that_take_names(self):
        net = nn.Dense(1, in_units=2)
        net.initialize()
        trainer = sl.Trainer(net, "sgd", lr=0.1)
        for call in (
            lambda: sl.Schedule("cosine", no_such=1), lambda: sl.Trainer(net, "sgd", no_such=1), lambda: sl.start(no_such=1),
            lambda: sl.Trainer(net, "sgd", loss_scaling={"no_such": 1}), lambda: checkpoint.save("x", trainer=trainer, no_such=1),
            lambda: checkpoint.begin("x", trainer=trainer, no_such=1), lambda: checkpoint.load("x", trainer=trainer, epoch=1),
        ):  # fmt: skip
            self.assertRaises((TypeError, KeyError), call)
        for kind, setting in (("sgd", "beta1"), ("sgd", "eps"), ("sgd", "alpha"), ("adam", "momentum"), ("rmsprop", "beta2"), ("adamw", "alpha")):
            self.assertRaisesRegex(ValueError, setting, lambda: sl.Trainer(net, kind, **{setting: 0.5}))

    def test_methods_of_objects(self):
        x = sl.ones((2, 3))
        for name in dir(x):
            if not name.startswith("_") and callable(f := getattr(x, name)):
                needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
                with self.assertRaisesRegex(TypeError, "no_such", msg=name):
                    f(*[1] * len(needed), no_such=1)


class Late(unittest.TestCase):
    """Settings are read once: to set them later is refused, where it would have no effect."""

    def setUp(self):
        self.net = nn.Dense(1, in_units=2)
        self.net.initialize()
        self.trainer = sl.Trainer(self.net, "sgd", lr=0.1, momentum=0.9)

    def test_refused(self):
        step = sl.Step(self.net, sl.l2_loss, self.trainer)
        samples = data.arrays(np.ones((4, 2), np.float32))
        made = {
            self.trainer: "momentum weight_decay schedule block clip_norm optimizer learning_rate wd batch_size",
            step: "trainer block reduction loss accumulate", samples: "classes shape x",
            data.Loader(samples, 2): "batch_size shuffle seed drop_last workers rank", data.Loader(np.ones((4, 2)), 2): "batch_size shuffle",
            sl.Cache(nn.Sequential(nn.Dense(2)), 4): "steps net", sl.Mean(): "value",
            nn.Dropout(0.5): "p", nn.Dense(3): "units activation", nn.Conv2d(3, kernel=3): "channels pad kernel",
            self.net.find("weight"): "grad_req lr_mult data shape",
        }  # fmt: skip
        for owner, names in made.items():
            for name in names.split():
                with self.assertRaises(AttributeError, msg=f"{type(owner).__name__}.{name}"):
                    setattr(owner, name, 0)

    def test_own_classes_have_more(self):
        class Mine(sl.Trainer):
            def __init__(self, net):
                super().__init__(net, "sgd", lr=0.1)
                self.best = 0

        trainer = Mine(self.net)
        trainer.best = 3
        self.assertEqual(trainer.best, 3)
        with self.assertRaises(AttributeError):
            trainer.momentum = 0.5
        self.net.tag = "a layer has room for notes"

    def steps(self, how):
        """A function that makes a step, and the parameters before and after the last one."""
        x, y = sl.array([[1.0, 2], [3, 5]]), sl.ones((2, 1))
        if how == "step":
            step = sl.Step(self.net, sl.l2_loss, self.trainer)
        elif how == "all":
            step = sl.StepAll(self.net, lambda outputs, targets: sl.l2_loss(outputs[0], targets[0]), self.trainer)

        def run():
            before = {p.name: p.data().numpy(copy=True) for p in self.net.params()}
            if how == "step":
                step(x, y)
            elif how == "all":
                step([x], [y])
            else:
                with sl.record():
                    loss = sl.l2_loss(self.net(x), y)
                loss.backward()
                self.trainer.step(2)
            return {p.name for p in self.net.params() if (p.data().numpy(copy=True) != before[p.name]).any()}

        return run

    def test_effect_after_the_first_step(self):
        """Freezing, groups and the learning rate."""
        for how in ("eager", "step", "all"):
            with self.subTest(how):
                self.setUp()
                run = self.steps(how)
                both = run()
                self.assertEqual(len(both), 2)
                self.net.freeze("weight")
                self.assertEqual({name.rpartition("_")[2] for name in run()}, {"bias"})
                self.net.unfreeze()
                self.assertEqual(run(), both)
                self.trainer.group("bias", lr_scale=1e-30)
                self.assertEqual({name.rpartition("_")[2] for name in run()}, {"weight"})
                self.trainer.lr = 1e-30
                self.assertEqual(run(), set())

    def test_attributes_of_compiled_blocks(self):
        class Scaled(sl.Block):
            def __init__(self):
                super().__init__()
                self.factor, self.seen = 2, 0

            def forward(self, x):
                self.seen = self.seen + 1
                return x * self.factor

        x, inner = sl.ones(2), Scaled()
        for outer in (inner, nn.Sequential(Scaled(), nn.Sequential(inner))):
            outer.hybridize()
            before, seen = outer(x).tolist()[0], inner.seen
            inner.factor *= 3
            self.assertEqual(outer(x).tolist(), [before * 3] * 2)
            self.assertEqual((outer(x).tolist(), inner.seen), ([before * 3] * 2, seen + 1))  # and is compiled again

    def test_stale_gradients(self):
        run = self.steps("eager")
        run()
        self.assertRaisesRegex(sl.StateError, "no backward has reached", self.trainer.step, 2)


if __name__ == "__main__":
    unittest.main()
