"""Every public operation of the library can be called from Python, and says what it does."""
import inspect
import os
import pathlib
import re
import unittest

import starling as sl

SOURCE = pathlib.Path(os.environ["STARLING_SOURCE"])
# Constructors over C memory, which array and from_numpy are in Python.
NOT_OPERATIONS = {"from", "adopt"}


def declared(header):
    """The names of the functions of tensors that a public header declares."""
    text = (SOURCE / "src/starling" / header).read_text()
    names = re.findall(r"^SL_API [^;(]*?sl_tensor \*sl_(\w+)_at\(|^SL_API enum sl_status sl_(\w+_update)_at\(", text, re.M)
    return [a or b for a, b in names]


def python_name(name):
    return name.removesuffix("_inplace") + "_" if name.endswith("_inplace") else name


class Registry(unittest.TestCase):
    def test_operations(self):
        names = declared("ops.h")
        self.assertGreater(len(names), 80)
        missing = [n for n in names if not callable(getattr(sl, python_name(n), None))]
        self.assertEqual(missing, [])

    def test_registry_of_the_engine(self):
        """What ops.def names and ops.h declares under the same name."""
        registered = set(re.findall(r"^X\((\w+)\)", (SOURCE / "codelets/ops.def").read_text(), re.M))
        public = set(declared("ops.h"))
        self.assertGreater(len(registered & public), 20)
        for name in registered & public:
            self.assertTrue(callable(getattr(sl, name)), name)

    def test_documentation(self):
        for name in declared("ops.h"):
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
        for name in declared("ops.h"):
            self.assertIn(f"def {python_name(name)}(", text)


if __name__ == "__main__":
    unittest.main()
