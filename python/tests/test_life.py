"""Memory, threads, signals, and the end of the interpreter."""
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import starling as sl
from starling.mx import gluon, nd

PATIENCE = 600  # seconds that something may take on a busy machine


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run(code, **options):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, **options)


class Copies(unittest.TestCase):
    def test_refused(self):
        """A copy of what owns an object of the library would free it twice."""
        net = sl.nn.Sequential(sl.nn.Dense(2, in_units=2))
        net.initialize()
        trainer = sl.Trainer(net, "sgd", lr=0.1)
        data = sl.data.arrays(np.ones((4, 2), "float32"))
        loss = lambda y, target: y  # noqa: E731
        owners = [net.find("0.weight"), trainer, sl.Step(net, sl.l2_loss, trainer), sl.StepAll(net, loss, trainer)]
        owners += [sl.Mean(), sl.Accuracy(), data, data.rows(0, 2), sl.data.random_flip(), sl.data.Loader(data, 2)]
        owners += [sl.data.Loader(np.ones(3), 2), gluon.nn.Dense(2, in_units=2), gluon.nn.HybridSequential()]
        for owner in owners:
            for how in (copy.copy, copy.deepcopy, pickle.dumps, lambda x: copy.deepcopy({"in": [x]})):
                with self.subTest(type(owner).__name__), self.assertRaisesRegex(TypeError, f"cannot copy {type(owner).__name__}.*: .*make|set"):
                    how(owner)
        del owner, owners
        gc.collect()
        self.assertEqual(net(sl.ones((1, 2))).shape, (1, 2))

    def test_of_parts_in_python(self):
        """What holds owners is copied as far as it goes, and nothing is freed twice."""
        net = gluon.nn.Dense(2, in_units=2)
        net.initialize()
        for part in (net.weight, gluon.Trainer(net.collect_params(), "sgd"), net.collect_params(), sl.Schedule("constant"), sl.init.zeros()):
            for how in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
                try:
                    how(part)
                except TypeError as error:
                    self.assertIn("cannot copy", str(error))
        gc.collect()
        self.assertEqual(net(nd.ones((1, 2))).shape, (1, 2))


class Memory(unittest.TestCase):
    def grows(self, work, n):
        """By how many bytes the process grows in n rounds, after as many to warm up."""
        for _ in range(n):
            work()
        sl.wait_all()
        gc.collect()
        before = resident()
        for _ in range(n):
            work()
        sl.wait_all()
        gc.collect()
        return resident() - before

    def test_operations(self):
        x = sl.ones((2, 3))
        n = int(os.environ.get("STARLING_OPERATIONS", 20000))
        # With FxT, StarPU keeps 32 bytes for each task that reads x, until one writes it: a byte an operation.
        self.assertLess(self.grows(lambda: x + 1, n), max(4 << 20, 16 * n))

    def test_functions(self):
        """What functions make on the way goes, though Python has no scopes."""
        x, g, h, r = sl.ones((4, 50)), sl.ones((5, 3, 24)), sl.zeros((3, 6)), sl.ones((24, 6))
        functions = {
            "topk": lambda: sl.topk(x, 3),
            "sort": lambda: sl.sort(x, descending=True),
            "variance": lambda: sl.variance(x),
            "split": lambda: sl.split(x, 2, 1),
            "recurrent": lambda: sl.recurrent("lstm", g, r, h, cell=h),
            "recurrent with lengths": lambda: sl.recurrent("lstm", g, r, h, cell=h, lengths=sl.array([1, 2, 3])),
            "comparison": lambda: sl.gt_scalar(x, 0, dtype="bool"),
        }
        for name, function in functions.items():
            def work():
                function()
                sl.wait_all()  # buffers in flight are not used again

            for _ in range(5):
                work()
            before = sl.stats()
            for _ in range(50):
                work()
            after = sl.stats()
            with self.subTest(name):
                self.assertLess(after["handles"] - before["handles"], 50)
                self.assertLess(after["bytes"] - before["bytes"], 50 * 8)

    def test_networks(self):
        x = sl.ones((2, 3))

        def work():
            net = sl.nn.Sequential(sl.nn.Dense(8), sl.nn.Lambda(lambda y: y * 2))
            net.initialize()
            net.hybridize()
            with sl.record():
                y = net(x)
            y.backward()

        n = int(os.environ.get("STARLING_NETWORKS", 100))
        self.assertLess(self.grows(work, n), 4 << 20)
        before = sl.stats()["bytes"]
        work()
        sl.wait_all()
        gc.collect()
        self.assertLessEqual(sl.stats()["bytes"], before)

    def test_adopted(self):
        import numpy as np

        self.assertLess(self.grows(lambda: sl.from_numpy(np.ones((100, 100), np.float32)) + 1, 1000), 20 << 20)


class Threads(unittest.TestCase):
    def test_tensors_freed_in_other_threads(self):
        shared, failures = [], []

        def work(seed):
            try:
                for i in range(200):
                    shared.append(sl.full((3,), float(seed)) + i)
                    if len(shared) > 50:
                        self.assertEqual(len(shared.pop(0).numpy()), 3)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_recording_is_the_threads_own(self):
        seen = []
        with sl.record():
            t = threading.Thread(target=lambda: seen.append(sl.autograd.is_recording()))
            t.start()
            t.join()
        self.assertEqual(seen, [False])


class Processes(unittest.TestCase):
    def test_child_of_fork(self):
        code = """
import os, sys
import starling as sl
x = sl.ones(3)
x.wait()
child = os.fork()
if not child:
    try:
        (x + 1).wait()
    except sl.StateError as error:
        print(error, flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), (x + 1).numpy().sum())
"""
        done = run(code)
        self.assertIn("fork", done.stdout)
        self.assertTrue(done.stdout.endswith("7 6.0\n"), done.stdout + done.stderr)

    def test_all_is_imported(self):
        """Nothing is left to a function's first call: a child that is forked meanwhile would wait for that import for ever."""
        code = """
import ast, os, sys
import starling, starling.mx
missing, seen = set(), 0
for package in ("starling", "starling.mx", "starling.mx.gluon"):
    folder = os.path.dirname(sys.modules[package].__file__)
    for file in os.listdir(folder):
        if not file.endswith(".py"):
            continue
        with open(os.path.join(folder, file), encoding="utf-8") as f:
            tree = ast.parse(f.read())
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        for n in (n for f in functions for n in ast.walk(f) if isinstance(n, ast.ImportFrom) and n.level):
            above = package.rsplit(".", n.level - 1)[0] if n.level > 1 else package
            names = [n.module] if n.module else [a.name for a in n.names]
            seen += len(names)
            missing |= {f"{above}.{name}" for name in names} - set(sys.modules)
print(seen > 20, sorted(missing))
"""
        self.assertEqual(run(code).stdout.split("\n")[0], "True []")

    def test_children_of_busy_threads(self):
        """As of a program that loads its data in processes: children end, whatever other threads were doing."""
        code = """
import gc, multiprocessing, os, sys, threading
import numpy as np
import starling as sl
net = sl.nn.Sequential(sl.nn.Dense(8), sl.nn.Dense(2))
net.initialize()
trainer = sl.Trainer(net, "sgd", lr=0.01)
stop = threading.Event()
def train():
    while not stop.is_set():
        with sl.record():
            loss = net(sl.ones((3, 4))).sum()
        loss.backward()
        trainer.step(3)
def fail():
    while not stop.is_set():
        try:
            sl.ones(2) + sl.ones(3)
        except sl.ShapeError:
            pass
threads = [threading.Thread(target=f) for f in (train, train, fail)]
for t in threads:
    t.start()
def child(i, queue):
    for call in (lambda: net(sl.ones((3, 4))), lambda: trainer.step(3), lambda: sl.ones(3).numpy(), sl.wait_all):
        try:
            call()
        except sl.StateError:
            pass
    gc.collect()
    queue.put(np.full(4, i).sum())
fork = multiprocessing.get_context("fork")
queue, total = fork.SimpleQueue(), 0
for i in range(8):
    process = fork.Process(target=child, args=(i, queue))
    process.start()
    total += queue.get()
    process.join()
    assert process.exitcode == 0, process.exitcode
stop.set()
for t in threads:
    t.join()
print(total)
"""
        done = run(code)
        self.assertEqual((done.stdout, done.returncode), ("112\n", 0), done.stderr)


class Signals(unittest.TestCase):
    def test_interrupt_during_a_wait(self):
        code = """
import os, signal, threading, time
import starling as sl
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell's script ignores it
sl.start(bulk=1)
x = sl.normal((300, 300), 0, 0.01)
for _ in range(300):
    x = sl.dot(x, x)
pid = os.getpid()
threading.Timer(0.2, lambda: os.kill(pid, signal.SIGINT)).start()
try:
    while True:
        for _ in range(300):
            x = sl.dot(x, x)
        x.wait()
except KeyboardInterrupt:
    print("interrupted")
"""
        done = run(code)
        self.assertEqual((done.stdout, done.returncode), ("interrupted\n", 0), done.stderr)


class End(unittest.TestCase):
    def test_quiet(self):
        code = """
import starling as sl
x = sl.ones((100, 100))
net = sl.nn.Dense(3)
net.initialize()
net.hybridize()
y = net(x)
keep = [x @ x for _ in range(50)]
"""
        done = run(code)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("", "", 0))

    def test_after_shutdown(self):
        code = """
import starling as sl
x = sl.ones(3)
sl.shutdown()
try:
    x.numpy()
except sl.StateError:
    print("lost")
print((sl.ones(3) + 1).numpy().sum())
"""
        done = run(code)
        self.assertEqual((done.stdout, done.returncode), ("lost\n6.0\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main()
