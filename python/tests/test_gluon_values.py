"""The Gluon face takes what is given as it is, or refuses it: keywords, out=, random numbers, settings after the first step."""
import inspect
import types
import unittest

import numpy as np
from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx import np as mnp
from starling.mx import npx, sym

SPACES = {
    "nd": nd, "nd.random": nd.random, "nd.linalg": nd.linalg, "np": mnp, "np.random": mnp.random, "np.linalg": mnp.linalg, "npx": npx, "sym": sym,
    "autograd": autograd, "init": mx.init, "optimizer": mx.optimizer, "metric": mx.metric, "lr_scheduler": mx.lr_scheduler, "gluon": gluon, "nn": gluon.nn,
    "loss": gluon.loss, "rnn": gluon.rnn, "data": gluon.data, "utils": gluon.utils, "transforms": gluon.data.vision.transforms,
}  # fmt: skip
NO_FUNCTIONS = {"np.NULL", "np.random.Space", "np.Space", "np.linalg.Space"}


def public():
    """(name, function or class) of all that a program can call."""
    for space, module in SPACES.items():
        for name in dir(module):
            f = getattr(module, name, None) if not name.startswith("_") else None
            if callable(f) and not isinstance(f, types.ModuleType) and not (isinstance(f, type) and issubclass(f, Exception)):
                if f"{space}.{name}" not in NO_FUNCTIONS:
                    yield f"{space}.{name}", f


class Keywords(unittest.TestCase):
    def test_unknown(self):
        """A TypeError, whatever else is given."""
        x, count = nd.ones((2, 3)), 0
        for name, f in public():
            try:
                parameters = inspect.signature(f).parameters.values()
            except ValueError:
                continue
            needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
            if name.endswith(".create") and f.__module__.endswith(("optimizer", "metric", "init")):
                continue  # by a name, below
            for args in ([x] * len(needed), []):
                with self.assertRaises(TypeError, msg=name):
                    f(*args, no_such_keyword=1)
            count += 1
        self.assertGreater(count, 700)

    def test_makers(self):
        for call in (
            lambda: mx.optimizer.create("sgd", no_such=1), lambda: mx.metric.create("acc", no_such=1), lambda: mx.init.create("normal", no_such=1),
            lambda: mx.init.create(mx.init.Normal(), no_such=1), lambda: gluon.Trainer({}, "sgd", {"no_such": 1}),
        ):  # fmt: skip
            self.assertRaises(TypeError, call)

    def test_methods(self):
        net = gluon.nn.Dense(2, in_units=3)
        net.initialize()
        made = (nd.ones(3), mnp.ones(3), net.weight, mx.metric.Accuracy(), gluon.loss.L2Loss(), mx.init.Xavier(), mx.optimizer.SGD())
        for owner in made:
            for name in dir(owner):
                f = getattr(owner, name, None) if not name.startswith("_") else None
                if callable(f):
                    with self.assertRaises(TypeError, msg=f"{type(owner).__name__}.{name}"):
                        f(no_such_keyword=1)


def calls(base):
    """Arguments, of which most functions take some."""
    x, i, c = base.array(np.array([[1, 0.5], [0.25, 2]], "f")), base.array(np.array([0, 1], "f")), base.array(np.ones((2, 2, 2), "f"))
    return (
        ((x,), {}), ((x, x), {}), ((x, i), {}), ((x, 2), {}), ((x, x, x), {}), ((x, 0, 1), {}), ((x,), {"axis": 1}), ((x,), {"shape": (4,)}), ((), {"shape": (2, 2)}),
        ((2,), {}), ((c, c), {}), ((x,), {"depth": 3}), (((2, 2), 3.0), {}), (([x, x],), {}), ((x, i, i), {}), ((x,), {"reps": (2, 1)}), ((x,), {"scalar": 2.0}),
        ((x,), {"dtype": "float64"}), ((x,), {"a_min": 0, "a_max": 1}),
    )  # fmt: skip


class Out(unittest.TestCase):
    def test_everywhere(self):
        """out= gets the result and is returned; another shape or data type is refused."""
        count = 0
        self.addCleanup(mx.npx.reset_np)  # npx.set_np is among the functions
        for space, base in (("nd", nd), ("nd.linalg", nd), ("np", mnp), ("np.linalg", mnp), ("npx", mnp)):
            module = SPACES[space]
            for name in dir(module):
                f = getattr(module, name, None) if not name.startswith("_") else None
                if isinstance(f, (types.FunctionType, types.BuiltinFunctionType)) and name not in ("into", "empty", "empty_like"):
                    count += self.check(f, f"{space}.{name}", base)
        self.assertGreater(count, 100)

    def check(self, f, name, base):
        for args, options in calls(base):
            try:
                mx.random.seed(3)
                wanted = f(*args, **options)
                wanted.wait_to_read()  # an index out of range shows when it is computed
                out = base.zeros(wanted.shape, dtype=wanted.dtype)
            except Exception:
                continue
            mx.random.seed(3)
            try:
                got = f(*args, out=out, **options)
            except TypeError as error:
                self.assertIn("out", str(error), name)
                return False
            self.assertIs(got, out, name)
            np.testing.assert_array_equal(out.asnumpy(), wanted.asnumpy(), name)
            for wrong in (base.zeros((7, *wanted.shape), dtype=wanted.dtype), base.zeros(wanted.shape, dtype="float16")):
                if "random" not in name:  # whose result has out's shape
                    self.assertRaises(Exception, f, *args, out=wrong, **options)
            return True
        return False


class Random(unittest.TestCase):
    def test_parameters_that_are_arrays(self):
        """A draw for each element, in NumPy's shapes."""
        ones = mnp.ones(4)
        for made, shape in (
            (mnp.random.exponential(ones), (4,)), (mnp.random.exponential(ones, size=(3, 4)), (3, 4)), (mnp.random.normal(ones), (4,)),
            (mnp.random.normal(ones, ones, size=(3, 4)), (3, 4)), (mnp.random.normal(0, ones), (4,)), (mnp.random.uniform(mnp.zeros(4), 1, size=(2, 4)), (2, 4)),
            (mnp.random.normal(ones, out=mnp.zeros(4)), (4,)), (mnp.random.exponential(scale=ones, out=mnp.zeros(4)), (4,)), (nd.random.randn(2, 3), (2, 3)),
            (nd.random.normal(nd.ones(4), nd.ones(4), shape=3), (4, 3)),
        ):  # fmt: skip
            self.assertEqual(made.shape, shape)
            self.assertEqual(len(set(made.asnumpy().ravel().tolist())), made.size)
        np.testing.assert_array_equal(mnp.random.normal(ones * 5, 0).asnumpy(), [5] * 4)
        self.assertEqual(mnp.random.randint(0, 9, size=3).dtype, np.int64)

    def test_refused(self):
        for call in (
            lambda: mnp.random.normal(mnp.ones(4), size=(3,)), lambda: nd.random.exponential(-1, shape=3), lambda: mnp.random.exponential(-1.0, size=3),
            lambda: nd.random_exponential(lam=0, shape=3), lambda: nd.random.gamma(1, 1, shape=3, dtype="int32"), lambda: nd.random.poisson(1, out=nd.zeros(3, dtype="int64")),
        ):  # fmt: skip
            self.assertRaises((ValueError, TypeError), call)


class Refused(unittest.TestCase):
    """What MXNet refuses, or gives otherwise than one would write it down: answers of MXNet 1.9.1."""

    def test_axes(self):
        x = nd.array([[1.0, 2, 3], [4, 5, 7]])
        for call in (
            lambda: nd.expand_dims(x, 5), lambda: nd.slice_axis(x, 5, 0, 1), lambda: nd.slice_axis(x, 1, 0, 9), lambda: nd.squeeze(x, axis=0),
            lambda: nd.pick(x, nd.array([0, 1]), axis=5), lambda: nd.tile(x, (0,)), lambda: nd.clip(x, float("nan"), 2), lambda: x.squeeze(7),
            lambda: nd.hard_sigmoid(nd.array([1, 2], dtype="int32")),
        ):  # fmt: skip
            self.assertRaises((ValueError, TypeError), call)
        self.assertEqual(nd.clip(x, 4, 2).asnumpy().tolist(), [[4, 4, 2], [2, 2, 2]])

    def test_integers(self):
        u = nd.array([0, 1, 2], dtype="uint8")
        least = nd.array([5, -(2**31), 2], dtype="int32")
        for got, wanted, dtype in (
            (nd.argmin(u), [0], "uint8"), (nd.argmax(u), [2], "uint8"), (nd.argmin(least), [1], "int32"), (nd.topk(u, k=2, is_ascend=True), [0, 1], "float32"),
            (nd.topk(least, k=1, is_ascend=True, ret_typ="value"), [-(2**31)], "int32"), (nd.nansum(nd.array([200, 100], dtype="uint8")), [44], "uint8"),
            (nd.degrees(nd.array([2, 250], dtype="int32")), [114, 14323], "int32"), (nd.radians(nd.array([250], dtype="uint8")), [4], "uint8"),
            (nd.smooth_l1(nd.array([3, 250], dtype="uint8")), [2, 249], "uint8"), (nd.full((1,), 2**53 + 1, dtype="int64"), [2**53 + 1], "int64"),
        ):  # fmt: skip
            self.assertEqual((got.asnumpy().tolist(), np.dtype(got.dtype).name), (wanted, dtype))

    def test_floats(self):
        inf = float("inf")
        np.testing.assert_array_equal((nd.array([2.5, -3, 0, 7]) % inf).asnumpy(), [2.5, inf, 0, 7])
        np.testing.assert_array_equal(nd.rcbrt(nd.array([0.0, 8, -8])).asnumpy(), np.float32([inf, 0.5, -0.5]))


class Late(unittest.TestCase):
    """What is set after the first step."""

    def step(self, change, kind="sgd", hybrid=False, **options):
        """How weight and bias move in the second step."""
        net = gluon.nn.Dense(1, in_units=1)
        net.initialize(mx.init.Constant(1))
        if hybrid:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), kind, {"learning_rate": 0.1, **options})
        for i in range(3):
            with autograd.record():
                loss = net(nd.ones((1, 1))).sum()
            loss.backward()
            before = [p.data().asnumpy().copy() for p in (net.weight, net.bias)]
            trainer.step(1)
            if i == 0:
                change(net, trainer)
        return [round(float((b - p.data().asnumpy()).item()), 5) for b, p in zip(before, (net.weight, net.bias))]

    def test_momentum(self):
        for hybrid in (False, True):
            set_ = lambda value: lambda _, t: setattr(t.optimizer, "momentum", value)  # noqa: E731
            self.assertEqual(self.step(set_(0.9), hybrid=hybrid), [0.19, 0.19])
            self.assertEqual(self.step(set_(0), hybrid=hybrid, momentum=0.9), [0.1, 0.1])
            self.assertEqual(self.step(set_(0.9), "nag", hybrid), [0.271, 0.271])

    def test_parameters(self):
        for hybrid in (False, True):
            for name, value, wanted in (("grad_req", "null", 0), ("lr_mult", 0, 0), ("lr_mult", 2, 0.2)):
                self.assertEqual(self.step(lambda n, _: setattr(n.weight, name, value), hybrid=hybrid), [wanted, 0.1], name)
                self.assertEqual(self.step(lambda n, _: n.collect_params(".*weight").setattr(name, value), hybrid=hybrid), [wanted, 0.1], name)
            self.assertEqual(self.step(lambda _, t: setattr(t.optimizer, "lr", 0), hybrid=hybrid), [0, 0])
            self.assertEqual(self.step(lambda _, t: setattr(t.optimizer, "clip_gradient", 0.5), hybrid=hybrid), [0.05, 0.05])

    def test_layers(self):
        for layer, name in ((gluon.nn.Dropout(0.5), "_rate"), (gluon.nn.Dense(2), "_units"), (gluon.nn.BatchNorm(), "_kwargs"), (gluon.nn.Dense(2), "act")):
            self.assertRaisesRegex(AttributeError, name, setattr, layer, name, 0)

    def test_attributes(self):
        """Of a compiled block: those of the class, None, functions."""

        class Net(gluon.HybridBlock):
            factor, shift, function = 2, None, None

            def hybrid_forward(self, F, x):
                y = x * self.factor if self.shift is None else x * self.factor + self.shift
                return y if self.function is None else self.function(y)

        net, x = Net(), nd.ones(1)
        net.initialize()
        net.hybridize()
        for name, value, wanted in (("factor", 2, 2), ("factor", 3, 3), ("shift", 1.5, 4.5), ("shift", None, 3), ("function", nd.square, 9), ("function", nd.negative, -3), ("shift", nd.ones(1), -4)):
            setattr(net, name, value)
            self.assertEqual(net(x).asscalar(), wanted, (name, value))

    def test_clip_gradient(self):
        """Below 0 it is none for the operators of MXNet; those that MXNet makes of functions refuse it."""
        for kind, wanted in (("sgd", [0.1, 0.1]), ("adam", [0.1, 0.1])):
            self.assertEqual(self.step(lambda *_: None, kind, clip_gradient=-1), wanted)
        self.assertRaisesRegex(ValueError, "clip_gradient", self.step, lambda *_: None, "adagrad", clip_gradient=-1)


class Given(unittest.TestCase):
    """What is given beside others, and data types on the way."""

    def test_loader(self):
        """Batches keep whole numbers; NumPy's float64 becomes float32, or is refused."""
        samples = gluon.data.ArrayDataset(np.ones((2, 3)), np.array([2**53 + 1, -(2**40)]))
        x, y = next(iter(gluon.data.DataLoader(samples, 2)))
        self.assertEqual((x.dtype, y.dtype, y.asnumpy().tolist()), (np.float32, np.int64, [2**53 + 1, -(2**40)]))
        wrong = gluon.data.DataLoader(gluon.data.ArrayDataset(np.full((2, 3), 1e300)), 2)
        self.assertRaises(TypeError, lambda: next(iter(wrong)))

    def test_large_indices(self):
        """Beyond int32 they do not come back as others."""
        scores, large = nd.array([[0.9, 0.1], [0.2, 0.8]]), nd.array([0, 2**32], dtype="int64")
        words = gluon.nn.Embedding(3, 2)
        words.initialize()
        for call in (lambda: gluon.loss.SoftmaxCrossEntropyLoss()(scores, large), lambda: words(large), lambda: nd.take(scores, large, mode="raise")):
            with self.assertRaises(Exception):
                call().asnumpy()
        self.assertEqual(nd.take(scores, large).asnumpy().tolist(), scores.asnumpy().tolist())  # clipped, as in MXNet
        self.assertEqual(nd.one_hot(large, 2).asnumpy().tolist(), [[1, 0], [0, 0]])
        np.testing.assert_allclose(gluon.loss.SoftmaxCrossEntropyLoss()(scores, nd.array([0, 1], dtype="int64")).asnumpy(), [0.371101, 0.437488], rtol=1e-5)

    def test_numpy(self):
        """Bits, norms of matrices, no axis, and NumPy's whole numbers are NumPy's."""
        i, x = mnp.array(np.array([[1, 2, 3], [4, 5, 6]])), mnp.array([[0.0, 1, 2], [3, 4, 5]])
        self.assertEqual((i.dtype, mnp.array(np.array([2**53 + 1])).item()), (np.int64, 2**53 + 1))
        for given, wanted in ((~i, ~i.asnumpy()), (i & 3, i.asnumpy() & 3), (3 | i, 3 | i.asnumpy()), (i ^ i, i.asnumpy() * 0), (~(x > 2), ~(x.asnumpy() > 2)),
                              ((x > 2) & (x > 4), x.asnumpy() > 4), (mnp.sum(x, axis=()), x.asnumpy()), (mnp.max(x, axis=()), x.asnumpy())):  # fmt: skip
            np.testing.assert_array_equal(given.asnumpy(), wanted)
        for wrong in (lambda: ~x, lambda: x & 1, lambda: x | x):
            self.assertRaises(TypeError, wrong)
        for order in (None, 1, "fro"):
            np.testing.assert_allclose(mnp.linalg.norm(x, ord=order).asnumpy(), np.linalg.norm(x.asnumpy(), ord=order), rtol=1e-6)
        for wrong in (lambda: mnp.linalg.norm(x, ord=2), lambda: mnp.linalg.norm(x, ord=np.inf), lambda: mnp.std(x, axis=())):
            self.assertRaises(NotImplementedError, wrong)

    def test_together(self):
        x, image = nd.ones((2, 3, 4)), nd.ones((1, 1, 4, 4))
        one = nd.ones(1)
        for wrong in (
            lambda: nd.FullyConnected(x, nd.ones((1, 12)), one, no_bias=True, num_hidden=1), lambda: nd.Convolution(image, nd.ones((1, 1, 2, 2)), one, no_bias=True, num_filter=1, kernel=(2, 2)),
            lambda: nd.Deconvolution(image, nd.ones((1, 1, 2, 2)), one, no_bias=True, num_filter=1, kernel=(2, 2)), lambda: nd.SequenceMask(x, nd.ones(3)),
            lambda: nd.SequenceLast(x, nd.ones(3)), lambda: nd.elemwise_add(x, x[0]), lambda: nd.add_n(x, x[0]), lambda: nd.SequenceReverse(x, nd.ones(3)), lambda: nd.SequenceMask(x, use_sequence_length=True),
            lambda: npx.random.bernoulli(2, size=(2,)), lambda: npx.random.bernoulli(float("nan"), size=(2,)),
        ):  # fmt: skip
            self.assertRaises(ValueError, wrong)
        with self.assertRaises(ValueError):
            mx.metric.TopKAccuracy(top_k=9).update([nd.array([0])], [nd.array([[0.4, 0.6]])])
        self.assertEqual(nd.elemwise_mul(x, x).shape, nd.broadcast_mul(x, x[0]).shape)
        self.assertEqual(nd.FullyConnected(x, nd.ones((1, 12)), one, num_hidden=1).asnumpy().tolist(), [[13], [13]])


if __name__ == "__main__":
    unittest.main()
