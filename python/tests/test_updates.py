"""starling.mx: what updates change besides the weights, beside MXNet 1.9.1's values; layouts, sparse parameters, iterators."""
import os
import tempfile
import unittest

import numpy as np

from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx.gluon import nn

# (optimiser, decay, factor of the gradient): MXNet's weight and momentum after three steps with the rates 0.1, 0.2 and 0.
MOMENTA = {
    ("sgd", 0, 1): ([0.4845, -2.841, 3.9765], [-0.2205, -0.351, 0.3915]),
    ("sgd", 0, -0.5): ([1.25775, -1.4845, 2.159], [0.11025, 0.2205, -0.351]),
    ("sgd", 0.1, 1): ([0.42168, -2.70776, 3.77664], [-0.24552, -0.29736, 0.31104]),
    ("nag", 0, 1): ([0.28605, -3.1569, 4.32885], [-0.2205, -0.351, 0.3915]),
    ("nag", 0, -0.5): ([1.35698, -1.28605, 1.8431], [0.11025, 0.2205, -0.351]),
}


def near(a, b, tolerance=1e-5):
    a = a.asnumpy() if isinstance(a, nd.NDArray) else a
    return np.allclose(np.asarray(a, "float64"), b, rtol=tolerance, atol=tolerance)


class Updates(unittest.TestCase):
    def test_momenta(self):
        for (name, wd, rescale), (weight, momentum) in MOMENTA.items():
            o = mx.optimizer.create(name, learning_rate=0.1, momentum=0.9, wd=wd, rescale_grad=rescale, clip_gradient=1.5)
            w = nd.array([1.0, -2, 3])
            state = o.create_state(0, w)
            for k in range(3):
                o.lr = 0.1 * (k + 1) if k < 2 else 0
                o.update(0, w, nd.array([0.5, 1, -2]) * (k + 1), state)
            self.assertTrue(near(w, weight), (name, wd, rescale, w))
            self.assertTrue(near(state, momentum), (name, wd, rescale, state))

    def test_functions(self):
        w, g = nd.array([1.0, -2]), nd.array([0.5, 0.25])
        mom = nd.array([0.1, 0.2])
        self.assertTrue(near(nd.sgd_mom_update(w, g, mom, lr=0.1, momentum=0.9, wd=0.5), [0.99, -1.745]))
        self.assertTrue(near(mom, [-0.01, 0.255]) and near(w, [1, -2]))
        nd.sgd_update(w, g, lr=0.1, out=w)
        self.assertTrue(near(w, [0.95, -2.025]))
        mean, var = nd.array([0.1, 0.2]), nd.array([0.3, 0.4])
        y = nd.adam_update(w, g, mean, var, lr=0.1)  # no correction of the first steps
        m, v = 0.9 * np.array([0.1, 0.2]) + 0.1 * g.asnumpy(), 0.999 * np.array([0.3, 0.4]) + 0.001 * g.asnumpy() ** 2
        self.assertTrue(near(y, w.asnumpy() - 0.1 * m / (np.sqrt(v) + 1e-8)) and near(mean, m) and near(var, v))
        both = nd.multi_sgd_update(w, g, mom, g, lrs=(0.1, 0.2), wds=(0, 0), num_weights=2)
        self.assertTrue(near(both[0], w.asnumpy() - 0.1 * g.asnumpy()) and near(both[1], mom.asnumpy() - 0.2 * g.asnumpy()))
        self.assertTrue(near(nd.multi_sum_sq(w, mom, num_arrays=2), [(a.asnumpy() ** 2).sum() for a in (w, mom)]))
        self.assertEqual([nd.all_finite(w).asscalar(), nd.multi_all_finite(w, mom / 0, num_arrays=2).asscalar()], [1, 0])
        nd.reset_arrays(mom, num_arrays=1)
        self.assertTrue(near(mom, [0, 0]))
        self.assertRaises(TypeError, nd.sgd_update, w, g, 0.1, momentum=0.5)

    def test_copies_in_float32(self):
        """With multi_precision small steps of float16 add up, and Adam's epsilon is no 0."""
        for name, first in (("sgd", False), ("adam", True)):
            o = mx.optimizer.create(name, learning_rate=1e-4, multi_precision=True)
            w = nd.array([1.0, 2], dtype="float16")
            state = o.create_state_multi_precision(0, w)
            for _ in range(20):
                o.update_multi_precision(0, w, nd.array([1, 0], dtype="float16"), state)
            master = state[0 if first else 1]
            self.assertTrue(near(master, [0.998, 2], 1e-4), (name, master))
            self.assertTrue(near(w.astype("float32"), [0.998, 2], 1e-3) and w.dtype == np.float16)


class Layouts(unittest.TestCase):
    def test_channels_last(self):
        for kind, axes, options in ((nn.Conv1D, 1, {}), (nn.Conv2D, 2, {"groups": 2}), (nn.Conv3D, 3, {}),
                                    (nn.Conv2DTranspose, 2, {"strides": 2, "output_padding": 1})):  # fmt: skip
            first, last = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}[axes]
            x = nd.random.normal(shape=(2, *(6, 5, 4)[:axes], 4))
            a, b = kind(6, 3, layout=last, **options), kind(6, 3, layout=first, **options)
            z = nd.array(np.moveaxis(x.asnumpy(), -1, 1))
            for net, data in ((a, x), (b, z)):
                net.initialize()
                net(data)
            b.weight.set_data(nd.array(np.moveaxis(a.weight.data().asnumpy(), -1, 1)))
            for net, data in ((a, x), (b, z)):
                data.attach_grad()
                with autograd.record():
                    net(data).backward()
            y = a(x).asnumpy()
            self.assertTrue(near(np.moveaxis(b(z).asnumpy(), 1, -1), y) and near(np.moveaxis(z.grad.asnumpy(), 1, -1), x.grad.asnumpy()), kind)
            a.hybridize()
            self.assertTrue(near(a(x), y))
            self.assertIsInstance(a, kind)

    def test_upsampling(self):
        a, b = nd.array(np.arange(8).reshape(1, 2, 2, 2)), nd.array([[[[1]], [[2]]]])
        wanted = np.concatenate([a.asnumpy().repeat(2, 2).repeat(2, 3), b.asnumpy().repeat(4, 2).repeat(4, 3)], 1)
        self.assertTrue(near(nd.UpSampling(a, b, scale=2, sample_type="nearest"), wanted))
        total = wanted[:, :2] + wanted[:, 2:]
        self.assertTrue(near(nd.UpSampling(a, b, scale=2, sample_type="nearest", multi_input_mode="sum"), total))

    def test_topk_mask(self):
        d = nd.array([[3, 1, 2], [0, 5, 4]])
        self.assertTrue(near(nd.topk(d, axis=None, ret_typ="mask", k=2), [[0, 0, 0], [0, 1, 1]]))

    def test_khatri_rao(self):
        y = nd.khatri_rao(nd.array([[1, 2], [3, 4]]), nd.array([[1, 2], [3, 4], [5, 6]]))
        self.assertTrue(near(y, [[1, 4], [3, 8], [5, 12], [3, 8], [9, 16], [15, 24]]))

    def test_symbols_without_shape(self):
        """Functions that depend on the number of axes are called later; they returned their argument."""
        x = mx.sym.var("x", dtype="float32")
        y = mx.sym.Pad(x, mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 2, 2))
        self.assertEqual(y.eval(x=nd.ones((1, 1, 2, 2)))[0].shape, (1, 1, 4, 6))
        z = mx.sym.slice_like(x, mx.sym.var("like"))
        self.assertEqual(z.list_arguments(), ["x", "like"])
        self.assertEqual(z.eval(x=nd.ones((4, 4)), like=nd.ones((2, 3)))[0].shape, (2, 3))


class SparseParameters(unittest.TestCase):
    def test_rows(self):
        p = gluon.Parameter("x", shape=(4, 2), stype="row_sparse", grad_stype="row_sparse")
        p.initialize(init="one")
        self.assertRaises(RuntimeError, p.row_sparse_data, nd.array([1]))  # there is no trainer
        trainer = gluon.Trainer([p], "sgd", {"learning_rate": 1.0})
        with autograd.record():
            w = p.row_sparse_data(nd.array([3, 1]))
            y = (w * 2).sum()
        y.backward()
        self.assertEqual((w.stype, w.indices.asnumpy().tolist(), w.shape), ("row_sparse", [1, 3], (4, 2)))
        self.assertEqual(p.grad().indices.asnumpy().tolist(), [1, 3])
        trainer.step(1)
        self.assertTrue(near(p.row_sparse_data(nd.arange(0, 4)), [[1, 1], [-1, -1], [1, 1], [-1, -1]]))
        self.assertRaises(RuntimeError, p.data)
        self.assertRaises(RuntimeError, gluon.Trainer, [p], "sgd")
        self.assertRaises(ValueError, p.row_sparse_data, nd.array([4]))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path, made = os.path.join(folder, "x.params"), gluon.ParameterDict("net_")
            made.get("w", shape=(3, 2), stype="row_sparse")
            made.initialize(mx.init.One())
            made.save(path)
            dense = gluon.ParameterDict("net_")
            dense.get("w", shape=(3, 2))
            dense.load(path, mx.cpu())
            self.assertTrue(near(dense.get("w").data(), np.ones((3, 2))))


class Around(unittest.TestCase):
    def test_stores(self):
        kv, outs = mx.kv.create("teststore"), [nd.zeros((2,)), nd.zeros((2,))]
        kv.broadcast(1, nd.ones((2,)), out=outs)
        kv.pushpull(1, outs)
        self.assertTrue(near(outs[0], [2, 2]) and near(outs[1], [2, 2]))
        self.assertEqual((kv.type, kv.is_capable("optimizer"), mx.kv.create("local").is_capable("optimizer")), ("teststore", False, True))
        self.assertRaises(NotImplementedError, kv.set_optimizer, mx.optimizer.create("sgd"))

    def test_iterators(self):
        self.assertTrue(near(mx.io.NDArrayIter(np.arange(3), batch_size=7).next().data[0], [0, 1, 2, 0, 1, 2, 0]))
        self.assertIn("label shapes: None", str(mx.io.DataBatch(data=[nd.ones((2, 3))])))
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "x.csv"), "w") as file:
                file.write("200000001,2\n" * 4)
            batches = mx.io.CSVIter(os.path.join(folder, "x.csv"), (2,), batch_size=2, dtype="int32")
            batches.iter_next()
            self.assertEqual(batches.getdata().asnumpy().tolist(), [[200000001, 2]] * 2)

    def test_words(self):
        count = mx.contrib.text.utils.count_tokens_from_str
        self.assertEqual(count("aISbLIFEAis", "IS", "LIFE", to_lower=True), {"a": 1, "b": 1, "ais": 1})


if __name__ == "__main__":
    unittest.main()
