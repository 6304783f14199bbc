"""Several processes that train together, started by sl-launch, whose path is in SLP_LAUNCH."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import starling as sl
from starling import dist

LAUNCH = os.environ.get("SLP_LAUNCH", "")
HEAD = """
import sys
import numpy as np
import starling as sl
from starling import dist
"""
TRAIN = """
rng = np.random.default_rng(0)
data = rng.standard_normal((22, 4)).astype("float32"), rng.standard_normal((22, 1)).astype("float32")
sl.seed(3 + dist.rank())  # the first step brings rank 0's parameters to all
net = sl.nn.Dense(1)
net.initialize(sl.init.xavier())
net(sl.zeros((1, 4)))
trainer = sl.Trainer(net, "sgd", lr=0.1)
step = sl.Step(net, sl.l2_loss, trainer)
mean = sl.Mean()
for epoch in range(2):
    for x, y in sl.data.Loader(data, 8 // dist.size(), seed=5, rank=dist.rank(), ranks=dist.size()):
        mean.add(step(x, y))
print(mean.get(), net.find("weight").data().numpy().tobytes().hex())
"""

GLUON = """
from starling import mx
from starling.mx import autograd, gluon, nd
net = gluon.nn.Dense(1, in_units=4)
net.initialize(mx.init.Normal(1 + dist.rank()))  # the trainer brings rank 0's parameters to all
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
rng, n = np.random.default_rng(0), 8 // dist.size()
x, y = (rng.standard_normal((8, k)).astype("float32")[dist.rank() * n :][:n] for k in (4, 1))
for _ in range(3):
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(nd.array(x)), nd.array(y))
    loss.backward()
    trainer.step(n)
print(*net.weight.data().asnumpy().round(5).reshape(-1))
"""


def launch(test, status, program, ranks=2):
    """What each rank prints, and standard error."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w") as f:
            f.write(HEAD + program)
        env = {**os.environ, "STARPU_NCPU": "1", "STARPU_HOME": folder, "SL_DIST_TIMEOUT": "60"}
        words = [LAUNCH, "--no-bind", "-n", str(ranks), sys.executable, path] if ranks > 1 else [sys.executable, path]
        done = subprocess.run(words, env=env, capture_output=True, text=True)
    test.assertEqual(done.returncode, status, done.stderr)
    if ranks == 1:
        return [done.stdout.split()], done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [next((text.split() for mark, text in lines if mark == f"[{r}]"), None) for r in range(ranks)], done.stderr


class Alone(unittest.TestCase):
    def test_one_process(self):
        self.assertEqual((dist.rank(), dist.size()), (0, 1))
        t = sl.ones((2,))
        self.assertIs(dist.sum_(t), t)
        self.assertEqual(t.tolist(), [1, 1])
        dist.barrier()
        self.assertEqual((dist.info()["size"], dist.info()["gpu_sums"]), (1, None))
        for call in (lambda: dist.sum_(3), lambda: dist.broadcast("net"), lambda: dist.local(None)):
            self.assertRaises(TypeError, call)

    def test_loaders_share(self):
        x = np.arange(23)
        whole = [b.tolist() for b in sl.data.Loader(x, 8, seed=2)]
        parts = [[b.tolist() for b in sl.data.Loader(x, 4, seed=2, rank=r, ranks=2)] for r in range(2)]
        self.assertEqual([len(p) for p in parts], [3, 3])
        for all_, first, second in list(zip(whole, *parts))[:2]:
            self.assertEqual(all_, first + second)
        self.assertEqual([len(parts[0][2]), len(parts[1][2])], [3, 3])  # as many on all ranks: of 7, 6
        self.assertEqual(whole[2][:6], parts[0][2] + parts[1][2])
        self.assertEqual(len(sl.data.Loader(x, 4, rank=1, ranks=2)), 3)
        self.assertRaises(sl.InvalidArgument, lambda: sl.data.Loader(x, 4, rank=2, ranks=2))


@unittest.skipUnless(LAUNCH, "no sl-launch: SLP_LAUNCH")
class Several(unittest.TestCase):
    def test_training(self):
        (one,), _ = launch(self, 0, TRAIN, 1)
        several, _ = launch(self, 0, TRAIN)
        self.assertEqual(several[0], several[1])
        self.assertAlmostEqual(float(several[0][0]), float(one[0]), 5)
        weights = [np.frombuffer(bytes.fromhex(w), "float32") for w in (one[1], several[0][1])]
        np.testing.assert_allclose(weights[1], weights[0], rtol=1e-5)

    def test_gluon(self):
        """Gluon's trainer, with an optimiser that is made of calls here."""
        (one,), _ = launch(self, 0, GLUON, 1)
        several, _ = launch(self, 0, GLUON)
        self.assertEqual(several[0], several[1])
        np.testing.assert_allclose(np.array(several[0], float), np.array(one, float), atol=1e-4)

    def test_sums_and_broadcasts(self):
        program = """
t = dist.sum_(sl.full((2, 3), dist.rank() + 1))
net = sl.nn.Dense(1, in_units=1)
net.initialize(sl.init.constant(dist.rank() + 5))
dist.broadcast(net)
dist.barrier()
print(t.sum().item(), net.find("weight").data().item(), dist.info()["exchanges"] > 0)
"""
        several, _ = launch(self, 0, program)
        self.assertEqual(several, [["18.0", "5.0", "True"]] * 2)

    def test_exceptions(self):
        program = """
if dist.rank() == 1:
    raise ValueError("mine")
try:
    dist.barrier()
except sl.FileError as e:
    print("rank 1" in str(e), "program.py:" in str(e))
    sys.exit(4)
"""
        several, errors = launch(self, 1, program)
        self.assertEqual(several[0], ["True", "True"])
        self.assertIn("[1] ValueError: mine", errors)


if __name__ == "__main__":
    unittest.main()
