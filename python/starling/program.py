"""Programs from text: read, compiled, run.

    program = starling.program.Program("input x: float32 (2, 3)\\nreturn relu(x) as y")
    plan = program.compile()
    (y,) = plan(x)

sl_graph_parse (a manual page) describes the language; doc/hybrid.md what compiling does.
"""
from . import _core
from ._core import NULL, Owner, check, ffi, here, lib, owned, shape_of
from ._tensor import Tensor, device_of, wrap

__all__ = ["Plan", "Program"]

PASSES = {name[8:].lower(): getattr(lib, name) for name in dir(lib) if name.startswith("SL_PASS_")}


def _names(count):
    """The names of inputs or results, as a list."""
    n = count(NULL, 0)
    names = ffi.new("const char *[]", max(n, 1))
    count(names, n)
    return [ffi.string(names[i]).decode() for i in range(n)]


class Program(Owner):
    """A program from its text; Error with line and column if it is wrong."""

    def __init__(self, text):
        if not isinstance(text, str):
            raise _core.wrong("text", text, "str")
        self._p = owned(lib.sl_graph_parse_at(here(), text.encode()), lib.sl_graph_free)

    @property
    def inputs(self):
        """The names of the inputs, in the order in which a run takes them."""
        return _names(lambda names, n: lib.sl_graph_inputs(self._p, names, n))

    @property
    def results(self):
        """The names of the results."""
        names = ffi.new("const char *[]", 1)  # unlike inputs they cannot be counted without room for one
        n = lib.sl_graph_outputs(self._p, names, 1)
        return _names(lambda room, most: lib.sl_graph_outputs(self._p, room, most) if most else n)

    def compile(self, shapes=None, training=False, device=None, off=(), check=False):
        """The program as a Plan, for inputs of these shapes (default: those of the text), on a device.

        training: it is a part of training steps, whose weights change between runs, so that nothing is prepared for the next
        run.  off: names of passes that do not run.  check: compares results before and after each pass; slow.
        """
        bits = 0
        for name in (off,) if isinstance(off, str) else off:
            if name not in PASSES:
                raise _core.InvalidArgument(f"off: {name!r} is no pass; these are: {', '.join(PASSES)}")
            bits |= 1 << PASSES[name]
        options = {"off": bits, "check": bool(check), "training": bool(training), "device": device_of(device)}
        if shapes is not None:
            shapes = list(shapes)
            if len(shapes) != (n := len(self.inputs)):
                raise _core.ShapeError(f"shapes has {len(shapes)} entries, the program {n} inputs")
            kept = options["shapes"] = ffi.new("sl_shape[]", [shape_of(s) for s in shapes] or 1)  # noqa: F841
        return Plan(lib.sl_compile_at(here(), self._p, ffi.new("struct sl_compile_opts *", options)[0]), len(self.inputs), len(self.results))


class Plan(Owner):
    """A compiled program.  A call runs it and returns its results, which are computed asynchronously, as a list."""

    _instead = "compile its program again"

    def __init__(self, p, inputs, results):
        self._p, self._inputs, self._results = owned(p, lib.sl_plan_free), inputs, results

    def __call__(self, *inputs, **numbers):
        """Runs it.  lr, rescale, step: other numbers of its updates, in this run."""
        given = ffi.new("sl_tensor *[]", [_core.pointer(f"input {i}", t, Tensor) for i, t in enumerate(inputs)] or 1)
        out = ffi.new("sl_tensor *[]", max(self._results, 1))
        check(run(self._p, given, len(inputs), out, numbers))
        return [wrap(out[i], Tensor) for i in range(self._results)]

    @property
    def info(self):
        """The result of compiling, as a dictionary: operations before and after the passes, tasks, bytes, flops, seconds."""
        c = lib.sl_plan_info(self._p)
        return {name: getattr(c, name) for name, _ in ffi.typeof("struct sl_plan_info").fields}


def run(plan, inputs, count, out, numbers):
    """A run of a plan with pointers; the status."""
    if not numbers:
        return lib.sl_plan_run_at(here(), plan, inputs, count, out)
    names = [ffi.new("char[]", name.encode()) for name in numbers]
    pairs = ffi.new("struct sl_plan_number[]", list(zip(names, map(float, numbers.values()))))
    return lib.sl_plan_run_with_at(here(), plan, inputs, count, pairs, len(pairs), out)
