"""Calls of graphs that are one program, as most are: what is the same in each call is found out once.

Programs are computed in the calling thread, by its OpenMP threads, which are PyTorch's, on PyTorch's memory (sl_plan_call).  Where
somebody looks at tasks, as a trace does, they are queued, and waited for.
"""
import torch

from .._core import ffi, lib
from . import _memory
from ._call import caller
from ._labels import check_labels
from ._results import Results, _new
from ._text import HERE, Value, checked_status

SMALL = 1 << 15  # bytes; copying a result of this size costs less than giving its memory to a tensor of PyTorch


class Quick:
    """A graph of one program.

    takes: (number of the argument, shape, type) of each input, or (tensor, shape, type) of a constant.
    makes: (shape, strides, type, bytes) of each result.  gives: for each element of the returned list (None, a
    constant), (True, the number of a result) or (False, the number of an argument).
    compute: computes the program in the calling thread; None if tasks are needed.
    """

    def __init__(self, graph, plan):
        places = {**graph.positions, **{v: len(graph.placeholders) + i for i, v in enumerate(graph.extra)}}
        self.plan = plan
        self.takes = [(places[v] if v in places else graph.kept[v], tuple(v.shape), v.dtype) for v in plan.inputs]
        self.check = labels_checked([(places[v], *limits) for v, limits in plan.labels.items() if v in places])
        self.makes = [(tuple(v.shape), _memory.contiguous(v.shape), v.dtype, v.size * v.dtype.itemsize) for v in plan.results]
        self.gives = [self.place(graph, plan, n) for n, _ in graph.found]
        shown = {x for i, (kind, x) in enumerate(self.gives) if kind and not is_saved(graph, i)}
        memory = Results(plan, set(range(len(plan.results))) - shown)
        self.compute = caller(plan.plan, self.takes, self.gives, memory, self.check)

    @staticmethod
    def place(graph, plan, n):
        """Where an output is found: (whether it is a result, its number), or what is always the same."""
        if not isinstance(n, torch.fx.Node):
            return None, n
        if n in graph.constants:
            return None, graph.constants[n]
        v = graph.values.get(n)
        return (True, plan.results.index(v)) if v in plan.results else (False, graph.positions[v])

    def tensors(self, args):
        """The inputs, in pieces of memory as the program reads them; None if one is not."""
        given = []
        for i, shape, dtype in self.takes:
            t = args[i] if type(i) is int else i
            if t.shape != shape or t.dtype is not dtype or not t.is_contiguous() or t.is_neg():
                return None
            given.append(t)
        return given

    def __call__(self, args, numbers):
        """A run; None if the general way has to be gone."""
        numbers = numbers if self.plan.updates else ()
        found = self.compute and self.compute(args, numbers)
        return self.by_tasks(args, numbers) if found is None else found

    def by_tasks(self, args, numbers):
        """The same by tasks."""
        given = self.tensors(args)
        if given is None:
            return None
        if self.check:
            self.check(args)
        results = self.queued(given, numbers)
        return [x if kind is None else results[x] if kind else args[x] for kind, x in self.gives]

    def queued(self, given, numbers):
        """The results, computed by tasks."""
        given = [_memory.handle(t) for t in given]
        out = ffi.new("sl_tensor *[]", len(self.makes))
        self.plan.start(given, numbers, out)
        results = self.shown(out)
        for i in self.plan.written:
            _memory.wait(given[i])
        return results

    def shown(self, out):
        """The results as PyTorch's tensors."""
        results, seen = [], {}
        try:
            for i, (shape, strides, dtype, size) in enumerate(self.makes):
                p, out[i] = out[i], ffi.NULL
                results.append(copied(p, _new(shape, strides, dtype), size) if size <= SMALL else _memory.shown_once(ffi.gc(p, lib.sl_release), shape, dtype, seen))
        finally:
            for p in out:  # after an error
                lib.sl_release(p)
        return results


def labels_checked(labels):
    """A function of the arguments that raises PyTorch's error for labels that are no class; None: there are no labels."""

    def check(args):
        for i, classes, ignore in labels:
            check_labels(args[i], classes, ignore)

    return check if labels else None


def copied(p, t, size):
    """A small result in this tensor: waits for it, and gives it up."""
    status = lib.sl_read_at(HERE, p, ffi.cast("void *", t.data_ptr()), size)
    lib.sl_release(p)
    checked_status(status)
    return t


def is_saved(graph, i):
    """Whether an output is what the forward pass keeps for the backward pass: nobody else sees it, or changes it."""
    return graph.user_results is not None and i >= graph.user_results


def quick(graph):
    """The graph as one program, or None."""
    if len(graph.steps) != 1 or not hasattr(graph.steps[0], "plan") or graph.assignments or graph.aliases:
        return None
    plan, seen = graph.steps[0], set()
    if any(v.program is not None for v in plan.labels) or any(v.program is not None for v in plan.inputs):
        return None
    for i, (n, strides) in enumerate(graph.found):
        if not isinstance(n, torch.fx.Node) or (n in graph.constants and is_saved(graph, i)):
            continue
        v = graph.values.get(n)
        known = isinstance(v, Value) and (v in plan.results or (n.op == "placeholder" and v in graph.positions))
        if not known or v in seen or strides is not None:
            return None
        seen.add(v)
    return Quick(graph, plan)
