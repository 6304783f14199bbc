"""starling.mx beside MXNet 1.9.1: what MXNet answered to the calls of mxnet_cases.py (mxnet-answers.txt), and its signatures."""
import inspect
import json
import os
import unittest

import mxnet_cases
import numpy as np
from starling import mx
from starling.mx import _signed, gluon, nd

# Calls that are refused by name: windows over three axes.
REFUSED = ("Convolution(a(1,2,4,4,4)", "Pooling(a(1,2,4,4,4)")


def recorded():
    """MXNet's answers, by the calls."""
    folder = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "mxnet-answers.txt")) as file:
        pairs = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {call: json.loads(answer) for call, answer in pairs}


def equal(wanted, got):
    """Whether two answers say the same: float32 to 1e-4."""
    if isinstance(wanted, dict) or isinstance(got, dict):
        if not (isinstance(wanted, dict) and isinstance(got, dict) and wanted.keys() == got.keys()):
            return False
        if "list" in wanted:
            return len(wanted["list"]) == len(got["list"]) and all(map(equal, wanted["list"], got["list"]))
        return wanted == got
    return wanted[:2] == got[:2] and np.allclose(wanted[2], got[2], rtol=1e-4, atol=1e-5, equal_nan=True)


class Answers(unittest.TestCase):
    maxDiff = None

    def test_all(self):
        wanted, other, refused = recorded(), [], []
        answers = {call: json.loads(answer) for call, answer in mxnet_cases.answers(mx)}
        self.assertEqual(wanted.keys(), answers.keys())
        for call, got in answers.items():
            if "refused" in got and "error" not in wanted[call]:
                refused.append(call)
            elif "refused" not in got and "error" not in wanted[call] and not equal(wanted[call], got):  # what MXNet refuses may work here
                other.append(f"{call}: {got}, MXNet: {wanted[call]}")
        self.assertEqual(other, [])
        self.assertEqual([call for call in refused if not call.split(".", 1)[1].startswith(REFUSED)], [])
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


class Signatures(unittest.TestCase):
    maxDiff = None

    def test_unknown_options(self):
        """A keyword that MXNet has not is a TypeError, before anything is computed."""
        accepted = []
        for full, thing in everything():
            known = _signed.signature(full)
            if known.open and full.endswith(("create", "Initializer", "Bilinear")):
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
