"""Sparse arrays of starling.mx: what is stored, the storage types of results (tried with MXNet 1.9.1), gradients, updates, files, the
store of arrays."""
import os
import pickle
import struct
import tempfile
import unittest

import numpy as np
from starling import mx
from starling.mx import autograd, nd

VALUES = np.array([[0, 1.5, 0], [0, 0, 0], [0.5, 0, 2], [0, 0, -0.25]], "float32")
KINDS = ("default", "csr", "row_sparse")
# The storage types of MXNet 1.9.1's results, by the operands' first letters.
SAME = {"cc": "csr", "rr": "row_sparse"}
RULES = {
    "elemwise_add": SAME,
    "elemwise_sub": SAME,
    "elemwise_mul": {**SAME, "cd": "csr", "dc": "csr", "rd": "row_sparse", "dr": "row_sparse"},
    "elemwise_div": {},
    "broadcast_add": {},
    "broadcast_mul": {"cd": "csr"},
    "broadcast_div": {"cd": "csr"},
    "add_n": {"rr": "row_sparse"},
}
SPARSE = "abs arcsin arcsinh arctan cbrt ceil degrees expm1 fix floor negative radians relu rint round sign sin sinh sqrt square tan tanh trunc".split()
DENSE = "arccos cos exp sigmoid erf softmax ones_like reciprocal".split()
SCALARS = {  # (on the right of the array, on its left): whether the result is sparse
    "add": {0: (1, 1), 2: (0, 0)}, "sub": {0: (1, 0), 2: (0, 0)}, "mul": {0: (1, 1), 2: (1, 1)}, "truediv": {2: (1, 0)}, "pow": {2: (0, 0)},
    "eq": {0: (0, 0), 2: (1, 1)}, "ne": {0: (1, 1), 2: (0, 0)}, "lt": {0: (1, 1), 2: (0, 1), -2: (1, 0)}, "le": {0: (0, 0), 2: (0, 1)},
    "gt": {0: (1, 1), 2: (1, 0), -2: (0, 1)}, "ge": {0: (0, 0), 2: (1, 0)},
}  # fmt: skip


def of(kind, values=VALUES):
    return nd.array(values).tostype(kind)


class Stored(unittest.TestCase):
    def test_parts(self):
        c, r = of("csr"), of("row_sparse")
        self.assertIsInstance(c, nd.NDArray)
        for found, want in ((c.data, [1.5, 0.5, 2, -0.25]), (c.indices, [1, 0, 2, 2]), (c.indptr, [0, 1, 1, 3, 4]), (r.indices, [0, 2, 3]), (r.data, VALUES[[0, 2, 3]])):
            np.testing.assert_array_equal(found.asnumpy(), want)
        self.assertIs(c.indices.dtype, np.int64)
        for t in (c, r):
            self.assertEqual((t.shape, t.dtype, len(t)), ((4, 3), np.float32, 4))
            np.testing.assert_array_equal(t.asnumpy(), VALUES)
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(t)).asnumpy(), VALUES)
            self.assertEqual(t.astype("float64").stype, t.stype)
            self.assertRaises(ValueError, t.tostype, "csr" if t is r else "row_sparse")
            self.assertRaises(mx.MXNetError, t.reshape, (3, 4))

    def test_made(self):
        made = nd.sparse.csr_matrix(([1, 2, 3], [1, 0, 2], [0, 1, 2, 2, 3]), shape=(4, 3))
        np.testing.assert_array_equal(made.asnumpy(), [[0, 1, 0], [2, 0, 0], [0, 0, 0], [0, 0, 3]])
        twice = nd.sparse.csr_matrix(([1.0, 2, 3], ([1, 0, 1], [2, 0, 2])))
        np.testing.assert_array_equal(twice.asnumpy(), [[2, 0, 0], [0, 0, 4]])
        rows = nd.sparse.row_sparse_array(([[1, 2], [3, 4]], [1, 4]), shape=(6, 2))
        np.testing.assert_array_equal(rows.asnumpy()[[1, 4]], [[1, 2], [3, 4]])
        self.assertEqual(rows.asnumpy().sum(), 10)
        for kind in KINDS[1:]:
            empty = nd.zeros((2, 3), stype=kind)
            self.assertEqual((empty.stype, empty.asnumpy().sum(), empty.data.shape[0]), (kind, 0, 0))
        self.assertRaises(ValueError, nd.sparse.csr_matrix, nd.ones((2, 2)), shape=(3, 2))
        self.assertRaises(ValueError, nd.array([1, 2]).tostype, "csr")

    def test_large(self):
        """A matrix whose dense values would take 400 GB."""
        big = nd.sparse.csr_matrix(([1.0, 2, 3], [5, 7, 99_999], [0, 2, 2, 3] + [3] * (10**6 - 3)), shape=(10**6, 10**5))
        vector = nd.arange(10**5).reshape((-1, 1))
        np.testing.assert_array_equal(nd.dot(big * 2, vector).asnumpy()[:4, 0], [38, 0, 599994, 0])
        np.testing.assert_array_equal(nd.dot(big[1:3], vector).asnumpy()[:, 0], [0, 299997])
        self.assertEqual(nd.sparse.add(big, big).data.asnumpy().tolist(), [2, 4, 6])

    def test_format(self):
        for parts in (([0, 5, 2, 3], [0, 2, 1]), ([0, 2, 2, 3], [2, 1, 1]), ([0, 2, 2, 4], [1, 2, 1]), ([0, -2, 2, 3], [0, 2, 1]), ([0, 1, 2, 3], [0, 2, 4])):
            made = nd.sparse.csr_matrix(([7, 8, 9], parts[1], parts[0]), shape=(3, 4))
            self.assertRaises(mx.MXNetError, made.check_format)
        for rows in ([1, 4], [1, 0], [-2, 1]):
            self.assertRaises(mx.MXNetError, nd.sparse.row_sparse_array(([[1, 2], [3, 4]], rows), shape=(3, 2)).check_format)
        of("csr").check_format()

    def test_indices(self):
        c, r = of("csr"), of("row_sparse")
        for key in (slice(1, 3), slice(None, 2), slice(-2, None), slice(3, 1)):
            np.testing.assert_array_equal(c[key].asnumpy(), VALUES[key])
            self.assertEqual(c[key].stype, "csr")
        np.testing.assert_array_equal(c[-1].asnumpy(), VALUES[-1:])
        self.assertRaises(ValueError, c.__getitem__, slice(None, None, 2))
        c[:], r[:] = nd.ones((4, 3)), 2
        self.assertEqual((c.asnumpy().sum(), c.data.shape, r.asnumpy().sum()), (12, (12,), 24))
        self.assertRaises(ValueError, c.__setitem__, slice(None), 1)
        c[:] = of("csr")
        np.testing.assert_array_equal(c.indices.asnumpy(), [1, 0, 2, 2])
        np.testing.assert_array_equal(of("row_sparse").retain(nd.array([0, 1, 3])).indices.asnumpy(), [0, 3])
        for kind in KINDS[1:]:
            t = of(kind)
            t += t
            self.assertEqual(t.stype, kind)
            np.testing.assert_array_equal(t.asnumpy(), 2 * VALUES)


class Types(unittest.TestCase):
    def test_of_one(self):
        for kind in KINDS[1:]:
            for name in SPARSE + DENSE:
                t = getattr(nd, name)(of(kind))
                self.assertEqual(t.stype, kind if name in SPARSE else "default", name)
                np.testing.assert_allclose(t.asnumpy(), getattr(nd, name)(nd.array(VALUES)).asnumpy(), rtol=1e-6, err_msg=name)

    def test_of_two(self):
        other = VALUES[::-1].copy()
        for name, rules in RULES.items():
            for a in KINDS:
                for b in KINDS:
                    t = getattr(nd, name)(of(a), of(b, other))
                    self.assertEqual(t.stype, rules.get(a[0] + b[0], "default"), (name, a, b))
                    np.testing.assert_array_equal(t.asnumpy(), getattr(nd, name)(nd.array(VALUES), nd.array(other)).asnumpy(), err_msg=name)

    def test_numbers(self):
        for kind in KINDS[1:]:
            for name, cases in SCALARS.items():
                for number, sparse in cases.items():
                    for swap in (False, True):
                        operate = getattr(__import__("operator"), name)
                        t, want = (operate(number, of(kind)), operate(number, nd.array(VALUES))) if swap else (operate(of(kind), number), operate(nd.array(VALUES), number))
                        self.assertEqual(t.stype, kind if sparse[swap] else "default", (name, number, swap))
                        np.testing.assert_array_equal(t.asnumpy(), want.asnumpy())

    def test_dot(self):
        right = np.random.default_rng(1).standard_normal((4, 4)).astype("float32")
        for ta, rows in ((False, 3), (True, 4)):
            for a in KINDS:
                for b in KINDS:
                    t = nd.dot(of(a), of(b, right[:rows]), transpose_a=ta)
                    rule = "row_sparse" if a == "csr" and b != "csr" and ta else "csr" if (a, b, ta) == ("default", "csr", False) else "default"
                    self.assertEqual(t.stype, rule, (a, b, ta))
                    np.testing.assert_allclose(t.asnumpy(), (VALUES.T if ta else VALUES) @ right[:rows], rtol=1e-5, atol=1e-6)

    def test_dense_ones(self):
        """Functions without a sparse form."""
        for kind in KINDS[1:]:
            np.testing.assert_array_equal(nd.sum(of(kind), axis=1).asnumpy(), VALUES.sum(1))
            np.testing.assert_array_equal(nd.concat(of(kind), nd.ones((4, 1)), dim=1).asnumpy()[:, :3], VALUES)
            np.testing.assert_array_equal(of(kind).T.asnumpy(), VALUES.T)
            out = nd.zeros((4, 3), stype=kind)
            nd.broadcast_add(nd.ones((4, 3)), nd.ones((4, 3)), out=out)
            self.assertEqual((out.stype, out.asnumpy().sum()), (kind, 24))


class Trained(unittest.TestCase):
    def test_gradients(self):
        for kind in KINDS[1:]:
            x = of(kind)
            x.attach_grad()
            with autograd.record():
                y = x * x * 3
            y.backward()
            self.assertEqual((x.grad.stype, y.stype), (kind, kind))
            np.testing.assert_array_equal(x.grad.asnumpy(), 6 * VALUES)
        x, w = of("csr"), nd.ones((3, 2))
        w.attach_grad(stype="row_sparse")
        for _ in range(2):  # the gradient's rows are those of the last pass
            with autograd.record():
                y = nd.dot(x[2:], w)
            y.backward()
        np.testing.assert_array_equal(w.grad.indices.asnumpy(), [0, 2])
        np.testing.assert_allclose(w.grad.asnumpy(), VALUES[2:].T @ np.ones((2, 2)))

    def test_lazy(self):
        """Only the rows of a gradient change, with their states."""
        for name, options in (("sgd", {"momentum": 0.9, "wd": 0.1}), ("adam", {"wd": 0.1}), ("adagrad", {}), ("ftrl", {})):
            weights, grads = [nd.array(np.arange(8).reshape(4, 2)) for _ in range(2)], nd.array([[0, 0], [1, 2], [0, 0], [3, -1]])
            updaters = [mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, **options)) for _ in range(2)]
            for _ in range(3):
                updaters[0](0, grads, weights[0])
                updaters[1](0, grads.tostype("row_sparse"), weights[1])
            dense, lazy = (w.asnumpy() for w in weights)
            np.testing.assert_allclose(lazy[[1, 3]], dense[[1, 3]], rtol=1e-6)
            np.testing.assert_array_equal(lazy[[0, 2]], [[0, 1], [4, 5]])

    def test_embedding(self):
        net = mx.gluon.nn.Embedding(5, 2, sparse_grad=True)
        net.initialize(mx.init.One())
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "wd": 0.5})
        with autograd.record():
            y = net(nd.array([1, 3, 3]))
        y.backward()
        self.assertEqual(net.weight.grad().stype, "row_sparse")
        np.testing.assert_array_equal(net.weight.grad().indices.asnumpy(), [1, 3])
        trainer.step(1)
        np.testing.assert_array_equal(net.weight.data().asnumpy()[:, 0], [1, -0.5, 1, -1.5, 1])

    def test_symbols(self):
        x, w = mx.sym.var("x", stype="csr"), mx.sym.var("w")
        y = mx.sym.sparse.dot(x, w)
        bound = y.bind(mx.cpu(), {"x": of("csr"), "w": nd.ones((3, 2))}, {"w": nd.zeros((3, 2), stype="row_sparse")})
        np.testing.assert_allclose(bound.forward(is_train=True)[0].asnumpy(), VALUES @ np.ones((3, 2)))
        bound.backward(nd.ones((4, 2)))
        np.testing.assert_allclose(bound.grad_dict["w"].asnumpy(), VALUES.T @ np.ones((4, 2)))
        self.assertEqual(y.simple_bind(mx.cpu(), x=(4, 3), w=(3, 2)).arg_dict["x"].stype, "csr")


class Kept(unittest.TestCase):
    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "arrays")
            nd.save(path, {kind: of(kind) for kind in KINDS} | {"none": nd.zeros((2, 3), stype="csr")})
            read = nd.load(path)
            for kind in KINDS:
                self.assertEqual(read[kind].stype, kind)
                np.testing.assert_array_equal(read[kind].asnumpy(), VALUES)
            self.assertEqual((read["none"].stype, read["none"].shape), ("csr", (2, 3)))
            # MXNet's layout: magic, storage type, the shape of what is stored, the shape, context, type, types and shapes of places, values.
            nd.save(path, [of("row_sparse")])
            with open(path, "rb") as file:
                written = file.read()[24:]
            head = struct.pack("<Ii", 0xF993FAC9, 1) + struct.pack("<iqq", 2, 3, 3) + struct.pack("<iqq", 2, 4, 3) + struct.pack("<iii", 1, 0, 0)
            places = struct.pack("<iiq", 6, 1, 3)
            self.assertEqual(written[:-8], head + places + VALUES[[0, 2, 3]].tobytes() + np.array([0, 2, 3]).tobytes())
            for cut in range(4, len(written), 7):
                with self.assertRaises((mx.MXNetError, ValueError)):
                    nd.load_frombuffer(struct.pack("<QQQ", 0x112, 0, 1) + written[:cut])

    def test_store(self):
        kv = mx.kv.create("local")
        kv.init("a", nd.zeros((4, 3)))
        kv.push("a", [nd.ones((4, 3)), of("row_sparse")])
        out = nd.zeros((4, 3))
        kv.pull("a", out)
        np.testing.assert_array_equal(out.asnumpy(), VALUES + 1)
        rows = nd.zeros((4, 3), stype="row_sparse")
        kv.row_sparse_pull("a", rows, row_ids=nd.array([2, 0]))
        np.testing.assert_array_equal(rows.asnumpy(), (VALUES + 1) * [[1], [0], [1], [0]])
        self.assertRaises(mx.MXNetError, kv.init, "a", out)
        self.assertRaises(mx.MXNetError, kv.init, 3, out)
        self.assertRaises(mx.MXNetError, kv.pull, "b", out)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
        kv.push("a", nd.ones((4, 3)))
        kv.pull("a", out)
        np.testing.assert_array_equal(out.asnumpy(), VALUES + 0.5)
        self.assertRaises(NotImplementedError, mx.kv.create, "dist_sync")


if __name__ == "__main__":
    unittest.main()
