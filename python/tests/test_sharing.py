"""Objects that threads share: no crash whatever is done, and saves of one moment (doc/threads.md)."""
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import starling as sl

PATIENCE = 600  # seconds that something may take on a busy machine


def together(*functions, times=30):
    """Calls these functions in threads of their own, each at least so often; returns what they raised but StateError."""
    stop, counts, raised = time.monotonic() + PATIENCE, [0] * len(functions), []

    def repeat(i, function):
        while min(counts) < times and time.monotonic() < stop and not raised:
            try:
                function()
            except sl.StateError:
                pass
            except Exception as error:  # noqa: BLE001
                raised.append(error)
            counts[i] += 1

    threads = [threading.Thread(target=repeat, args=pair) for pair in enumerate(functions)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return raised


class Same(sl.Block):
    """Parameters that all have one value, to which a step adds 1."""

    def __init__(self):
        super().__init__()
        for i in range(6):
            setattr(self, f"p{i}", self.param(f"p{i}", 32, init=sl.init.zeros()))

    def forward(self, x):
        for i in range(6):
            x = x - getattr(self, f"p{i}").on(x)
        return x


class Sharing(unittest.TestCase):
    def setUp(self):
        self.net = sl.nn.Sequential(sl.nn.Dense(8, activation="relu"), sl.nn.Dense(2))
        self.net.initialize()
        self.x = sl.ones((3, 4))
        self.net(self.x).wait()

    def forward(self):
        self.net(self.x).wait()

    def train(self):
        with sl.record():
            loss = self.net(self.x).sum()
        loss.backward()

    def test_pairs(self):
        trainer = sl.Trainer(self.net, "sgd", lr=0.01)
        loader = sl.data.Loader(sl.data.arrays(np.ones((40, 3), "float32")), batch_size=4, workers=1)
        t, parameter = sl.ones(4), self.net.params()[0]
        t.attach_grad()

        def step():
            self.train()
            trainer.step(3)

        def back():
            with sl.record():
                y = (t * t).sum()
            y.backward()

        def iterate():
            try:
                for batch in loader:
                    batch.wait()
            except sl.Error as error:
                if "loader" not in str(error):
                    raise

        actions = [
            self.forward,
            self.train,
            step,
            back,
            iterate,
            self.net.hybridize,
            lambda: self.net.initialize(force=True),
            lambda: parameter.data().numpy(copy=True),
            lambda: parameter.grad().numpy(copy=True),
            lambda: t.attach_grad().grad.numpy(copy=True),
            lambda: [p.name for p in self.net.params()],
            lambda: trainer.steps,
        ]
        for a, b in itertools.combinations_with_replacement(actions, 2):
            self.assertEqual(together(a, b, times=3), [])
        sl.wait_all()

    def test_saves(self):
        net = Same()
        net.initialize()
        trainer = sl.Trainer(net, "sgd", lr=1)
        x = sl.zeros(32)

        def step():
            with sl.record():
                loss = net(x).sum()
            loss.backward()
            trainer.step(1)

        def values(path):
            other = Same()
            other.initialize()
            if path.endswith("run.safetensors"):
                sl.checkpoint.load(path, trainer=sl.Trainer(other, "sgd", lr=1))
            else:
                other.load_params(path)
            return {float(v) for p in other.params() for v in p.data().numpy().ravel()}

        stop = threading.Event()
        thread = threading.Thread(target=lambda: [step() for _ in iter(stop.is_set, True)])
        thread.start()
        with tempfile.TemporaryDirectory() as folder:
            for i in range(10):
                path = os.path.join(folder, "run.safetensors")
                sl.checkpoint.save(path, trainer=trainer)
                self.assertEqual(len(values(path)), 1)
                sl.checkpoint.begin(path, trainer=trainer).end()
                self.assertEqual(len(values(path)), 1)
                path = os.path.join(folder, "net.params")
                net.save_params(path)
                self.assertEqual(len(values(path)), 1)
        stop.set()
        thread.join()

    def test_deleted_by_hand(self):
        trainer = sl.Trainer(self.net, "sgd")
        things = [self.net, trainer, sl.Mean(), sl.data.Loader(sl.data.arrays(np.ones((4, 2), "float32")), batch_size=2)]
        for thing in things:
            for _ in range(3):
                thing.__del__()
        self.train()
        trainer.step(3)
        tensor = sl.ones(3)
        for _ in range(3):
            tensor.__del__()
        self.assertEqual(sl.add(tensor, tensor).tolist(), [2, 2, 2])
        raised = together(self.forward, self.net.__del__, trainer.__del__, times=100)
        self.assertEqual(raised, [])


class End(unittest.TestCase):
    def test_daemons(self):
        code = """
import threading, time, sys
import starling as sl
net = sl.nn.Sequential(sl.nn.Dense(8), sl.nn.Lambda(lambda x: x * 2))
net.initialize()
begun = threading.Semaphore(0)
def work():
    while True:
        net(sl.ones((3, 4))).wait()
        begun.release()
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for _ in range(20):
    begun.acquire()
print("end")
"""
        for _ in range(3):
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (0, "end\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
