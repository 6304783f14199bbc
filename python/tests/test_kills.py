"""A process that is killed while it writes leaves each file as it was before, or whole: never a part of a new one."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import starling as sl
from starling import mx

KILLS = int(os.environ.get("KILLS", "6"))
WRITER = """
import os, sys
import starling as sl
from starling import mx, nn
folder, step = sys.argv[1], int(sys.argv[2])
place = lambda name: os.path.join(folder, name)
net = nn.Dense(300, in_units=300)
net.initialize(sl.init.constant(0))
params = net.params()
while True:
    step += 1
    values = [sl.full(p.shape, float(step)) for p in params]
    for p, v in zip(params, values):
        p.set(v)
    mx.nd.save(place("arrays.nd"), {"a": mx.nd.full((300, 300), step), "b": mx.nd.full((7,), step)})
    mx.nd.save(place("list.nd"), [mx.nd.full((300, 300), step), mx.nd.full((7,), step)])
    net.save_params(place("net.params"))
    net.save_params(place("net.safetensors"))
    sl.checkpoint.save(place("run.safetensors"), net=net)
    sl.save_npy(values[0], place("x.npy"))
    print(step, flush=True)
"""


def value_of(arrays, path):
    """The one number of all elements of all arrays."""
    numbers = {float(v) for a in arrays for v in np.unique(np.asarray(a.tolist()))}
    assert len(numbers) == 1, f"{path} mixes steps: {sorted(numbers)}"
    return numbers.pop()


class Kills(unittest.TestCase):
    def check(self, folder, least):
        place = lambda name: os.path.join(folder, name)
        arrays, few = mx.nd.load(place("arrays.nd")), mx.nd.load(place("list.nd"))
        values = [value_of(arrays.values(), "arrays.nd"), value_of(few, "list.nd")]
        for name in ("net.params", "net.safetensors"):
            net = sl.nn.Dense(300, in_units=300)
            net.initialize()
            net.load_params(place(name))
            values.append(value_of([p.data() for p in net.params()], name))
        values.append(value_of([sl.load_npy(place("x.npy"))], "x.npy"))
        sl.checkpoint.load(place("run.safetensors"), net=net)
        values.append(value_of([p.data() for p in net.params()], "run.safetensors"))
        self.assertGreaterEqual(min(values), least)
        self.assertLessEqual(max(values), min(values) + 1)
        return int(min(values))

    def test_kills(self):
        with tempfile.TemporaryDirectory() as folder:
            step = 0
            for kill in range(KILLS):
                writer = subprocess.Popen([sys.executable, "-c", WRITER, folder, str(step)], stdout=subprocess.PIPE, text=True)
                for _ in range(1 + kill % 3):  # at least once whole; then at any place
                    step = int(writer.stdout.readline())
                finished = {"arrays.nd", "list.nd", "net.params", "net.safetensors", "run.safetensors", "x.npy"}
                tries = 100000 if kill % 3 else 0
                for _ in range(tries):  # until a file is being written, of which there are many
                    if set(os.listdir(folder)) - finished:
                        break
                writer.send_signal(signal.SIGKILL)
                writer.stdout.close()
                self.assertEqual(writer.wait(), -signal.SIGKILL)
                step = self.check(folder, step)


if __name__ == "__main__":
    unittest.main()
