"""Every public operation of the library can be called from Python, and says what it does."""
import inspect
import math
import os
import pathlib
import re
import unittest

import starling as sl

SOURCE = pathlib.Path(os.environ["STARLING_SOURCE"])
# Constructors over C memory, which array and from_numpy are in Python.
NOT_OPERATIONS = {"from", "adopt"}


def declared():
    """The names of the functions of tensors that the headers of operations declare."""
    text = "".join((SOURCE / f"src/starling/{h}.h").read_text() for h in ("arithmetic", "elementwise", "primitives"))
    names = re.findall(r"^SL_API [^;(]*?sl_tensor \*sl_(\w+)_at\(|^SL_API enum sl_status sl_(\w+_update)_at\(", text, re.M)
    return [a or b for a, b in names]


def python_name(name):
    return name.removesuffix("_inplace") + "_" if name.endswith("_inplace") else name


class Registry(unittest.TestCase):
    def test_functions(self):
        """What <starling/functions.h> declares: functions of tensors, whatever they return."""
        text = (SOURCE / "src/starling/functions.h").read_text()
        names = re.findall(r"^SL_API (?:sl_tensor \*|enum sl_status )sl_(\w+)_at\(", text, re.M)
        self.assertGreater(len(names), 30)
        self.assertEqual([n for n in names if not callable(getattr(sl, n, None)) or not inspect.getdoc(getattr(sl, n))], [])

    def test_functions_with_several_results(self):
        x = sl.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
        values, places = sl.topk(x, 2)
        self.assertEqual((values.tolist(), places.tolist()), ([[3, 2], [6, 5]], [[0, 2], [1, 2]]))
        self.assertEqual([p.tolist() for p in sl.split(x, 3, -1)], [[[3], [4]], [[1], [6]], [[2], [5]]])
        x.attach_grad()
        with sl.record():
            y = sl.topk(x, 1)[0].sum()
        y.backward()
        self.assertEqual(x.grad.tolist(), [[1, 0, 0], [0, 1, 0]])
        for call, part in ((lambda: sl.topk(3, 1), "topk: x is int"), (lambda: sl.topk(x, "a"), "topk: k is str"), (lambda: sl.split(x, 1.5), "count")):
            with self.assertRaisesRegex(TypeError, part):
                call()
        self.assertRaises(sl.InvalidArgument, lambda: sl.topk(x, 9))
        self.assertRaises(sl.Error, lambda: sl.split(x, 2, 1))

    def test_recurrent(self):
        gates, weight = sl.array([[[0.5]], [[-1.0]]]), sl.array([[2.0]])
        y = sl.recurrent("tanh", gates, weight)
        first = math.tanh(0.5)
        self.assertEqual(y.shape, (2, 1, 1))
        self.assertAlmostEqual(y[0, 0, 0].item(), first, 6)
        self.assertAlmostEqual(y[1, 0, 0].item(), math.tanh(2 * first - 1), 6)
        states, cell = sl.recurrent("lstm", sl.zeros((3, 2, 4)), sl.zeros((4, 1)), cell=sl.ones((2, 1)))
        self.assertEqual((states.shape, cell.tolist()), ((3, 2, 1), [[0.125], [0.125]]))
        with self.assertRaisesRegex(TypeError, "recurrent: bias is int"):
            sl.recurrent("gru", gates, weight, bias=3)

    def test_optimisers_without_states(self):
        w, g = sl.ones(2), sl.ones(2)
        sl.sgd_update([w], [g], lr=0.5)
        self.assertEqual(w.tolist(), [0.5, 0.5])
        with self.assertRaisesRegex(ValueError, "grads has 2 tensors, 1 are needed"):
            sl.sgd_update([w], [g, g], lr=0.5)

    def test_operations(self):
        names = declared()
        self.assertGreater(len(names), 80)
        missing = [n for n in names if not callable(getattr(sl, python_name(n), None))]
        self.assertEqual(missing, [])

    def test_registry_of_the_engine(self):
        """Operations of the lists that the headers declare under the same name."""
        lists = "".join(f.read_text() for f in (SOURCE / "codelets").glob("*/*ops.def"))
        registered = set(re.findall(r"^X\((\w+)\)", lists, re.M))
        public = set(declared())
        self.assertGreater(len(registered & public), 20)
        for name in registered & public:
            self.assertTrue(callable(getattr(sl, name)), name)

    def test_documentation(self):
        for name in declared():
            function = getattr(sl, python_name(name))
            self.assertTrue(inspect.getdoc(function), name)
            self.assertNotIn("sl_NAME", inspect.getdoc(function), name)

    def test_layers(self):
        text = (SOURCE / "src/starling/nn.h").read_text()
        layers = re.findall(r"^SL_API sl_block \*sl_(\w+?)(?:_layer)?_at\(", text, re.M)
        by_hand = {"block_add", "sequential", "lambda"}
        names = ["".join(p[:1].upper() + p[1:] for p in layer.split("_")) for layer in layers if layer not in by_hand]
        self.assertGreater(len(names), 10)
        self.assertEqual([n for n in names if not hasattr(sl.nn, n)], [])

    def test_stubs(self):
        folder = pathlib.Path(sl.__file__).parent
        for module in ("_ops", "nn"):
            compile((folder / f"{module}.pyi").read_text(), module, "exec")
        text = (folder / "_ops.pyi").read_text()
        for name in set(declared()) - set(sl._extra.__all__):  # those are Python, and say it themselves
            self.assertIn(f"def {python_name(name)}(", text)


if __name__ == "__main__":
    unittest.main()
