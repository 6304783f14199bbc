"""Programs of symbols: weights made automatically, gradients, shapes that follow from the data's."""
import copy
import pickle
import unittest

import numpy as np
from starling import mx
from starling.mx import nd, sym


def perceptron():
    data = sym.var("data")
    hidden = sym.Activation(sym.FullyConnected(data, num_hidden=5, name="fc1"), act_type="tanh")
    return sym.FullyConnected(hidden, num_hidden=3, no_bias=True, name="fc2")


class Symbols(unittest.TestCase):
    def test_weights(self):
        net = perceptron()
        self.assertEqual(net.list_arguments(), ["data", "fc1_weight", "fc1_bias", "fc2_weight"])
        shapes, (result,), states = net.infer_shape(data=(4, 7))
        self.assertEqual((shapes, result, states), ([(4, 7), (5, 7), (5,), (3, 5)], (4, 3), []))
        with self.assertWarns(UserWarning):
            self.assertEqual(net.infer_shape(), (None, None, None))
        conv = sym.Convolution(sym.var("data"), kernel=(3, 3), num_filter=4, num_group=2, name="c")
        self.assertEqual(conv.infer_shape(data=(1, 6, 8, 8)), ([(1, 6, 8, 8), (4, 3, 3, 3), (4,)], [(1, 4, 6, 6)], []))
        words = sym.Embedding(sym.var("data"), input_dim=10, output_dim=4)
        (weight,) = [n for n in words.list_arguments() if n != "data"]
        self.assertRegex(weight, "^embedding[0-9]+_weight$")

    def test_gradients(self):
        rng = np.random.default_rng(3)
        run = perceptron().simple_bind(mx.cpu(), data=(4, 7), grad_req={"data": "null", "fc1_weight": "write", "fc1_bias": "add", "fc2_weight": "write"})
        values = {n: rng.standard_normal(a.shape).astype(np.float32) for n, a in run.arg_dict.items()}
        run.copy_params_from({n: nd.array(v) for n, v in values.items()})
        x, w, b, v = (values[n] for n in ("data", "fc1_weight", "fc1_bias", "fc2_weight"))
        h = np.tanh(x @ w.T + b)
        (y,) = run.forward(is_train=True)
        np.testing.assert_allclose(y.asnumpy(), h @ v.T, rtol=1e-4, atol=1e-5)
        dy = rng.standard_normal((4, 3)).astype(np.float32)
        dz = dy @ v * (1 - h * h)
        for times in (1, 2):
            run.backward(nd.array(dy))
            np.testing.assert_allclose(run.grad_dict["fc2_weight"].asnumpy(), dy.T @ h, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(run.grad_dict["fc1_weight"].asnumpy(), dz.T @ x, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(run.grad_dict["fc1_bias"].asnumpy(), times * dz.sum(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(run.grad_dict["data"].asnumpy(), np.zeros((4, 7)))
        np.testing.assert_allclose(run.forward()[0].asnumpy(), h @ v.T, rtol=1e-4, atol=1e-5)
        run.backward(nd.array(dy))  # of a run at inference
        np.testing.assert_allclose(run.grad_dict["fc2_weight"].asnumpy(), dy.T @ h, rtol=1e-4, atol=1e-5)
        run.copy_params_from({"data": nd.zeros((4, 7))})
        first = perceptron().bind(mx.cpu(), dict(run.arg_dict), {"fc2_weight": nd.zeros((3, 5))})
        first.backward(nd.array(dy))  # without forward: with the values that the variables have
        np.testing.assert_allclose(first.grad_dict["fc2_weight"].asnumpy(), dy.T @ np.broadcast_to(np.tanh(b), (4, 5)), rtol=1e-4, atol=1e-5)

    def test_parts(self):
        net = perceptron()
        parts = net.get_internals()
        self.assertEqual([n for n in parts.list_outputs() if n.startswith("fc")], ["fc1_weight", "fc1_bias", "fc1_output", "fc2_weight", "fc2_output"])
        x = nd.ones((2, 7))
        values = {"data": x, "fc1_weight": nd.ones((5, 7)), "fc1_bias": nd.ones((5,))}
        np.testing.assert_array_equal(parts["fc1_output"].eval(**values)[0].asnumpy(), np.full((2, 5), 8))
        self.assertEqual([s.name for s in parts["fc1_output"].get_children()], ["data", "fc1_weight", "fc1_bias"])
        self.assertIsNone(sym.var("a").get_children())
        self.assertRaises(ValueError, parts.__getitem__, "fc3_output")
        self.assertEqual(copy.deepcopy(net).list_arguments(), net.list_arguments())

    def test_bind(self):
        a, b = sym.var("a"), sym.var("b")
        x, y = nd.array([1.0, 2]), nd.array([3.0, 4])
        for args, grads in (([x, y], [nd.zeros((2,)), nd.zeros((2,))]), ({"b": y, "a": x}, {"a": nd.zeros((2,))})):
            run = (a * b * b).bind(mx.cpu(), args, grads)
            run.forward(is_train=True)
            run.backward()
            np.testing.assert_array_equal(run.grad_dict["a"].asnumpy(), [9, 16])
            if len(grads) == 2:
                np.testing.assert_array_equal(run.grad_arrays[1].asnumpy(), [6, 16])
            self.assertIsNone(x.grad)
        self.assertRaises(ValueError, (a * b).bind, mx.cpu(), [x])
        self.assertRaises(ValueError, (a * b).bind, mx.cpu(), {"c": x})
        self.assertRaises(ValueError, (a * b).bind, mx.cpu(), [x, y], [x, y], "all")

    def test_training(self):
        """Normalisation and dropout in training: batch statistics, running ones, and masks."""
        rng = np.random.default_rng(5)
        x = rng.standard_normal((8, 3)).astype(np.float32)
        net = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False, eps=1e-5, momentum=0.75)
        self.assertEqual((net.list_arguments(), net.list_auxiliary_states()), (["data", "bn_gamma", "bn_beta"], ["bn_moving_mean", "bn_moving_var"]))
        run = net.simple_bind(mx.cpu(), data=(8, 3))
        run.copy_params_from({"data": nd.array(x), "bn_gamma": nd.ones((3,))})
        (y,) = run.forward(is_train=True)
        np.testing.assert_allclose(y.asnumpy(), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(run.aux_dict["bn_moving_mean"].asnumpy(), x.mean(0) / 4, rtol=1e-4, atol=1e-6)
        run.backward(nd.ones((8, 3)))
        np.testing.assert_allclose(run.grad_dict["bn_beta"].asnumpy(), [8, 8, 8], rtol=1e-5)
        run = sym.Dropout(sym.var("data"), p=0.5).simple_bind(mx.cpu(), data=(50, 50))
        run.arg_dict["data"][:] = 1
        values = run.forward(is_train=True)[0].asnumpy()
        self.assertEqual(set(np.unique(values)), {0, 2})
        run.backward(nd.ones((50, 50)))
        np.testing.assert_array_equal(run.grad_dict["data"].asnumpy(), values)
        np.testing.assert_array_equal(run.forward()[0].asnumpy(), np.ones((50, 50)))

    def test_without_shapes(self):
        """Functions that need the shapes of their inputs, of variables without one: as soon as the program runs."""
        x, a = sym.var("x"), np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        halves = sym.split(x, num_outputs=2, axis=2)
        for symbol, wanted in (
            (sym.reshape(x, shape=(0, -1)), a.reshape(2, 12)), (x.reshape((-3, 0)), a.reshape(6, 4)), (sym.expand_dims(x, axis=-1), a[..., None]),
            (halves[0] * halves[1], a[..., :2] * a[..., 2:]), (sym.slice_axis(x, axis=-1, begin=1, end=None), a[..., 1:]),
            (sym.flip(sym.transpose(x), axis=0), a.T[::-1]), (x[1], a[1]), (sym.mean(x, axis=(0, 2), keepdims=True), a.mean((0, 2), keepdims=True)),
        ):  # fmt: skip
            self.assertEqual(symbol.list_arguments(), ["x"])
            np.testing.assert_allclose(symbol.eval(x=nd.array(a))[0].asnumpy(), wanted, rtol=1e-6)
            self.assertEqual(symbol.infer_shape(x=a.shape)[1], [wanted.shape])
        run = (sym.reshape(x, shape=(0, -1)) * sym.var("w")).simple_bind(mx.cpu(), x=(2, 3), w=(1, 3))
        run.copy_params_from({"x": nd.array(a[:, :, 0]), "w": nd.ones((1, 3))})
        run.forward(is_train=True)
        run.backward(nd.ones((2, 3)))
        np.testing.assert_array_equal(run.grad_dict["w"].asnumpy(), a[:, :, 0].sum(0, keepdims=True))
        again = sym.load_json(sym.slice_axis(x, axis=-1, begin=1, end=None).tojson())
        np.testing.assert_array_equal(again.eval(x=nd.array(a))[0].asnumpy(), a[..., 1:])
        with self.assertRaises(TypeError):
            sym.reshape(x, form=(0, -1))

    def test_recurrent(self):
        """sym.RNN and nd.RNN, with one array of weights, compute what Gluon's layers do."""
        rng, size, layers = np.random.default_rng(1), 5, 2
        for mode, bidirectional in (("lstm", True), ("gru", False), ("gru", True), ("rnn_tanh", True), ("rnn_relu", False)):
            kind = {"lstm": mx.gluon.rnn.LSTM, "gru": mx.gluon.rnn.GRU}.get(mode, mx.gluon.rnn.RNN)
            options = {"activation": mode[4:]} if kind is mx.gluon.rnn.RNN else {}
            layer = kind(size, layers, bidirectional=bidirectional, input_size=3, **options)
            layer.initialize(mx.init.Uniform(0.5))
            x = nd.array(rng.standard_normal((4, 2, 3)))
            states = [nd.array(rng.standard_normal(s.shape)) for s in layer.begin_state(2)]
            parts = [(end, f"{d}{i}_{g}_{end}") for end in ("weight", "bias") for i in range(layers) for d in "lr"[: 1 + bidirectional] for g in ("i2h", "h2h")]
            values = {name: p.data() for name, p in layer.collect_params().items()}
            weights = nd.concat(*(next(v for n, v in values.items() if n.endswith(part)).reshape((-1,)) for _, part in parts), dim=0)
            variables = [sym.var(n) for n in ("x", "w", "h", "c")[: 2 + len(states)]]
            net = sym.RNN(*variables, state_size=size, num_layers=layers, mode=mode, bidirectional=bidirectional, state_outputs=True)
            run = net.simple_bind(mx.cpu(), x=(4, 2, 3))
            run.copy_params_from(dict(zip("xwhc", [x, weights, *states])))
            y, ends = layer(x, states)
            for got, wanted in zip(run.forward(), [y, *ends], strict=True):
                np.testing.assert_allclose(got.asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-5)

    def test_constants(self):
        """What is constant to gradients stays so in a program."""
        x = nd.array([1.0, 2])
        for symbol, wanted in ((sym.BlockGrad(sym.var("x") * 2) + sym.var("x") * 3, 3), (sym.contrib.gradientmultiplier(sym.var("x"), scalar=5.0), 5),
                               (sym.var("x").detach() * sym.var("x"), [1, 2]), (sym.sign(sym.var("x")), 0)):  # fmt: skip
            grad = nd.zeros((2,))
            run = symbol.bind(mx.cpu(), {"x": x}, {"x": grad})
            run.forward(is_train=True)
            run.backward([nd.ones((2,))])
            np.testing.assert_array_equal(grad.asnumpy(), np.broadcast_to(wanted, (2,)))
            if np.any(wanted):
                self.assertRaises(ValueError, run.backward, [nd.ones((3,))])

    def test_outputs(self):
        """Results with the gradient of a loss beside labels, whatever comes back to them."""
        rng = np.random.default_rng(6)
        x, label = rng.standard_normal((4, 3)).astype(np.float32), np.array([0, 2, 1, 2], dtype=np.float32)
        p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        net = sym.SoftmaxOutput(sym.var("data"), name="softmax", use_ignore=True, ignore_label=1, normalization="valid")
        self.assertEqual(net.list_arguments(), ["data", "softmax_label"])
        run = net.simple_bind(mx.cpu(), data=(4, 3))
        run.copy_params_from({"data": nd.array(x), "softmax_label": nd.array(label)})
        np.testing.assert_allclose(run.forward(is_train=True)[0].asnumpy(), p, rtol=1e-5)
        run.backward()
        wanted = (p - np.eye(3)[label.astype(int)]) * (label != 1)[:, None] / 3
        np.testing.assert_allclose(run.grad_dict["data"].asnumpy(), wanted, rtol=1e-4, atol=1e-6)
        target = rng.standard_normal((4, 3)).astype(np.float32)
        sigmoid = 1 / (1 + np.exp(-x))
        for function, y, grad in ((nd.LinearRegressionOutput, x, x - target), (nd.MAERegressionOutput, x, np.sign(x - target)),
                                  (nd.LogisticRegressionOutput, sigmoid, sigmoid - target)):  # fmt: skip
            data = nd.array(x)
            data.attach_grad()
            with mx.autograd.record():
                out = function(data, nd.array(target), grad_scale=2)
            out.backward()
            np.testing.assert_allclose(out.asnumpy(), y, rtol=1e-5)
            np.testing.assert_allclose(data.grad.asnumpy(), grad * 2 / 3, rtol=1e-4, atol=1e-6)

    def test_custom(self):
        class Square(mx.operator.CustomOp):
            def forward(self, is_train, req, in_data, out_data, aux):
                self.assign(out_data[0], req[0], in_data[0] * in_data[0] * self.scale)
                aux[0][:] = is_train

            def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
                self.assign(in_grad[0], req[0], 2 * self.scale * in_data[0] * out_grad[0])

        @mx.operator.register("test_symbols_square")
        class Property(mx.operator.CustomOpProp):
            def __init__(self, scale):
                super().__init__()
                self.scale = float(scale)

            def list_auxiliary_states(self):
                return ["aux"]

            def infer_shape(self, in_shape):
                return in_shape, in_shape, [[1]]

            def create_operator(self, ctx, in_shapes, in_dtypes):
                op = Square()
                op.scale = self.scale
                return op

        x, aux = nd.array([1.0, 2, 3]), nd.zeros((1,))
        x.attach_grad()
        with mx.autograd.record():
            y = nd.Custom(x, aux, op_type="test_symbols_square", scale=3)
        y.backward()
        np.testing.assert_array_equal((y.asnumpy(), x.grad.asnumpy()), ([3, 12, 27], [6, 12, 18]))
        self.assertEqual(aux.asscalar(), 1)
        symbol = sym.Custom(data=sym.var("data"), aux=sym.var("aux"), op_type="test_symbols_square", scale=3, name="square")
        self.assertEqual((symbol.list_arguments(), symbol.list_auxiliary_states(), symbol.list_outputs()), (["data"], ["aux"], ["square_output"]))
        mx.test_utils.check_numeric_gradient(symbol, [x.detach()], [aux], rtol=1e-2, atol=1e-2)
        self.assertRaises(NotImplementedError, nd.Custom, x, op_type="unknown")


class Attributes(unittest.TestCase):
    def test_names(self):
        with mx.AttrScope(group="4", data="great"):
            x = mx.sym.var("x", attr={"group": "1", "force_mirroring": "True"}, lr_mult=1)
            y = mx.sym.Activation(x, act_type="relu")
        z = mx.sym.Activation(y, act_type="tanh", name="z", attr={"mood": "so"}, wd_mult=2)
        self.assertEqual([x.attr(k) for k in ("group", "data", "lr_mult", "__lr_mult__", "__force_mirroring__", "name", "other")],
                         ["1", "great", "1", "1", "True", "x", None])  # fmt: skip
        self.assertEqual(y.list_attr(), {"group": "4", "data": "great"})
        self.assertEqual(z.list_attr(), {"mood": "so", "wd_mult": "2", "__wd_mult__": "2"})
        self.assertEqual(z.attr_dict()["z"]["act_type"], "tanh")
        self.assertEqual(pickle.loads(pickle.dumps(x)).list_attr(), x.list_attr())
        self.assertRaises(TypeError, mx.sym.var, "x", nothing="a")
        self.assertRaises(ValueError, mx.AttrScope, group=4)

    def test_weights(self):
        y = mx.sym.Convolution(mx.sym.var("x"), kernel=(1, 1), num_filter=1, name="c", attr={"__mood__": "so", "here": "only"}, lr_mult=3)
        found = y.attr_dict()
        self.assertEqual(found["c_weight"], {"__mood__": "so", "__lr_mult__": "3"})
        self.assertEqual((found["c"]["here"], found["c"]["__lr_mult__"], found["c"]["num_filter"]), ("only", "3", "1"))

    def test_rates(self):
        """A module's optimiser multiplies its rate and its decay for each variable."""
        y = mx.sym.FullyConnected(mx.sym.var("data"), mx.sym.var("fixed", lr_mult=0, init=mx.init.One()), mx.sym.var("b", lr_mult=2), num_hidden=3, name="y")
        module = mx.mod.Module(y, label_names=None)
        module.bind(data_shapes=[("data", (2, 4))])
        module.init_params(mx.init.Zero())
        module.init_optimizer(optimizer_params={"learning_rate": 0.5, "rescale_grad": 1.0})
        module.forward(mx.io.DataBatch(data=[mx.nd.ones((2, 4))], label=None), is_train=True)
        before = module.get_params()[0]["b"].asnumpy().copy()
        module.backward([mx.nd.ones((2, 3))])
        module.update()
        after = module.get_params()[0]
        np.testing.assert_array_equal(after["fixed"].asnumpy(), np.ones((3, 4)))
        np.testing.assert_allclose(after["b"].asnumpy(), before - 2)

    def test_prelu(self):
        module = mx.mod.Module(mx.sym.LeakyReLU(mx.sym.var("data"), act_type="prelu", name="p"), label_names=None)
        module.bind(data_shapes=[("data", (2, 3))])
        module.init_params()
        self.assertEqual(module.get_params()[0]["p_gamma"].asnumpy().tolist(), [0.25] * 3)
        self.assertEqual(mx.sym.LeakyReLU(mx.sym.var("x"), act_type="elu").list_arguments(), ["x"])

    def test_files(self):
        """A program whose weights have no shapes yet has its units in its file."""
        y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=3, name="y")
        again = pickle.loads(pickle.dumps(y))
        values = {n: mx.nd.ones(s) for n, s in zip(y.list_arguments(), y.infer_shape(x=(2, 4))[0])}
        np.testing.assert_array_equal(again.eval(**values)[0].asnumpy(), np.full((2, 3), 5))


if __name__ == "__main__":
    unittest.main()
