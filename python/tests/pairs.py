"""Public functions and methods beside each other, in two threads, on shared objects (doc/threads.md): no crash, no hang, no
damaged file, whatever is shared.  pairs.py [--pairs N | --part I/K] [--ms MILLISECONDS] [--seed S] [--only A B]

A child process tries some pairs; if it ends, the pair that it was at is named, and the next child goes on behind it.
"""
import argparse
import faulthandler
import gc
import inspect
import json
import mmap
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import starling as sl
from starling import mx
from starling.mx import gluon, nd

PATIENCE = 300  # seconds that a pair may take on a busy machine
GROUP = 400  # pairs of a child
# The engine's end, and what waits for an answer of the user's or of other processes
LEFT_OUT = {"shutdown", "start", "init_engine", "spill", "dist", "export_wheel", "fashion_mnist", "waitall", "wait"}


# ---- what is shared -------------------------------------------------------------------------------------------------


class Twice(sl.Block):
    def __init__(self):
        super().__init__()
        self.w = self.param("w", 4, init=sl.init.zeros())

    def forward(self, x):
        return x * 2 + self.w.on(x)


def shared_objects():
    net = sl.nn.Sequential(sl.nn.Dense(4, activation="relu"), sl.nn.BatchNorm(), sl.nn.Dense(4))
    own = Twice()
    for block in (net, own):
        block.initialize()
        block(sl.ones((3, 4))).wait()
    data = sl.data.arrays(np.ones((20, 4), "float32"), np.arange(20) % 2)
    trainer = sl.Trainer(net, "sgd", lr=0.01, momentum=0.9)
    gnet = gluon.nn.HybridSequential()
    gnet.add(gluon.nn.Dense(4), gluon.nn.Dense(2))
    gnet.initialize()
    gnet(nd.ones((3, 4)))
    t = sl.ones((3, 4))
    t.attach_grad()
    sl.checkpoint.save("saved.safetensors", trainer=trainer)
    made = {
        "tensor": t, "integers": sl.array(np.array([[0, 1, 1, 0]], "int32")), "vector": sl.ones(4), "net": net, "own": own,
        "parameter": net.params()[0], "trainer": trainer, "data": data, "loader": sl.data.Loader(data, batch_size=4, workers=1),
        "mean": sl.Mean(), "accuracy": sl.Accuracy(), "cache": sl.Cache(own, 8), "schedule": sl.Schedule("constant"),
        "init": sl.init.zeros(), "step": sl.Step(net, sl.l2_loss, trainer), "ndarray": nd.ones((3, 4)), "gnet": gnet,
        "gparams": gnet.collect_params(), "gtrainer": gluon.Trainer(gnet.collect_params(), "sgd"),
        "gloss": gluon.loss.L2Loss(), "gmetric": mx.metric.Accuracy(), "symbol": mx.sym.var("x") * 2,
    }  # fmt: skip
    return made


SPECIAL = ("__add__", "__getitem__", "__len__", "__iter__", "__repr__", "__del__", "__call__", "__next__", "__array__", "__setitem__",
           "__iadd__", "__bool__", "__float__", "__hash__", "__eq__", "__dlpack__", "__copy__")  # fmt: skip


def public(of, prefix):
    for name in dir(of):
        if (name.startswith("_") and name not in SPECIAL) or name in LEFT_OUT:
            continue
        try:
            value = getattr(of, name)
        except Exception:  # noqa: BLE001
            continue
        if not inspect.ismodule(value):
            yield f"{prefix}.{name}", value


def calls():
    """What can be called, by name: functions of modules, and methods and attributes of shared objects."""
    found = {}
    for module, prefix in ((sl, "sl"), (sl.nn, "nn"), (sl.data, "data"), (sl.init, "init"), (sl.checkpoint, "checkpoint"),
                           (sl.autograd, "autograd"), (nd, "nd"), (gluon.nn, "gluon")):  # fmt: skip
        for name, value in public(module, prefix):
            if callable(value):
                found[name] = ("", name.split(".")[1], module)
    for kind, thing in objects.items():
        for name, _ in public(thing, kind):
            found[name] = (kind, name.split(".")[1], None)
    return found


def value_for(name, mine):
    """An argument, by what a parameter is called; often something else."""
    lot = mine.random()
    if "path" in name or name in ("fname", "filename", "file"):
        return f"{mine.thread}-file" + mine.choice(["", ".params", ".safetensors", ".npy"])
    if lot < 0.15:
        return mine.choice([None, 0, -1, 2, 1.5, "", "x", (2, 3), [1], {}, True, float("nan"), b"x", np.ones(3, "float32")])
    if "shape" in name or name == "size":
        return mine.choice([(3, 4), (2,), ()])
    if name in ("net", "block", "body", "layer"):
        return objects[mine.choice(["net", "own", "gnet"])]
    if name in ("trainer", "loader", "data", "schedule", "init"):
        return objects[name]
    if name in ("units", "axis", "n", "k", "classes", "batch_size", "channels", "filters", "rows", "start", "stop"):
        return mine.choice([0, 1, 2, 4])
    if name in ("loss", "f", "function", "get"):
        return mine.choice([lambda *x: x[0] * 1, sl.l2_loss])
    return objects[mine.choice(["tensor", "tensor", "vector", "integers", "ndarray", "parameter", *objects])]


class Thread(random.Random):
    """The random choices of a thread."""

    def __init__(self, thread, seed):
        super().__init__(f"{thread} {seed}")
        self.thread = thread


def arguments(function, mine):
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [value_for("x", mine) for _ in range(mine.choice([0, 1, 1, 2]))], {}
    given, named = [], {}
    for p in parameters:
        if p.kind == p.VAR_POSITIONAL:
            given += [value_for(p.name, mine) for _ in range(mine.choice([0, 1, 2]))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and (p.default is p.empty or mine.random() < 0.1):
            given.append(value_for(p.name, mine))
        elif p.kind == p.KEYWORD_ONLY and p.default is not p.empty and mine.random() < 0.05:
            named[p.name] = value_for(p.name, mine)
        elif p.default is not p.empty:
            break
    return given, named


def call(what, mine):
    kind, name, module = what
    try:
        function = getattr(objects[kind] if kind else module, name)
        if not callable(function):
            return repr(function)
        given, named = arguments(function, mine)
        result = function(*given, **named)
        if hasattr(result, "__next__") and not isinstance(result, sl.Block):
            for _ in range(3):
                next(result, None)
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, sl.Tensor) and mine.random() < 0.2:
                one.numpy()
        return result
    except Exception:  # noqa: BLE001 - an error is an answer
        return None


def repeat(what, mine, end):
    while True:
        call(what, mine)
        if time.monotonic() >= end:
            return


def is_whole(path):
    """Whether a file of a kind that is known by its beginning is all there; other kinds are not looked at."""
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"\x93NUMPY"):
        return np.load(path, allow_pickle=False) is not None
    if data.startswith(struct.pack("<QQ", 0x112, 0)):
        return nd.load(path) is not None
    length = struct.unpack("<Q", data[:8])[0] if len(data) > 8 else 0
    if data[8:9] != b"{" or path.endswith("json"):
        return True
    ends = [a["data_offsets"][1] for name, a in json.loads(data[8 : 8 + length]).items() if name != "__metadata__"]
    return len(data) == 8 + length + max(ends, default=0)


def check_files():
    failures = 0
    for path in os.listdir("."):
        if path[1:].startswith("-file") and os.path.isfile(path):
            try:
                whole = is_whole(path)
            except Exception as error:  # noqa: BLE001
                print(error)
                whole = False
            if not whole:
                print(f"FAIL: {path} is damaged", flush=True)
                failures += 1
            os.remove(path)
    return failures


# ---- children -------------------------------------------------------------------------------------------------------


def child(args, state, first, last):
    global objects
    faulthandler.enable()
    objects = shared_objects()
    names, found = sorted(calls()), calls()
    pairs = plan(args, len(names))
    failures = 0
    for number in range(first, min(last, len(pairs))):
        a, b = (names[i] for i in pairs[number])
        state[:] = struct.pack("q120s120s", number, a.encode(), b.encode())
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        end = time.monotonic() + args.ms / 1000
        other = threading.Thread(target=repeat, args=(found[b], Thread(1, f"{args.seed} {number}"), end))
        other.start()
        repeat(found[a], Thread(0, f"{args.seed} {number}"), end)
        other.join()
        failures += check_files()
        if number % 20 == 0:
            objects = shared_objects()
            gc.collect()
        try:
            sl.wait_all()
        except sl.Error:
            pass
    faulthandler.cancel_dump_traceback_later()
    state[:] = struct.pack("q120s120s", last, b"", b"")
    sys.exit(3 if failures else 0)


def plan(args, n):
    if args.only:
        names = sorted(calls())
        return [tuple(names.index(name) for name in args.only)]
    if args.pairs:
        mine = random.Random(args.seed)
        return [(mine.randrange(n), mine.randrange(n)) for _ in range(args.pairs)]
    every = [(i, k) for i in range(n) for k in range(i, n)]
    part, parts = map(int, args.part.split("/"))
    return every[len(every) * (part - 1) // parts : len(every) * part // parts]


def main():
    global objects
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--ms", type=float, default=10)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", nargs=2)
    parser.add_argument("--child", nargs=3)
    args = parser.parse_args()
    size = struct.calcsize("q120s120s")
    if args.child:
        with open(args.child[0], "r+b") as file:
            child(args, mmap.mmap(file.fileno(), size), int(args.child[1]), int(args.child[2]))
    failures, here = 0, os.path.abspath(__file__)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        objects = shared_objects()
        count = len(calls())
        total = len(plan(args, count))
        with open("state", "wb") as file:
            file.write(bytes(size))
        with open("state", "r+b") as file:
            state = mmap.mmap(file.fileno(), size)
            first = 0
            while first < total:
                given = [sys.executable, here, *sys.argv[1:], "--child", "state", str(first), str(first + GROUP)]
                with open("output", "w") as output:
                    status = subprocess.call(given, stdout=output, stderr=output)
                number, a, b = struct.unpack("q120s120s", state[:])
                if status:
                    text = open("output", errors="replace").read()
                    print(f"FAIL: {a.rstrip(bytes(1)).decode()} beside {b.rstrip(bytes(1)).decode()}: status {status}\n{text[-6000:]}", flush=True)
                    failures += 1
                first = number + 1 if status and number < first + GROUP else min(first + GROUP, total)
    print(f"{count} functions, methods and attributes, {total} pairs, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
