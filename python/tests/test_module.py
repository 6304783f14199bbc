"""mx.mod.Module: a program of symbols, trained over an iterator."""
import os
import tempfile
import unittest

import numpy as np
from starling import mx
from starling.mx import nd, sym


def classes(seed=3, n=60):
    """Three clouds of points, which a line for each class separates."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    return (np.eye(3)[label] * 4 + rng.standard_normal((n, 3))).astype(np.float32), label.astype(np.float32)


def iterator(batch=20):
    return mx.io.NDArrayIter(*classes(), batch_size=batch)


def net():
    return sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc"), name="softmax")


class Modules(unittest.TestCase):
    def test_fit(self):
        module, seen = mx.mod.Module(net()), []
        module.fit(iterator(), iterator(), num_epoch=4, optimizer_params={"learning_rate": 0.5}, batch_end_callback=lambda told: seen.append(told.nbatch))
        self.assertEqual(seen, [0, 1, 2] * 4)
        ((name, value),) = module.score(iterator(), "acc")
        self.assertEqual(name, "accuracy")
        self.assertGreater(value, 0.9)
        x, _ = classes()
        weights, _ = module.get_params()
        logits = x @ weights["fc_weight"].asnumpy().T + weights["fc_bias"].asnumpy()
        wanted = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        np.testing.assert_allclose(module.predict(iterator(25)).asnumpy(), wanted, rtol=1e-4, atol=1e-6)  # batches of another size, one padded

    def test_step(self):
        """A step by hand is the rule of the optimiser on gradients divided by the batch."""
        x, label = classes(n=20)
        module = mx.mod.Module(net(), fixed_param_names=["fc_bias"])
        self.assertRaises(AssertionError, module.forward, mx.io.DataBatch([nd.array(x)]))
        module.bind([("data", x.shape)], [("softmax_label", label.shape)], inputs_need_grad=True)
        w = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
        module.init_params(arg_params={"fc_weight": nd.array(w), "fc_bias": nd.zeros((3,))})
        module.init_optimizer(optimizer_params={"learning_rate": 0.3})
        module.forward_backward(mx.io.DataBatch([nd.array(x)], [nd.array(label)]))
        module.update()
        p = np.exp(x @ w.T) / np.exp(x @ w.T).sum(1, keepdims=True)
        d = p - np.eye(3)[label.astype(int)]
        np.testing.assert_allclose(module.get_outputs()[0].asnumpy(), p, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(module.get_input_grads()[0].asnumpy(), d @ w, rtol=1e-3, atol=1e-5)
        values, _ = module.get_params()
        np.testing.assert_allclose(values["fc_weight"].asnumpy(), w - 0.3 / 20 * d.T @ x, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(values["fc_bias"].asnumpy(), [0, 0, 0])

    def test_files(self):
        symbol = sym.BatchNorm(sym.Activation(sym.var("data"), act_type="tanh"), name="bn", fix_gamma=False)
        module = mx.mod.Module(symbol, label_names=None)
        module.bind([("data", (4, 3))])
        module.init_params()
        x = np.random.default_rng(2).standard_normal((4, 3)).astype(np.float32)
        module.forward(mx.io.DataBatch([nd.array(x)]), is_train=True)
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "net")
            module.save_params(f"{prefix}-0007.params")
            weights, states = mx.model.load_params(prefix, 7)
            self.assertEqual((list(weights), list(states)), (["bn_gamma", "bn_beta"], ["bn_moving_mean", "bn_moving_var"]))
            other = mx.mod.Module(symbol, label_names=None)
            other.bind([("data", (4, 3))], for_training=False)
            other.load_params(f"{prefix}-0007.params")
        np.testing.assert_array_equal(other.get_params()[1]["bn_moving_mean"].asnumpy(), states["bn_moving_mean"].asnumpy())
        np.testing.assert_allclose(states["bn_moving_mean"].asnumpy(), np.tanh(x).mean(0) * 0.1, rtol=1e-3, atol=1e-5)

    def test_refused(self):
        self.assertRaises(ValueError, mx.mod.Module, net(), data_names=("image",))
        self.assertRaises(NotImplementedError, mx.mod.Module, net(), context=[mx.cpu(0), mx.cpu(1)])
        module = mx.mod.Module(net())
        with self.assertRaises(ValueError):
            module.bind([("softmax_label", (3,))])
        module.bind([("data", (4, 2))])
        self.assertRaises(ValueError, module.init_params, arg_params={"other": nd.ones((1,))})
        self.assertRaises(RuntimeError, module.init_params, arg_params={"fc_bias": nd.ones((3,))})


if __name__ == "__main__":
    unittest.main()
