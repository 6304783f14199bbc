"""The Gluon face beside networks: functions, metrics, schedules, optimisers, files, nested inputs and results."""
import gzip
import json
import os
import resource
import tempfile
import unittest

import numpy as np
import starling
from starling import mx
from starling.mx import autograd, gluon, init, nd, sym
from starling.mx.gluon import nn


def rows(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype("float32")


class Case(unittest.TestCase):
    def same(self, got, wanted, tolerance=1e-5):
        self.assertEqual(got.shape, np.shape(wanted))
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=tolerance, atol=tolerance)


class Functions(Case):
    def test_elements(self):
        a = rows(3, 4) * 2
        x = nd.array(a)
        for got, wanted in (
            (nd.sin(x), np.sin(a)), (nd.cosh(x), np.cosh(a)), (nd.arcsinh(x), np.arcsinh(a)), (nd.log1p(abs(x)), np.log1p(abs(a))),
            (nd.round(x), np.round(a)), (nd.trunc(x), np.trunc(a)), (nd.cbrt(x), np.cbrt(a)), (nd.log2(abs(x)), np.log2(abs(a))),
            (x % 3, a % 3), (5 % x, 5 % a), (x % nd.array(a + 9), a % (a + 9)), (nd.logical_and(x > 0, x < 1), (a > 0) & (a < 1)),
            (nd.logical_or(x > 1, x < -1), (a > 1) | (a < -1)), (nd.logical_xor(x, 0), a != 0), (nd.broadcast_hypot(x, x), np.hypot(a, a)), (nd.broadcast_hypot(x * 1e25, x * 1e25), np.hypot(a * 1e25, a * 1e25)),
            (nd.softmax(x, temperature=2.0).sum(axis=-1), np.ones(3)), (nd.norm(x, ord=1, axis=1), abs(a).sum(1)), (nd.prod(x, axis=0), a.prod(0)),
            (nd.argmin(x, axis=1), a.argmin(1)), (nd.cumsum(x, axis=1), a.cumsum(1)), (nd.moments(x, axes=(0,))[1], a.var(0)),
            (nd.L2Normalization(x), a / np.sqrt((a**2).sum(1, keepdims=True))), (nd.smooth_l1(x, scalar=1.0), np.where(abs(a) < 1, a * a / 2, abs(a) - 0.5)),
        ):  # fmt: skip
            self.same(got, wanted, 1e-4)
        self.assertEqual(float(nd.nansum(nd.array([1, np.nan, 2])).asscalar()), 3)

    def test_moves(self):
        a = rows(2, 3, 4)
        x = nd.array(a)
        for got, wanted in (
            (nd.flip(x, axis=1), a[:, ::-1]), (nd.repeat(x, repeats=2, axis=1), a.repeat(2, 1)), (nd.slice(x, begin=(0, 1), end=(2, 3)), a[0:2, 1:3]),
            (nd.slice(x, begin=(None, 0), end=(None, 3), step=(1, 2)), a[:, 0:3:2]), (x.slice_like(nd.ones((1, 2, 3))), a[:1, :2, :3]),
            (nd.moveaxis(x, 0, 2), np.moveaxis(a, 0, 2)), (nd.pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 2)), np.pad(a, ((0, 0), (0, 0), (1, 2)), "edge")),
            (nd.diag(x[0]), np.diag(a[0])), (nd.diag(nd.array([1, 2]), k=1), np.diag([1.0, 2], 1)), (nd.diag(nd.array([1, 2]), k=-1), np.diag([1.0, 2], -1)),
            (x.reshape((-2,)), a), (x.reshape((-3, 0)), a.reshape(6, 4)), (x.reshape((0, -4, 1, 3, -2)), a.reshape(2, 1, 3, 4)),
            (nd.broadcast_axis(nd.ones((1, 3)), axis=0, size=2), np.ones((2, 3))), (nd.split_v2(x, (1,), axis=2)[1], a[:, :, 1:]),
            (nd.space_to_depth(nd.depth_to_space(nd.array(rows(1, 8, 2, 3)), 2), 2), rows(1, 8, 2, 3)),
        ):  # fmt: skip
            self.same(got, wanted)

    def test_indices(self):
        a = rows(2, 3, 4)
        x = nd.array(a)
        mask = np.where(a == np.sort(a, -1)[..., -1:], 1.0, 0.0)
        for got, wanted in (
            (nd.pick(x[0], nd.array([0, 3, 1])), a[0][range(3), [0, 3, 1]]), (nd.take(x, nd.array([0, 9]), axis=1), a[:, [0, 2]]),
            (nd.take(x, nd.array([-1, 3]), axis=0, mode="wrap"), a[[1, 1]]), (nd.gather_nd(x, nd.array([[0, 1], [1, 2]])), a[[0, 1], [1, 2]]),
            (nd.scatter_nd(nd.array([2, 3]), nd.array([[1, 0]]), (3,)), [3, 2, 0]), (nd.sort(x, axis=1, is_ascend=False), -np.sort(-a, 1)),
            (nd.argsort(x), a.argsort(-1)), (nd.topk(x, k=1, ret_typ="mask"), mask), (nd.topk(x, k=2, ret_typ="value", is_ascend=True), np.sort(a)[..., :2]),
            (nd.where(x > 0, x, -x), abs(a)), (nd.one_hot(nd.array([1, 0]), 2, on_value=3, off_value=1), [[1, 3], [3, 1]]),
            (nd.SequenceMask(nd.ones((3, 2)), nd.array([1, 2]), True), [[1, 1], [0, 1], [0, 0]]),
            (nd.SequenceLast(x.swapaxes(0, 1), nd.array([1, 3]), True), a[[0, 1], [0, 2]]), (x[nd.array([1, 0])], a[[1, 0]]),
        ):  # fmt: skip
            self.same(got, wanted)
        x[nd.array([0])] = 5
        self.assertEqual(float(x[0].mean().asscalar()), 5)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "arrays")
            nd.save(path, {"w": nd.array(rows(2, 3)), "i": nd.array([1, 2], dtype="int32")})
            read = nd.load(path)
            self.same(read["w"], rows(2, 3))
            self.assertEqual(read["i"].dtype, np.int32)
            nd.save(path, [nd.ones(2)])
            self.assertEqual(len(nd.load(path)), 1)
            with open(path, "rb") as file:
                whole = file.read()
            for n in range(len(whole)):
                with self.assertRaises(ValueError):
                    nd.load_frombuffer(whole[:n])
            self.assertRaises(OSError, lambda: nd.load(path + "x"))
            self.assertRaises(ValueError, lambda: nd.save(path, [3]))

    def test_files_that_cannot_be(self):
        with tempfile.TemporaryDirectory() as folder:
            path, pipe = os.path.join(folder, "arrays"), os.path.join(folder, "pipe")
            nd.save(path, [nd.ones(2)])
            with open(path, "rb") as file:
                before = file.read()
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)  # as a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
            try:
                self.assertRaises(OSError, lambda: nd.save(path, [nd.ones(10000)]))
                self.assertRaises(OSError, lambda: (sym.var("x") + 1).save(path))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)
            self.assertEqual(os.listdir(folder), ["arrays"])
            os.mkfifo(pipe)
            for name in (pipe, "/dev/zero", folder):
                self.assertRaises(OSError, lambda name=name: nd.load(name))
                self.assertRaises(OSError, lambda name=name: sym.load(name))
            with gzip.open(os.path.join(folder, "train-images.gz"), "wb") as file:  # more than its header says
                file.write(bytes([0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2]) + bytes(1 << 24))
            with gzip.open(os.path.join(folder, "train-labels.gz"), "wb") as file:  # less
                file.write(bytes([0, 0, 8, 1, 127, 255, 255, 255]))
            self.assertRaises(ValueError, lambda: gluon.data.vision.MNIST(folder))

    def test_limits(self):
        for wrong in ({"bytes": -1}, {"seconds": 0}, {"operations": "many"}, {"bytes": True}):
            self.assertRaises(ValueError, lambda wrong=wrong: starling.start(untrusted=wrong))
        self.assertRaises(TypeError, lambda: starling.start(untrusted={"hours": 1}))


class NumPyFace(Case):
    """More of mx.np, against NumPy."""

    def setUp(self):
        mx.npx.set_np()
        self.addCleanup(mx.npx.reset_np)

    def test_functions(self):
        m = mx.np
        a, b = rows(3, 4), rows(4, 2, seed=1)
        x, y = m.array(a), m.array(b)
        for got, wanted in (
            (m.tensordot(x, y, axes=1), a @ b), (m.tensordot(x, x, ([0, 1], [0, 1])), np.tensordot(a, a)), (m.einsum("ij,kj->ik", x, x), a @ a.T),
            (m.outer(x[0], y[:, 0]), np.outer(a[0], b[:, 0])), (m.tril(x), np.tril(a)), (m.roll(x, 1), np.roll(a, 1)), (m.roll(x, -1, 1), np.roll(a, -1, 1)),
            (m.rot90(x), np.rot90(a)), (m.pad(x, ((1, 0), (0, 2))), np.pad(a, ((1, 0), (0, 2)))), (m.where(x > 0, x, 0), np.where(a > 0, a, 0)),
            (m.array_split(x, 3, axis=1)[0], np.array_split(a, 3, axis=1)[0]), (m.dstack([x, x]), np.dstack([a, a])), (m.cumsum(x, axis=0), a.cumsum(0)),
            (x[x > 0], a[a > 0]), (x[[0, 2], [1, -1]], a[[0, 2], [1, -1]]), (x[:, [0, 1]][1:], a[:, [0, 1]][1:]), ((x > 0) * x, (a > 0) * a),
            (m.mod(x, 0.5), np.mod(a, 0.5)), (m.unique(m.array([2.0, 1, 2])), [1, 2]), (m.arctan(x), np.arctan(a)), (m.average(x, axis=0), a.mean(0)),
            (m.diff(x), np.diff(a)), (m.meshgrid(m.arange(2), m.arange(3))[0], np.meshgrid(range(2), range(3))[0]), (m.around(x, 1), np.around(a, 1)),
            (m.logical_and(x > 0, x < 1), (a > 0) & (a < 1)), (~(x > 0), ~(a > 0)), (m.any(x > 9), False), ((x > -9).all(), True),
        ):  # fmt: skip
            self.same(got, wanted, 1e-4)
        x *= x > 0
        self.same(x, a * (a > 0))
        with autograd.record(), self.assertRaisesRegex(NotImplementedError, "gradient of np.arctan2"):
            m.arctan2(x, x)

    def test_children_by_hand(self):
        class Chain(nn.Block):
            def add(self, block):
                self._children[block.name] = block

            def forward(self, x):
                for block in self._children.values():
                    x = block(x)
                return x

        chain = Chain()
        chain.add(nn.Dense(4, activation="relu"))
        chain.add(nn.Dense(2))
        chain.initialize()
        self.assertEqual((chain(mx.np.ones((3, 5))).shape, len(chain.collect_params())), ((3, 2), 4))

    def test_initialisers_of_ones_own(self):
        class Threes(init.Initializer):
            def _init_weight(self, name, data):
                data[:] = 3

        net = nn.Sequential()
        net.add(nn.Dense(2), nn.Dense(1))
        net.initialize(Threes())
        net(mx.np.ones((1, 2)))
        self.same(net[0].weight.data(), [[3, 3], [3, 3]])
        self.same(net[1].bias.data(), [0])


class Data(Case):
    def test_cross_entropy_of_places(self):
        """Of sequences and of images, whose classes are axis 1."""
        rng = np.random.default_rng(3)
        for shape, axis in (((2, 3, 5), -1), ((2, 5, 3, 4), 1), ((2, 3, 5, 4), 2), ((4, 5), 1)):
            pred = rng.standard_normal(shape).astype("float32")
            logs = pred - np.log(np.exp(pred).sum(axis, keepdims=True))
            places = tuple(n for i, n in enumerate(shape) if i != axis % len(shape))
            label = rng.integers(0, 5, places)
            at = np.expand_dims(label, axis)
            each = -np.take_along_axis(logs, at, axis)
            weight = rng.random(at.shape).astype("float32")
            mean = tuple(range(1, len(shape)))
            dense = (np.arange(5).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))]) == at).astype("float32")
            for hybrid in (False, True):
                for options, x, y in (({}, pred, label), ({"from_logits": True}, logs, label), ({"sparse_label": False}, pred, dense)):
                    loss = gluon.loss.SoftmaxCrossEntropyLoss(axis=axis, **options)
                    if hybrid:
                        loss.hybridize()
                    x, y = nd.array(x), nd.array(y)
                    x.attach_grad()
                    with autograd.record():
                        got = loss(x, y)
                    got.backward()
                    np.testing.assert_allclose(got.asnumpy(), each.mean(mean), rtol=1e-5)
                    if "from_logits" not in options:
                        np.testing.assert_allclose(x.grad.asnumpy(), (np.exp(logs) - dense) / each[0].size, atol=1e-5)
                    loss.hybridize(hybrid)  # again: a compiled block has the same arguments at each call
                    np.testing.assert_allclose(loss(x, y, nd.array(weight)).asnumpy(), (each * weight).mean(mean), rtol=1e-5)

    def test_loaders(self):
        d = gluon.data
        data = d.ArrayDataset(np.arange(20).reshape(10, 2), np.arange(10))
        loader = d.DataLoader(data, 4, last_batch="rollover")
        self.assertEqual([[len(y) for _, y in loader] for _ in range(2)], [[4, 4], [4, 4, 4]])
        chosen = d.DataLoader(data, batch_sampler=d.BatchSampler(d.SequentialSampler(6), 3))
        self.assertEqual([y.asnumpy().tolist() for _, y in chosen], [[0, 1, 2], [3, 4, 5]])
        doubled = d.SimpleDataset([1, 2, 3]).transform(lambda v: 2 * v)
        self.assertEqual(([*map(doubled.__getitem__, range(3))], len(data.filter(lambda s: s[1] > 6)), len(data.shard(3, 0))), ([2, 4, 6], 3, 4))
        self.assertRaises(ValueError, lambda: d.DataLoader(data, 4, sampler=d.SequentialSampler(3), shuffle=True))
        self.assertEqual(sorted(i for b in d.DataLoader(list(range(9)), 4, shuffle=True) for i in b.asnumpy()), list(range(9)))

    def test_transforms(self):
        t = gluon.data.vision.transforms
        image = np.random.RandomState(0).randint(0, 255, (6, 5, 3)).astype("uint8")
        made = t.Compose([t.Resize((10, 12)), t.CenterCrop(4), t.ToTensor(), t.Normalize((0.5, 0.5, 0.5), 0.5)])(nd.array(image, dtype="uint8"))
        self.assertEqual((made.shape, isinstance(made, nd.NDArray)), ((3, 4, 4), True))
        self.same(t.ToTensor()(nd.array(image, dtype="uint8")), image.transpose(2, 0, 1) / np.float32(255))
        np.testing.assert_array_equal(t.Resize((5, 6))(image), image)
        flat = np.full((7, 9, 1), 8, "uint8")
        self.assertEqual(set(t.RandomResizedCrop(4)(flat).reshape(-1)), {8})


class Names(unittest.TestCase):
    def test_every_name_is_there_or_says_what_to_use(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mxnet-names.txt")) as file:
            modules = dict(line.strip().split(": ") for line in file if not line.startswith("#"))
        there = 0
        for module, names in modules.items():
            at = mx
            for part in module.split(".")[1:]:
                at = getattr(at, part)
            for name in names.split():
                try:
                    getattr(at, name)
                    there += 1
                except NotImplementedError as error:
                    self.assertRegex(str(error), rf"{name} is not in Starling; use ")
        self.assertGreater(there, 500)


class Metrics(unittest.TestCase):
    def test_values(self):
        labels, scores = nd.array([0, 1, 1]), nd.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
        for name, wanted in (("acc", 2 / 3), ("ce", -np.log([0.9, 0.8, 0.4]).mean()), ("f1", 2 / 3), ("perplexity", np.exp(-np.log([0.9, 0.8, 0.4]).mean()))):
            metric = mx.metric.create(name)
            self.assertTrue(np.isnan(metric.get()[1]))
            metric.update([labels], [scores])
            self.assertAlmostEqual(metric.get()[1], wanted, places=5)
            metric.reset()
            self.assertTrue(np.isnan(metric.get()[1]))
        both = mx.metric.CompositeEvalMetric(["mae", mx.metric.MSE()])
        both.update(nd.array([1, 2]), nd.array([2, 4]))
        self.assertEqual(both.get_name_value(), [("mae", 1.5), ("mse", 2.5)])
        self.assertRaises(ValueError, lambda: mx.metric.Accuracy().update([labels], [scores, scores]))
        self.assertRaises(NotImplementedError, lambda: mx.metric.create("auc"))


class Training(Case):
    def test_schedules(self):
        s = mx.lr_scheduler
        self.assertEqual([s.FactorScheduler(2, 0.5, base_lr=1.0)(i) for i in (1, 2, 3, 5)], [1, 1, 0.5, 0.25])
        self.assertAlmostEqual(s.CosineScheduler(10, base_lr=1, final_lr=0)(5), 0.5)
        self.assertEqual(s.PolyScheduler(10, base_lr=1, pwr=1, warmup_steps=2)(1), 0.5)
        net = nn.Dense(1, in_units=1)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "lr_scheduler": s.FactorScheduler(1, 0.1, base_lr=1.0)})
        rates = []
        for _ in range(3):
            with autograd.record():
                y = net(nd.ones((1, 1)))
            y.backward()
            trainer.step(1)
            rates.append(trainer.learning_rate)
        np.testing.assert_allclose(rates, [1, 0.1, 0.01])
        self.assertRaises(UserWarning, lambda: trainer.set_learning_rate(2))

    def trained(self, trainer_of, steps=3):
        """The weights of a layer after some steps down y² from x = 1."""
        net = nn.Dense(1, in_units=2, use_bias=False)
        net.initialize(init.Constant(0.5))
        trainer = trainer_of(net)
        for _ in range(steps):
            with autograd.record():
                y = net(nd.ones((1, 2))) ** 2
            y.backward()
            trainer.step(1)
        return net.weight.data().asnumpy()[0]

    def test_optimisers(self):
        """Against the formulas, in NumPy."""

        def rmsprop(w, g, s):
            s[0] = 0.9 * s[0] + 0.1 * g * g
            return w - 0.1 * g / np.sqrt(s[0] + 1e-8)

        def adagrad(w, g, s):
            s[0] += g * g
            return w - 0.1 * g / np.sqrt(s[0] + 1e-7)

        def adadelta(w, g, s):
            s[0] = 0.9 * s[0] + 0.1 * g * g
            d = np.sqrt(s[1] + 1e-5) / np.sqrt(s[0] + 1e-5) * g
            s[1] = 0.9 * s[1] + 0.1 * d * d
            return w - d

        for name, step in (("rmsprop", rmsprop), ("adagrad", adagrad), ("adadelta", adadelta)):
            w, state = np.full(2, 0.5), [0.0, 0.0]
            for _ in range(3):
                w = step(w, 2 * w.sum() * np.ones(2), state)
            np.testing.assert_allclose(self.trained(lambda net: gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.1})), w, rtol=1e-5)

    def test_an_optimiser_of_ones_own(self):
        class Sign(mx.optimizer.Optimizer):
            def update(self, index, weight, grad, state):
                weight[:] = weight - self.lr * nd.sign(grad)

        w = self.trained(lambda net: gluon.Trainer(net.collect_params(), Sign(learning_rate=0.125)))
        np.testing.assert_allclose(w, [0.125, 0.125])

    def test_some_parameters(self):
        net = nn.Sequential()
        net.add(nn.Dense(3, in_units=4), nn.Dense(2, in_units=3))
        net.initialize(init.Constant(0.5))
        names = list(net.collect_params())
        for chosen in ([net[1].weight], net.collect_params(".*bias"), net[0].collect_params()):
            before = {n: p.data().asnumpy() for n, p in net.collect_params().items()}
            trainer = gluon.Trainer(chosen, "adam", {"learning_rate": 0.1})
            with autograd.record():
                y = (net(nd.ones((2, 4))) ** 2).sum()
            y.backward()
            trainer.step(2)
            wanted = {p.name for p in (chosen if isinstance(chosen, list) else chosen.values())}
            changed = {n for n in names if not np.array_equal(before[n], net.collect_params()[n].data().asnumpy())}
            self.assertEqual(changed, wanted)

    def test_factors_and_requests(self):
        def with_factor(net):
            net.collect_params().setattr("lr_mult", 0.5)
            return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

        w = np.full(2, 0.5)
        for _ in range(3):
            w = w - 0.05 * 2 * w.sum()
        np.testing.assert_allclose(self.trained(with_factor), w, rtol=1e-5)
        net = nn.Dense(1, in_units=2)
        net.initialize(init.One())
        net.collect_params().setattr("grad_req", "add")
        for _ in range(3):
            with autograd.record():
                y = net(nd.ones((1, 2)))
            y.backward()
        self.same(net.weight.grad(), [[3, 3]])
        net.collect_params().zero_grad()
        self.same(net.weight.grad(), [[0, 0]])


class Gradients(Case):
    def test_grad(self):
        x = nd.array([1.0, 2])
        x.attach_grad()
        with autograd.record():
            y = (x**3).sum()
        (found,) = autograd.grad(y, x)
        self.same(found, [3, 12])
        self.same(x.grad, [0, 0])  # as it was


class ExportedNames(Case):
    def test_exported_names(self):
        """As MXNet 1.9.1 names them (dev/gluon-names.py compares with it)."""

        class Net(nn.HybridBlock):
            def __init__(self, **kwargs):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.dense = nn.Dense(4, activation="tanh")

            def hybrid_forward(self, F, x):
                return F.relu(self.dense(F.relu(x))) * 2 + F.tanh(x).sum()

        def names(net, shape):
            net.initialize()
            net.hybridize()
            net(nd.ones(shape))
            with tempfile.TemporaryDirectory() as folder:
                net.export(os.path.join(folder, "net"))
                with open(os.path.join(folder, "net-symbol.json")) as file:
                    nodes = [(n["op"], n["name"]) for n in json.load(file)["nodes"]]
                return nodes, sorted(nd.load(os.path.join(folder, "net-0000.params")))

        net = nn.HybridSequential(prefix="n_")
        with net.name_scope():
            net.add(nn.Conv2D(2, 3), nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(2), nn.Flatten(), nn.Dense(2, activation="sigmoid"), nn.Dense(1))
        nodes, parameters = names(net, (1, 1, 6, 6))
        self.assertEqual(
            [name for op, name in nodes if op != "null"],
            ["n_conv0_fwd", "n_batchnorm0_fwd", "n_relu0_fwd", "n_pool0_fwd", "n_flatten0_flatten0", "n_dense0_fwd", "n_dense0_sigmoid_fwd", "n_dense1_fwd"],
        )
        self.assertEqual([op for op, _ in nodes if op != "null"][4:6], ["Flatten", "FullyConnected"])
        self.assertIn("aux:n_batchnorm0_running_mean", parameters)
        self.assertIn("arg:n_dense1_weight", parameters)
        net = nn.HybridSequential(prefix="m_")
        with net.name_scope():
            net.add(nn.Conv2D(2, 3), nn.Dense(2))
        self.assertEqual([name for op, name in names(net, (1, 1, 6, 6))[0]][3:], ["m_conv0_fwd", "m_dense0_weight", "m_dense0_bias", "m_dense0_fwd"])
        nodes = [name for op, name in names(Net(prefix="own_"), (2, 4))[0] if op != "null"]
        self.assertEqual(nodes[:6], ["own_relu0", "own_dense0_fwd", "own_dense0_tanh_fwd", "own_relu1", "own__mulscalar0", "own_tanh0"])


class Nested(Case):
    class Cell(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.dense = nn.Dense(3)

        def hybrid_forward(self, F, x, states):
            h = F.tanh(self.dense(x) + states[0])
            return h, [h * states[1], F.argmax(h, axis=1).astype("int32")]

    def test_inputs_and_results(self):
        cell = self.Cell()
        cell.initialize()
        given = [(nd.array(rows(2, 4, seed=i)), [nd.array(rows(2, 3, seed=i + 1)), nd.ones((2, 1))]) for i in range(2)]
        plain = [cell(*g) for g in given]
        cell.hybridize()
        for (h, (g, i)), (h2, (g2, i2)) in zip(plain, [cell(*g) for g in given]):
            for a, b in ((h, h2), (g, g2), (i, i2)):
                self.same(b, a.asnumpy())
                self.assertEqual(a.dtype, b.dtype)
        self.assertEqual(cell(nd.ones((5, 4)), [nd.ones((5, 3)), nd.ones((5, 1))])[0].shape, (5, 3))  # another plan

    def test_gradients(self):
        found = []
        for compiled in (False, True):
            mx.random.seed(1)
            cell = self.Cell()
            cell.initialize(init.One())
            if compiled:
                cell.hybridize()
            with autograd.record():
                h, (g, _) = cell(nd.ones((2, 4)) * 0.1, [nd.ones((2, 3)) * 0.2, nd.ones((2, 1)) * 3])
                y = h.sum() + (g * g).sum()
            y.backward()
            found.append(cell.dense.weight.grad().asnumpy())
        np.testing.assert_allclose(*found, rtol=1e-5)

    def test_in_the_native_face(self):
        import starling as sl

        class Two(sl.Block):
            def forward(self, x, pair):
                return [x + pair[0], (x * pair[1], x.sum())]

        block = Two()
        for _ in range(2):
            a, (b, c) = block(sl.ones((2, 2)), [sl.ones((2, 2)), sl.full((2, 2), 3)])
            self.assertEqual((a.tolist(), b.tolist(), c.item()), ([[2, 2], [2, 2]], [[3, 3], [3, 3]], 4))
            block.hybridize()
        self.assertRaisesRegex(TypeError, "input 1 is int", lambda: block(sl.ones((2, 2)), 3))

        class Wrong(sl.Block):
            def forward(self, x):
                return [x, 3]

        self.assertRaisesRegex(TypeError, "forward of wrong0: int", lambda: Wrong()(sl.ones(2)))


class Symbols(Case):
    def test_programs(self):
        a, b = sym.var("a"), sym.var("b")
        c = 2 * a + sym.exp(b)
        self.assertEqual((c.list_arguments(), len(c.list_outputs())), (["a", "b"], 1))
        x, y = nd.array(rows(2, 3)), nd.array(rows(2, 3, seed=1))
        wanted = 2 * rows(2, 3) + np.exp(rows(2, 3, seed=1))
        self.same(c.eval(a=x, b=y)[0], wanted)
        self.same(c.bind(mx.cpu(), {"a": x, "b": y}).forward()[0], wanted)
        self.same(sym.load_json(c.tojson()).eval(a=x, b=y)[0], wanted)
        self.assertEqual(c.infer_shape(a=(2, 3), b=(2, 3)), ([(2, 3), (2, 3)], [(2, 3)], []))
        self.assertRaisesRegex(ValueError, "'b' has no value", lambda: c.eval(a=x))


class LikeMXNet(Case):
    """Answers that MXNet 1.9.1 gave."""

    def test_int8(self):
        a = nd.array([100, -100], dtype="int8")
        for got, wanted in ((a + a, [-56, 56]), (a * 3, [44, -44]), (a / 7, [14, -14]), (-a, [-100, 100]), (abs(a), [100, 100]),
                            (nd.array([300.0, -1.5]).astype("int8"), [44, -1]), (a.sum(), [0]), (a % 7, [2, 5]), (nd.square(a), [16, 16])):  # fmt: skip
            self.assertIs(got.dtype, np.int8)
            self.assertEqual(got.asnumpy().tolist(), wanted)

    def test_elements_of_rows(self):
        x, out = nd.array([[1, 2, 3], [4, 5, 6]]), nd.zeros((2, 3))
        self.assertIs(nd.onehot_encode(nd.array([2, 0]), out), out)
        self.same(out, [[0, 0, 1], [1, 0, 0]])
        self.same(nd.choose_element_0index(x, nd.array([0, 2])), [1, 6])
        self.same(nd.fill_element_0index(x, nd.array([7, 8]), nd.array([1, 2])), [[1, 7, 3], [4, 5, 8]])
        self.assertIs(nd.ones((2, 3), out=out), out)
        self.same(out, np.ones((2, 3)))

    def test_background(self):
        boxes = nd.array([[0, 0.5, 0.1, 0.1, 0.2, 0.2], [1, 0.3, 0.1, 0.1, 0.14, 0.14], [-1, 0.6, 0.5, 0.5, 0.7, 0.8]])
        self.assertEqual(nd.contrib.box_nms(boxes, id_index=0).asnumpy()[:, 0].tolist(), [0, 1, -1])
        self.assertEqual(nd.contrib.box_nms(boxes, id_index=0, background_id=0).asnumpy()[:, 1].tolist(), [np.float32(0.6), np.float32(0.3), -1])

    def test_along_no_axis(self):
        x = mx.np.array([0.0, 2.0])
        for function, wanted in ((mx.np.any, [False, True]), (mx.np.all, [False, True]), (mx.np.prod, [0, 2])):
            self.assertEqual(function(x, axis=()).asnumpy().tolist(), wanted)

    def test_call_by_call(self):
        """A hybridised block with functions that NumPy computes runs without being compiled, with a warning."""

        class Net(gluon.HybridBlock):
            def hybrid_forward(self, F, x):
                return F.np.median(x) + F.np.sum(x)

        net, x = Net(), mx.np.array([1.0, 2, 6])
        net.hybridize()
        with self.assertWarnsRegex(UserWarning, "runs call by call"):
            self.assertEqual(float(net(x)), 11)
        self.assertEqual(float(net(x)), 11)


if __name__ == "__main__":
    unittest.main()
