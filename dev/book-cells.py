"""Runs the cells of files of a book, for book-check: book-cells.py mxnet|starling FOLDER SECONDS SEED [--tests] FILE...

Prints a line for each cell: {"cell", "file", "error", "text", "values"}.  `import mxnet` means starling.mx on Starling's side.
Modules are imported once; each file runs in a child.
"""
import ast
import importlib
import importlib.abc
import importlib.util
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback
import types
import warnings

SIDE, FOLDER, SECONDS, SEED = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
TESTS, FILES = "--tests" in sys.argv, [pathlib.Path(f) for f in sys.argv[5:] if f != "--tests"]
out = os.fdopen(os.dup(1), "w")


class AsMXNet(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports of `mxnet` and its modules get starling.mx and its modules."""

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name.split(".")[0] == "mxnet" else None

    def create_module(self, spec):
        try:
            module = importlib.import_module("starling.mx" + spec.name[5:])
        except ModuleNotFoundError as error:
            if not str(error.name).startswith("starling.mx"):
                raise
            parent, _, last = spec.name.rpartition(".")
            module = getattr(importlib.import_module(parent), last)  # refuses the name, if it is missing
            if not isinstance(module, types.ModuleType):
                raise
        self.kept = module.__spec__, module.__name__, module.__loader__
        return module

    def exec_module(self, module):
        module.__spec__, module.__name__, module.__loader__ = self.kept


def prepare():
    import numpy

    for name in ("bool", "object", "float", "int"):  # names that MXNet uses, and NumPy has no longer
        if name not in numpy.__dict__:
            setattr(numpy, name, getattr(__import__("builtins"), name))
    if SIDE == "starling":
        from starling import mx  # noqa: F401

        sys.modules.update({"mxnet" + name[11:]: module for name, module in list(sys.modules.items()) if name.startswith("starling.mx")})
        sys.meta_path.insert(0, AsMXNet())
    sys.path[:0] = [str(pathlib.Path(__file__).parent), str(FOLDER)]
    warnings.simplefilter("ignore")


# ---- cells


def cells_of(path):
    """(number, text) of the cells in MXNet's tab."""
    if path.suffix == ".ipynb":
        book = json.loads(path.read_text())
        cells = book.get("cells") or book["worksheets"][0]["cells"]
        texts = ["".join(c.get("source", c.get("input", ""))) for c in cells if c["cell_type"] == "code"]
    else:
        texts = re.findall(r"^ *```\{\.python \.input[^}]*\}\n(.*?)^ *```", path.read_text(), re.DOTALL | re.MULTILINE)
        texts = [text for text in texts if in_tab(text)]
    return [(str(i), text) for i, text in enumerate(texts)]


def in_tab(text):
    tabs = re.match(r"\s*(?:%%tab|#@tab) +(.*)", text)
    return not tabs or bool({"mxnet", "all"} & set(re.split(r"[ ,]+", tabs[1].strip())))


def program_of(text):
    """(statements, last expression or None), without the lines that are for Jupyter; training takes one epoch."""
    lines = [re.sub(r"^(\s*)%timeit (-\S+ \S+ )*", r"\1", line) for line in text.splitlines()]
    lines = [line if not re.match(r"\s*(%|!|tab\.interact)", line) else re.match(r"\s*", line)[0] + "pass" for line in lines]
    tree = ast.parse(re.sub(r"\b(\w*epochs)\s*=\s*[\d.]+", r"\1=1", "\n".join(lines)).rstrip().rstrip("?"))
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    return tree, last


class Tab:
    """The tabs of Dive into Deep Learning."""

    def selected(self, *names):
        return bool({"mxnet", "all"} & {n for name in names for n in (name if isinstance(name, (list, tuple)) else [name])})

    def interact_select(self, *names):
        pass


class TooLong(Exception):
    """A cell took more processor time than it may."""


def too_long(*_):
    raise TooLong(f"more than {SECONDS} s")


def described(value, depth=0):
    """A value as a list that can be compared; None for values that are not."""
    import numpy

    if isinstance(value, (bool, int, float, str)) and not depth:
        return ["str", value[:2000]] if isinstance(value, str) else ["number", [float(value)]]
    if hasattr(value, "asnumpy") and not isinstance(value, type):
        values = value.asnumpy()
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        values = numpy.asarray(value)
    else:
        return None
    if values.dtype.kind not in "fiub" or values.size > 100000:
        return None
    return ["array", list(values.shape), str(values.dtype), [float(x) for x in values.ravel()[:200]]]


def values_in(names, before):
    """The values that a cell has set."""
    found = {}
    for name, value in names.items():
        if name.startswith("__") or before.get(name) is value:
            continue
        parts = {f"{name}[{i}]": v for i, v in enumerate(value[:5])} if isinstance(value, (list, tuple)) else {name: value}
        found.update({n: d for n, v in parts.items() if (d := described(v)) is not None})
    return found


def run(text, names):
    """Runs a cell; returns the values that it has set."""
    before = dict(names)
    statements, last = program_of(text)
    exec(compile(statements, str(FILE), "exec"), names)
    if last is not None:
        value = eval(compile(last, str(FILE), "eval"), names)
        repr(value)
        if value is not None:
            names["_last_value"] = value
    importlib.import_module("mxnet").nd.waitall()
    return values_in(names, before)


def row(cell, error=None, values=None):
    out.write(json.dumps({"cell": cell, "file": str(FILE), "error": type(error).__name__ if error else "", "text": " ".join(str(error).split())[:300] if error else "",
                          "values": values or {}}) + "\n")  # fmt: skip
    out.flush()


def seed():
    import random

    import numpy

    random.seed(SEED), numpy.random.seed(SEED), importlib.import_module("mxnet").random.seed(SEED)


def run_cells():
    import book_data

    names = {"__name__": "__main__", "tab": Tab()}
    signal.signal(signal.SIGPROF, too_long)
    book_data.replace(SIDE)
    seed()
    for cell, text in cells_of(FILE):
        if not text.replace("%load_ext d2lbook.tab", "").strip():
            continue
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            values = run(text, names)
        except BaseException as error:  # SystemExit, too
            if isinstance(error, KeyboardInterrupt):
                raise
            row(cell, error)
        else:
            row(cell, None, values)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


# ---- MXNet's tests


class Ended(Exception):
    """A test ended its process, or was ended because it took too long."""


def name_of(item):
    return item.nodeid.split("::", 1)[-1]


class Report:
    """A plugin of pytest that prints the results, and notes in a file which tests have begun."""

    def __init__(self, begun):
        self.begun = begun

    def pytest_collection_modifyitems(self, items):
        before = set(self.begun.read_text().split("\n"))
        items[:] = [item for item in items if name_of(item) not in before]

    def pytest_runtest_setup(self, item):
        with self.begun.open("a") as file:
            print(name_of(item), file=file)
        signal.signal(signal.SIGPROF, too_long)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)

    def pytest_runtest_makereport(self, item, call):
        if call.when == "call" or call.excinfo:
            signal.setitimer(signal.ITIMER_PROF, 0)
            row(name_of(item), call.excinfo.value if call.excinfo else None)

    def pytest_collectreport(self, report):
        if report.failed:
            row("import", ImportError(str(report.longrepr)[-300:]))


def stand_in_for_nose():
    """The names of nose, which MXNet's tests import, and which later Pythons do not run."""
    import unittest

    case = unittest.TestCase()

    def make_decorator(function):
        def decorate(made):
            made.__name__, made.__dict__ = function.__name__, {**function.__dict__, **made.__dict__}
            return made

        return decorate

    def raises(*kinds):
        def around(test):
            def call(*args, **kwargs):
                with case.assertRaises(kinds):
                    test(*args, **kwargs)

            return make_decorator(test)(call)

        return around

    names = {"make_decorator": make_decorator, "raises": raises, "assert_raises": case.assertRaises, "assert_equal": case.assertEqual,
             "assert_true": case.assertTrue, "ok_": case.assertTrue, "eq_": case.assertEqual, "with_setup": lambda *_: lambda test: test,
             "nottest": lambda test: test, "istest": lambda test: test, "assert_almost_equal": case.assertAlmostEqual}  # fmt: skip
    tools, nose = types.ModuleType("nose.tools"), types.ModuleType("nose")
    vars(tools).update(names)
    nose.tools = tools
    nose.SkipTest = unittest.SkipTest
    sys.modules.update({"nose": nose, "nose.tools": tools})


def stand_in_for_insides():
    """Names of MXNet's insides that a file of tests imports for one of them; that one is refused."""

    def refused(name):
        def call(*_, **__):
            raise NotImplementedError(f"{name} is not in Starling; it belongs to MXNet's insides")

        return type(name, (), {"__init__": call, "__getattr__": call})

    if SIDE == "starling":
        inside = sys.modules["mxnet.numpy_op_signature"] = types.ModuleType("mxnet.numpy_op_signature")
        inside._get_builtin_op = refused("_get_builtin_op")
        for module, names in (("base", "NDArrayHandle SymbolHandle check_call c_str c_str_array mx_uint"), ("util", "_NumpyArrayScope")):
            for name in names.split():
                setattr(importlib.import_module(f"mxnet.{module}"), name, refused(name))
        importlib.import_module("mxnet.base")._LIB = object.__new__(refused("_LIB"))


def run_tests(begun):
    import pytest

    stand_in_for_nose()
    stand_in_for_insides()

    sys.path[:0] = [str(FILE.parent), str(FILE.parent.parent / "common"), str(FILE.parents[2])]
    pytest.main(["-q", "-p", "no:cacheprovider", str(FILE)], plugins=[Report(begun)])


def child(path, begun):
    """Runs a file in a new folder."""
    global FILE
    FILE = path
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.makedirs("book/data"), os.makedirs("data"), os.makedirs("img")
        os.chdir("book")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what cells print is no result
        run_tests(begun) if TESTS else run_cells()


def reason_of_end(number, begun):
    """Waits for a child; returns "" if it came to its end, else how it ended."""
    limit, started = SECONDS * (20 if TESTS else 1000), time.time()  # for what hangs; beside other programs all takes longer
    while not (ended := os.waitpid(number, os.WNOHANG))[0]:
        if time.time() - max(started, begun.stat().st_mtime) > limit:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            return f"no end within {limit} s"
        time.sleep(0.05)
    return f"its process ended with status {ended[1]}" if ended[1] else ""


def whole(path, begun):
    """Runs a file; of MXNet's tests, the ones that have not begun.  Returns whether the file came to its end."""
    global FILE
    FILE, before = path, begun.read_text()
    number = os.fork()
    if not number:
        try:
            child(path, begun)
        except Exception:
            traceback.print_exc()
        finally:
            out.flush()
            os._exit(0)
    reason = reason_of_end(number, begun)
    if not reason or not TESTS or begun.read_text() == before:
        return True
    row(begun.read_text().split("\n")[-2], Ended(reason))
    return False


def main():
    prepare()
    for name in ("pytest", "scipy") if TESTS else ("pandas", "matplotlib.pyplot", "requests"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass
    importlib.import_module("mxnet")
    for path in FILES:
        with tempfile.NamedTemporaryFile() as file:
            while not whole(path, pathlib.Path(file.name)):
                pass


if __name__ == "__main__":
    main()
