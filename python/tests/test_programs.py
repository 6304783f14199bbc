"""Programs from text: read, compiled, run; numbers of a run; mistakes."""
import unittest

import numpy as np
import starling as sl
from starling.program import Program


class Programs(unittest.TestCase):
    def test_names_and_values(self):
        program = Program("input x: float32 (2, 3)\ninput w: float32 (2, 3)\ny = relu(x)\nreturn y as first, mul(y, w) as second")
        self.assertEqual(program.inputs, ["x", "w"])
        self.assertEqual(program.results, ["first", "second"])
        x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
        first, second = program.compile()(sl.array(x), sl.array(2 * x))
        np.testing.assert_array_equal(first.numpy(), np.maximum(x, 0))
        np.testing.assert_array_equal(second.numpy(), np.maximum(x, 0) * 2 * x)

    def test_shapes_and_passes(self):
        program = Program("input x\nreturn exp(relu(x))")
        x = np.array([-1, 2], np.float32)
        for options in ({}, {"off": "chain"}, {"off": ["chain", "dead"], "check": True}, {"training": True}):
            (y,) = program.compile(shapes=[(2,)], **options)(sl.array(x))
            np.testing.assert_allclose(y.numpy(), np.exp(np.maximum(x, 0)), rtol=1e-6)
        self.assertEqual(program.compile(shapes=[2]).info["nodes_before"], 2)
        for wrong, kind in (({"shapes": []}, sl.ShapeError), ({"off": "haste", "shapes": [2]}, sl.InvalidArgument), ({}, sl.ShapeError)):
            with self.assertRaises(kind):
                program.compile(**wrong)

    def test_assignments(self):
        w, x = sl.zeros((2,)), sl.array([-1.0, 3.0])
        plan = Program("input w: float32 (2,)\ninput x: float32 (2,)\nassign(w, x)\nreturn x").compile(training=True)
        plan(w, x)
        np.testing.assert_array_equal(w.numpy(), x.numpy())
        with self.assertRaisesRegex(sl.InvalidArgument, r"line 2.*copy_over.*assign"):
            Program("input x\ncopy_over(x, x)\nreturn x")

    def test_numbers(self):
        w, d = sl.ones((3,)), sl.ones((3,))
        plan = Program("input w: float32 (3,)\ninput d: float32 (3,)\nsgd(w, d, lr=0.5)\nreturn d").compile()
        plan(w, d)
        np.testing.assert_array_equal(w.numpy(), 0.5)
        plan(w, d, lr=0.25, rescale=2)
        np.testing.assert_array_equal(w.numpy(), 0)
        for wrong in ({"step": 1}, {"lr": -1}, {"lr": float("nan")}, {"haste": 1}):
            with self.assertRaises(sl.InvalidArgument):
                plan(w, d, **wrong)
        np.testing.assert_array_equal(w.numpy(), 0)

    def test_mistakes(self):
        plan = Program("input x: float32 (2,)\nreturn relu(x)").compile()
        for wrong, kind in (((), sl.InvalidArgument), ((sl.ones((3,)),), sl.ShapeError), ((np.ones(2),), TypeError), ((None,), TypeError)):
            with self.assertRaises(kind):
                plan(*wrong)
        with self.assertRaises(TypeError):
            Program(7)
        with self.assertRaisesRegex(sl.InvalidArgument, "line 1"):
            Program("return y")
        with self.assertRaises(TypeError):
            __import__("copy").copy(plan)


if __name__ == "__main__":
    unittest.main()
