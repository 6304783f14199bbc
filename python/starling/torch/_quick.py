"""Calls of graphs that are one program, as most are: what is the same in each call is found out once."""
import torch

from .._core import ffi, lib
from . import _memory
from ._labels import check_labels
from ._text import HERE, Value, raise_error

SMALL = 1 << 15  # bytes; copying a result of this size costs less than giving its memory to a tensor of PyTorch


class Quick:
    """A graph of one program.

    takes: (place among the arguments, shape, type) of each input; constants are tensors in the place of their place.
    makes: (shape, type, bytes) of each result.  gives: what is returned: (a list of the call, place in it).
    """

    def __init__(self, graph, plan):
        places = {**graph.positions, **{v: len(graph.placeholders) + i for i, v in enumerate(graph.extra)}}
        self.plan, self.size = plan, len(plan.inputs)
        self.takes = [(places[v] if v in places else graph.kept[v], tuple(v.shape), v.dtype) for v in plan.inputs]
        self.labels = [(places[v], *limits) for v, limits in plan.labels.items() if v in places]
        self.makes = [(tuple(v.shape), v.dtype, v.size * v.dtype.itemsize) for v in plan.results]
        self.gives = [self.place(graph, plan, n) for n, _ in graph.found]

    @staticmethod
    def place(graph, plan, n):
        """Where an output is found: (whether it is a result, its number), or what is always the same."""
        if not isinstance(n, torch.fx.Node):
            return None, n
        v = graph.values.get(n)
        return (True, plan.results.index(v)) if v in plan.results else (False, graph.positions[v])

    def pointers(self, args):
        """The engine's tensors of the inputs; None if one is not what the program reads as it is."""
        handles, given = _memory.handles, []
        for i, shape, dtype in self.takes:
            t = args[i] if type(i) is int else i
            size = t.shape
            if size != shape or t.dtype is not dtype or not t.is_contiguous() or t.is_neg():
                return None
            entry = handles.get((t.data_ptr(), size, dtype))
            if entry is None:
                given.append(_memory.handle(t))
            else:
                entry[1] = True
                given.append(entry[0])
        return given

    def __call__(self, args, numbers):
        """A run; None if the general way has to be gone."""
        given = self.pointers(args)
        if given is None:
            return None
        for i, classes, ignore in self.labels:
            check_labels(args[i], classes, ignore)
        out = ffi.new("sl_tensor *[]", len(self.makes))
        self.plan.start(given, numbers if self.plan.updates else (), out)
        results = self.shown(out)
        for i in self.plan.written:
            _memory.wait(given[i])
        return [x if kind is None else results[x] if kind else args[x] for kind, x in self.gives]

    def shown(self, out):
        """The results as PyTorch's tensors."""
        results, seen = [], {}
        try:
            for i, (shape, dtype, size) in enumerate(self.makes):
                p, out[i] = out[i], ffi.NULL
                results.append(copied(p, shape, dtype, size) if size <= SMALL else _memory.shown_once(ffi.gc(p, lib.sl_release), shape, dtype, seen))
        finally:
            for p in out:  # after an error
                lib.sl_release(p)
        return results


def copied(p, shape, dtype, size):
    """A small result: waits for it, and gives it up."""
    t = torch.empty(shape, dtype=dtype)
    status = lib.sl_read_at(HERE, p, ffi.cast("void *", t.data_ptr()), size)
    lib.sl_release(p)
    if status:
        raise_error()
    return t


def quick(graph):
    """The graph as one program, or None."""
    if len(graph.steps) != 1 or not hasattr(graph.steps[0], "plan") or graph.assignments or graph.aliases:
        return None
    plan, seen = graph.steps[0], set()
    if any(v.program is not None for v in plan.labels) or any(v.program is not None for v in plan.inputs):
        return None
    for n, strides in graph.found:
        if not isinstance(n, torch.fx.Node):
            continue
        v = graph.values.get(n)
        known = isinstance(v, Value) and (v in plan.results or (n.op == "placeholder" and v in graph.positions))
        if not known or v in seen or strides is not None:
            return None
        seen.add(v)
    return Quick(graph, plan)
