"""Options: what is written runs, 0 too, or is refused; defaults are those of the C headers."""
import inspect
import os
import pathlib
import re
import subprocess
import sys
import unittest

import numpy as np
import starling as sl
from starling import _ops, nn
from starling._defaults import DEFAULTS, UNSET, UNSET_INT


def trained(**settings):
    """A weight of 1 after two steps down the slope of its square."""
    kind = settings.pop("kind", "sgd")
    net = nn.Dense(1, in_units=1, no_bias=True)
    net.initialize(sl.init.constant(1))
    trainer = sl.Trainer(net, kind, **settings)
    for _ in range(2):
        with sl.autograd.record():
            loss = sl.square(net(sl.array([[1.0]])))
        sl.autograd.backward(loss)
        trainer.step(1)
    return float(net.params()[0].data().numpy()[0, 0])


class Options(unittest.TestCase):
    def test_signatures(self):
        """Numbers in signatures are those of the lists, and None stands for what depends on other things."""
        known = {}
        for fields in DEFAULTS.values():
            for name, value in fields.items():
                known.setdefault(name, []).append(value)
        functions = [getattr(_ops, n) for n in _ops.__all__] + [getattr(nn, n).__init__ for n in ("Conv2d", "BatchNorm", "LayerNorm", "Rnn")]
        seen = set()
        for function in functions:
            for p in inspect.signature(function).parameters.values():
                if p.kind is p.KEYWORD_ONLY and p.name in ("eps", "momentum", "beta1", "beta2", "alpha", "delta", "rescale", "lr_scale", "layers"):
                    seen.add(p.name)
                    if p.name == "momentum" and "update" in function.__name__:
                        continue  # 0 unless it is given
                    self.assertTrue(p.default is None or p.default in known[p.name], (function, p))
        self.assertEqual(len(seen), 9)

    def test_macros(self):
        """No macro of the headers fills a structure of the lists but by SL_OPTIONS, or a 0 that a call writes would be lost."""
        source = pathlib.Path(os.environ.get("STARLING_SOURCE", pathlib.Path(__file__).parents[2]))
        text = "".join(header.read_text() for header in (source / "src/starling").glob("*.h"))
        listed = set(re.findall(r"define SL_DEFAULTS_(\w+)\(X\)", text))
        self.assertGreater(len(listed), 25)
        self.assertEqual(listed & set(re.findall(r"\(struct (\w+)\)\{__VA_ARGS__\}", text)), set())

    def test_unset(self):
        self.assertNotEqual(UNSET, UNSET)
        self.assertIsNone(inspect.signature(sl.scaled_dot_product_attention).parameters["scale"].default)
        self.assertEqual(UNSET_INT, -(2**31))

    def test_optimisers(self):
        self.assertEqual(trained(lr=0), 1.0)
        self.assertEqual(trained(kind="adam", lr=0), 1.0)
        self.assertAlmostEqual(trained(kind="adam", lr=0.1, beta1=0), trained(kind="adam", lr=0.1, beta1=1e-12), places=6)
        self.assertNotAlmostEqual(trained(kind="adam", lr=0.1, beta1=0), trained(kind="adam", lr=0.1), places=4)
        self.assertAlmostEqual(trained(kind="rmsprop", lr=0.1, alpha=0), trained(kind="rmsprop", lr=0.1, alpha=1e-12), places=6)
        self.assertAlmostEqual(trained(lr=0.1, schedule=sl.Schedule("steps", every=1, factor=0)), 0.8, places=6)
        self.assertAlmostEqual(trained(lr=0.1, schedule=sl.Schedule("steps", every=1)), 0.8 * 0.98, places=6)
        for wrong in ({"clip_norm": 0}, {"clip_value": 0}, {"average": 0}, {"lr": float("nan")}, {"lr": -1}, {"loss_scaling": {"start": 0}}):
            with self.assertRaisesRegex(sl.InvalidArgument, next(iter(wrong))):
                trained(**wrong)
        with self.assertRaisesRegex(sl.InvalidArgument, "beta1"):
            trained(kind="sgd", beta1=0)

    def test_state_on(self):
        """The device of an optimiser's states, as any device is given."""
        for device in ("cpu", "cpu:0", sl.Device("cpu")):
            self.assertEqual(trained(kind="adam", lr=0.1, state_on=device), trained(kind="adam", lr=0.1))
        with self.assertRaises(sl.DeviceError):
            trained(kind="adam", state_on="gpu:99")
        with self.assertRaises(sl.InvalidArgument):
            trained(kind="adam", state_on="auto")

    def test_settings(self):
        """Of the engine: a 0 that means nothing, and what is out of range, is refused by name; False counts beside the environment."""
        wrong = [
            {"teams": 0}, {"teams": -1}, {"bulk": 0}, {"runahead_tasks": 0}, {"runahead_bytes": 0}, {"tf32": 0}, {"tf32": 7}, {"tf32": "some"}, {"cuda_graphs": 2},
            {"gpus": -3}, {"sched": ""}, {"dist": ""},
        ]  # fmt: skip
        code = f"""
import starling as sl
for wrong in {wrong}:
    try:
        sl.start(**wrong)
    except sl.InvalidArgument as error:
        print(error)
sl.start(explain=False, gpus=0, tf32="none")
print(sl.ones(2).tolist())
"""
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "SL_EXPLAIN": "1"})
        lines = ran.stdout.splitlines()
        self.assertEqual((len(lines), lines[-1]), (len(wrong) + 1, "[1.0, 1.0]"), ran.stderr)
        for each, line in zip(wrong, lines):
            self.assertIn(next(iter(each)), line)

    def test_groups(self):
        net = nn.Dense(1, in_units=1)
        net.initialize(sl.init.constant(1))
        trainer = sl.Trainer(net, lr=0.1)
        trainer.group("*weight", lr_scale=0)
        with sl.autograd.record():
            loss = sl.square(net(sl.array([[1.0]])))
        sl.autograd.backward(loss)
        trainer.step(1)
        self.assertEqual([float(p.data().numpy().ravel()[0]) != 1 for p in net.params()], [False, True])

    def test_functions(self):
        x = sl.array(np.float32([[1e-4, 2e-4, 4e-4]]))
        one, zero = sl.ones(3), sl.zeros(3)
        for norm in (lambda eps: sl.layer_norm(x, one, zero, eps=eps), lambda eps: sl.rms_norm(x, eps=eps)):
            np.testing.assert_allclose(norm(0).numpy(), norm(1e-20).numpy(), rtol=1e-5)
            self.assertGreater(abs(norm(0).numpy() - norm(1e-5).numpy()).max(), 0.1)
        mean = sl.zeros(3)
        with sl.autograd.record():
            sl.batch_norm(sl.array(np.float32([[1, 2, 3], [3, 4, 5]])), one, zero, mean, sl.ones(3), momentum=0)
        np.testing.assert_allclose(mean.numpy(), [2, 3, 4])
        q = sl.array(np.float32([[1, 2], [3, 4]]))
        np.testing.assert_allclose(sl.scaled_dot_product_attention(q, q, q, scale=0).numpy(), [[2, 3], [2, 3]], rtol=1e-6)
        image, kernel = sl.ones((1, 1, 4, 4)), sl.ones((1, 1, 2, 2))
        for wrong in ({"groups": 0}, {"stride": 0}, {"stride": (2, 0)}, {"dilation": 0}):
            with self.assertRaisesRegex(sl.InvalidArgument, next(iter(wrong))):
                sl.conv2d(image, kernel, None, **wrong)
        with self.assertRaisesRegex(sl.InvalidArgument, "delta"):
            sl.huber_loss(q, q, delta=0)
        with self.assertRaisesRegex(sl.InvalidArgument, "layers"):
            nn.Rnn(3, layers=0)

    def test_data(self):
        d = sl.data.arrays(np.zeros((4, 2), "f"))
        self.assertEqual(len(sl.data.Loader(d, 2)), 2)
        for wrong in ({"limit": 0}, {"prefetch": 0}):
            with self.assertRaisesRegex(sl.InvalidArgument, next(iter(wrong))):
                sl.data.Loader(d, 2, **wrong)
        flat = sl.data.arrays(np.arange(8, dtype="f").reshape(1, 1, 2, 4)).transform(sl.data.random_flip(0))
        for _ in range(4):
            np.testing.assert_array_equal(flat[0], np.arange(8, dtype="f").reshape(1, 2, 4))


if __name__ == "__main__":
    unittest.main()
