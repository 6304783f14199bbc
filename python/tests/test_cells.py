"""Cells in the style of a tutorial on computational performance, with mx.np and npx, and what they print; the same values are
wanted whether a batch is on one context or cut over two."""
import contextlib
import io
import os
import tempfile
import unittest

import numpy
from starling import mx
from starling.mx import autograd, gluon, init, nd, np, npx, sym
from starling.mx.gluon import nn


def two_contexts():
    """Two devices: GPUs where there are two, else teams of cores, which may be one."""
    return [npx.gpu(0), npx.gpu(1)] if npx.num_gpus() >= 2 else [npx.cpu(0), npx.cpu(1)]


class NumPyFace(unittest.TestCase):
    def setUp(self):
        npx.set_np()
        self.addCleanup(npx.reset_np)

    def same(self, got, wanted, places=1e-5):
        self.assertIsInstance(got, np.ndarray)
        self.assertEqual(got.shape, numpy.shape(wanted))
        numpy.testing.assert_allclose(got.asnumpy(), wanted, rtol=places, atol=places)


class Arrays(NumPyFace):
    def test_printing(self):
        x = np.ones((1, 2))
        self.assertEqual(repr(x * np.ones((1, 2)) + 2), "array([[3., 3.]])")
        self.assertEqual((str(x), repr(x.sum()), repr(x[0, 1])), ("[[1. 1.]]", "array(2.)", "array(1.)"))
        self.assertEqual(repr(np.array([1, 2], dtype="int32")), "array([1, 2], dtype=int32)")
        self.assertEqual(repr(x > 0), "array([[ True,  True]])")
        self.assertEqual(repr(x.argmax(axis=1)), "array([0])")

    def test_functions(self):
        rng = numpy.random.default_rng(0)
        a, b = rng.standard_normal((3, 4)).astype("float32"), rng.standard_normal((4, 2)).astype("float32")
        x, y = np.array(a), np.array(b)
        for got, wanted in (
            (np.dot(x, y), a @ b), (x.dot(y), a @ b), (x @ y, a @ b), (np.dot(x[0], x[0]), a[0] @ a[0]), (np.dot(x, y[:, 0]), a @ b[:, 0]),
            (x.sum(), a.sum()), (x.mean(axis=0), a.mean(0)), (x.max(axis=1, keepdims=True), a.max(1, keepdims=True)),
            (np.sum(x, axis=(0, 1)), a.sum()), (x.var(), a.var()), (x.std(axis=0), a.std(0)), (np.linalg.norm(x), numpy.linalg.norm(a)),
            (np.exp(x), numpy.exp(a)), (np.abs(x), abs(a)), (np.maximum(x, 0), a.clip(0)), (np.clip(x, -1, 1), a.clip(-1, 1)),
            (np.add(1, x), a + 1), (np.subtract(1, x), 1 - a), (np.power(x, 2), a**2), (x.T, a.T), (x.reshape(2, -1), a.reshape(2, 6)),
            (np.concatenate([x, x], axis=1), numpy.concatenate([a, a], 1)), (np.stack([x, x]), numpy.stack([a, a])),
            (np.arange(20).reshape(4, 5), numpy.arange(20).reshape(4, 5)), (np.linspace(0, 1, 5), numpy.linspace(0, 1, 5)),
            (np.eye(3), numpy.eye(3)), (np.sign(x), numpy.sign(a)), (np.expand_dims(x, 0), a[None]), (x[1:, 2], a[1:, 2]), (x[-1], a[-1]),
            (np.split(x, 2, axis=1)[1], a[:, 2:]), (np.vstack([x, x]), numpy.vstack([a, a])), (np.zeros_like(x), a * 0),
            ((x > 0).sum(), (a > 0).sum()), ((x > 0).astype("float32").mean(), (a > 0).mean()), (x.copy(), a), (x.swapaxes(0, 1), a.T),
            (np.full((2,), 3), [3, 3]), (x.squeeze(), a), (x.flatten(), a.reshape(-1)),
        ):  # fmt: skip
            self.same(got, wanted)
        self.assertEqual((np.array([1, 2]).dtype, np.arange(3).dtype, x.size, len(x)), (numpy.float32, numpy.float32, 12, 3))
        self.assertEqual(x.sum().item(), float(x.sum()))
        self.assertAlmostEqual(x.sum().item(), float(a.sum()), places=5)
        self.assertEqual((np.random.normal().shape, np.random.uniform(size=(2, 3)).shape, np.random.randn(4).shape), ((), (2, 3), (4,)))
        whole = np.random.randint(2, 5, size=(200,)).asnumpy()
        self.assertEqual(set(whole), {2, 3, 4})
        self.assertFalse(hasattr(x, "asscalar"))

    def test_assignment_and_devices(self):
        x = np.zeros((2, 3))
        x[:] = 4
        x[0] += 1
        x[1, 2] = 7
        self.same(x, [[5, 5, 5], [4, 4, 7]])
        x[:] = x - 0.5 * np.ones((2, 3))
        y = x.copyto(npx.cpu())
        self.assertIsNot(x, y)
        self.same(y, x.asnumpy())
        self.assertIs(x.as_in_ctx(npx.cpu()), x)
        self.assertEqual((x.ctx, x.context), (npx.cpu(), npx.cpu(0)))
        data = np.arange(20).reshape(4, 5)
        parts = gluon.utils.split_and_load(data, two_contexts())
        for part, rows in zip(parts, (data[:2], data[2:])):
            self.same(part, rows.asnumpy())

    def test_gradients(self):
        x = np.arange(4)
        x.attach_grad()
        with autograd.record():
            y = 2 * np.dot(x, x)
        y.backward()
        self.same(x.grad, 4 * numpy.arange(4))

    def test_waiting(self):
        x = np.random.uniform(size=(200, 200))
        y = np.dot(x, x)
        y.wait_to_read()
        for _ in range(100):
            y = x + 1
        npx.waitall()
        self.assertAlmostEqual(float(y.mean()), float(x.asnumpy().mean()) + 1, places=3)

    def test_errors(self):
        with self.assertRaises(mx.base.MXNetError):
            np.dot(np.ones((2, 3)), np.ones((2, 3)))
        with self.assertRaises(mx.base.MXNetError):
            np.ones(2, ctx=npx.gpu(15)).wait_to_read()
        for call in (lambda: np.fft, lambda: npx.rnn, lambda: np.linalg.lstsq):
            with self.assertRaises((NotImplementedError, AttributeError)):
                call()


class Networks(NumPyFace):
    def test_what_a_hybrid_block_sees(self):
        class Net(nn.HybridBlock):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                self.hidden = nn.Dense(4)
                self.output = nn.Dense(2)

            def hybrid_forward(self, F, x):
                print("F", F.__name__.split(".")[-1], "x", type(x).__name__)
                x = F.npx.relu(self.hidden(x))
                return self.output(F.np.exp(x))

        net, x, out = Net(), np.random.normal(size=(1, 3)), io.StringIO()
        net.initialize()
        with contextlib.redirect_stdout(out):
            eager = net(x)
            net.hybridize()
            traced, again = net(x), net(x)
        self.assertEqual(out.getvalue(), "F ndarray x ndarray\nF symbol x _Symbol\n")
        self.same(traced, eager.asnumpy())
        self.same(again, eager.asnumpy())

    def test_export(self):
        net = nn.HybridSequential()
        net.add(nn.Dense(256, activation="relu"), nn.Dense(2))
        net.initialize()
        x = np.random.normal(size=(1, 512))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "mlp")
            self.assertRaisesRegex(RuntimeError, "hybridize", lambda: net.export(path))
            net.hybridize()
            y = net(x)
            net.export(path)
            self.assertEqual(sorted(os.listdir(folder)), ["mlp-0000.params", "mlp-symbol.json"])
            again = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
            self.same(again(x), y.asnumpy())
        self.assertIn("Symbol", repr(net(sym.var("data"))))

    def test_forward_takes_and_gives_lists(self):
        class Pair(nn.Block):
            def __init__(self):
                super().__init__()
                self.dense = nn.Dense(2)

            def forward(self, xs, scale=1.0):
                return [self.dense(x) * scale for x in xs]

        pair = Pair()
        pair.initialize()
        a, b = pair([np.ones((1, 3))] * 2, scale=2.0)
        self.same(a, b.asnumpy())

    def test_parameters(self):
        net = nn.Sequential()
        net.add(nn.Dense(3), nn.Dense(2))
        with self.assertRaisesRegex(RuntimeError, "has not been initialized"):
            net[0].weight.data()
        net.initialize()
        with self.assertRaises(gluon.parameter.DeferredInitializationError):
            net[0].weight.data()
        net(np.ones((1, 4)))
        self.assertIsInstance(net[0].weight.data(), np.ndarray)
        self.assertEqual((net[0].weight.shape, net[1].bias.data().shape), ((3, 4), (2,)))
        self.assertEqual(list(net.collect_params(".*weight")), [net[0].weight.name, net[1].weight.name])
        with self.assertRaises(AttributeError):
            net[0].gamma
        net.apply(lambda block: None)

    def test_values_of_context(self):
        ctx = two_contexts()
        net = nn.Dense(2, in_units=3)
        net.initialize(ctx=ctx)
        self.same(net.weight.data(ctx[0]), net.weight.data(ctx[1]).asnumpy())
        self.assertEqual(net.weight.list_ctx(), ctx)
        with self.assertRaisesRegex(RuntimeError, "was not initialized on context"):
            net.weight.data(npx.gpu(7))

    def test_loader(self):
        X, y = np.arange(20).reshape(10, 2), np.arange(10)
        for batch, labels in gluon.data.DataLoader(gluon.data.ArrayDataset(X, y), 4, num_workers=2):
            self.assertIsInstance(batch, np.ndarray)
            self.same(batch[:, 0], 2 * labels.asnumpy())


class SeveralDevices(unittest.TestCase):
    """Training on two contexts is training on one, with the same values."""

    def losses(self, ctx, make, backward):
        mx.random.seed(3)
        rng = numpy.random.default_rng(0)
        X, y = rng.standard_normal((8, 1, 6, 6)).astype("float32"), rng.integers(0, 3, 8)
        net = make()
        net.initialize(init.Normal(sigma=0.1), ctx=ctx)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
        loss, history = gluon.loss.SoftmaxCrossEntropyLoss(), []
        for _ in range(6):
            Xs, ys = (gluon.utils.split_and_load(nd.array(a), ctx) for a in (X, y))
            with autograd.record():
                losses = [loss(net(a), b) for a, b in zip(Xs, ys)]
            backward(losses)
            trainer.step(8)
            history.append(sum(float(l.sum().asscalar()) for l in losses))
        return history

    def check(self, make):
        one = self.losses(two_contexts()[:1], make, lambda losses: losses[0].backward())
        self.assertLess(one[-1], one[0])
        for backward in (lambda losses: [l.backward() for l in losses], autograd.backward):
            two = self.losses(two_contexts(), make, backward)
            numpy.testing.assert_allclose(two, one, rtol=1e-4)

    def test_perceptron(self):
        def make():
            net = nn.Sequential()
            net.add(nn.Dense(5, activation="tanh"), nn.Dense(3))
            return net

        self.check(make)

    def test_hybrid_convolutions(self):
        def make():
            net = nn.HybridSequential()
            net.add(nn.Conv2D(4, kernel_size=3, padding=1, activation="relu"), nn.GlobalAvgPool2D(), nn.Dense(3))
            net.hybridize()
            return net

        self.check(make)

    def test_second_backward_writes_anew(self):
        net = nn.Dense(1, use_bias=False)
        net.initialize(init.One(), ctx=mx.cpu())
        for _ in range(2):
            with autograd.record():
                l = net(nd.ones((1, 2)))
            l.backward()
        self.assertEqual(net.weight.grad().asnumpy().tolist(), [[1, 1]])


class Printing(unittest.TestCase):
    def test_blocks(self):
        net = nn.Sequential()
        net.add(nn.Conv2D(6, 5, padding=2, activation="sigmoid", strides=2), nn.AvgPool2D(2, 2), nn.BatchNorm(), nn.Dropout(0.5),
                nn.Flatten(), nn.GlobalAvgPool2D(), nn.Activation("relu"), nn.LeakyReLU(0.1), nn.Lambda("relu"),
                nn.Dense(3, activation="relu"))  # fmt: skip
        inner = nn.HybridSequential()
        inner.add(nn.Dense(2))
        net.add(inner)
        pool = "ceil_mode={}, global_pool={}, pool_type=avg, layout=NCHW"
        self.assertEqual(repr(net), "\n".join((
            "Sequential(",
            "  (0): Conv2D(None -> 6, kernel_size=(5, 5), stride=(2, 2), padding=(2, 2), Activation(sigmoid))",
            f"  (1): AvgPool2D(size=(2, 2), stride=(2, 2), padding=(0, 0), {pool.format(False, False)})",
            "  (2): BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, in_channels=None)",
            "  (3): Dropout(p = 0.5, axes=())",
            "  (4): Flatten",
            f"  (5): GlobalAvgPool2D(size=(1, 1), stride=(1, 1), padding=(0, 0), {pool.format(True, True)})",
            "  (6): Activation(relu)",
            "  (7): LeakyReLU(0.1)",
            "  (8): Lambda(relu)",
            "  (9): Dense(None -> 3, Activation(relu))",
            "  (10): HybridSequential(",
            "    (0): Dense(None -> 2, linear)",
            "  )",
            ")",
        )))  # fmt: skip
        self.assertEqual(repr(gluon.loss.L2Loss()), "L2Loss(batch_axis=0, w=1.0)")
        dense = nn.Dense(2, in_units=3)
        self.assertEqual(repr(dense.collect_params()), f"{dense.name}_ (\n  Parameter {dense.name}_weight (shape=(2, 3), dtype=float32)\n"
                         f"  Parameter {dense.name}_bias (shape=(2,), dtype=float32)\n)")  # fmt: skip

    def test_arrays(self):
        x = nd.arange(6).reshape((2, 3))
        self.assertEqual(repr(x[0, 1]), "\n[1.]\n<NDArray 1 @cpu(0)>")
        self.assertEqual(repr(x.astype("int32")[1]), "\n[3 4 5]\n<NDArray 3 @cpu(0)>")
        self.assertEqual(x[1, 2].asscalar(), 5)

    def test_names(self):
        class Net(nn.HybridBlock):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.first = nn.Dense(4)
                    self.body = nn.HybridSequential(prefix="body_")
                    with self.body.name_scope():
                        self.body.add(nn.Conv2D(2, 1), nn.Dense(3), nn.Dense(3, prefix="last"))
                    self.scale = self.params.get("scale", shape=(3,), init="ones")

            def hybrid_forward(self, F, x, scale):
                return self.body(self.first(x).reshape((0, 0, 1, 1))) * scale

        net = Net(prefix="net_")
        names = ["net_scale", *(f"net_{layer}{kind}" for layer in ("dense0_", "body_conv0_", "body_dense0_", "body_last") for kind in ("weight", "bias"))]
        self.assertEqual((net.name, net.prefix, net.body[2].name), ("net", "net_", "net_body_last"))
        self.assertEqual(list(net.collect_params()), names)
        self.assertEqual(list(net.body[2].params), ["net_body_lastweight", "net_body_lastbias"])
        net.initialize()
        net.hybridize()
        y = net(nd.ones((1, 2)))
        self.assertEqual(set(net(sym.var("data")).list_arguments()), {"data", *names})
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net")
            self.assertIsNone(net.export(path))
            self.assertEqual({n[4:] for n in nd.load(f"{path}-0000.params")}, set(names))
            again = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data"], f"{path}-0000.params")
            numpy.testing.assert_allclose(again(nd.ones((1, 2))).asnumpy(), y.asnumpy(), rtol=1e-5)
            net.save_parameters(path)  # a name without an end that says what is in the file
            net.load_parameters(path)
        with self.assertRaises(mx.MXNetError):
            nn.Dense(2, prefix="a.b_")
        twice = nn.Sequential()
        twice.add(nn.Dense(2, prefix="a_"), nn.Dense(2, prefix="a_"))
        with self.assertRaisesRegex(ValueError, "a_weight"):
            twice.initialize()

    def test_lists_of_compiled_blocks(self):
        class Pair(nn.HybridBlock):
            def hybrid_forward(self, F, x):
                return x, (x + 1, x * 2)

        pair = Pair()
        self.assertIsInstance(pair(nd.ones(2)), tuple)
        pair.hybridize()
        for _ in range(2):
            y = pair(nd.ones(2))
            self.assertEqual((type(y), type(y[1]), y[1][1].asnumpy().tolist()), (list, list, [2, 2]))

    def test_hybrid_children(self):
        with self.assertRaisesRegex(ValueError, "HybridSequential"):
            nn.HybridSequential().add(nn.Sequential())


if __name__ == "__main__":
    unittest.main()
