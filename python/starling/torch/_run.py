"""A call of a graph of several programs, or of one that needs more than reading and writing its tensors."""
import math

import torch
from torch.fx import Node

from . import _memory
from ._labels import check_labels
from ._text import Value

BY_SHAPE = {"rand_like": torch.rand, "randn_like": torch.randn}  # random: only the shape of their argument matters


class Run:
    """A call of a graph: its tensors, PyTorch's and the engine's, by value or node."""

    def __init__(self, graph, args):
        self.graph, self.ours, self.theirs, self.others = graph, {}, dict(graph.kept), {}
        self.addresses, self.copies = {}, {}  # of results that are shown; of what does not lie in one piece
        for n, t in zip(graph.placeholders, args):
            v = graph.values.get(n)
            if v is None:
                self.others[n] = t
            else:
                self.theirs[v] = t

    def pointer(self, v):
        """The engine's tensor of a value."""
        p = self.ours.get(v)
        if p is None:
            t = self.theirs[v]
            if t.shape != v.shape or t.dtype != v.dtype:
                raise ValueError(f"a tensor is {tuple(t.shape)} {t.dtype}, compiled for {tuple(v.shape)} {v.dtype}")
            if not t.is_contiguous() or t.is_neg():
                t = self.copies[v] = t.detach().resolve_neg().contiguous()
            p = self.ours[v] = _memory.handle(t)
        return p

    def program(self, plan, numbers):
        """Runs a program, and waits for what PyTorch sees of it."""
        self.check_labels(plan, True)
        originals = [self.theirs[plan.inputs[i]] for i in plan.written]
        given = [self.pointer(v) for v in plan.inputs]
        for v, p in zip(plan.results, plan.run(given, numbers)):
            self.ours[v] = p
        for i, t in zip(plan.written, originals):
            v = plan.inputs[i]
            _memory.wait(given[i])
            if v in self.copies:
                t.detach().copy_(self.copies[v])
        for v in plan.results:
            if v in self.graph.seen:
                self.theirs[v] = self.show(v)
        self.check_labels(plan, False)

    def check_labels(self, plan, before):
        """PyTorch's error for labels that are no class; those that the program itself computes are checked after it."""
        for v, (classes, ignore) in plan.labels.items():
            if (v.program is not plan.program) == before:
                check_labels(self.theirs[v], classes, ignore)

    def show(self, v):
        """A result as PyTorch's tensor."""
        return _memory.shown_once(self.ours[v], v.shape, v.dtype, self.addresses)

    def get(self, n):
        """A node's value for PyTorch."""
        v = self.graph.values.get(n)
        if isinstance(v, Value):
            t, val = self.theirs[v], n.meta.get("val")
            return with_strides(t, self.graph.strides(val)) if v.program is not None and isinstance(val, torch.Tensor) else t
        if isinstance(v, list):
            return [None if k is None else self.theirs[k] for k in v]
        return self.graph.constants[n] if n in self.graph.constants else self.others[n]

    def node(self, node):
        """An operation in PyTorch."""
        graph, name = self.graph, getattr(getattr(node.target, "overloadpacket", None), "__name__", None)
        if name in BY_SHAPE:
            val = node.meta["val"]
            y = BY_SHAPE[name](graph.concrete(list(val.shape)), dtype=val.dtype, device=val.device)
        else:
            args, kwargs = graph.arguments(node, self.get)
            with torch.no_grad(), torch._C._DisableAutocast():
                y = node.target(*args, **kwargs)
        v = graph.values.get(node)
        if isinstance(v, Value):
            self.theirs[v] = y
        else:
            self.others[node] = y

    def assign(self, node):
        """An assignment to an input that no program does."""
        to, source = node.args[:2]
        with torch.no_grad():
            self.get(to).copy_(self.get(source))

    def is_shared(self, n, v, t, owner):
        """Whether a result would be a tensor that somebody else has, too."""
        if n in self.graph.constants or (v in self.graph.positions and n.op != "placeholder"):
            return True
        return owner.setdefault(v, n) is not n or (isinstance(v, Value) and v.program is not None and t._is_view())

    def results(self):
        """The outputs."""
        out, owner = [], {}  # owner: the first node that gave a value
        for n, strides in self.graph.found:
            if not isinstance(n, Node):
                out.append(n)
                continue
            v = self.graph.values.get(n)
            if v is None and n in self.graph.values:  # the places of maxima: a reader fails
                out.append(torch.empty(0, dtype=torch.int64))
                continue
            t = self.theirs[v] if isinstance(v, Value) else self.get(n)
            if isinstance(t, torch.Tensor):
                if self.is_shared(n, v, t, owner):
                    t = t.clone(memory_format=torch.contiguous_format if strides is None else torch.preserve_format)
                if strides is not None:
                    t = with_strides(t, strides)
            out.append(t)
        for i, (base, shape, strides, offset) in self.graph.aliases.items():
            out[i] = out[base].as_strided(shape, strides, offset)
        return out


def with_strides(t, strides):
    """The same elements with these strides."""
    if t.stride() == strides or any(s == 0 for s in strides) or math.prod(t.shape) < 2:
        return t
    return torch.empty_strided(t.shape, strides, dtype=t.dtype).copy_(t)
