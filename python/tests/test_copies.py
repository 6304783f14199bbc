"""Copies of networks: structure, values, attributes; nothing is shared."""
import copy
import pickle
import unittest

import numpy as np
import starling as sl


class Net(sl.Block):
    def __init__(self, units):
        super().__init__()
        self.units, self.notes = units, ["a", 1]
        self.hidden = sl.nn.Dense(units, activation="relu")
        self.scale = self.param("scale", (units,), init=sl.init.constant(2))
        self.rest = sl.nn.Sequential(sl.nn.BatchNorm(), sl.nn.Dropout(0.5), sl.nn.Dense(2))
        self.tail = [self.rest[2]]

    def forward(self, x):
        return self.rest(self.hidden(x) * self.scale.on(x))


def values(net):
    return [p.data().numpy(copy=True) for p in net.params()]


WAYS = (copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net)))


class Copies(unittest.TestCase):
    def setUp(self):
        self.x = sl.array(np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32))

    def same(self, a, b, x=None):
        x = self.x if x is None else x
        np.testing.assert_array_equal(a(x).numpy(), b(x).numpy())

    def test_own_network(self):
        for hybrid in (False, True):
            for how in WAYS:
                net = Net(5)
                net.initialize()
                if hybrid:
                    net.hybridize()
                with sl.record():  # running statistics that are no longer the first ones
                    loss = net(self.x).sum()
                loss.backward()
                other = how(net)
                self.assertIs(type(other), Net)
                self.same(net, other)
                self.assertEqual((other.units, other.notes, list(other.children)), (5, ["a", 1], list(net.children)))
                self.assertIs(other.tail[0], other.rest[2])
                self.assertEqual([p.shape for p in net.params()], [p.shape for p in other.params()])
                before = net(self.x).numpy(copy=True)
                for param in other.params():
                    param.set(np.zeros(param.shape))
                other.notes.append(2)
                np.testing.assert_array_equal(net(self.x).numpy(), before)
                self.assertEqual(net.notes, ["a", 1])
                self.assertEqual(other(self.x).tolist(), [[0, 0]] * 4)
                with sl.record():
                    y = other(self.x).sum()
                y.backward()

    def test_trained_alike(self):
        """Steps of an optimiser on a copy are the original's."""
        net = sl.nn.Sequential(sl.nn.Dense(4, activation="tanh"), sl.nn.Residual(sl.nn.Dense(4)), sl.nn.LayerNorm(), sl.nn.Dense(1))
        net.initialize()
        net(self.x)
        other, results = copy.deepcopy(net), []
        for n in (net, other):
            trainer = sl.Trainer(n, "adam", lr=0.1)
            for _ in range(3):
                with sl.record():
                    loss = sl.l2_loss(n(self.x), sl.ones((4, 1)))
                loss.backward()
                trainer.step(4)
            results.append(values(n))
        for a, b in zip(*results):
            np.testing.assert_array_equal(a, b)

    def test_layers(self):
        images, words = sl.ones((2, 3, 8, 8)), sl.array([[1, 2], [0, 3]])
        for make, x in (
            (lambda: sl.nn.Dense(3), self.x), (lambda: sl.nn.Conv2d(4, kernel=3, pad=1), images),
            (lambda: sl.nn.MaxPool2d(2), images), (lambda: sl.nn.Embedding(5, 4), words), (lambda: sl.nn.Lstm(3), sl.ones((2, 3, 4))),
            (lambda: sl.nn.Activation("gelu"), self.x), (lambda: sl.nn.Flatten(), images), (lambda: sl.nn.Lambda(abs), self.x),
        ):  # fmt: skip
            for how in WAYS:
                layer = make()
                layer.initialize()
                layer(x)
                self.same(layer, how(layer), x)
        half = sl.nn.Dense(2)
        half.initialize(dtype="float64")
        x = self.x.astype("float64")
        half(x)
        self.same(half, copy.deepcopy(half), x)

    def test_settings(self):
        net = sl.nn.Sequential(sl.nn.Dense(4), sl.nn.Dense(1))
        net.initialize()
        net(self.x)
        net.freeze("0.*")
        other = pickle.loads(pickle.dumps(net))
        before, trainer = values(other), sl.Trainer(other, "sgd", lr=0.5)
        with sl.record():
            loss = sl.l2_loss(other(self.x), sl.ones((4, 1)))
        loss.backward()
        trainer.step(4)
        changed = [p.shape for p, old in zip(other.params(), before) if (p.data().numpy(copy=True) != old).any()]
        self.assertEqual(changed, [(1, 4), (1,)])

    def test_not_initialized(self):
        for how in WAYS:
            other = how(Net(5))
            self.assertRaises(sl.Error, other, self.x)
            other.initialize()
            self.assertEqual(other(self.x).shape, (4, 2))

    def test_shared_layers(self):
        layer = sl.nn.Dense(3)
        net = sl.nn.Sequential(layer, sl.nn.Activation("tanh"), layer)
        net.initialize()
        net(self.x)
        other = copy.deepcopy(net)
        self.assertIs(other[0], other[2])
        self.same(net, other)

    def test_refused(self):
        class Mine(sl.nn.Dense):
            def __init__(self):
                super().__init__(3)

        net = Net(5)
        for wrong in (lambda: copy.copy(net), lambda: copy.deepcopy(Mine()), lambda: copy.deepcopy(sl.nn.Sequential(Mine())), lambda: copy.deepcopy(net.find("scale")), lambda: pickle.dumps(sl.nn.Lambda(lambda x: x))):
            self.assertRaises((TypeError, AttributeError, pickle.PicklingError), wrong)


if __name__ == "__main__":
    unittest.main()
