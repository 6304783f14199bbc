"""Functions with a backward of one's own, in both faces, and gradients that are used under record."""
import gc
import pathlib
import unittest
import weakref

import numpy as np
import starling as sl
from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx.gluon import nn


class Sigmoid(sl.Function):
    def forward(self, x):
        y = 1 / (1 + sl.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class Mixed(autograd.Function):
    def forward(self, x, y):
        return x + y, x * 3

    def backward(self, da, db):
        return da * 10 + db, da * 0.5


def rows(*shape):
    return np.random.RandomState(0).standard_normal(shape).astype("float32")


class Functions(unittest.TestCase):
    def test_native(self):
        a = rows(3, 4)
        x = sl.array(a).attach_grad()
        with sl.record():
            y = Sigmoid()(x * 2)
            loss = (y * y).sum()
        loss.backward()
        s = 1 / (1 + np.exp(-2 * a.astype("float64")))
        np.testing.assert_allclose(y.numpy(), s, rtol=1e-5)
        np.testing.assert_allclose(x.grad.numpy(), 2 * s * s * (1 - s) * 2, rtol=1e-4, atol=1e-6)

    def test_gluon(self):
        x, z = nd.array(rows(4)), nd.array(rows(4))
        x.attach_grad()
        z.attach_grad()
        with autograd.record():
            a, b = Mixed()(x * 2, z)
            loss = (a + 4 * b).sum()
        loss.backward()
        self.assertIsInstance(a, nd.NDArray)
        np.testing.assert_array_equal(x.grad.asnumpy(), [28] * 4)
        np.testing.assert_array_equal(z.grad.asnumpy(), [0.5] * 4)
        with autograd.record():
            first = Mixed()(x, z)[0]  # nothing comes by the other result
        first.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [10] * 4)

    def test_not_recorded(self):
        x = nd.array(rows(4))
        np.testing.assert_allclose(Mixed()(x, x)[0].asnumpy(), 2 * rows(4))
        function = Mixed()
        function(x, x)
        self.assertRaisesRegex(RuntimeError, "called once", function, x, x)
        self.assertRaisesRegex(TypeError, "Mixed: input 1 is int", Mixed(), x, 3)

    def test_identity(self):
        """A result that is an input: what is recorded is another array over the same values."""

        class Reversed(autograd.Function):
            def forward(self, x):
                return x

            def backward(self, dy):
                return -dy

        x = nd.array(rows(3))
        x.attach_grad()
        with autograd.record():
            y = Reversed()(x) * 2
        y.backward()
        np.testing.assert_array_equal(x.grad.asnumpy(), [-2] * 3)

    def test_modes(self):
        class Looks(autograd.Function):
            def forward(self, x):
                self.modes = [autograd.is_recording(), autograd.is_training()]
                return x * 1

            def backward(self, dy):
                self.modes.append(autograd.is_recording())
                return None

        x = nd.array(rows(3))
        x.attach_grad()
        function = Looks()
        with autograd.record():
            y = function(x)
            self.assertTrue(autograd.is_recording())
        y.backward()
        self.assertEqual(function.modes, [False, True, False])
        np.testing.assert_array_equal(x.grad.asnumpy(), [0] * 3)

    def failing(self, backward, kind, text):
        class Wrong(autograd.Function):
            def forward(self, x):
                return x * 1

        Wrong.backward = backward
        x = nd.ones((3,))
        x.attach_grad()
        with autograd.record():
            y = Wrong()(x)
        caught = None
        try:
            y.backward()
        except Exception as error:
            caught = error
        self.assertIsInstance(caught, kind)
        self.assertRegex(str(caught), text)
        np.testing.assert_array_equal(x.grad.asnumpy(), [0] * 3)
        return caught

    def test_errors(self):
        def divides(self, dy):
            return 1 // 0

        error = self.failing(divides, ZeroDivisionError, "division")
        places, trace = [], error.__traceback__
        while trace is not None:
            places.append((pathlib.Path(trace.tb_frame.f_code.co_filename).name, trace.tb_frame.f_code.co_name))
            trace = trace.tb_next
        self.assertIn(("test_custom.py", "divides"), places)  # the place in the user's program
        error = self.failing(lambda self, dy: nd.dot(dy, nd.ones((4, 4))), sl.ShapeError, "test_custom.py:[0-9]+")
        self.failing(lambda self, dy: (dy, dy), ValueError, "Wrong.backward returned 2 gradients, forward had 1 inputs")
        self.failing(lambda self, dy: 3, TypeError, "Wrong.backward returned int")
        self.failing(lambda self, dy: nd.ones((2,)), sl.ShapeError, "backward gave .* for input 0")
        self.failing(lambda self, dy: nested(), sl.StateError, "within another backward")
        x = nd.ones((2,))
        x.attach_grad()
        with autograd.record():
            y = (x * x).sum()
        y.backward()  # everything is usable afterwards
        np.testing.assert_array_equal(x.grad.asnumpy(), [2, 2])

    def test_asynchronous_error(self):
        class Gathers(autograd.Function):
            def forward(self, x):
                return x * 1

            def backward(self, dy):
                return sl.gather(dy, sl.array([0, 1, 99]))

        x = nd.ones((3,))
        x.attach_grad()
        with autograd.record():
            y = Gathers()(x)
        y.backward()
        with self.assertRaisesRegex(sl.Error, r"test_custom.py:[0-9]+ .*index 99"):
            x.grad.asnumpy()
        nd.waitall()  # it was reported

    def test_traced(self):
        class Net(nn.HybridBlock):
            def hybrid_forward(self, F, x):
                return Mixed()(x, x)[0]

        net, x = Net(), nd.ones((2, 2))
        net.initialize()
        np.testing.assert_array_equal(net(x).asnumpy(), [[2, 2], [2, 2]])
        net.hybridize()
        with self.assertWarnsRegex(UserWarning, "Mixed .*cannot be compiled"):
            np.testing.assert_array_equal(net(x).asnumpy(), [[2, 2], [2, 2]])
        net.hybridize(False)
        np.testing.assert_array_equal(net(x).asnumpy(), [[2, 2], [2, 2]])

    def test_let_go(self):
        """A call that nobody can go back from any more is forgotten, whatever it saved."""
        x = sl.array(rows(4)).attach_grad()
        for back in (True, False):
            function = Sigmoid()
            gone = weakref.ref(function)
            with sl.record():
                y = function(x * 2)
            if back:
                y.backward()
            del function, y
            gc.collect()
            self.assertIsNone(gone())
        self.assertEqual(sl._custom._recorded, {})


def nested():
    z = nd.ones((2,))
    z.attach_grad()
    with autograd.record():
        w = z * z
    w.backward()


class Gradients(unittest.TestCase):
    def test_history_that_is_spent(self):
        """What backward() went through is a constant in Gluon, an error in the native face."""
        a = rows(3)
        x = nd.array(a)
        x.attach_grad()
        state = nd.ones((3,))
        for _ in range(2):
            with autograd.record():
                state = state * x
                y = state.sum()
            y.backward()
        np.testing.assert_allclose(x.grad.asnumpy(), a, rtol=1e-6)  # d(a·x), not d(x·x)
        with self.assertRaises(sl.StateError):
            y.backward()
        x, state = sl.array(a).attach_grad(), sl.ones(3)
        with sl.record():
            state = state * x
        state.backward()
        with sl.record():
            y = state * x
        self.assertRaisesRegex(sl.StateError, "released already", y.backward)

    def test_inverse_functions(self):
        a = np.linspace(-0.9, 0.9, 7).astype("float32")
        for name, slope in (("arcsin", 1 / np.sqrt(1 - a * a)), ("arccos", -1 / np.sqrt(1 - a * a)), ("arctan", 1 / (1 + a * a))):
            x = nd.array(a)
            x.attach_grad()
            with autograd.record():
                y = getattr(nd, name)(x)
            y.backward()
            np.testing.assert_allclose(y.asnumpy(), getattr(np, name)(a), rtol=1e-5)
            np.testing.assert_allclose(x.grad.asnumpy(), slope, rtol=1e-4)

    def test_constant_under_record(self):
        a = rows(4)
        w = nd.array(a)
        w.attach_grad()
        with autograd.record():
            y = (w * w).sum()
        y.backward()
        seen = w.grad
        with autograd.record():
            y = ((w - 0.1 * w.grad) * 3).sum() + (w.grad * 2).sum()
        y.backward()
        np.testing.assert_allclose(w.grad.asnumpy(), [3] * 4)
        np.testing.assert_allclose(seen.asnumpy(), [3] * 4)  # the same array, as in MXNet
        with autograd.record():
            y = (w * w.grad).sum()
        y.backward()
        np.testing.assert_allclose(w.grad.asnumpy(), [3] * 4)
        w.grad[:] = 0
        self.assertEqual(float(abs(seen).sum().asscalar()), 0)

    def test_of_parameters(self):
        net, x = nn.Dense(2), nd.ones((1, 3))
        net.initialize()
        with autograd.record():
            net(x).sum().backward()
        with autograd.record():
            y = (net.weight.data() * net.weight.grad()).sum() + (net.bias.list_grad()[0] * 2).sum()
        y.backward()
        np.testing.assert_allclose(net.weight.grad().asnumpy(), np.ones((2, 3)))

    def test_native_refuses(self):
        x = sl.ones(2).attach_grad()
        with sl.record():
            y = x * x
        y.backward()
        with sl.record():
            self.assertRaisesRegex(sl.Unsupported, "is a gradient", lambda: x.grad * 2)


if __name__ == "__main__":
    unittest.main()
