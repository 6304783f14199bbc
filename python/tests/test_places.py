"""Contexts of starling.mx: each is what the program named, whatever the number of teams; and parameters that blocks share by params=."""
import tempfile
import unittest

import numpy as np
from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx.gluon import nn

FAR = 97  # beyond the teams of any machine


class Contexts(unittest.TestCase):
    def test_names(self):
        """Results, gradients, copies and random numbers are on the context that was named."""
        for number in (1, 2, FAR):
            place = mx.cpu(number)
            x = nd.array([[1.0, 2], [3, 4]], ctx=place)
            x.attach_grad()
            with autograd.record():
                y = (x * x + nd.ones((2, 2), place)).sum()
            y.backward()
            np.testing.assert_array_equal(x.grad.asnumpy(), [[2, 4], [6, 8]])
            with place:
                made = [nd.zeros((2,)), nd.random.uniform(shape=(2,)), mx.np.ones(2)]
            for array in (x, y, x.grad, x[0], x.T, *made, x.copy(), x.astype("int32"), nd.ones((2,)).copyto(place), nd.ones((2,)).as_in_context(place)):
                self.assertEqual(array.context, place)
            self.assertIn(f"@cpu({number})", repr(x))
            self.assertEqual(x.copyto(mx.cpu(0)).context, mx.cpu(0))
            self.assertEqual(float(y.asscalar()), 34)

    def test_together(self):
        """Operations between contexts of CPUs are on the first one, as in MXNet; compiled blocks refuse them."""
        a, b = nd.ones((3,), mx.cpu(FAR + 1)), nd.ones((3,), mx.cpu(FAR))
        for x, y in ((a, b), (b, a), (nd.ones((3,)), b), (b, nd.ones((3,)))):
            x.attach_grad()
            y.attach_grad()
            with autograd.record():
                z = x * (y + x) + nd.concat(y, x, dim=0)[:3] * 2
            z.backward()
            self.assertEqual((z.context, x.grad.context, y.grad.context), (x.context, x.context, y.context))
            self.assertEqual([v.asnumpy().tolist() for v in (z, x.grad, y.grad)], [[4] * 3, [3] * 3, [3] * 3])
            y += x
            self.assertEqual(y.asnumpy().tolist(), [2] * 3)
            y -= x

        class Sum(gluon.HybridBlock):
            def hybrid_forward(self, F, x, y):
                return x + y

        net = Sum()
        net.hybridize()
        self.assertRaisesRegex(ValueError, f"on cpu:{FAR}, those before it on cpu:{FAR + 1}", net, a, b)
        self.assertEqual(net(b, b).context, mx.cpu(FAR))
        self.assertRaises(ValueError, net, a, b)

    def test_networks(self):
        """Parameters are on the contexts that they were initialised on; a step changes them on all."""
        net = nn.Dense(2, in_units=3)
        places = [mx.cpu(0), mx.cpu(FAR)]
        net.initialize(mx.init.One(), ctx=places)
        self.assertEqual(net.weight.list_ctx(), places)
        self.assertEqual([w.context for w in net.weight.list_data()], places)
        for missing in (mx.cpu(1), mx.cpu(FAR + 1)):
            self.assertRaisesRegex(RuntimeError, "was not initialized on context", net.weight.data, missing)
            self.assertRaises((RuntimeError, ValueError), net, nd.ones((1, 3), missing))
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})
        parts = gluon.utils.split_and_load(nd.ones((4, 3)), places)
        for compiled in (False, True):
            net.hybridize(compiled)
            with autograd.record():
                losses = [net(x).sum() for x in parts]
            self.assertEqual([loss.context for loss in losses], places)
            for loss in losses:
                loss.backward()
            trainer.step(4)
        for place in places:
            np.testing.assert_array_equal(net.weight.data(place).asnumpy(), np.full((2, 3), -1))
        net.collect_params().reset_ctx(mx.cpu(1))
        self.assertEqual(net.weight.list_ctx(), [mx.cpu(1)])
        np.testing.assert_array_equal(net(nd.ones((1, 3), mx.cpu(1))).asnumpy(), [[-5, -5]])


class Own(gluon.HybridBlock):
    """A block with a parameter of its own and a layer."""

    def __init__(self, **options):
        super().__init__(**options)
        with self.name_scope():
            self.w = self.params.get("w", shape=(2,))
            self.a = nn.Dense(3, in_units=2)

    def hybrid_forward(self, F, x, w):
        return self.a(F.broadcast_mul(x, w))


class Plain(gluon.Block):
    def __init__(self, **options):
        super().__init__(**options)
        with self.name_scope():
            self.a = nn.Dense(3, in_units=2)

    def forward(self, x):
        return self.a(x)


class Shared(unittest.TestCase):
    x = nd.array([[1.0, 2]])

    def pair(self, kind, prefix="net_"):
        one = kind(prefix="net_")
        one.initialize(mx.init.One())
        return one, kind(prefix=prefix, params=one.collect_params())

    def test_custom_blocks(self):
        """params= gives a custom block the parameters of another: changes and steps are seen in both, call by call and compiled."""
        for kind in (Own, Plain):
            for prefix in ("net_", "other_"):
                one, two = self.pair(kind, prefix)
                self.assertEqual(sorted(two.collect_params().keys()), sorted(one.collect_params().keys()))
                if kind is Own:
                    two.hybridize()
                np.testing.assert_array_equal(two(self.x).asnumpy(), [[3, 3, 3]])
                for p in one.collect_params().values():
                    p.set_data(nd.ones(p.shape) * 2)
                np.testing.assert_array_equal(two(self.x).asnumpy(), [[14, 14, 14]] if kind is Own else [[8, 8, 8]])
                with autograd.record():
                    y = two(self.x).sum()
                y.backward()
                gluon.Trainer(two.collect_params(), "sgd", {"learning_rate": 1.0}).step(1)
                np.testing.assert_array_equal(one(self.x).asnumpy(), two(self.x).asnumpy())
                self.assertEqual(float(one.a.bias.data().asnumpy()[0]), 1)
                if kind is Own:
                    np.testing.assert_array_equal(one.w.data().asnumpy(), [2 - 6, 2 - 12])

    def test_waiting(self):
        """A block that shares parameters initialises them, if nothing has; their files belong to the other block."""
        one = Own(prefix="net_")
        two = Own(prefix="net_", params=one.collect_params())
        two.initialize(mx.init.One())
        np.testing.assert_array_equal(one(self.x).asnumpy(), two(self.x).asnumpy())
        with tempfile.NamedTemporaryFile() as file:
            self.assertRaises(NotImplementedError, two.save_parameters, file.name)
            one.save_parameters(file.name)

    def test_symbol_block(self):
        """SymbolBlock(params=): of a network whose results are symbols, of a ParameterDict, and of another SymbolBlock."""
        net = Plain(prefix="net_")
        net.initialize(mx.init.One())
        block = gluon.SymbolBlock(net(mx.sym.var("data")), mx.sym.var("data"), params=net.collect_params())
        np.testing.assert_array_equal(block(self.x).asnumpy(), [[3, 3, 3]])
        self.assertEqual(sorted(block.collect_params().keys()), sorted(net.collect_params().keys()))
        with autograd.record():
            y = block(self.x).sum()
        y.backward()
        gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 1.0}).step(1)
        np.testing.assert_array_equal(net.a.weight.data().asnumpy(), [[0, -1]] * 3)
        np.testing.assert_array_equal(block(self.x).asnumpy(), [[-3, -3, -3]])

        data, given = mx.sym.var("data"), gluon.ParameterDict()
        w = given.get("w", shape=(2, 2))
        given.initialize(mx.init.One())
        product = mx.sym.FullyConnected(data, mx.sym.var("w"), no_bias=True, num_hidden=2)
        block = gluon.SymbolBlock([product, product * 2], data, params=given)
        block.hybridize()
        self.assertEqual([y.asnumpy().tolist() for y in block(self.x)], [[[3, 3]], [[6, 6]]])
        w.set_data(nd.zeros((2, 2)))
        self.assertEqual(block(self.x)[0].asnumpy().tolist(), [[0, 0]])

        layer = mx.sym.FullyConnected(data, num_hidden=2, name="fc")
        block = gluon.SymbolBlock(layer, data)
        block.initialize(mx.init.One())  # of the bias, too: its variable has no initialiser of its own
        other = gluon.SymbolBlock(layer * 2, data, params=block.collect_params())
        self.assertEqual((block(self.x).asnumpy().tolist(), other(self.x).asnumpy().tolist()), ([[4, 4]], [[8, 8]]))


if __name__ == "__main__":
    unittest.main()
