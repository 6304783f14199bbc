"""The Gluon face: what MXNet 1.9.1 prints and computes."""
import os
import tempfile
import unittest

import numpy as np
import starling
from starling import mx
from starling.mx import autograd, gluon, init, nd, sym
from starling.mx.gluon import loss as gloss
from starling.mx.gluon import nn


def two_layers():
    net = nn.Sequential()
    net.add(nn.Dense(2, in_units=2), nn.Dense(2, in_units=2))
    return net


class Arrays(unittest.TestCase):
    def test_printing(self):
        self.assertEqual(repr(nd.ones((1, 2)) * 3), "\n[[3. 3.]]\n<NDArray 1x2 @cpu(0)>")
        self.assertEqual(repr(nd.arange(3).sum()), "\n[3.]\n<NDArray 1 @cpu(0)>")
        self.assertEqual(repr(sym.var("data")), "<Symbol data>")

    def test_making(self):
        for made, wanted in (
            (nd.zeros((2, 3)), np.zeros((2, 3))),
            (nd.zeros(shape=4), np.zeros(4)),
            (nd.arange(2, 8, 2), np.arange(2, 8, 2)),
            (nd.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
            (nd.full((2,), 7), [7, 7]),
        ):
            self.assertEqual(made.dtype, np.float32)
            np.testing.assert_array_equal(made.asnumpy(), wanted)
        self.assertEqual(nd.array([1], dtype="int32").dtype, np.int32)
        x = nd.random.normal(5, 2, shape=(200, 200)).asnumpy()
        self.assertAlmostEqual(float(x.mean()), 5, delta=0.1)
        self.assertAlmostEqual(float(x.std()), 2, delta=0.1)
        self.assertTrue((0 <= nd.random.uniform(shape=(100,)).asnumpy()).all())

    def test_methods(self):
        a = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
        x = nd.array(a)
        for got, wanted in (
            (x.reshape((0, -1)), a.reshape(2, 12)), (x.reshape(4, 6), a.reshape(4, 6)), (x.sum(axis=1), a.sum(1)),
            (x.mean(axis=(0, 2), keepdims=True), a.mean((0, 2), keepdims=True)), (x.transpose((2, 0, 1)), a.transpose(2, 0, 1)),
            (x.flatten(), a.reshape(2, 12)), (x.expand_dims(1), a[:, None]), (x.argmax(axis=2), a.argmax(2)), (x.T, a.T),
            (x.slice_axis(1, 0, 2), a[:, :2]), (nd.concat(x, x, dim=2), np.concatenate([a, a], 2)), (nd.stack(x, x), np.stack([a, a])),
            (nd.dot(x, nd.array(a[0].T)), a @ a[0].T), (nd.softmax(x).sum(axis=-1), np.ones((2, 3))), (x.max(), [a.max()]),
            (nd.one_hot(nd.array([1, 0]), 3), np.eye(3)[[1, 0]]), (nd.take(x, nd.array([1, 1])), a[[1, 1]]),
            (nd.clip(x, -0.5, 0.5), a.clip(-0.5, 0.5)), (nd.maximum(x, 0), np.maximum(a, 0)), (nd.maximum(0.1, x), np.maximum(a, 0.1)),
            (nd.broadcast_add(x, x[:, :1]), a + a[:, :1]), (x.astype("int32"), a.astype(np.int32)),
        ):  # fmt: skip
            self.assertIsInstance(got, nd.NDArray)
            self.assertEqual(got.shape, np.shape(wanted))
            np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        self.assertAlmostEqual(float(x.norm().asscalar()), float(np.sqrt((a**2).sum())), places=4)
        self.assertEqual((x.shape, x.size, x.ndim, x.context), ((2, 3, 4), 24, 3, mx.cpu(0)))
        self.assertRaises(ValueError, x.asscalar)
        self.assertEqual((x[0, 0].argmax(axis=0).shape, nd.argmin(x[0, 0], axis=0).shape), ((1,), (1,)))
        y = nd.zeros((2, 2))
        y[0, 1] = nd.ones((1,)) * 3
        self.assertEqual(y.asnumpy().tolist(), [[0, 3], [0, 0]])

    def test_in_place(self):
        x = nd.ones((3, 2))
        x[:] = 4
        x[1:2] += 1
        x[:] += nd.ones((3, 2))
        np.testing.assert_array_equal(x.asnumpy(), [[5, 5], [6, 6], [5, 5]])
        y = nd.zeros((3, 2))
        self.assertIs(x.copyto(y), y)
        np.testing.assert_array_equal(y.asnumpy(), x.asnumpy())
        for result in (nd.elemwise_add(x, x, out=y), nd.dot(x, nd.eye(2) * 2, out=y), nd.abs(-2 * x, out=y)):
            self.assertIs(result, y)
            np.testing.assert_array_equal(y.asnumpy(), 2 * x.asnumpy())

    def test_wrong_types_name_the_argument(self):
        x, net = nd.ones((2, 3)), nn.Dense(2)
        for call, part in (
            (lambda: nd.dot(x, 2), "rhs is int"), (lambda: nd.relu([1]), "x is list"), (lambda: nd.ones(2, ctx="cpu"), "ctx is str"),
            (lambda: x.as_in_context("cpu"), "context is str"), (lambda: x.copyto(3), "other is int"), (lambda: net("a"), "input 0 is str"),
            (lambda: net.initialize(ctx="cpu"), "ctx is str"), (lambda: gloss.L2Loss()(x, 3), "label is int"),
            (lambda: nn.Dense("a"), "units is str"), (lambda: nn.Sequential().add(3), "is int"), (lambda: nd.zeros("a"), "shape is str"),
            (lambda: gluon.data.DataLoader(3, 4), "dataset is int"),
        ):  # fmt: skip
            with self.assertRaisesRegex(TypeError, part):
                call()
        self.assertRaises(ValueError, lambda: mx.gpu(-1))

    def test_missing_names(self):
        for call in (
            lambda: nd.sparse.adagrad_update, lambda: mx.mod.BucketingModule, lambda: mx.rnn.VariationalDropoutCell, lambda: nn.SyncBatchNorm,
            lambda: gluon.Parameter("w", shape=(2,), stype="csr"),
            lambda: gluon.Trainer(two_layers().collect_params(), "lbsgd"), lambda: init.Load,
        ):  # fmt: skip
            with self.assertRaisesRegex(NotImplementedError, "use"):
                call()
        self.assertFalse(hasattr(nd, "sparse_array"))
        for text in ("import starling.mx.onnx", "from starling.mx.contrib.onnx import export_model", "from starling.mx.gluon.nn.other import Dense"):
            with self.assertRaisesRegex(ImportError, "is not in Starling", msg=text):
                exec(text)
        from starling.mx.gluon.data.dataset import Dataset
        from starling.mx.ndarray.sparse import CSRNDArray

        self.assertTrue(Dataset is gluon.data.Dataset and not isinstance(nd.ones(2), CSRNDArray))


class Training(unittest.TestCase):
    def test_losses(self):
        rng = np.random.default_rng(1)
        p, y = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal((4, 3)).astype(np.float32)
        labels = np.array([0, 2, 1, 1])
        logs = p - np.log(np.exp(p).sum(1, keepdims=True))
        for loss, target, wanted in (
            (gloss.L2Loss(), y, ((p - y) ** 2 / 2).mean(1)),
            (gloss.L1Loss(), y, abs(p - y).mean(1)),
            (gloss.SoftmaxCrossEntropyLoss(), labels, -logs[range(4), labels]),
            (gloss.SoftmaxCrossEntropyLoss(sparse_label=False), y, -(logs * y).sum(1)),
            (gloss.SigmoidBCELoss(), y, (np.log1p(np.exp(-abs(p))) + np.maximum(p, 0) - p * y).mean(1)),
        ):
            np.testing.assert_allclose(loss(nd.array(p), nd.array(target)).asnumpy(), wanted, rtol=1e-5, atol=1e-6)
        self.assertEqual(gloss.L2Loss()(nd.ones(5), nd.ones((5, 1))).shape, (5,))

    def test_gradient(self):
        x = nd.array([[1.0, 2], [3, 4]])
        x.attach_grad()
        with autograd.record():
            y = (x * x).sum()
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), 2 * x.asnumpy())

    def test_hybrid_block_with_parameters(self):
        class Scale(nn.HybridBlock):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.weight = self.params.get("weight", shape=(3,), init=init.Constant(2))

            def hybrid_forward(self, F, x, weight):
                return F.broadcast_mul(x, weight) + 1

        block = Scale()
        block.initialize()
        x = nd.ones((2, 3))
        eager = block(x)
        block.hybridize()
        np.testing.assert_array_equal(block(x).asnumpy(), eager.asnumpy())
        self.assertEqual(float(eager.asnumpy()[0, 0]), 3)

    def test_parameters(self):
        net = nn.Sequential()
        net.add(nn.Dense(4), nn.Dense(2))
        with self.assertRaises(RuntimeError):
            net[0].weight_missing if hasattr(net[0], "weight_missing") else net[0].params.get("weight").data()
        net.initialize(ctx=mx.cpu(0))
        net(nd.ones((1, 3)))
        names = list(net.collect_params())
        self.assertEqual([n.split("_")[1] for n in names], ["weight", "bias"] * 2)
        weight = net[0].params.get("weight")
        self.assertEqual(weight.shape, (4, 3))
        weight.set_data(nd.ones((4, 3)))
        np.testing.assert_array_equal(weight.data().asnumpy(), np.ones((4, 3)))
        with self.assertRaisesRegex(RuntimeError, "not initialized on context gpu"):
            weight.data(mx.gpu(9))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.params")
            net.save_parameters(path)
            other = nn.Sequential()
            other.add(nn.Dense(4), nn.Dense(2))
            other.load_parameters(path)
            x = nd.random.normal(shape=(2, 3))
            np.testing.assert_array_equal(other(x).asnumpy(), net(x).asnumpy())

    def test_export_and_import(self):
        net = nn.HybridSequential()
        net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
        net.initialize()
        net.hybridize()
        x = nd.random.normal(shape=(3, 5))
        y = net(x)
        with tempfile.TemporaryDirectory() as folder:
            net.export(os.path.join(folder, "net"))
            symbol, params = (os.path.join(folder, f"net-{end}") for end in ("symbol.json", "0000.params"))
            again = gluon.block.SymbolBlock.imports(symbol, ["data"], params)
            np.testing.assert_allclose(again(x).asnumpy(), y.asnumpy(), atol=1e-6)

    def test_trainer(self):
        rng = np.random.default_rng(2)
        X = rng.standard_normal((64, 2)).astype(np.float32)
        y = X @ np.array([2, -3.4], np.float32) + 4.2
        for name, options in (("sgd", {"learning_rate": 0.3}), ("sgd", {"learning_rate": 0.1, "momentum": 0.5}),
                              ("adam", {"learning_rate": 0.3})):  # fmt: skip
            net = nn.Dense(1)
            net.initialize(init.Normal(0.01))
            trainer, loss = gluon.Trainer(net.collect_params(), name, options), gloss.L2Loss()
            data = gluon.data.DataLoader(gluon.data.ArrayDataset(X, y), 16, shuffle=True)
            for _ in range(30):
                for batch, target in data:
                    with autograd.record():
                        l = loss(net(batch), target)
                    l.backward()
                    trainer.step(16)
            np.testing.assert_allclose(net.params.get("weight").data().asnumpy(), [[2, -3.4]], atol=0.05)
            self.assertEqual(trainer.learning_rate, options["learning_rate"])

    def test_printed_blocks(self):
        net = nn.HybridSequential()
        net.add(nn.Conv2D(6, 5, padding=2, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Dense(10))
        text = repr(net)
        for part in ("HybridSequential(\n", "(0): Conv2D(None -> 6, kernel_size=(5, 5)", "Activation(sigmoid)", "(2): Dense(None -> 10, linear)"):
            self.assertIn(part, text)
        self.assertEqual(len(net), 3)
        self.assertIsInstance(net[:2], nn.HybridSequential)

    def test_splitting(self):
        parts = gluon.utils.split_and_load(nd.arange(24).reshape((6, 4)), [mx.cpu(0), mx.cpu(0)])
        self.assertEqual([p.shape for p in parts], [(3, 4), (3, 4)])
        self.assertRaises(ValueError, lambda: gluon.utils.split_and_load(nd.ones((5, 2)), [mx.cpu(0)] * 2))
        self.assertEqual([p.shape for p in gluon.utils.split_data(nd.ones((5, 2)), 2, even_split=False)], [(3, 2), (2, 2)])


if __name__ == "__main__":
    unittest.main()
