"""starling.mx beside MXNet 1.9.1: what MXNet answered to the calls of mxnet_cases.py (mxnet-answers.txt), and its signatures."""
import json
import os
import unittest

import mxnet_cases
import numpy as np
from starling import mx
from starling.mx import _signed, gluon, nd

# Calls that are refused by name.
REFUSED = ("state_clip",)


def recorded():
    """MXNet's answers, by the calls."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "mxnet-answers.txt")) as file:
        pairs = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {call: json.loads(answer) for call, answer in pairs}


# Gradients that are 0 but for rounding.
NEARLY_ZERO = ("layer('LayerNorm(axis=1)'",)


def equal(wanted, got, least=1e-5):
    """Whether two answers say the same: float32 to 1e-4."""
    if isinstance(wanted, dict) or isinstance(got, dict):
        if not (isinstance(wanted, dict) and isinstance(got, dict) and wanted.keys() == got.keys()):
            return False
        if "list" in wanted:
            return len(wanted["list"]) == len(got["list"]) and all(equal(w, g, least) for w, g in zip(wanted["list"], got["list"]))
        return wanted == got
    return wanted[:2] == got[:2] and np.allclose(wanted[2], got[2], rtol=1e-4, atol=least, equal_nan=True)


class Answers(unittest.TestCase):
    maxDiff = None

    def test_all(self):
        wanted, other, refused = recorded(), [], []
        answers = {call: json.loads(answer) for call, answer in mxnet_cases.answers(mx)}
        self.assertEqual(wanted.keys(), answers.keys())
        for call, got in answers.items():
            if "refused" in got and "error" not in wanted[call]:
                refused.append(call)
            elif "refused" not in got and "error" not in wanted[call] and not equal(wanted[call], got, 1e-4 if call.startswith(NEARLY_ZERO) else 1e-5):  # what MXNet refuses may work here
                other.append(f"{call}: {got}, MXNet: {wanted[call]}")
        self.assertEqual(other, [])
        self.assertEqual([call for call in refused if not any(part in call for part in REFUSED)], [])
        self.assertGreater(len(answers), 1500)


SPACES = {
    "nd": nd, "nd.random": nd.random, "nd.linalg": nd.linalg, "nd.contrib": nd.contrib, "sym": mx.sym, "np": mx.np, "np.random": mx.np.random,
    "np.linalg": mx.np.linalg, "npx": mx.npx, "gluon.nn": gluon.nn, "gluon.rnn": gluon.rnn, "gluon.loss": gluon.loss, "optimizer": mx.optimizer,
    "metric": mx.metric, "lr_scheduler": mx.lr_scheduler, "init": mx.init, "gluon": gluon, "gluon.data": gluon.data, "gluon.utils": gluon.utils,
    "gluon.data.vision.transforms": gluon.data.vision.transforms, "random": mx.random,
}  # fmt: skip


def everything():
    """(name, function or class) of all that MXNet has and starling.mx has, too."""
    for space, module in SPACES.items():
        for name in _signed.names_in(space):
            thing = module.__dict__.get(name)
            thing = thing.__func__ if isinstance(thing, staticmethod) else thing
            if callable(thing):
                yield f"{space}.{name}", thing


class Places(unittest.TestCase):
    """Contexts, names that are missing, and what has no answer of MXNet's."""

    maxDiff = None

    def test_contexts(self):
        net = gluon.nn.Dense(2, in_units=3)
        net.initialize(ctx=mx.cpu(0))
        for get in (net.weight.data, net.weight.grad):
            self.assertRaisesRegex(RuntimeError, "was not initialized on context cpu.7.", get, mx.cpu(7))
        self.assertEqual(net.weight.data(mx.cpu(0)).shape, (2, 3))

    def test_missing_names(self):
        for statement in ("from starling.mx import onnx", "from starling.mx.gluon.contrib import rnn", "from starling.mx.contrib import amp",
                          "mx.np.linalg.lstsq", "mx.np.random.zipf", "nd.ones(1).sparse", "mx.image.ImageDetIter"):  # fmt: skip
            with self.assertRaisesRegex(NotImplementedError, "is not in Starling; use", msg=statement):
                exec(statement, {"mx": mx, "nd": nd})
        self.assertFalse(hasattr(mx, "onnx") or hasattr(mx.np.linalg, "lstsq"))
        exec("import starling.mx.numpy as a, starling.mx.numpy_extension as b, starling.mx.contrib; from starling.mx import numpy, numpy_extension")

    def test_out(self):
        """out= holds the result, of any function that MXNet gives one, and is returned."""
        names, tried, wrong = mxnet_cases.inputs(mx), 0, []
        for call in mxnet_cases.calls():
            full = call.split("(")[0]
            known = _signed.signature(full)
            if not full.startswith(("nd.", "np.", "npx.")) or known is None or "out" not in known.defaults or "dropout" in full.lower():
                continue
            (mx.npx.set_np if full.startswith("np") else mx.npx.reset_np)()
            got = mxnet_cases.answer_to(call, names)
            if not isinstance(got, list):
                continue  # several results, or none
            tried += 1
            made = f"{call[:-1]}, out=out)" if call[-2] != "(" else f"{call[:-1]}out=out)"
            kind = "np" if full.startswith("np") else "nd"
            out = eval(f"{kind}.full({tuple(got[1])}, 3, dtype={got[0]!r})", {**names}) if kind == "np" or got[1] else None
            again = mxnet_cases.answer_to(f"({made}, out)", {**names, "out": out})
            if not equal({"list": [got, got]}, again):
                wrong.append(f"{call}: {again}")
        mx.npx.reset_np()
        self.assertEqual(wrong, [])
        self.assertGreater(tried, 500)

    def test_frozen(self):
        """A weight that is frozen after some steps stays as it is, and what else there is goes on; compiled, too."""
        for compiled in (False, True):
            net = gluon.nn.HybridSequential()
            net.add(gluon.nn.Dense(4, in_units=3), gluon.nn.Dense(1, in_units=4))
            net.initialize()
            net.hybridize(compiled)
            trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
            weights = []
            for i in range(4):
                if i in (1, 3):
                    net[0].weight.grad_req = "null" if i == 1 else "write"
                with mx.autograd.record():
                    y = net(nd.ones((2, 3)))
                y.backward()
                trainer.step(2)
                weights.append([p.data().asnumpy() for p in (net[0].weight, net[0].bias)])
            moved = [[bool((a != b).any()) for a, b in zip(*pair)] for pair in zip(weights, weights[1:])]
            self.assertEqual(moved, [[False, True], [False, True], [True, True]])


class Signatures(unittest.TestCase):
    maxDiff = None

    def test_unknown_options(self):
        """A keyword that MXNet has not is a TypeError, before anything is computed."""
        accepted = []
        for full, thing in everything():
            known = _signed.signature(full)
            if (known.open or full.endswith("Custom")) and full.endswith(("create", "Initializer", "Bilinear", "Custom")):
                continue  # what else they are given goes to what they make
            needed = {n: None for n in known.names if known.defaults[n] is _signed._REQUIRED or n == "data"}
            try:
                thing(**needed, not_an_option=1)
                accepted.append(full)
            except TypeError as error:
                if "not_an_option" not in str(error) and "takes no " not in str(error):
                    accepted.append(f"{full}: {error}")
            except Exception as error:
                accepted.append(f"{full}: {type(error).__name__} {error}")
        self.assertEqual(accepted, [])


if __name__ == "__main__":
    unittest.main()
