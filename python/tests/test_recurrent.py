"""gluon.rnn: layers and cells against the equations in NumPy's float64, with gradients by differences."""
import unittest

import numpy as np
from starling import mx
from starling.mx import autograd, gluon, nd, npx
from starling.mx.gluon import nn, rnn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(kind, x, states, wx, wh, bx, bh):
    """The new states after one step."""
    h = states[0]
    a, b = x @ wx.T + bx, h @ wh.T + bh
    if kind == "gru":
        (r, z, n), (rh, zh, nh) = np.split(a, 3, -1), np.split(b, 3, -1)
        z = sigmoid(z + zh)
        return [(1 - z) * np.tanh(n + sigmoid(r + rh) * nh) + z * h]
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(g)
        return [sigmoid(o) * np.tanh(c), c]
    return [np.tanh(a + b) if kind == "tanh" else np.maximum(a + b, 0)]


def run(kind, x, states, weights, directions):
    """(the top layer's states after each step, the states of all layers at the end)."""
    ends, number = [], 0
    for layer in range(len(weights) // (4 * directions)):
        sides = []
        for d in range(directions):
            now, steps = [s[number] for s in states], []
            for t in range(len(x))[:: -1 if d else 1]:
                now = step(kind, x[t], now, *weights[4 * number : 4 * number + 4])
                steps.append(now[0])
            sides.append(np.stack(steps[:: -1 if d else 1]))
            ends.append(now)
            number += 1
        x = np.concatenate(sides, -1)
    return x, [np.stack(e) for e in zip(*ends)]


def filled(block, seed=1):
    """Gives the parameters values; returns them."""
    rng, values = np.random.RandomState(seed), []
    for p in block.collect_params().values():
        values.append((rng.standard_normal(p.shape) * 0.4).astype("float32"))
        p.set_data(nd.array(values[-1]))
    return values


class Layers(unittest.TestCase):
    def check(self, layer, kind, layout="TNC", directions=1):
        x = np.random.RandomState(0).standard_normal((4, 3, 5)).astype("float32")
        layer.initialize()
        layer(nd.array(x))
        weights = filled(layer)
        rng = np.random.RandomState(2)
        states = [rng.standard_normal(info["shape"]).astype("float32") for info in layer.state_info(3 if layout == "TNC" else 4)]
        turned = x if layout == "TNC" else x.swapaxes(0, 1)
        for hybrid in (False, True):
            if hybrid:
                layer.hybridize()
            for begin, given in ((states, [nd.array(s) for s in states]), ([0 * s for s in states], None)):
                wanted, ends = run(kind, turned, begin, weights, directions)
                y = layer(nd.array(x), given) if given else layer(nd.array(x))
                if given:
                    y, found = y
                    self.assertIsInstance(found, list)
                    for a, b in zip(found, ends, strict=True):
                        np.testing.assert_allclose(a.asnumpy(), b, atol=1e-5)
                np.testing.assert_allclose(y.asnumpy(), wanted if layout == "TNC" else wanted.swapaxes(0, 1), atol=1e-5)

    def test_kinds(self):
        for kind, make in (("relu", rnn.RNN), ("tanh", lambda n, **o: rnn.RNN(n, activation="tanh", **o)), ("lstm", rnn.LSTM), ("gru", rnn.GRU)):
            self.check(make(6), kind)
            self.check(make(6, num_layers=2, bidirectional=True, layout="NTC"), kind, "NTC", 2)

    def test_lengths(self):
        """Each row is as if it were alone, without the steps behind its last one."""
        x, lengths = np.random.RandomState(0).standard_normal((4, 3, 5)).astype("float32"), [2, 4, 1]
        for make in (rnn.RNN, rnn.LSTM, rnn.GRU):
            layer = make(6, num_layers=2, bidirectional=True, use_sequence_length=True)
            alone = make(6, num_layers=2, bidirectional=True)
            for block, more in ((layer, {"sequence_length": nd.array(lengths)}), (alone, {})):
                block.initialize()
                block(nd.array(x), **more)
                filled(block)
            for hybrid in (False, True):
                if hybrid:
                    layer.hybridize()
                y, ends = layer(nd.array(x), layer.begin_state(3), nd.array(lengths))
                for row, n in enumerate(lengths):
                    wanted, last = alone(nd.array(x[:n, row : row + 1]), alone.begin_state(1))
                    np.testing.assert_allclose(y.asnumpy()[:n, row], wanted.asnumpy()[:, 0], atol=1e-5)
                    self.assertFalse(y.asnumpy()[n:, row].any())
                    for a, b in zip(ends, last, strict=True):
                        np.testing.assert_allclose(a.asnumpy()[:, row], b.asnumpy()[:, 0], atol=1e-5)
        with self.assertRaisesRegex(ValueError, "belong together"):
            layer(nd.array(x))

    def test_gradients(self):
        """Those of the layer are those of its cell, unrolled."""
        x = nd.array(np.random.RandomState(0).standard_normal((4, 3, 5)))
        for layer, cell in ((rnn.RNN(6, activation="tanh"), rnn.RNNCell(6)), (rnn.LSTM(6), rnn.LSTMCell(6)), (rnn.GRU(6), rnn.GRUCell(6))):
            gradients = []
            for block, forward in ((layer, lambda: layer(x)), (cell, lambda: cell.unroll(4, x, layout="TNC", merge_outputs=True)[0])):
                block.initialize()
                forward()
                filled(block)
                with autograd.record():
                    y = (forward() ** 2).sum()
                y.backward()
                gradients.append([p.grad().asnumpy() for p in block.collect_params().values()])
            for a, b in zip(*gradients, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)

    def test_names_and_text(self):
        layer = rnn.LSTM(6, 2, bidirectional=True, dropout=0.5, prefix="a_")
        names = [f"a_{d}{i}_{n}" for i in range(2) for d in "lr" for n in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias")]
        self.assertEqual(list(layer.collect_params()), names)
        self.assertEqual(repr(layer), "LSTM(None -> 6, TNC, num_layers=2, dropout=0.5, bidirectional)")
        self.assertEqual(rnn.GRU(4, input_size=3).l0_i2h_weight.shape, (12, 3))
        with self.assertRaisesRegex(NotImplementedError, "projections"):
            rnn.LSTM(4, projection_size=2)

    def test_arrays_of_np(self):
        npx.set_np()
        self.addCleanup(npx.reset_np)
        layer = rnn.LSTM(4)
        layer.initialize()
        y, states = layer(mx.np.ones((2, 3, 5)), layer.begin_state(batch_size=3, func=mx.np.zeros))
        self.assertEqual([type(a) for a in (y, *states)], [mx.np.ndarray] * 3)


class Cells(unittest.TestCase):
    def test_lengths(self):
        cell = rnn.GRUCell(4)
        cell.initialize()
        x = nd.array(np.random.RandomState(0).standard_normal((2, 3, 5)))
        y, states = cell.unroll(3, x, merge_outputs=True, valid_length=nd.array([1, 3]))
        self.assertEqual((y.shape, float(abs(y[0, 1:]).sum().asscalar())), ((2, 3, 4), 0))
        np.testing.assert_allclose(states[0].asnumpy(), [y[0, 0].asnumpy(), y[1, 2].asnumpy()])

    def test_stack(self):
        stack = rnn.HybridSequentialRNNCell()
        for cell in (rnn.LSTMCell(5), rnn.DropoutCell(0.5), rnn.ResidualCell(rnn.GRUCell(5))):
            stack.add(cell)
        stack.initialize()
        outputs, states = stack.unroll(4, nd.ones((4, 2, 3)), layout="TNC")
        self.assertEqual((len(outputs), outputs[0].shape, len(states)), (4, (2, 5), 3))
        stack.hybridize()
        y, again = stack(nd.ones((2, 3)), stack.begin_state(batch_size=2))
        self.assertEqual((y.shape, len(again)), ((2, 5), 3))

    def test_two_directions(self):
        """A stack of cells for two directions computes what the layer does; a residual one adds the input."""
        rng = np.random.default_rng(4)
        layer = gluon.rnn.LSTM(3, 2, bidirectional=True, input_size=6, layout="NTC")
        stack = gluon.rnn.HybridSequentialRNNCell()
        for i in range(2):
            stack.add(gluon.rnn.BidirectionalCell(*(gluon.rnn.LSTMCell(3, prefix=f"{d}{i}_") for d in "lr")))
        layer.initialize(mx.init.Uniform(0.5))
        stack.initialize()
        x = nd.array(rng.standard_normal((2, 4, 6)))
        stack.unroll(4, x)
        values = {name[len(layer.prefix) :]: p.data() for name, p in layer.collect_params().items()}
        for name, p in stack.collect_params().items():
            p.set_data(values[name])
        y, ends = layer(x, layer.begin_state(2))
        got, states = stack.unroll(4, x, merge_outputs=True)
        np.testing.assert_allclose(got.asnumpy(), y.asnumpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(states[2].asnumpy(), ends[0][1].asnumpy(), rtol=1e-4, atol=1e-5)  # the state of the first layer, from the end
        self.assertRaises(NotImplementedError, stack[0], x[:, 0], states[:4])
        for length in (1, 4):
            part, lengths = x[:, :length], nd.array([1, length])
            lists, _ = stack.unroll(length, part, merge_outputs=False, valid_length=lengths)
            self.assertEqual([a.shape for a in lists], [(2, 6)] * length)
            residual, _ = gluon.rnn.ResidualCell(stack).unroll(length, part, merge_outputs=True, valid_length=lengths)
            mask = (np.arange(length)[None] < lengths.asnumpy()[:, None])[..., None]
            np.testing.assert_allclose(residual.asnumpy(), nd.stack(*lists, axis=1).asnumpy() + part.asnumpy() * mask, rtol=1e-5, atol=1e-6)

    def test_zoneout(self):
        cell = gluon.rnn.ZoneoutCell(gluon.rnn.RNNCell(300, input_size=4), zoneout_outputs=0.5)
        cell.initialize(mx.init.Uniform(1))
        x = nd.array(np.random.default_rng(5).standard_normal((2, 3, 4)))
        plain, _ = cell.base_cell.unroll(3, x, merge_outputs=True)
        np.testing.assert_allclose(cell.unroll(3, x, merge_outputs=True)[0].asnumpy(), plain.asnumpy(), rtol=1e-5)
        with mx.autograd.record():
            y, _ = cell.unroll(3, x, merge_outputs=True)
        y, plain = y.asnumpy(), plain.asnumpy()
        kept = np.zeros_like(y[:, 0])
        for t in range(3):
            self.assertTrue(((y[:, t] == kept) | np.isclose(y[:, t], plain[:, t], rtol=1e-4, atol=1e-5)).all())
            self.assertTrue(0.3 < (y[:, t] == kept).mean() < 0.7)
            kept = y[:, t]

    def test_language_model_learns(self):
        class Model(gluon.Block):
            def __init__(self, words, hidden, **kwargs):
                super().__init__(**kwargs)
                with self.name_scope():
                    self.embed, self.rnn, self.dense = nn.Embedding(words, 8), rnn.LSTM(hidden), nn.Dense(words)

            def forward(self, words, states):
                y, states = self.rnn(self.embed(words.T), states)
                return self.dense(y.reshape((-1, y.shape[-1]))), states

        mx.random.seed(0)
        model, words = Model(12, 16, prefix="lm_"), nd.array(np.arange(12).reshape(2, 6))
        model.initialize(mx.init.Xavier())
        self.assertIn("lm_lstm0_l0_h2h_weight", model.collect_params())
        trainer, loss, history = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": 0.05}), gluon.loss.SoftmaxCrossEntropyLoss(), []
        states = model.rnn.begin_state(batch_size=2)
        for _ in range(20):
            states = [s.detach() for s in states]
            with autograd.record():
                y, states = model(words, states)
                l = loss(y, words.T.reshape((-1,))).mean()
            l.backward()
            gluon.utils.clip_global_norm([p.grad() for p in model.collect_params().values()], 1.0)
            trainer.step(1)
            history.append(float(l.asscalar()))
        self.assertLess(history[-1], 0.5 * history[0])


if __name__ == "__main__":
    unittest.main()
