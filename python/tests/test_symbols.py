"""Programs of symbols: weights made automatically, gradients, shapes that follow from the data's."""
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
        self.assertRaises(NotImplementedError, net.infer_shape)
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
        self.assertRaises(ValueError, run.backward)

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

    def test_refused(self):
        """What would be another program in training."""
        data = sym.var("data", shape=(2, 3))
        for layer in (sym.Dropout(data, p=0.5), sym.BatchNorm(data, name="bn")):
            run = layer.simple_bind(mx.cpu(), data=(2, 3))
            run.forward()
            with self.assertRaises(NotImplementedError):
                run.forward(is_train=True)


if __name__ == "__main__":
    unittest.main()
