"""MXNet's face at its corners: arrays without elements or without axes, numbers in the place of arrays, gradients of random
numbers, memory of NumPy, NumPy's functions; and what is refused, by name."""
import copy
import tempfile
import unittest

import numpy as np
from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx import np as mnp, npx
from starling.mx.gluon import nn


class Shapes(unittest.TestCase):
    def same(self, got, wanted):
        self.assertEqual(got.shape, wanted.shape)
        np.testing.assert_allclose(got.asnumpy(), wanted, rtol=1e-6)

    def test_without_elements(self):
        for shape, new in (((1, 0), (0,)), ((0, 3), (-1, 3)), ((2, 0), (-1, 2)), ((0,), (0, 7)), ((3, 0, 2), (0, 5, 1)), ((0, 2), (-1,))):
            with self.subTest(shape=shape, new=new):
                a, x = np.ones(shape, "float32"), mnp.ones(shape)
                self.same(x.reshape(new), a.reshape(new))
                self.same(mnp.reshape(x, new), a.reshape(new))
                self.same(mnp.expand_dims(x, 1), np.expand_dims(a, 1))
                self.same(nd.array(a).expand_dims(1), np.expand_dims(a, 1))
        self.same(mnp.squeeze(mnp.ones((1, 0, 1, 4)), (0, 2)), np.ones((0, 4)))
        self.assertRaises(mx.MXNetError, mnp.ones((0, 2)).reshape, (-1, 0))
        self.assertRaises(mx.MXNetError, mnp.ones((2, 3)).reshape, (0, 3))

    def test_parts(self):
        for shape in ((4, 3), (0, 3), (4, 0), (6,)):
            a = np.arange(np.prod(shape), dtype="float32").reshape(shape)
            x = mnp.array(a)
            for parts in (1, 2, (1, 3), (2, 9), (3, 1), ()):
                for split in ("split", "array_split", "vsplit", "hsplit"):
                    with self.subTest(shape=shape, parts=parts, split=split):
                        try:
                            wanted = getattr(np, split)(a, parts)
                        except ValueError:
                            self.assertRaises(ValueError, getattr(mnp, split), x, parts)
                            continue
                        found = getattr(mnp, split)(x, parts)
                        self.assertEqual(len(found), len(wanted))
                        for f, w in zip(found, wanted):
                            self.same(f, w)
        self.assertEqual([p.shape for p in mnp.split(mnp.ones((0, 2)), 7)], [(0, 2)] * 7)

    def test_copies(self):
        for shape, reps in (((), ()), ((), 0), ((), (2, 0)), ((4, 2), (2, 0)), ((4, 2), (2, 0, 3)), ((4, 0), (2, 3)), ((4, 2), (2, 1, 3))):
            a = np.arange(np.prod(shape, dtype=int), dtype="float32").reshape(shape)
            with self.subTest(shape=shape, reps=reps):
                self.same(mnp.tile(mnp.array(a), reps), np.tile(a, reps))

    def test_broadcast(self):
        self.same(mnp.broadcast_to(2.5, (2, 3)), np.full((2, 3), 2.5))
        self.same(mnp.broadcast_to(mnp.arange(5), (3, 4, -2)), np.broadcast_to(np.arange(5.0), (3, 4, 5)))
        self.same(mnp.full((2, 3), mnp.array([1, 2, 3])), np.full((2, 3), [1.0, 2, 3]))
        self.assertEqual(mnp.full((0, 3), mnp.array([1, 2, 3]), dtype="int8").dtype, np.int8)
        self.same(mnp.empty_like(mnp.ones((2, 0))), np.ones((2, 0)))
        for bad in ((-1,), (1, -1)):
            self.assertRaises(mx.MXNetError, mnp.eye, *bad)
        self.assertRaises(mx.MXNetError, nd.broadcast_like, nd.ones((2,)), nd.ones((2,)), lhs_axes=(), rhs_axes=())
        self.assertRaises(mx.MXNetError, mnp.matmul, mnp.ones((2,)), mnp.array(1.0))

    def test_numbers(self):
        for low, high in ((0.2, None), (None, 0.4), (0.2, 0.4)):
            self.assertEqual(mnp.clip(0.7, low, high), np.clip(0.7, low, high))
        self.assertRaises(ValueError, mnp.clip, mnp.ones((2,)), None, None)
        for axis in (0, -1):
            self.assertEqual(mnp.argmax(mnp.array(3.0), axis).asnumpy(), 0)
        for name in ("hanning", "hamming", "blackman"):
            for m in (-3, 0, 1, 7):
                self.same(getattr(mnp, name)(m, dtype="float64"), getattr(np, name)(m))

    def test_whole_results_beside_gradients(self):
        x = mnp.array([0.0, 2, 0, 3])
        x.attach_grad()
        with autograd.record():
            y = (x[mnp.nonzero(x)[0]] ** 2).sum()
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [0, 4, 0, 6])
        with autograd.record():
            self.assertRaisesRegex(NotImplementedError, "is not in Starling", mnp.median, x)

    def test_scalars_stay_scalars(self):
        for x in (mnp.array(3.5), mnp.ones((1,)), mnp.ones((0, 2))):
            for y in (x % 2, 2 % x, x**2, x / 2, x < 2, mnp.mod(x, 2), mnp.maximum(x, 1)):
                self.assertEqual(y.shape, x.shape)

    def test_whole_steps(self):
        for dtype in ("int32", "int64", "float32"):
            np.testing.assert_allclose(mnp.linspace(-2, 4, 30, dtype=dtype).asnumpy(), np.linspace(-2, 4, 30, dtype=dtype), rtol=1e-6)
        for num in (-1, 2.5):
            self.assertRaises(mx.MXNetError, mnp.linspace, 0, 1, num)

    def test_text(self):
        lines = ["1 2.5", "3 4"]
        found = mnp.genfromtxt(lines)
        self.assertEqual((type(found), found.dtype), (mnp.ndarray, np.float64))
        np.testing.assert_array_equal(found.asnumpy(), [[1, 2.5], [3, 4]])
        self.assertEqual(mnp.genfromtxt(["1,2"], dtype=np.int64, delimiter=",").dtype, np.int64)

    def test_types(self):
        for first in ("bool", "int8", "int32", "int64", "float16", "float32"):
            for second in ("int8", "uint8", "float16", "float64"):
                if {first, second} == {"int8", "uint8"}:
                    self.assertRaisesRegex(NotImplementedError, "not in Starling", lambda: mnp.ones(2, first) * mnp.ones(2, second))
                    continue
                a, b = mnp.array([1, 0, 1], dtype=first), mnp.array([3, 2, 5], dtype=second)
                np.testing.assert_allclose((a / b).asnumpy(), a.asnumpy() / b.asnumpy(), rtol=2e-3)
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
            for other in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
                given = np.array([0, 1, 127, 200, 255, 40000, 2**31 - 1, 2**31 + 5, 2**32 - 1]).astype(kind)
                np.testing.assert_array_equal(nd.array(given, dtype=kind).astype(other).asnumpy(), given.astype(other), f"{kind} as {other}")

    def test_reductions(self):
        a = np.array([[0.5, 0.9, 1.75], [2.5, -0.25, 3.0]])
        for kind in ("float32", "float16", "int32", "int8", "bool"):
            x = mnp.array(a).astype(kind)
            for dtype in ("float16", "float32", "float64", "int32", "int64"):
                for axis in (None, 0, (), (0, 1)):
                    mean, total = (getattr(x, name)(axis=axis, dtype=dtype) for name in ("mean", "sum"))
                    given = x.asnumpy().astype("float64")
                    np.testing.assert_allclose(mean.asnumpy(), np.mean(given, axis=axis).astype(dtype), rtol=2e-3)
                    np.testing.assert_allclose(total.asnumpy(), np.sum(given, axis=axis).astype(dtype), rtol=2e-3)
                    self.assertEqual((mean.dtype, total.dtype), (np.dtype(dtype),) * 2)

    def test_contexts_of_one_device(self):
        """Each context has its own backward pass: gradients are added, wherever the contexts are."""
        w = gluon.Parameter("w", shape=(3,))
        w.initialize(ctx=[mx.cpu(0), mx.cpu(1)] if mx.context.device_count("cpu") == 1 else [mx.cpu(0), mx.cpu(0)], init="zeros")
        trainer = gluon.Trainer([w], "sgd", {"learning_rate": 1.0})
        with autograd.record():
            for values in w.list_data():
                (values * 2).backward()
        trainer.step(1)
        np.testing.assert_array_equal(w.data(mx.cpu(0)).asnumpy(), [-4, -4, -4])
        chain = nn.Sequential()
        chain.add(nn.Dense(2, in_units=2))
        chain.initialize()
        chain.add(nn.Dense(2, in_units=2))
        self.assertRaises(RuntimeError, chain[1].weight.list_ctx)

    def test_arrays_without_elements(self):
        """Files of such arrays have the meaning of shapes that they were written with; a mask without true elements is differentiable."""
        with tempfile.TemporaryDirectory() as folder:
            for written in (False, True):
                with mx.np_shape(True):
                    arrays = [nd.zeros((2, 0, 3)), nd.ones((2, 2))]
                with mx.np_shape(written):
                    nd.save(f"{folder}/a", arrays)
                for read in (False, True):
                    with mx.np_shape(read):
                        if read == written:
                            self.assertEqual([a.shape for a in nd.load(f"{folder}/a")], [(2, 0, 3), (2, 2)])
                        else:
                            self.assertRaisesRegex(mx.MXNetError, "np_shape", nd.load, f"{folder}/a")
        with mx.np_shape(True):
            x = nd.ones((2, 3))
            x.attach_grad()
            with autograd.record():
                y = nd.contrib.boolean_mask(x, nd.zeros((2,)))
            y.backward()
        self.assertEqual((y.shape, x.grad.asnumpy().tolist()), ((0, 3), np.zeros((2, 3)).tolist()))
        self.assertEqual(nd.zeros(np.array([2, 3])).shape, (2, 3))

    def test_long_windows(self):
        """A convolution whose window is the whole image rounds as little compiled as call by call."""
        x = np.random.default_rng(1).uniform(-1, 1, (4, 3, 224, 224)).astype("float32")
        net = nn.Conv2D(16, 224, in_channels=3)
        net.initialize(mx.init.Uniform(1))
        exact = np.einsum("nchw,ochw->no", x.astype("float64"), net.weight.data().asnumpy().astype("float64"))
        for compiled in (False, True):
            net.hybridize(compiled)
            np.testing.assert_allclose(net(nd.array(x)).asnumpy().reshape(4, 16), exact, rtol=0, atol=1e-3)

    def test_upper_triangles(self):
        a = np.array([[4.0, 1], [1, 3]])
        for function, numbers in ((nd.linalg.potrf, np.linalg.cholesky(a).T), (nd.linalg.potri, np.linalg.inv(np.triu(a).T @ np.triu(a)))):
            np.testing.assert_allclose(function(nd.array(a), lower=False).asnumpy(), numbers, rtol=1e-5)
        x = nd.array(a, dtype="float64")
        x.attach_grad()
        found = []
        for lower in (False, True):
            with autograd.record():
                y = (nd.linalg.potrf(x, lower=lower) * nd.array([[1.0, 2], [2, 4]], dtype="float64")).sum()
            y.backward()
            found.append(x.grad.asnumpy())
        np.testing.assert_allclose(*found)

    def test_sparse_norms(self):
        sparse = nd.ones((2, 3)).tostype("row_sparse")
        args = [nd.ones((3,)) for _ in range(4)]
        self.assertRaisesRegex(mx.MXNetError, "fix_gamma", nd.BatchNorm, sparse, *args)
        self.assertEqual(nd.BatchNorm(sparse, *args, fix_gamma=False).shape, (2, 3))

    def test_einsum(self):
        numbers = np.random.RandomState(1)
        for text, *shapes in (("ij, ij -> i", (1, 4), (2, 4)), ("ij,jk", (3, 1), (4, 2)), ("i,i->", (1,), (5,)), ("ij->j", (1, 3)), ("ab,b->ab", (2, 3), (1,))):
            given = [numbers.rand(*s).astype("float32") for s in shapes]
            arrays = [mnp.array(g) for g in given]
            for a in arrays:
                a.attach_grad()
            with autograd.record():
                y = mnp.einsum(text, *arrays)
            np.testing.assert_allclose(y.asnumpy(), np.einsum(text, *given), rtol=1e-5)
            y.backward()
            for a in arrays:
                self.assertEqual(a.grad.shape, a.shape)
        np.testing.assert_allclose(arrays[1].grad.asnumpy(), [given[0].sum()], rtol=1e-5)


class Random(unittest.TestCase):
    def test_gradients(self):
        """Numbers that are functions of their parameters: their gradients, from the numbers themselves."""
        loc, scale = mnp.array([0.5, 1.0]), mnp.array([2.0, 3.0])
        for name in ("gumbel", "logistic", "laplace", "normal"):
            for p in (loc, scale):
                p.attach_grad()
            with autograd.record():
                y = getattr(mnp.random, name)(loc, scale, (4, 2))
            y.backward()
            np.testing.assert_allclose(loc.grad.asnumpy(), [4, 4])
            np.testing.assert_allclose(scale.grad.asnumpy(), ((y - loc) / scale).asnumpy().sum(0), rtol=1e-4)
        a = mnp.array([0.5, 2.0])
        for name, slope in (("weibull", lambda y, a: -y * np.log(y) / a), ("pareto", lambda y, a: -(y + 1) * np.log(y + 1) / a),
                            ("power", lambda y, a: -y * np.log(y) / a), ("rayleigh", lambda y, a: y / a)):  # fmt: skip
            a.attach_grad()
            with autograd.record():
                y = getattr(mnp.random, name)(a, size=(5, 2))
            y.backward()
            np.testing.assert_allclose(a.grad.asnumpy(), slope(y.asnumpy(), a.asnumpy()).sum(0), rtol=1e-3)
        a.attach_grad()
        with autograd.record():
            y = mnp.random.lognormal(a, 1.0)
        y.backward()
        np.testing.assert_allclose(a.grad.asnumpy(), y.asnumpy(), rtol=1e-5)

    def test_means(self):
        """The distributions' means, far from the next one in doubt."""
        for name, args, mean in (("gumbel", (1.0, 2.0), 1 + 2 * 0.5772), ("logistic", (1.0, 1.0), 1), ("lognormal", (0.0, 0.5), np.exp(0.125)),
                                 ("rayleigh", (2.0,), 2 * np.sqrt(np.pi / 2)), ("weibull", (2.0,), 0.8862), ("pareto", (4.0,), 1 / 3), ("power", (3.0,), 0.75)):  # fmt: skip
            npx.random.seed(3)
            drawn = getattr(mnp.random, name)(*map(mnp.array, args), size=(40000,)).asnumpy()
            self.assertLess(abs(drawn.mean() - mean), 0.05 * max(1, abs(mean)), name)

    def test_parameters(self):
        for name in ("pareto", "power", "weibull"):
            for a in (0, -1, mnp.array([1.0, 0.0])):
                self.assertRaises(ValueError, getattr(mnp.random, name), a)
        self.assertRaises(ValueError, mnp.random.gamma, 1, 0)
        self.assertRaises(ValueError, mnp.random.rayleigh, -1)
        self.assertEqual(mnp.random.multinomial(10, [], size=(2,)).shape, (2, 0))
        self.assertEqual(npx.random.uniform_n(mnp.zeros(3), mnp.ones(3), batch_shape=(5, 2)).shape, (5, 2, 3))
        self.assertEqual(npx.random.normal_n(mnp.zeros(()), 1.0).shape, ())
        drawn = []
        for _ in range(2):
            npx.random.seed(seed=11)
            drawn.append(mnp.random.uniform(size=(3,)).asnumpy())
        np.testing.assert_array_equal(*drawn)


class Memory(unittest.TestCase):
    def test_from_numpy(self):
        a = np.arange(6, dtype="float32").reshape(2, 3)
        x, again = nd.from_numpy(a), nd.from_numpy(a)
        self.assertRaises(ValueError, a.__setitem__, (0, 0), 1)
        for t, place, value in ((x, (1, 1), 100.0), (again, (0, 2), -7.0)):
            t[place] = value
            t.wait_to_read()
            self.assertEqual(a[place], value)
        x += 1
        x.wait_to_read()
        self.assertEqual(a[1, 1], 101)
        self.assertRaises(ValueError, nd.from_numpy, np.ones((3, 4)).T)
        mine = nd.from_numpy(a, zero_copy=False)
        mine[0, 0] = 55
        self.assertNotEqual(a[0, 0], 55)

    def test_iterable(self):
        for scalar in (mnp.array(2.0), mnp.ones((2,)).sum()):
            self.assertFalse(np.iterable(scalar))
        self.assertEqual([float(x) for x in mnp.arange(3)], [0, 1, 2])

    def test_numpys_functions(self):
        x = nd.array([[1, 5, 2], [7, 0, 3]])
        for function, options in ((np.argmax, {"axis": 1}), (np.sum, {"axis": 0}), (np.transpose, {}), (np.reshape, {"newshape": (3, 2)}), (np.clip, {"a_min": 1, "a_max": 4})):
            with self.subTest(function.__name__):
                if function is np.reshape:
                    got, wanted = function(x, (3, 2)), function(x.asnumpy(), (3, 2))
                else:
                    got, wanted = function(x, **options), function(x.asnumpy(), **options)
                self.assertIs(type(got), nd.NDArray)
                np.testing.assert_allclose(got.asnumpy(), wanted)
        y = mnp.array([[1.0, 5], [7, 2]])
        y.attach_grad()
        with autograd.record():
            z = np.swapaxes(np.exp(y), 0, 1)
        z.backward()
        self.assertIs(type(z), mnp.ndarray)
        np.testing.assert_allclose(y.grad.asnumpy(), np.exp(y.asnumpy()), rtol=1e-5)


class Blocks(unittest.TestCase):
    def test_forms(self):
        class Sum(gluon.HybridBlock):
            def hybrid_forward(self, F, a, b=None):
                return a if b is None else b if a is None else a + b

        x = nd.ones((3,))
        self.assertRaises(ValueError, Sum(), None, None)
        self.assertRaises(ValueError, Sum(), x, mx.sym.var("a"))
        net = Sum()
        net.hybridize()
        np.testing.assert_array_equal(net(x, None).asnumpy(), net(x).asnumpy())
        self.assertRaisesRegex(ValueError, "argument structure", net, x, x)
        net.hybridize()
        np.testing.assert_array_equal(net(x, x).asnumpy(), [2, 2, 2])
        self.assertRaises(ValueError, net, x, 1)
        self.assertRaisesRegex(ValueError, "on cpu.2, those before it on cpu.1", net, nd.ones((3,), mx.cpu(1)), nd.ones((3,), mx.cpu(2)))
        self.assertRaises(ValueError, net, None, None)

    def test_older_files(self):
        """Files of save_params and of collect_params().save, whose names have no dots, are read by load_parameters."""
        def made(prefix):
            net = nn.HybridSequential(prefix=prefix)
            with net.name_scope():
                net.add(nn.Dense(3, in_units=2), nn.Dense(2, in_units=3))
            net.initialize(mx.init.Uniform(1))
            return net

        net, x = made("one_"), nd.ones((1, 2))
        with tempfile.TemporaryDirectory() as folder:
            net.save_params(f"{folder}/a.params")
            net.collect_params().save(f"{folder}/b.params", strip_prefix="one_")
            self.assertEqual(sorted(nd.load(f"{folder}/a.params")), ["dense0_bias", "dense0_weight", "dense1_bias", "dense1_weight"])
            for name in "ab":
                for options in ({}, {"allow_missing": True}, {"ignore_extra": True}):
                    other = made("two_")
                    other.load_parameters(f"{folder}/{name}.params", **options)
                    np.testing.assert_array_equal(other(x).asnumpy(), net(x).asnumpy())
            nd.save(f"{folder}/c.params", {"dense0_bias": nd.ones((3,))})
            self.assertRaises(OSError, net.load_parameters, f"{folder}/c.params")
            net.load_parameters(f"{folder}/c.params", allow_missing=True)
            self.assertEqual(net[0].bias.data().asnumpy().tolist(), [1, 1, 1])
            data, net = mx.sym.var("data"), made("")
            net.save_params(f"{folder}/d.params")
            block = gluon.SymbolBlock(mx.sym.load_json(net(data).tojson()), data)
            block.load_params(f"{folder}/d.params", ctx=mx.cpu())
            np.testing.assert_array_equal(block(x).asnumpy(), net(x).asnumpy())

    def test_classes_of_results(self):
        class Both(gluon.HybridBlock):
            def hybrid_forward(self, F, x):
                return x.as_nd_ndarray() + 1, x.as_nd_ndarray() * 2

        net = Both()
        for compiled in (False, True):
            net.hybridize(compiled)
            self.assertEqual([type(y) for y in net(mnp.ones((2, 2)))], [nd.NDArray] * 2)

        @mx.util.use_np
        class Own(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self.w = self.params.get("w", shape=(2, 3))

            def hybrid_forward(self, F, x, w):
                return F.np.dot(x, w)

        net = Own()
        net.initialize()
        self.assertIs(type(net(mnp.ones((1, 2)))), mnp.ndarray)
        self.assertIs(type(net.w.data()), mnp.ndarray)

    def test_attributes(self):
        class Named(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self._kind = "mine"

            def hybrid_forward(self, F, x):
                return x if self._kind == "mine" else None

        np.testing.assert_array_equal(Named()(nd.ones((2,))).asnumpy(), [1, 1])
        block = gluon.Block()
        block.inner = nn.Dense(2)
        self.assertRaises(TypeError, setattr, block, "inner", 2)
        block.inner = nn.Dense(3)
        block.more = [nn.Dense(2)]
        with self.assertWarnsRegex(UserWarning, "unregistered container"):
            block.collect_params()
        chain = nn.Sequential()
        chain.add(nn.Dense(2))
        with self.assertWarnsRegex(UserWarning, "HybridSequential"):
            chain.hybridize()

    def test_fixed_parameters(self):
        """center=False and scale=False: parameters without gradients, which a trainer leaves alone."""
        x = nd.array(np.random.RandomState(2).rand(3, 4, 5))
        for kind in (nn.BatchNorm, nn.LayerNorm, nn.InstanceNorm, nn.GroupNorm):
            for center, scale in ((True, False), (False, True), (True, True)):
                layer = kind(center=center, scale=scale)
                layer.initialize()
                found = {name.rsplit("_", 1)[1]: p for name, p in layer.collect_params().items() if not name.endswith(("mean", "var"))}
                self.assertEqual({n: p.grad_req for n, p in found.items()}, {"beta": "write" if center else "null", "gamma": "write" if scale else "null"})
                trainer = gluon.Trainer(layer.collect_params(), "sgd", {"learning_rate": 0.5})
                with autograd.record():
                    y = (layer(x) ** 3).sum()
                y.backward()
                trainer.step(1)
                for name, usual, trained in (("beta", 0, center), ("gamma", 1, scale)):
                    self.assertEqual(bool((found[name].data().asnumpy() == usual).all()), not trained, (kind.__name__, name))

    def test_schedulers(self):
        """Any function of the number of updates is a scheduler."""
        net = nn.Dense(1, in_units=1, use_bias=False)
        net.initialize(mx.init.Zero())
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": lambda n: 1 / (n + 1)})
        for _ in range(3):
            with autograd.record():
                y = net(nd.ones((1, 1))).sum()
            y.backward()
            trainer.step(1)
        np.testing.assert_allclose(net.weight.data().asnumpy(), [[-(1 / 2 + 1 / 3 + 1 / 4)]], rtol=1e-6)

    def test_parts_of_sparse(self):
        rows = mx.nd.sparse.csr_matrix(([2.0, 1.0], [1, 2], [0, 1, 1, 2, 2]), shape=(4, 5))
        parts = gluon.utils.split_and_load(rows, (mx.cpu(0), mx.cpu(0)))
        self.assertEqual([p.stype for p in parts], ["csr"] * 2)
        np.testing.assert_array_equal(np.concatenate([p.asnumpy() for p in parts]), rows.asnumpy())

    def test_shared(self):
        """params= of a network: layers with the same names are the same ones."""
        class Net(gluon.Block):
            def __init__(self, units=2, **common):
                super().__init__(**common)
                with self.name_scope():
                    self.first, self.second = nn.Dense(4, in_units=3), nn.Dense(units, in_units=4)

            def forward(self, x):
                return self.second(self.first(x))

        one = Net(prefix="one_")
        other = Net(prefix="other_", params=one.collect_params())
        one.initialize()
        x = nd.array(np.random.RandomState(0).rand(2, 3))
        np.testing.assert_array_equal(one(x).asnumpy(), other(x).asnumpy())
        one.second.weight.set_data(nd.zeros((2, 4)))
        np.testing.assert_array_equal(other(x).asnumpy(), np.zeros((2, 2)))
        self.assertEqual(list(one.collect_params()), list(other.collect_params()))
        self.assertRaisesRegex(NotImplementedError, "not in Starling", Net, units=5, prefix="third_", params=one.collect_params())

    def test_refusals(self):
        net = nn.Dense(2, in_units=3)
        trainer = gluon.Trainer(net.collect_params(), "sgd")

        class Guess(gluon.HybridBlock):
            def __init__(self):
                super().__init__()
                self.w = self.params.get("w", shape=(0, 3), allow_deferred_init=True)

            def hybrid_forward(self, F, x, w):
                return F.dot(x, w)

        guess = Guess()
        guess.initialize()
        with autograd.record():
            whole = mnp.sum(mnp.ones((2,)), dtype="int32")
        for refused in (lambda: nn.Dense(0), lambda: gluon.Parameter("w", shape=(2,), dtype="int8"), lambda: net(mx.sym.var("x")), lambda: trainer._kvstore, lambda: copy.deepcopy(net), lambda: guess(nd.ones((2, 2))),
                        lambda: nd.ones((2,))._fresh_grad, lambda: nd.ones((2,)).__setstate__({}), lambda: net._cached_graph, whole.backward,
                        lambda: nd.ones((2,), dtype="bool").attach_grad(), lambda: mnp.shares_memory(mnp.ones(2), mnp.ones(2)),
                        lambda: mx.contrib.text.embedding.get_pretrained_file_names("fasttext")):  # fmt: skip
            with self.assertRaisesRegex(NotImplementedError, "is not in Starling; use "):
                refused()
        self.assertFalse(hasattr(net, "_nothing"))
        self.assertTrue(hasattr(mx.optimizer.SGD(), "allow_np_array"))
        self.assertEqual(mx.Context.devtype2str[mx.gpu(3).device_typeid], "gpu")


if __name__ == "__main__":
    unittest.main()
