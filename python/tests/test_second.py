"""Second derivatives, hooks, data sets written in Python, networks and curves for people."""
import random
import unittest

import numpy as np
import starling as sl
from starling import mx


class Second(unittest.TestCase):
    def test_grad(self):
        x, w = sl.array([1.0, 2], "float64").attach_grad(), sl.array([3.0, 4], "float64").attach_grad()
        with sl.record():
            y = (x**3 * w).sum()
            slope = sl.grad(y, x, create_graph=True)
            first, second = sl.grad(slope, [x, w], retain_graph=True)
            (slope**2).sum().backward()
        np.testing.assert_allclose(slope.numpy(), [9, 48])
        np.testing.assert_allclose(first.numpy(), [18, 48])
        np.testing.assert_allclose(second.numpy(), [3, 12])
        np.testing.assert_allclose(x.grad.numpy(), [2 * 9 * 18, 2 * 48 * 48])
        self.assertRaises(sl.StateError, sl.grad, y, sl.ones((2,)))
        self.assertRaises(ValueError, sl.grad, [y, y], x, [None])
        self.assertRaises(TypeError, sl.grad, y, [1.0])

    def test_backward(self):
        x = sl.array([1.0, 2], "float64").attach_grad()
        with sl.record():
            (x**3).sum().backward(create_graph=True)
            again = (x.grad**2).sum()
        again.backward()
        np.testing.assert_allclose(x.grad.numpy(), [36, 288])

    def test_networks(self):
        """The same penalty, eager and compiled."""
        values = np.random.default_rng(2).standard_normal((3, 4))
        found = []
        for compiled in (False, True):
            sl.seed(3)
            net = sl.nn.Sequential(sl.nn.Dense(5, activation="tanh"), sl.nn.LayerNorm(), sl.nn.Dense(1))
            net.initialize(dtype="float64")
            if compiled:
                net.hybridize()
            x = sl.array(values, "float64").attach_grad()
            with sl.record():
                slope = sl.grad(net(x).sum(), x, create_graph=True)
                penalty = ((slope.norm(1) - 1) ** 2).mean()
            penalty.backward()
            found.append([x.grad.numpy(copy=True), *(p.grad().numpy(copy=True) for p in net.params())])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        self.assertGreater(np.abs(found[0][0]).max(), 0)

    def test_function(self):
        class Cube(sl.Function):
            def forward(self, x):
                self.save_for_backward(x)
                return x * x * x

            def backward(self, dy):
                (x,) = self.saved_tensors
                return dy * x * x * 3

        class Differentiable(Cube):
            differentiable = True

        for kind in (Cube, Differentiable):
            x = sl.array([1.0, 2], "float64").attach_grad()
            with sl.record():
                slope = sl.grad(kind()(x).sum(), x, create_graph=True)
            np.testing.assert_allclose(slope.numpy(), [3, 12])
            if kind is Cube:
                with self.assertRaises(sl.Unsupported) as raised:
                    sl.grad(slope, x)
                self.assertIn("test_second.py", str(raised.exception))
            else:
                np.testing.assert_allclose(sl.grad(slope, x).numpy(), [6, 12])

    def test_mxnet(self):
        x = mx.nd.array([1.0, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.sin(x)
            (slope,) = mx.autograd.grad(y, x, create_graph=True, retain_graph=True)
            z = slope.sum()
        z.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), -np.sin([1, 2]), rtol=1e-5)
        with mx.autograd.record():
            y = x * x
            (slope,) = mx.autograd.grad(y, x)
            z = (slope * x).sum()  # the slope is a constant, as in MXNet
        z.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), [2, 4])


class Hooks(unittest.TestCase):
    def test_calls(self):
        net = sl.nn.Sequential(sl.nn.Dense(3), sl.nn.Dense(2))
        net.initialize()
        seen = []
        hooks = [b.register_forward_hook(lambda block, x, y: seen.append((block, x[0].shape, y.shape))) for b in (net, net[0], net[0])]
        net(sl.ones((4, 5)))
        self.assertEqual(seen, [(net[0], (4, 5), (4, 3)), (net[0], (4, 5), (4, 3)), (net, (4, 5), (4, 2))])
        seen.clear()
        hooks[1].remove()
        hooks[1].remove()
        net(sl.ones((4, 5)))
        self.assertEqual([s[0] for s in seen], [net[0], net])
        hooks[0].remove()
        hooks[2].remove()
        net(sl.ones((4, 5)))
        self.assertEqual(len(seen), 2)
        self.assertRaises(TypeError, net.register_forward_hook, 1)

    def test_compiled(self):
        net, seen = sl.nn.Sequential(sl.nn.Dense(3)), []
        net.initialize()
        net.hybridize()
        net.register_forward_hook(lambda block, x, y: seen.append(y.is_symbol))
        for _ in range(2):
            net(sl.ones((4, 5)))
        self.assertEqual(seen.count(False), 2)

    def test_errors(self):
        net = sl.nn.Dense(3)
        net.initialize()
        hook = net.register_forward_hook(lambda block, x, y: 1 / 0)
        self.assertRaises(ZeroDivisionError, net, sl.ones((4, 5)))
        hook.remove()
        self.assertEqual(net(sl.ones((4, 5))).shape, (4, 3))


class Squares:
    """Samples with a random part, which threads must not draw."""

    def __init__(self, n, noise=False, bad=None):
        self.n, self.noise, self.bad = n, noise, bad

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if i == self.bad:
            raise KeyError(f"sample {i}")
        x = np.full((2, 3), i, np.float32)
        return (x + random.random() + np.random.random() if self.noise else x), i * i


class Samples(unittest.TestCase):
    def batches(self, data, **options):
        return [(x.numpy(copy=True), y.numpy(copy=True)) for x, y in sl.data.Loader(data, 4, seed=3, **options)]

    def test_threads(self):
        one = self.batches(Squares(10))
        self.assertEqual([len(x) for x, _ in one], [4, 4, 2])
        self.assertEqual(one[0][0].shape, (4, 2, 3))
        self.assertEqual((one[0][0].dtype, one[0][1].dtype), (np.float32, np.int32))
        self.assertEqual(sorted(np.concatenate([y for _, y in one]).tolist()), [i * i for i in range(10)])
        for options in (dict(workers=2), dict(num_workers=3, prefetch=1)):
            for (x, y), (u, v) in zip(one, self.batches(Squares(10), **options), strict=True):
                np.testing.assert_array_equal(x, u)
                np.testing.assert_array_equal(y, v)
        loader = sl.data.Loader(Squares(10), 4, shuffle=False, drop_last=True, limit=9, workers=2)
        self.assertEqual(len(loader), 2)
        next(iter(loader))  # an epoch that ends early
        self.assertEqual([y.tolist() for _, y in loader], [[0, 1, 4, 9], [16, 25, 36, 49]])

    def test_processes(self):
        loader = sl.data.Loader(Squares(6, noise=True), 2, shuffle=False, workers=1, processes=True)
        other = sl.data.Loader(Squares(6, noise=True), 2, shuffle=False, workers=2, processes=True)
        first, second = ([x.tolist() for x, _ in each] for each in (loader, other))
        self.assertEqual(first, second)
        self.assertNotEqual(first, [x.tolist() for x, _ in loader])  # another epoch

    def test_errors(self):
        for options in ({}, dict(workers=2)):
            loader = sl.data.Loader(Squares(10, bad=5), 4, shuffle=False, **options)
            with self.assertRaises(KeyError):
                list(loader)
        for wrong in (dict(workers=-1), dict(workers=1, num_workers=2), dict(workers=0.5)):
            self.assertRaises(sl.InvalidArgument, sl.data.Loader, Squares(4), 2, **wrong)
        self.assertRaises(sl.InvalidArgument, sl.data.Loader, np.ones((4, 2)), 2, processes=True)
        ragged = [np.ones(i) for i in range(1, 5)]

        class Ragged(Squares):
            def __getitem__(self, i):
                return ragged[i]

        self.assertRaises(sl.ShapeError, list, sl.data.Loader(Ragged(4), 2))
        sums = list(sl.data.Loader(Ragged(4), 2, shuffle=False, collate=lambda samples: np.array([s.sum() for s in samples])))
        self.assertEqual([s.tolist() for s in sums], [[1, 2], [3, 4]])

    def test_forms(self):
        class Named(Squares):
            def __getitem__(self, i):
                return {"x": [np.float64(i), (i, True)]}

        (batch,) = sl.data.Loader(Named(2), 2, shuffle=False)
        self.assertEqual(batch["x"][0].tolist(), [0, 1])
        self.assertEqual(batch["x"][1][1].tolist(), [True, True])


class Shown(unittest.TestCase):
    def test_networks(self):
        net = sl.nn.Sequential(sl.nn.Dense(3, activation="relu"), sl.nn.Sequential(sl.nn.Dense(2)))
        self.assertEqual(repr(net), "Sequential(\n  (0): Dense(3, activation='relu')\n  (1): Sequential(\n    (0): Dense(2)\n  )\n)")
        self.assertIn("?", net._repr_html_())
        net.initialize()
        net(sl.ones((1, 4)))
        table = net._repr_html_()
        self.assertIn("<td style=\"text-align:right\">15</td>", table)
        self.assertIn("<td>23</td>", table)

    def test_curves(self):
        curves = sl.Curves()
        self.assertIn("no numbers", curves._repr_html_())
        for i in range(5):
            curves.add(loss=1 / (i + 1), accuracy=sl.array([i / 4]).sum())
        curves.add(step=9, **{"<loss>": float("nan")})
        drawn = curves._repr_html_()
        self.assertEqual(drawn.count("<polyline"), 3)
        self.assertIn("&lt;loss&gt;", drawn)
        self.assertEqual(curves.values["loss"][-1], (5, 0.2))
        self.assertEqual(list(sl.progress([1, 2])), [1, 2])


if __name__ == "__main__":
    unittest.main()
