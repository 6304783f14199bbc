"""Recomputed blocks, steps of several inputs and targets, caches, names of parameters in files, exports of several results."""
import json
import os
import tempfile
import unittest

import numpy as np
import starling as sl
from test_native import line_of


class Two(sl.Block):
    def __init__(self):
        super().__init__()
        self.a, self.b = sl.nn.Dense(2, in_units=3), sl.nn.Dense(4, in_units=3)

    def forward(self, x):
        return self.a(x), [self.b(x)]


class Three(sl.Block):
    def __init__(self):
        super().__init__()
        self.two = Two()

    def forward(self, x):
        first, (second,) = self.two(x)
        return first, second, sl.relu(second)


class Exports(unittest.TestCase):
    """Each result of a block is a result of the file, and none depends on the size of the batch."""

    def check(self, net, load, names):
        x = sl.array([[1.0, 2, 3], [4, 5, 6], [7, 8, -9]])
        for result, name in zip(net(x), names):
            self.assertEqual(load(name)(x).tolist(), result.tolist())

    def names_in(self, prefix):
        with open(f"{prefix}-symbol.json") as file:
            symbol = json.load(file)
        return [symbol["nodes"][head[0]]["name"] for head in symbol["heads"]]

    def test_native(self):
        for hybrid in (False, True):
            net = Three()
            net.initialize()
            if hybrid:
                net.hybridize()
                net(sl.ones((5, 3)))
            with self.subTest(hybrid=hybrid), tempfile.TemporaryDirectory() as folder:
                prefix = os.path.join(folder, "net")
                net.export(prefix, shapes=None if hybrid else [(5, 3)])
                names = self.names_in(prefix)
                self.assertEqual(len(names), 3)
                self.check(net, lambda name: sl.load(f"{prefix}-symbol.json", "data", f"{prefix}-0000.params", output=name), names)
                try:
                    net.export_onnx(f"{prefix}.onnx", shapes=[(5, 3)])
                except sl.Unsupported:  # built without protobuf-c
                    continue
                self.check(net, lambda name: sl.load(f"{prefix}.onnx", output=name), names)

    def test_gluon(self):
        from starling.mx import nd
        from starling.mx.gluon import nn

        class Net(nn.HybridBlock):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Dense(2, in_units=3), nn.Dense(4, in_units=3)

            def hybrid_forward(self, F, x):
                return self.a(x), self.b(x)

        net = Net()
        net.initialize()
        net.hybridize()
        net(nd.ones((5, 3)))
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "net")
            net.export(prefix)
            self.assertEqual(len(self.names_in(prefix)), 2)


class Several(unittest.TestCase):
    def test_recompute(self):
        class Part(sl.Block):
            calls = 0

            def __init__(self):
                super().__init__()
                self.hidden = sl.nn.Dense(5, activation="tanh")

            def forward(self, x):
                self.calls += 1
                return sl.dropout(self.hidden(x), 0.5)

        x, y = sl.normal((8, 4), 0, 1), sl.normal((8, 1), 0, 1)
        results, calls = [], []
        for again in (False, True, True):
            sl.seed(3)
            part = Part()
            net = sl.nn.Sequential(part, sl.nn.Dense(1))
            net.initialize(sl.init.xavier())
            part.recompute(again)
            if len(results) == 2:
                part.recompute(False)
            trainer = sl.Trainer(net, "sgd", lr=0.1)
            for _ in range(3):
                with sl.record():
                    loss = sl.l2_loss(net(x), y)
                loss.backward()
                trainer.step(8)
            results.append([p.data().numpy().copy() for p in net.params()])
            calls.append(part.calls)
        self.assertEqual(calls, [3, 6, 3])
        for other in results[1:]:
            for a, b in zip(results[0], other):
                np.testing.assert_array_equal(a, b)

    def test_steps_of_several(self):
        class Two(sl.Block):
            def __init__(self):
                super().__init__()
                self.a, self.b = sl.nn.Dense(1), sl.nn.Dense(2)

            def forward(self, x, z):
                return self.a(x), self.b(z + x)

        def loss(outputs, targets):
            self.assertEqual((len(outputs), len(targets)), (2, 2))
            return sl.l2_loss(outputs[0], targets[0]) + 0.5 * sl.l2_loss(outputs[1], targets[1])

        x, z, s, t = (sl.normal(shape, 0, 1) for shape in ((6, 3), (6, 3), (6, 1), (6, 2)))
        results = []
        for way in ("step", "by hand", "shards"):
            net = Two()
            net.initialize(sl.init.constant(0.1))
            trainer = sl.Trainer(net, "sgd", lr=0.1)
            step = sl.StepAll(net, loss, trainer)
            for _ in range(3):
                if way == "by hand":
                    with sl.record():
                        losses = loss(net(x, z), [s, t])
                    losses.backward()
                    trainer.step(6)
                elif way == "step":
                    losses = step([x, z], (s, t))
                    self.assertEqual(losses.shape, (6,))
                else:
                    halves = [[a[:3] for a in (x, z)], [a[3:] for a in (x, z)]], [[a[:3] for a in (s, t)], [a[3:] for a in (s, t)]]
                    self.assertEqual([part.shape for part in step.on_shards(*halves)], [(3,), (3,)])
            results.append([p.data().numpy().copy() for p in net.params()])
        for other in results[1:]:
            for a, b in zip(results[0], other):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
        self.assertGreater(np.abs(results[0][0] - 0.1).max(), 1e-3)
        self.assertIn("input 1 is int", str(line_of(lambda: step([x, 3], [s, t]))))
        self.assertIn("targets is float", str(line_of(lambda: step([x, z], 3.0))))
        self.assertRaises(sl.ShapeError, lambda: step.on_shards([[x, z]], [[s, t], [s]]))

    def test_shards_of_one(self):
        """Fewer targets than inputs were read beyond their end."""
        net, x = sl.nn.Dense(4), sl.ones((3, 4))
        net.initialize()
        net(x)
        step = sl.Step(net, sl.l2_loss, sl.Trainer(net, "sgd", lr=0.1))
        for inputs, targets in (([x], []), ([x, x], [x]), ([], []), ([x], [x, x])):
            self.assertRaises(sl.ShapeError, lambda: step.on_shards(inputs, targets))
        for inputs, targets in (([x], [1]), ([1], [x]), ([None], [x])):
            self.assertRaises(TypeError, lambda: step.on_shards(inputs, targets))
        self.assertEqual(len(step.on_shards([x, x], [x, x])), 2)

    def test_buckets(self):
        def network():
            sl.seed(7)
            net = sl.nn.Sequential(sl.nn.Embedding(7, 4), sl.nn.MultiHeadAttention(4, 2, causal=True), sl.nn.Dense(3, no_flatten=True))
            net.initialize(sl.init.normal(1))
            net(sl.array([[1, 2]], dtype="int32"))
            return net

        eager, net, other = network(), network(), network()
        net.hybridize(buckets=(4, 8), bucket_axis=1)
        losses = lambda y, t: sl.softmax_cross_entropy(y.reshape((-1, 3)), t.reshape((-1,)))
        step = sl.Step(other, losses, sl.Trainer(other, "sgd", lr=0.1), buckets=(4, 8), bucket_axis=1)
        trainer = sl.Trainer(eager, "sgd", lr=0.1)
        for n in (3, 6, 2, 4):
            words = sl.array(np.arange(2 * n).reshape(2, n) % 7, dtype="int32")
            target = words - words + 1
            if n == 3:
                np.testing.assert_allclose(net(words).numpy(), eager(words).numpy(), rtol=1e-5, atol=1e-6)
            with sl.record():
                loss = losses(eager(words), target)
            loss.backward()
            trainer.step(2 * n)
            np.testing.assert_allclose(step(words, target).numpy(), loss.numpy(), rtol=1e-4, atol=1e-6)
        for a, b in zip(eager.params(), other.params()):
            np.testing.assert_allclose(a.data().numpy(), b.data().numpy(), rtol=1e-4, atol=1e-6)
        self.assertRaises(ValueError, lambda: net.hybridize(buckets=range(1, 30)))
        self.assertRaises(sl.InvalidArgument, lambda: net.hybridize(buckets=(8, 4)))
        net = sl.nn.Sequential(sl.nn.MultiHeadAttention(4, 2))
        net.initialize()
        net.hybridize(buckets=(4, 8), bucket_axis=1)
        self.assertRaises(sl.InvalidArgument, lambda: net(sl.ones((1, 3, 4))))

    def test_names_in_files(self):
        net, other = sl.nn.Sequential(sl.nn.Dense(2)), sl.nn.Sequential(sl.nn.Dense(2), sl.nn.Dense(2))
        x = sl.ones((1, 2))
        for block in (net, other):
            block.initialize(sl.init.normal(1))
            block(x)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "other.safetensors")
            other.save_params(path)
            self.assertRaises(sl.InvalidArgument, lambda: net.load_params(path))
            net.load_params(path, names=[("0.*", None), ("1.weight", "0.weight", True), ("1.bias", "0.bias")])
        np.testing.assert_array_equal(net.find("0.weight").data().numpy(), other.find("1.weight").data().numpy().T)

    def test_exception_in_loss_of_several(self):
        net = sl.nn.Sequential(sl.nn.Dense(1))
        net.initialize()

        def bad(outputs, targets):
            raise KeyError("oops")

        step = sl.StepAll(net, bad, sl.Trainer(net, "sgd", lr=0.1))
        self.assertIn("oops", str(line_of(lambda: step(sl.ones((2, 3)), []))))

    def test_cache(self):
        net = sl.nn.Sequential(sl.nn.Embedding(7, 4), sl.nn.PositionEmbedding(5, 4), sl.nn.MultiHeadAttention(4, 2, causal=True))
        net.initialize(sl.init.normal(1))
        words = sl.array([[1, 4, 2, 6, 0]], dtype="int32")
        whole = net(words).numpy().copy()
        net.hybridize()
        cache = sl.Cache(net, 5)
        np.testing.assert_allclose(cache(words[:, :2]).numpy(), whole[:, :2], atol=1e-5)
        for i in range(2, 5):
            self.assertEqual(len(cache), i)
            np.testing.assert_allclose(cache(words[:, i : i + 1]).numpy(), whole[:, i : i + 1], atol=1e-5)
        self.assertRaises(sl.ShapeError, lambda: cache(words))
        cache.cut(0)
        np.testing.assert_allclose(cache(words).numpy(), whole, atol=1e-5)
        self.assertRaises(sl.InvalidArgument, lambda: cache.cut(6))


class Native(unittest.TestCase):
    """Blocks of the library with several results."""

    def test_recurrent(self):
        x, rng = sl.normal((3, 5, 2)), np.random.default_rng(0)
        for kind, count in ((sl.nn.Lstm, 2), (sl.nn.Gru, 1), (sl.nn.Rnn, 1)):
            for given in ([], [sl.array(np.array([3, 1, 2, 3, 2]))]):
                layer = kind(4, layers=2, bidirectional=True, lengths=bool(given))
                layer.initialize(sl.init.uniform(0.5))
                states = [sl.array(rng.standard_normal((4, 5, 4)).astype("float32")) for _ in range(count)]
                zeros = [sl.zeros((4, 5, 4)) for _ in range(count)]
                wanted = None
                for hybrid in (False, True):
                    layer.hybridize(hybrid)
                    plain = layer(x, *given)
                    self.assertEqual(plain.shape, (3, 5, 8))
                    self.assertTrue(np.allclose(layer(x, *given, *zeros)[0].numpy(), plain.numpy(), atol=1e-6))
                    for got in (layer(x, *given, *states), layer(x, *given, states)):
                        self.assertEqual([t.shape for t in got], [(3, 5, 8)] + [(4, 5, 4)] * count)
                        got = [t.numpy() for t in got]
                        wanted = wanted or got
                        for a, b in zip(got, wanted):
                            self.assertTrue(np.allclose(a, b, atol=1e-6))
                if not given:  # the states at the end are those of the top layer's last step, and of its first backward
                    y, h = wanted[0], wanted[1]
                    self.assertTrue(np.allclose(h[2], y[-1, :, :4], atol=1e-6) and np.allclose(h[3], y[0, :, 4:], atol=1e-6))
        self.assertRaisesRegex(sl.InvalidArgument, "state and cell, but got 2", sl.nn.Lstm(4), x, sl.zeros((1, 5, 4)))

    def test_in_pieces(self):
        """The states of one part of a sequence begin the next, also inside of a compiled block, with gradients."""
        lstm = sl.nn.Lstm(4, in_units=2)
        lstm.initialize(sl.init.uniform(0.5))

        class Pieces(sl.Block):
            def __init__(self):
                super().__init__()
                self.lstm = lstm

            def forward(self, x, h, c):
                first, h, c = self.lstm(sl.rows(x, 0, 2), h, c)
                second, h, c = self.lstm(sl.rows(x, 2, 5), h, c)
                return sl.concat([first, second], 0), h, c

        net, x, zeros = Pieces(), sl.normal((5, 3, 2)).attach_grad(), sl.zeros((1, 3, 4))
        found = []
        for block in (lstm, net, net):
            with sl.record():
                y, h, c = block(x, zeros, zeros)
                loss = (y * y).sum() + h.sum() + (c * c).sum()
            loss.backward()
            found.append([t.numpy(copy=True) for t in (y, h, c, x.grad, lstm.find("weight_hh_l0").grad())])
            net.hybridize()
        for other in found[1:]:
            for a, b in zip(found[0], other):
                self.assertTrue(np.allclose(a, b, atol=1e-5))

    def test_onnx(self):
        """All results of a model, or those that are named."""
        def field(number, value):
            if isinstance(value, int):
                return bytes([number << 3, value])
            value = value.encode() if isinstance(value, str) else value
            return bytes([number << 3 | 2, len(value)]) + value

        def node(kind, result):
            return field(1, field(1, "x") + field(2, result) + field(4, kind))

        def value(number, name):
            dims = field(1, field(1, 2)) + field(1, field(1, 3))
            return field(number, field(1, name) + field(2, field(1, field(1, 1) + field(2, dims))))

        graph = node("Relu", "a") + node("Neg", "b") + field(2, "g") + value(11, "x") + value(12, "a") + value(12, "b")
        model = field(1, 8) + field(7, graph) + field(8, field(2, 13))
        x = sl.array([[1.0, -2, 3], [-4, 5, -6]])
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/two.onnx"
            with open(path, "wb") as file:
                file.write(model)
            try:
                net = sl.load(path)
            except sl.Error as error:
                self.assertIn("protobuf-c", str(error))
                return
            for hybrid in (False, True):
                net.hybridize(hybrid)
                a, b = net(x)
                self.assertEqual((a.tolist(), b.tolist()), (np.maximum(x.numpy(), 0).tolist(), (-x.numpy()).tolist()))
            self.assertEqual(sl.load(path, output="b")(x).tolist(), b.tolist())
            self.assertEqual([t.tolist() for t in sl.load(path, output=["b", "a"])(x)], [b.tolist(), a.tolist()])


if __name__ == "__main__":
    unittest.main()
