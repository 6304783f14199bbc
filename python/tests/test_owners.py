"""A pointer keeps what it points to: temporary tensors, blocks and data sets live as long as a call that uses them."""
import ast
import gc
import pathlib
import unittest

import numpy as np
import starling as sl
from starling._ffi import ffi, lib

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "starling"


def _makes(node):
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _reads_pointer(node):
    return any(isinstance(n, ast.Attribute) and n.attr == "_p" for n in ast.walk(node))


def pointers_of_results(source):
    """The lines that take the pointer of what a call returns, alone or in a list of which C gets the addresses."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr == "_p" and _makes(node.value):
            yield node.lineno
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)) and _reads_pointer(node.elt):
            loops = [g.iter.args[0] if isinstance(g.iter, ast.Call) and getattr(g.iter.func, "id", "") == "range" else g.iter for g in node.generators]
            if any(map(_makes, loops)) and not isinstance(node.elt, ast.Call):
                yield node.lineno


def _of_ffi(node, *names):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and getattr(node.func.value, "id", "") == "ffi" and node.func.attr in names


def lost_memory(source):
    """The lines whose memory nobody keeps: made within what other memory begins with, or cast, or read, as a call's result."""
    for node in ast.walk(ast.parse(source)):
        inner = []
        if _of_ffi(node, "new"):
            inner = [n for a in node.args[1:] for n in ast.walk(a) if _of_ffi(n, "new", "from_buffer", "new_handle", "addressof")]
        elif _of_ffi(node, "cast", "addressof"):
            inner = [n for a in node.args for n in ast.walk(a) if _of_ffi(n, "new", "new_handle")]
        elif _of_ffi(node, "from_buffer"):
            inner = [n for a in node.args for n in ast.walk(a) if isinstance(n, ast.Call)]
        if inner:
            yield node.lineno


class Source(unittest.TestCase):
    def test_no_lost_memory(self):
        for path in sorted(PACKAGE.rglob("*.py")):
            self.assertEqual(list(lost_memory(path.read_text())), [], f"{path}: give the memory a name first")
        for bad in ('ffi.new("struct a *", {"p": ffi.new("int *")})', 'ffi.cast("int *", ffi.new("char[8]"))', "ffi.from_buffer(numpy.zeros(3))", 'ffi.new("char *[]", [ffi.new("char[]", t) for t in x])'):
            self.assertEqual(list(lost_memory(bad)), [1], bad)
        for good in ('ffi.new("int[]", numbers)', 'ffi.cast("int *", ffi.from_buffer(numbers))', 'lib.f(ffi.new("int[]", [1]))'):
            self.assertEqual(list(lost_memory(good)), [], good)

    def test_no_pointer_of_a_result(self):
        for path in sorted(PACKAGE.rglob("*.py")):
            found = list(pointers_of_results(path.read_text()))
            self.assertEqual(found, [], f"{path}: give the object a name first, beside its pointer")

    def test_finds_them(self):
        for bad in ("f(array(x)._p)", "f((x if y else array(x))._p)", "f([t._p for t in make(x)])", "f(a[g(0)]._p)"):
            self.assertEqual(list(pointers_of_results(bad)), [1], bad)
        for good in ("f(x._p)", "f(self.block._p)", "f([t._p for t in tensors])", "f((a or b)._p)"):
            self.assertEqual(list(pointers_of_results(good)), [], good)


class Lifetime(unittest.TestCase):
    def test_set(self):
        """param.set of what is no tensor: the tensor made of it lives until C has read it."""
        net = sl.nn.Dense(64, in_units=64)
        net.initialize()
        weight = net.find("weight")
        for i in range(200):
            values = np.full((64, 64), i, np.float32)
            for given in (values, values.tolist(), sl.array(values)):
                weight.set(given)
                sl.ones((64, 64))  # would take the memory
            self.assertEqual(weight.data().numpy(copy=True).min(), i)

    def test_pointers_of_temporaries(self):
        for make, read in (
            (lambda: sl.array(np.arange(5, dtype=np.float32)) + 1, lambda p: lib.sl_tensor_size(p)),
            (lambda: sl.nn.Sequential(sl.nn.Dense(3)), lambda p: lib.sl_block_params(p, ffi.NULL, 0)),
            (lambda: sl.data.arrays(np.ones((4, 2))).rows(0, 2), lambda p: lib.sl_dataset_size(p)),
        ):
            held = [make()._p for _ in range(50)]
            wanted = read(make()._p)
            gc.collect()
            self.assertEqual([read(p) for p in held], [wanted] * 50)

    def test_parameters_keep_their_block(self):
        def weight():
            net = sl.nn.Dense(3, in_units=2)
            net.initialize(sl.init.constant(7))
            return net.find("weight")

        held = [weight() for _ in range(20)]
        gc.collect()
        self.assertEqual([w.data().numpy(copy=True).min() for w in held], [7] * 20)
        self.assertEqual({w.shape for w in held}, {(3, 2)})

    def test_what_a_step_needs(self):
        def step():
            net = sl.nn.Dense(1, in_units=2)
            net.initialize()
            trainer = sl.Trainer(net, "sgd", lr=0.1)
            return sl.Step(net, lambda y, t: sl.l2_loss(y, t), trainer)

        run = step()
        gc.collect()
        self.assertTrue(np.isfinite(run(sl.ones((4, 2)), sl.ones((4, 1))).numpy()).all())
        xs, targets = sl.ones((1, 4, 2)), sl.ones((1, 4, 1))
        for _ in range(20):  # shards are rows of these, made on the way
            self.assertEqual(run.on_shards(xs, targets)[0].shape, (4,))
        loader = sl.data.Loader(sl.data.arrays(np.ones((4, 2), np.float32)).rows(1, 3), 2, workers=1)
        gc.collect()
        self.assertEqual(len(list(loader)), 2)


if __name__ == "__main__":
    unittest.main()
