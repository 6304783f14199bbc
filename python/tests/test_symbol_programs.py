"""Programs of symbols: shapes and types as far as they follow, loops and branches, recurrent cells, files, names.  Shapes and names are
those that MXNet 1.9.1 gives; values are compared with NumPy's."""
import copy
import pickle
import unittest

import numpy as np
from starling import mx
from starling.mx import nd, sym


# A loop over rows, as MXNet 1.9.1 writes it: outputs r·w + s, states s·r.
LOOP = (
    '{"nodes":[{"op":"null","name":"data","inputs":[]},{"op":"null","name":"h","inputs":[]},{"op":"null","name":"w","inputs":[]},{"op":'
    '"_foreach","name":"foreach0","attrs":{"in_data_locs":"(0,)","in_state_locs":"(2,)","num_args":"4","num_out_data":"1","num_outputs"'
    ':"2","remain_locs":"(1,)"},"inputs":[[0,0,0],[1,0,0],[2,0,0]],"subgraphs":[{"nodes":[{"op":"null","name":"inside_a_loop1","inputs"'
    ':[]},{"op":"null","name":"w","inputs":[]},{"op":"elemwise_mul","name":"_mul0","inputs":[[0,0,0],[1,0,0]]},{"op":"null","name":"ins'
    'ide_a_loop2","inputs":[]},{"op":"elemwise_add","name":"_plus0","inputs":[[2,0,0],[3,0,0]]},{"op":"elemwise_mul","name":"_mul1","in'
    'puts":[[3,0,0],[0,0,0]]}],"arg_nodes":[0,1,3],"node_row_ptr":[0,1,2,3,4,5,6],"heads":[[4,0,0],[5,0,0]]}]}],"arg_nodes":[0,1,2],"no'
    'de_row_ptr":[0,1,2,3,5],"heads":[[3,0,0],[3,1,0]],"attrs":{"mxnet_version":["int",10901]}}'
)


def shapes_of(symbol, *args, **shapes):
    arguments, results, _ = symbol.infer_shape_partial(*args, **shapes)
    return dict(zip(symbol.list_arguments(), arguments)), results


class Shapes(unittest.TestCase):
    def test_backwards(self):
        """Lengths of arguments follow from those of results."""
        a = sym.var("a", shape=(0, 10))
        found, _ = shapes_of(a + sym.var("b", shape=(12, 0)))
        self.assertEqual(found, {"a": (12, 10), "b": (12, 10)})
        found, _ = shapes_of(sym.FullyConnected(a, num_hidden=21, name="f") + sym.var("c", shape=(5, 0)))
        self.assertEqual(found, {"a": (5, 10), "f_weight": (21, 10), "f_bias": (21,), "c": (5, 21)})
        image = sym.var("a", shape=(0, 10, 0, 0))
        for kernel, dilate, pad, lengths in (((3, 3), (1, 1), (1, 1), (32, 30)), ((5, 3), (2, 1), (0, 2), (40, 28))):
            net = sym.Convolution(image, num_filter=21, kernel=kernel, dilate=dilate, pad=pad, name="c") + sym.var("d", shape=(5, 21, 32, 30))
            found, _ = shapes_of(net)
            self.assertEqual((found["a"], found["c_weight"]), ((5, 10, *lengths), (21, 10, *kernel)))
        found, _ = shapes_of(sym.concat(a, sym.var("b", shape=(0, 5)), dim=1) + sym.var("d", shape=(2, 0)))
        self.assertEqual(found, {"a": (2, 10), "b": (2, 5), "d": (2, 15)})
        found, _ = shapes_of(sym.concat(a, sym.var("b"), dim=1) + sym.var("d", shape=(2, 15)))
        self.assertEqual(found["a"], (2, 10))
        parts = sym.SliceChannel(sym.var("a", shape=(0, 15, 0)), num_outputs=3)
        self.assertEqual(shapes_of(parts[1] + sym.var("c", shape=(3, 5, 2)))[0]["a"], (3, 15, 2))
        turned = sym.transpose(sym.var("a"), axes=(2, 0, 1)) + sym.var("c", shape=(4, 2, 3))
        self.assertEqual(shapes_of(turned)[0]["a"], (2, 3, 4))
        for shape, wanted in (((0, -1), (2, 75)), ((-3, -2), (6, 5, 5)), ((-1, 5), (30, 5))):
            for i in range(4):
                held = [0 if axis == i else d for axis, d in enumerate((2, 3, 5, 5))]
                net = sym.elemwise_add(sym.var("a").reshape(shape), sym.ones(shape=wanted))
                self.assertEqual(shapes_of(net, a=held), ({"a": (2, 3, 5, 5)}, [wanted]))

    def test_forwards(self):
        x, y = sym.var("x"), sym.var("y")
        for symbol, shapes, wanted in (
            (sym.dot(x, y), {"x": (0, 3, 4), "y": (4, 5)}, (0, 3, 5)), (sym.batch_dot(x, y), {"x": (0, 3, 4), "y": (0, 4, 5)}, (0, 3, 5)),
            (sym.batch_dot(x, y), {"x": (0, 3, 4), "y": (0, 0, 5)}, ()), (sym.transpose(x, axes=[0, 3, 2, 1]), {"x": (0, 3, 224, 7)}, (0, 7, 224, 3)),
            (sym.pick(x, y, axis=1), {"x": (0, 3, 3), "y": (0, 3)}, (0, 3)), (sym.where(x, y, y), {"x": (0, 2), "y": (0, 2)}, ()),
            (sym.slice(x, begin=(2, 3), end=(7, 10)), {"x": (0, 20)}, (0, 7)), (sym.slice_axis(x, axis=1, begin=0, end=5), {"x": (10, 0)}, (10, 0)),
            (sym.sin(x), {}, ()), (sym.sum(x, axis=1), {"x": (0, 3, 5)}, (0, 5)), (sym.reshape(x, shape=(0, -1)), {"x": (0, 3, 5)}, (0, 15)),
        ):  # fmt: skip
            self.assertEqual(shapes_of(symbol, **shapes)[1], [wanted], symbol.name)
        with mx.np_shape():
            self.assertEqual(shapes_of(sym.sin(x))[1], [None])
            self.assertEqual(shapes_of(sym.dot(x, y), x=(-1, 3, 4), y=(4, 5))[1], [(-1, 3, 5)])
        self.assertEqual(shapes_of(sym.sin(x))[1], [()])

    def test_incomplete(self):
        net = sym.Activation(sym.FullyConnected(sym.var("a"), num_hidden=8, name="f") + sym.FullyConnected(sym.var("b"), num_hidden=8, name="g"), act_type="relu")
        with self.assertWarnsRegex(UserWarning, "b, g_weight"):
            self.assertEqual(net.infer_shape(a=(10, 4)), (None, None, None))
        found, results = shapes_of(net, a=(10, 4))
        self.assertEqual((found["f_weight"], found["g_weight"], results), ((8, 4), (), [(10, 8)]))
        self.assertRaises(mx.MXNetError, (sym.var("a") + sym.var("b")).infer_shape, a=(2, 3), b=(3, 2))
        (a, b), _, _ = sym.elemwise_add(sym.var("a", shape=(2, 3)), sym.var("b")).infer_shape(a=(5, 6))
        self.assertEqual((a, b), ((5, 6), (5, 6)))

    def test_sources(self):
        """Zeros whose length follows from what they are added to; other arrays without arguments."""
        x = sym.var("x")
        y = sym.FullyConnected(sym.zeros((0, 3)), num_hidden=4, name="f") + x
        self.assertEqual(y.infer_shape(x=(5, 4))[0], [(4, 3), (4,), (5, 4)])
        weight = nd.ones((4, 3))
        (got,) = y.eval(x=nd.ones((5, 4)), f_weight=weight, f_bias=nd.array([1, 2, 3, 4]))
        np.testing.assert_array_equal(got.asnumpy(), np.ones((5, 4)) + [1, 2, 3, 4])
        self.assertRaises(ValueError, sym.FullyConnected(sym.zeros((0, 3)), num_hidden=4, name="g").eval, g_weight=weight, g_bias=nd.ones((4,)))
        numbers = sym.arange(start=2, step=3, infer_range=True) + sym.var("x")
        np.testing.assert_array_equal(numbers.eval(x=nd.zeros((4,)))[0].asnumpy(), [2, 5, 8, 11])
        np.testing.assert_array_equal(nd.arange(1.3, 6.6, 1.3, dtype="int32").asnumpy(), [1, 2, 3, 4, 5])
        np.testing.assert_array_equal((sym.arange(4) * sym.ones(shape=(4,)) + 1).eval()[0].asnumpy(), [1, 2, 3, 4])

    def test_types(self):
        net = sym.SoftmaxOutput(sym.FullyConnected(sym.cast(sym.var("data"), dtype="float32"), num_hidden=3, name="f"), name="s")
        self.assertEqual(net.infer_type(data=np.float16), ([np.float16, np.float32, np.float32, np.float32], [np.float32], []))
        self.assertEqual(net.infer_type_partial()[0], [None, np.float32, np.float32, np.float32])
        self.assertEqual(sym.sin(sym.var("x")).infer_type(), (None, None, None))
        self.assertEqual(sym.take(sym.var("a"), sym.var("i")).infer_type(a=np.float64, i=np.int32)[1], [np.float64])
        self.assertEqual(sym.take(sym.var("a"), sym.var("i")).infer_type_partial(i=np.int32)[:2], ([None, np.int32], [None]))
        run = sym.cast(sym.var("x", dtype="int32"), dtype="float16").simple_bind(mx.cpu(), x=(2,))
        self.assertEqual((run.arg_arrays[0].dtype, run.outputs[0].dtype), (np.int32, np.float16))


class Loops(unittest.TestCase):
    def test_foreach(self):
        rng = np.random.default_rng(2)
        x, s, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((3, 2), (2,), (2,)))
        outs, states = sym.contrib.foreach(lambda row, state: (row * sym.var("w") + state[0], [state[0] * row]), sym.var("x"), [sym.var("s")])
        self.assertIsInstance(states, list)
        run = sym.Group([outs, *states]).bind(mx.cpu(), {"x": nd.array(x), "s": nd.array(s), "w": nd.array(w)}, {n: nd.zeros(v.shape) for n, v in (("x", x), ("s", s), ("w", w))})
        got = run.forward(is_train=True)
        before = [s, s * x[0], s * x[0] * x[1]]
        np.testing.assert_allclose(got[0].asnumpy(), [x[i] * w + before[i] for i in range(3)], rtol=1e-5)
        np.testing.assert_allclose(got[1].asnumpy(), s * x[0] * x[1] * x[2], rtol=1e-5)
        run.backward([nd.ones((3, 2)), nd.ones((2,))])
        np.testing.assert_allclose(run.grad_dict["w"].asnumpy(), x.sum(0), rtol=1e-5)
        np.testing.assert_allclose(run.grad_dict["s"].asnumpy(), 1 + x[0] + x[0] * x[1] + x[0] * x[1] * x[2], rtol=1e-4)

    def test_shapes(self):
        outs, _ = sym.contrib.foreach(lambda row, state: (row + state[0], [state[0] * 2]), sym.var("x", shape=(0, 3, 2)), [sym.var("s")])
        found, results = shapes_of(outs)
        self.assertEqual((found["s"], results), ((3, 2), [(0, 3, 2)]))
        cell = mx.rnn.LSTMCell(4, prefix="")
        outs, states = sym.contrib.foreach(cell, sym.var("x"), [sym.var("h"), sym.var("c")])
        found, results = shapes_of(sym.Group([outs, *states]), x=(3, 2, 5), h=(2, 4))
        self.assertEqual((found["c"], found["i2h_weight"], found["h2h_bias"], results[0]), ((2, 4), (16, 5), (16,), (3, 2, 4)))

    def test_while(self):
        outs, (i, total) = sym.contrib.while_loop(lambda i, s: i <= sym.var("n"), lambda i, s: ([i * 2], [i + 1, s + i]), [sym.var("i"), sym.var("s")], max_iterations=6)
        net = sym.Group([*outs, i, total])
        for n in (3, 0, -1):
            got = [y.asnumpy() for y in net.eval(i=nd.array([1.0]), s=nd.array([0.0]), n=nd.array([float(n)]))]
            numbers = [k for k in range(1, n + 1)]
            np.testing.assert_array_equal(got[0][:, 0], [2.0 * k for k in numbers] + [0] * (6 - len(numbers)))
            self.assertEqual((got[1][0], got[2][0]), (len(numbers) + 1, sum(numbers)))

    def test_cond(self):
        a, b = sym.var("a"), sym.var("b")
        net = sym.contrib.cond((a * b).sum() < 5, lambda: (a + 5) * b, lambda: (a - 5) * b, name="choice")
        for value in (1.0, 10.0):
            run = net.bind(mx.cpu(), {"a": nd.array([value]), "b": nd.array([2.0])}, {"a": nd.zeros((1,)), "b": nd.zeros((1,))})
            (y,) = run.forward(is_train=True)
            run.backward()
            more = 5 if value == 1 else -5
            self.assertEqual((y.asscalar(), run.grad_dict["a"].asscalar(), run.grad_dict["b"].asscalar()), ((value + more) * 2, 2, value + more))
        self.assertRaises(ValueError, sym.contrib.cond, a, lambda: a, lambda: [a, b])

    def test_hybridized(self):
        """A block with a condition cannot be compiled: it runs call by call, and says so."""

        class Twice(mx.gluon.HybridBlock):
            def hybrid_forward(self, F, x):
                return F.contrib.cond(x.sum() > 0, lambda: x * 2, lambda: x * 3)

        block = Twice()
        block.initialize()
        block.hybridize()
        with self.assertWarnsRegex(UserWarning, "call by call"):
            np.testing.assert_array_equal(block(nd.array([1.0, 2])).asnumpy(), [2, 4])
        np.testing.assert_array_equal(block(nd.array([-1.0, -2])).asnumpy(), [-3, -6])


def lstm(x, h, c, w, u, b, v):
    i, f, n, o = np.split(x @ w.T + b + h @ u.T + v, 4, 1)
    sigmoid = lambda t: 1 / (1 + np.exp(-t))  # noqa: E731
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(n)
    return sigmoid(o) * np.tanh(c), c


def gru(x, h, w, u, b, v):
    (r, z, n), (r2, z2, n2) = np.split(x @ w.T + b, 3, 1), np.split(h @ u.T + v, 3, 1)
    sigmoid = lambda t: 1 / (1 + np.exp(-t))  # noqa: E731
    r, z = sigmoid(r + r2), sigmoid(z + z2)
    return (1 - z) * np.tanh(n + r * n2) + z * h


class Cells(unittest.TestCase):
    def values(self, net, **shapes):
        rng = np.random.default_rng(4)
        arguments = dict(zip(net.list_arguments(), net.infer_shape(**shapes)[0]))
        return {n: rng.standard_normal(s).astype(np.float32) / 2 for n, s in arguments.items()}

    def test_steps(self):
        """The cells of mx.rnn and of Gluon compute MXNet's formulas."""
        for kinds, gates in (((mx.rnn.LSTMCell, mx.gluon.rnn.LSTMCell), 4), ((mx.rnn.GRUCell, mx.gluon.rnn.GRUCell), 3), ((mx.rnn.RNNCell, mx.gluon.rnn.RNNCell), 1)):
            for kind in kinds:
                outputs, states = kind(4, prefix="r_").unroll(3, [sym.var(f"x{i}") for i in range(3)])
                net = sym.Group([*outputs, *states])
                self.assertEqual(net.list_outputs()[:3], [f"r_t{i}_out_output" for i in range(3)])
                v = self.values(net, **{f"x{i}": (2, 5) for i in range(3)})
                self.assertEqual(v["r_i2h_weight"].shape, (4 * gates, 5))
                got = [y.asnumpy() for y in net.eval(**{n: nd.array(a) for n, a in v.items()})]
                h = c = np.zeros((2, 4))
                weights = [v[f"r_{n}"].astype(np.float64) for n in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")]
                for i in range(3):
                    x = v[f"x{i}"].astype(np.float64)
                    if gates == 4:
                        h, c = lstm(x, h, c, *weights)
                    else:
                        w, u, b, more = weights
                        h = gru(x, h, *weights) if gates == 3 else np.tanh(x @ w.T + b + h @ u.T + more)
                    np.testing.assert_allclose(got[i], h, rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(got[-1], c if gates == 4 else h, rtol=1e-4, atol=1e-5)

    def test_fused(self):
        """FusedRNNCell and the stack of its unfuse compute the same from the same weights."""
        for mode, bidirectional in (("lstm", True), ("gru", False), ("rnn_tanh", True), ("rnn_relu", False)):
            cell = mx.rnn.FusedRNNCell(4, num_layers=2, mode=mode, bidirectional=bidirectional, prefix="f_", get_next_state=True)
            one, ends = cell.unroll(3, sym.var("x"), layout="NTC", merge_outputs=True)
            stack = cell.unfuse()
            other, _ = stack.unroll(3, sym.var("x"), layout="NTC", merge_outputs=True)
            self.assertEqual(len(ends), 1 + (mode == "lstm"))
            v = {n: nd.array(a) for n, a in self.values(one, x=(2, 3, 5)).items()}
            packed = {n: a for n, a in v.items() if n != "x"}
            unpacked = cell.unpack_weights(packed)
            np.testing.assert_array_equal(cell.pack_weights(unpacked)["f_parameters"].asnumpy(), v["f_parameters"].asnumpy())
            weights = stack.pack_weights(unpacked)
            self.assertEqual(set(weights), set(other.list_arguments()) - {"x"})
            a, b = one.eval(**v)[0].asnumpy(), other.eval(x=v["x"], **weights)[0].asnumpy()
            self.assertEqual(a.shape, (2, 3, 8 if bidirectional else 4))
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)

    def test_modifiers(self):
        zeros = lambda net, **x: {n: nd.zeros(s) for n, s in zip(net.list_arguments(), net.infer_shape(**{k: v.shape for k, v in x.items()})[0]) if n not in x}  # noqa: E731
        x = {"x0": nd.ones((2, 4)), "x1": nd.ones((2, 4)) * 3}
        for module in (mx.rnn, mx.gluon.rnn):
            cell = module.ResidualCell(module.GRUCell(4, prefix="g_"))
            net = sym.Group(cell.unroll(2, [sym.var("x0"), sym.var("x1")])[0])
            for got, wanted in zip(net.eval(**x, **zeros(net, **x)), x.values()):
                np.testing.assert_array_equal(got.asnumpy(), wanted.asnumpy())
            both = module.BidirectionalCell(module.LSTMCell(3, prefix="l_"), module.LSTMCell(3, prefix="r_"), output_prefix="both_")
            net = sym.Group(both.unroll(2, [sym.var("x0"), sym.var("x1")])[0])
            self.assertEqual(net.list_outputs(), ["both_t0_output", "both_t1_output"])
            self.assertEqual(net.infer_shape(x0=(2, 4), x1=(2, 4))[1], [(2, 6), (2, 6)])
        self.assertRaises(NotImplementedError, mx.rnn.BidirectionalCell(mx.rnn.RNNCell(3, prefix="a_"), mx.rnn.RNNCell(3, prefix="b_")), None, None)
        zoneout = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4, prefix="z_"), zoneout_outputs=0.5, zoneout_states=0.5)
        self.assertEqual(sym.Group(zoneout.unroll(2, [sym.var("x0"), sym.var("x1")])[0]).infer_shape(x0=(2, 5), x1=(2, 5))[1], [(2, 4)] * 2)

    def test_images(self):
        for kind, states in ((mx.rnn.ConvRNNCell, 1), (mx.rnn.ConvLSTMCell, 2), (mx.rnn.ConvGRUCell, 1)):
            cell = kind(input_shape=(1, 3, 6, 5), num_hidden=2, prefix="c_")
            outputs, ends = cell.unroll(2, [sym.var("x0"), sym.var("x1")])
            self.assertEqual(len(ends), states)
            self.assertEqual(sym.Group(outputs).infer_shape(x0=(2, 3, 6, 5), x1=(2, 3, 6, 5))[1], [(2, 2, 6, 5)] * 2)

    def test_sentences(self):
        numbers, vocab = mx.rnn.encode_sentences([["a", "b"], ["b", "d"]], vocab={"a": 1, "b": 2}, unknown_token="?", invalid_label=-1, start_label=0)
        self.assertEqual((numbers, vocab), ([[1, 2], [2, 0]], {"a": 1, "b": 2, "?": 0}))
        batches = list(mx.rnn.BucketSentenceIter([[1, 2, 3]] * 4 + [[4, 5]] * 3 + [[1] * 9], 2, buckets=[2, 4], invalid_label=0))
        self.assertEqual(sorted((b.bucket_key, b.data[0].shape) for b in batches), [(2, (2, 2)), (4, (2, 4)), (4, (2, 4))])
        for batch in batches:
            data, label = batch.data[0].asnumpy(), batch.label[0].asnumpy()
            np.testing.assert_array_equal(label[:, :-1], data[:, 1:])
            np.testing.assert_array_equal(label[:, -1], 0)

    def test_forget_bias(self):
        stack = mx.rnn.SequentialRNNCell()
        stack.add(mx.rnn.LSTMCell(3, forget_bias=2.0, prefix="l0_"))
        module = mx.mod.Module(stack.unroll(1, sym.var("data"), merge_outputs=True)[0], label_names=None)
        module.bind(data_shapes=[("data", (2, 1, 4))])
        module.init_params()
        np.testing.assert_array_equal(module.get_params()[0]["l0_i2h_bias"].asnumpy(), [0] * 3 + [2] * 3 + [0] * 6)


class Programs(unittest.TestCase):
    def net(self):
        x = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=5, name="a"), act_type="relu", name="act")
        return sym.FullyConnected(1 - sym.reshape(sym.concat(x, x * 2, dim=1), shape=(0, -1)), num_hidden=3, no_bias=True, name="b")

    def test_files(self):
        """The text of a program makes the same program again: names, text, values."""
        net, x = self.net(), nd.array(np.random.default_rng(1).standard_normal((2, 4)))
        again = pickle.loads(pickle.dumps(net))
        self.assertEqual((again.tojson(), again.list_arguments(), again.list_outputs()), (net.tojson(), net.list_arguments(), net.list_outputs()))
        values = {n: nd.array(np.random.default_rng(2).standard_normal(s)) for n, s in zip(net.list_arguments(), net.infer_shape(data=(2, 4))[0])}
        values["data"] = x
        w, b, v = (values[n].asnumpy() for n in ("a_weight", "a_bias", "b_weight"))
        h = np.maximum(x.asnumpy() @ w.T + b, 0)
        for each in (net, again):
            np.testing.assert_allclose(each.eval(**values)[0].asnumpy(), (1 - np.concatenate([h, 2 * h], 1)) @ v.T, rtol=1e-4, atol=1e-5)
        self.assertEqual(sym.load_json(sym.Group([net, sym.var("z")]).tojson()).list_outputs(), ["b_output", "z"])
        partial = sym.load_json(sym.FullyConnected(sym.var("x"), sym.var("w", shape=(3, 0)), num_hidden=3).tojson())
        self.assertEqual(partial.infer_shape(x=(2, 4))[0][1], (3, 4))

    def test_files_of_mxnet(self):
        net = sym.load_json(LOOP)
        x, h, w = np.array([[1.0, 2], [3, 4]]), np.array([1.0, 1]), np.array([2.0, 3])
        for each in (net, sym.load_json(net.tojson())):
            outputs, state = each.eval(data=nd.array(x), h=nd.array(h), w=nd.array(w))
            np.testing.assert_array_equal(outputs.asnumpy(), [x[0] * w + h, x[1] * w + h * x[0]])
            np.testing.assert_array_equal(state.asnumpy(), h * x[0] * x[1])

    def test_custom_errors(self):
        """An exception of a custom operation is an MXNetError that names it."""

        class Failing(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                raise KeyError("lost")

        @mx.operator.register("test_symbol_programs_failing")
        class Property(mx.operator.CustomOpProp):
            def create_operator(self, ctx, in_shapes, in_dtypes):
                return Failing()

        self.assertRaisesRegex(mx.MXNetError, "Failing.forward: KeyError: 'lost'", nd.Custom, nd.ones((2,)), op_type="test_symbol_programs_failing")
        with self.assertRaisesRegex(NotImplementedError, "sparse arrays is not in Starling"):
            nd.Custom(nd.ones((2, 2)).tostype("csr"), op_type="test_symbol_programs_failing")

    def test_composition(self):
        later = sym.FullyConnected(sym.Activation(sym.FullyConnected(name="f", num_hidden=4), act_type="relu"), num_hidden=2, name="g")
        self.assertEqual(later.list_arguments(), ["f_data", "f_weight", "f_bias", "g_weight", "g_bias"])
        whole = later(f_data=self.net(), name="whole")
        self.assertEqual((whole.list_outputs(), whole.infer_shape(data=(2, 4))[1]), (["whole_output"], [(2, 2)]))
        self.assertEqual(later.list_outputs(), ["g_output"])
        self.assertRaises(TypeError, later, f_data=nd.ones((2, 3)))
        x, y = sym.var("x"), sym.var("y")
        for net in (sym.hypot(x, 4), sym.hypot(4, x), sym.hypot(x, y)):
            given = {"x": nd.array([3.0]), "y": nd.array([4.0])}
            self.assertEqual(net.eval(**{n: given[n] for n in net.list_arguments()})[0].asscalar(), 5)
        self.assertRegex(sym.softmax(axis=1).list_arguments()[0], "^softmax[0-9]+_data$")

    def test_names(self):
        with mx.name.NameManager():
            self.assertEqual([sym.var("x").flatten().name, sym.relu(sym.var("x")).name, (sym.var("x") + 1).name], ["flatten0", "relu0", "_plusscalar0"])
            with mx.name.Prefix("p_"):
                self.assertEqual(sym.relu(sym.var("x")).name, "p_relu0")

    def test_watching(self):
        seen = []
        run = sym.FullyConnected(sym.var("x"), num_hidden=2, name="f").simple_bind(mx.cpu(), x=(1, 3))
        for everything, wanted in ((False, ["f_output"]), (True, ["x", "f_data", "f_weight", "f_weight", "f_bias", "f_bias", "f_output"])):
            seen.clear()
            run.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=everything)
            run.forward()
            self.assertEqual(seen, wanted)

    def test_block(self):
        """A block of symbols: its parameters' shapes follow from the first input."""
        net = mx.gluon.SymbolBlock(self.net(), sym.var("data"))
        net.initialize(mx.init.One())
        x = nd.array([[1.0, 2, 3, 4]])
        np.testing.assert_array_equal(net(x).asnumpy(), [[5 * (1 - 11) + 5 * (1 - 22)] * 3])  # the bias is 1, too, as in MXNet
        self.assertEqual(sorted(p.shape for p in net.collect_params().values()), [(3, 10), (5,), (5, 4)])
        net.hybridize()
        np.testing.assert_array_equal(net(x).asnumpy(), [[-155] * 3])

    def test_sync_batch_norm(self):
        """The statistics of a batch on one context are those of the whole batch; several contexts are refused."""
        x = np.random.default_rng(7).standard_normal((6, 3)).astype(np.float32)
        layer = mx.gluon.contrib.nn.SyncBatchNorm(in_channels=3)
        layer.initialize()
        with mx.autograd.record():
            y = layer(nd.array(x))
        np.testing.assert_allclose(y.asnumpy(), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-3, atol=1e-4)
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.contrib.nn.SyncBatchNorm(in_channels=3))
        for block in (net, layer):
            self.assertRaises(NotImplementedError, block.initialize, ctx=[mx.cpu(0), mx.cpu(1)], force_reinit=True)
        self.assertRaises(NotImplementedError, mx.gluon.contrib.nn.SyncBatchNorm, num_devices=2)

    def test_deep_copies(self):
        """Copies of a network's parameters stay as they were."""
        net = mx.gluon.nn.Dense(2, in_units=3)
        net.initialize(mx.init.One())
        before = copy.deepcopy(net.collect_params())
        net.weight.set_data(nd.zeros((2, 3)))
        self.assertEqual(list(before), list(net.collect_params()))
        np.testing.assert_array_equal(before[net.weight.name].data().asnumpy(), np.ones((2, 3)))

    def test_zoneout(self):
        """A step keeps elements of the step before; a hybridised cell does so, too."""
        for hybrid in (False, True):
            cell = mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.RNNCell(50, input_size=4), zoneout_outputs=0.5)
            cell.initialize(mx.init.Uniform(1))
            if hybrid:
                cell.hybridize()
            x = nd.array(np.random.default_rng(8).standard_normal((2, 3, 4)))
            with mx.autograd.record():
                first, second, _ = cell.unroll(3, x, merge_outputs=False)[0]
                second.backward()
            same = (first.asnumpy() == second.asnumpy()).mean()
            self.assertTrue(0.3 < same < 0.7, same)

    def test_gamma(self):
        """gamma at 0, and the slope of the cube root there, are infinite."""
        np.testing.assert_array_equal(nd.gamma(nd.array([0.0, 1, 4])).asnumpy(), [np.inf, 1, 6])
        x = nd.array([0.0, -1, 2])
        x.attach_grad()
        with mx.autograd.record():
            y = nd.gammaln(x)
        y.backward()  # MXNet's at the poles
        np.testing.assert_allclose(x.grad.asnumpy(), [np.inf, np.inf, 1 - 0.5772156649], rtol=1e-5)
        x = nd.array([0.0, 8, -27])
        x.attach_grad()
        for function, values, slopes in ((nd.cbrt, [0, 2, -3], [np.inf, 1 / 12, 1 / 27]), (nd.rcbrt, [np.inf, 1 / 2, -1 / 3], [None, -1 / 48, -1 / 243])):
            with mx.autograd.record():
                y = function(x)
            y.backward()
            np.testing.assert_allclose(y.asnumpy(), values, rtol=1e-5)
            np.testing.assert_allclose(x.grad.asnumpy()[1:], slopes[1:], rtol=1e-4)
            if slopes[0]:
                self.assertEqual(x.grad.asnumpy()[0], slopes[0])

    def test_coordinates(self):
        """Negative coordinates count from the end of their axis; those outside of it are errors, not other elements."""
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for places in ([[0, 1, -1], [0, -3, -2]], [[1], [-1]], [[0, 1]]):
            np.testing.assert_array_equal(nd.gather_nd(nd.array(x), nd.array(places)).asnumpy(), x[tuple(np.array(places))])
        for places in ([[0], [3]], [[1], [-4]], [[2], [0]], [[-3], [0]]):
            self.assertRaises(mx.MXNetError, lambda: nd.gather_nd(nd.array(x), nd.array(places)).asnumpy())
        self.assertRaises(mx.MXNetError, lambda: nd.scatter_nd(nd.array([1.0]), nd.array([[0], [3]]), shape=(2, 3)).asnumpy())

    def test_wrong_values(self):
        """What MXNet refuses is an MXNetError and a ValueError."""
        x = nd.ones((1, 4, 2, 3))
        for call in (lambda: nd.tile(x, (1, -3)), lambda: nd.depth_to_space(x, 3), lambda: nd.depth_to_space(x, 0), lambda: nd.space_to_depth(x, 2),
                     lambda: nd.diag(nd.ones((2, 3)), k=4), lambda: nd.zeros((0, 3)), lambda: nd.ones(shape=())):  # fmt: skip
            with self.assertRaises(ValueError) as caught:
                call()
            self.assertIsInstance(caught.exception, mx.MXNetError)
        with mx.np_shape():
            self.assertEqual((nd.zeros((0, 3)).shape, nd.ones(shape=()).shape), ((0, 3), ()))
        y = nd.LeakyReLU(nd.array([[[[-1.0]], [[2]], [[-3]]]]), nd.array([[1.0, 2, 3]]), act_type="prelu")  # weights of samples and channels
        np.testing.assert_array_equal(y.asnumpy().ravel(), [-1, 2, -9])

    def test_pairs_of_sparse(self):
        """Functions that are 0 at (0, 0), of two sparse arrays, are sparse."""
        a, b = np.array([[0.0, 0], [3, -4], [1, 0]]), np.array([[0.0, 0], [4, 3], [0, 0]])
        for name, wanted in (("_maximum", np.maximum(a, b)), ("_minimum", np.minimum(a, b)), ("_hypot", np.hypot(a, b))):
            for stype in ("row_sparse", "csr"):
                y = getattr(nd._internal, name)(nd.array(a).tostype(stype), nd.array(b).tostype(stype))
                self.assertEqual(y.stype, stype)
                np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-6)

    def test_texts_of_initialisers(self):
        self.assertEqual(mx.init.Constant(1).dumps(), '["constant", {"value": 1}]')
        self.assertEqual(mx.init.Constant(nd.ones((2,)))._kwargs, {"value": [1.0, 1.0]})
        self.assertEqual(mx.init.LSTMBias(forget_bias=2.0).dumps(), '["lstmbias", {"forget_bias": 2.0}]')

    def test_consistency(self):
        data = {"ctx": mx.cpu(), "data": (3, 2)}
        mx.test_utils.check_consistency([abs(sym.var("data")), sym.abs(sym.var("data"))], [data, data])
        with self.assertRaises(AssertionError):
            mx.test_utils.check_consistency([sym.var("data") * 2, sym.var("data") * 3], [data, data])

    def test_refused(self):
        """Names of MXNet's insides are refused by name, whatever they begin with."""
        for thing in (sym.var("x"), sym.Group([sym.var("x")]), sym.var("x").bind(mx.cpu(), {"x": nd.ones((1,))})):
            with self.assertRaisesRegex(NotImplementedError, "_gen_atomic_symbol is not in Starling"):
                thing._gen_atomic_symbol


if __name__ == "__main__":
    unittest.main()
