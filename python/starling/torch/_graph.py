"""Graphs of ATen operations as functions of PyTorch's tensors: programs, and between them what runs in PyTorch.

Every operation gets a stage.  What the table has joins the program of the stage in which its last argument is known; what the
table lacks runs in PyTorch after the program of its stage, and what needs its result belongs to the next one.  So there are as
few programs as the operations in between allow.
"""
import collections
import contextlib
import logging
import math
import operator

import torch
from torch.fx import Node, map_arg
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree

from .._core import Error, ffi, lib
from . import _attention, _groups, _indices, _layers, _linalg, _maxima, _moving, _order, _special, _volumes, _whole, _windows  # noqa: F401 - fill the table
from . import _memory
from ._quick import quick
from ._run import BY_SHAPE, Run
from ._sizes import Symbols
from ._table import aten, lowered
from ._text import DTYPES, HERE, MOST_AXES, Program, Unsupported, Value, checked_status, raise_error

log = logging.getLogger("starling.torch")
fallbacks: collections.Counter = collections.Counter()  # operations that were left to PyTorch, by name and reason
counts: collections.Counter = collections.Counter()  # programs, operations in them, operations left to PyTorch
NAMES = {name: ffi.new("char[]", name) for name in (b"lr", b"step")}  # of numbers that a run sets
RANDOM = torch.Tag.nondeterministic_seeded
STRIDED = {aten.as_strided.default, aten.as_strided_scatter.default}  # by places in the storage of their argument
VIEWS = {
    aten.alias.default, aten.detach.default, aten.clone.default, aten.view.default, aten._unsafe_view.default, aten.reshape.default,
    aten.unsqueeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.squeeze.default, aten.expand.default, aten.slice.Tensor,
    aten.permute.default, aten.transpose.int, aten.t.default, aten._to_copy.default,
}  # fmt: skip


def left_to_torch(target, reason):
    """Counts an operation that the table lacks, and says so once."""
    text = f"{target} {reason}"
    if text not in fallbacks:
        log.warning("%s runs in PyTorch: %s", target, reason)
    fallbacks[text] += 1
    counts["left to PyTorch"] += 1


def is_check(node):
    """Whether a node computes nothing, but raises PyTorch's error for a singular matrix, after its program."""
    checks = aten._linalg_check_errors.default
    return node.target is checks or (node.target is torch.ops.higher_order.with_effects and node.args[1] is checks)


class Plan:
    """A compiled program and how it is called."""

    def __init__(self, program, results, device=None):
        self.device, self.program = device or _memory.DEVICE, program
        self.inputs, self.results, self.labels = list(program.inputs), results, program.labels
        self.written = [self.inputs.index(v) for v in program.written]
        self.text, self.updates = program.text(results), program.updates
        self.plan = None
        self.compile()
        counts["programs"] += 1
        counts["operations in programs"] += len(program.lines)

    def compile(self):
        """Compiles the text; the engine may have been restarted since."""
        graph = lib.sl_graph_parse_at(HERE, self.text.encode())
        # For training, whatever it is for: weights are inputs, so that packing them would be a part of each run.
        options = {"training": True, "device": self.device}
        plan = graph and lib.sl_compile_at(HERE, graph, ffi.new("struct sl_compile_opts *", options)[0])
        lib.sl_graph_free(graph or ffi.NULL)
        if not plan:
            raise_error()
        self.plan = ffi.gc(plan, lib.sl_plan_free)

    def start(self, given, numbers, out):
        """Queues a run with these pointers, which puts its results into out."""
        pointers = ffi.new("sl_tensor *[]", given)
        if numbers:
            pairs = ffi.new("struct sl_plan_number[]", [(NAMES[name], x) for name, x in numbers])
            status = lib.sl_plan_run_with_at(HERE, self.plan, pointers, len(given), pairs, len(pairs), out)
        else:
            status = lib.sl_plan_run_at(HERE, self.plan, pointers, len(given), out)
        checked_status(status)

    def run(self, given, numbers=()):
        """A run with these pointers: the results."""
        out = ffi.new("sl_tensor *[]", len(self.results))
        self.start(given, numbers, out)
        return [ffi.gc(p, lib.sl_release) for p in out]


def is_on_cpu(val):
    """Whether results are plain tensors in main memory, of types that programs have."""
    tensors = [t for t in pytree.tree_leaves(val) if t is not None]
    return all(isinstance(t, torch.Tensor) and t.device.type == "cpu" and t.layout == torch.strided and t.dtype in DTYPES for t in tensors)


class Graph:
    """A graph for given sizes.

    user_results: how many of the outputs are the user's, which have the strides that he expects (None: all).  updates: called
    with this graph before programs are compiled, to add to them.  tied: inputs that are the same tensor as another one.
    outputs: what is returned, in the place of the graph's outputs.  plain: everything runs in PyTorch.
    """

    def __init__(self, gm, concrete, user_results=None, updates=None, tied=None, outputs=None, plain=False):
        self.concrete, self.gm, self.tied, self.only, self.plain = concrete, gm, tied or {}, outputs, plain
        self.nodes = list(gm.graph.nodes)
        self.placeholders = [n for n in self.nodes if n.op == "placeholder"]
        self.output = next(n for n in self.nodes if n.op == "output")
        self.user_results = user_results
        self.take_all(frozenset())
        early = self.before_programs()
        if early:
            self.take_all(early)
        for target, reason in self.left:
            left_to_torch(target, reason)
        if updates:
            updates(self)
        self.finish()

    # Deciding what runs where

    def take_all(self, early):
        """Gives all nodes their places; early: those that have to run in PyTorch."""
        self.values, self.constants, self.kind, self.stage = {}, {}, {}, {}
        self.programs = collections.defaultdict(Program)
        self.between = collections.defaultdict(list)  # by stage: nodes that run in PyTorch after its program
        self.early, self.left = early, []  # left: operations that are left to PyTorch, and why
        self.last, self.late, self.extra = 0, [], []
        for node in self.nodes:
            self.take(node)

    def before_programs(self):
        """The operations of integers in programs that PyTorch needs; in PyTorch, they are no reason to cut the graph."""
        found = set()
        for node in self.nodes:
            if self.kind.get(node) == "torch" and self.stage[node] >= 0:
                behind, whole = set(), True
                waiting = [n for n in node.all_input_nodes if self.kind[n] in ("program", "torch")]
                while waiting:
                    n = waiting.pop()
                    whole &= isinstance(n.meta.get("val"), torch.Tensor) and not n.meta["val"].is_floating_point()
                    if n not in behind:
                        behind.add(n)
                        waiting += [k for k in n.all_input_nodes if self.kind[k] in ("program", "torch")]
                found |= {n for n in behind if whole and self.kind[n] == "program"}
        return found

    def take(self, node):
        """Gives a node its place."""
        if node.op == "placeholder":
            self.kind[node], self.stage[node] = "input", -1
            if node in self.tied:
                self.values[node] = self.values[self.tied[node]]
                return
            val = node.meta.get("val")
            if isinstance(val, torch.Tensor) and is_on_cpu(val):
                v = self.values[node] = Value(None, f"a{len(self.values)}", tuple(self.concrete(list(val.shape))), val.dtype)
                v.source = v
            elif not isinstance(val, torch.Tensor):
                self.kind[node], self.constants[node] = "constant", self.concrete(val)
        elif node.op == "get_attr":
            self.kind[node], self.constants[node] = "constant", operator.attrgetter(node.target)(self.gm)
            self.constant_value(node)
        elif node.op == "call_function":
            self.take_call(node)
        elif node.op != "output":
            raise NotImplementedError(f"a graph with {node.op}")

    def constant_value(self, node):
        """The value of a constant tensor."""
        t = self.constants[node]
        if isinstance(t, torch.Tensor) and is_on_cpu(t):
            self.constants[node] = t = t.detach().contiguous()
            v = self.values[node] = Value(None, f"a{len(self.values)}", tuple(t.shape), t.dtype)
            v.source, v.known = v, t
        self.stage[node] = -1

    def take_call(self, node):
        inputs = node.all_input_nodes
        val = node.meta.get("val")
        if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
            self.kind[node], self.constants[node], self.stage[node] = "constant", self.concrete(val), -1
            return
        if node.target is operator.getitem and node.args[0] in self.kind and self.kind[node.args[0]] == "program":
            self.kind[node], self.stage[node] = "program", self.stage[node.args[0]]
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        random = isinstance(node.target, torch._ops.OpOverload) and RANDOM in node.target.tags
        if random and node.target.overloadpacket.__name__ in BY_SHAPE:
            self.put_between(node, -1)
            return
        if not random and all(self.kind[n] == "constant" for n in inputs) and self.is_pure(node):
            self.compute_constant(node)
            return
        if not self.is_sized(val):  # such as a generator's state, in checkpoints with dropout
            self.put_between(node, max((self.stage[n] for n in inputs), default=-1))
            return
        if not random and self.is_pure(node) and self.is_empty(node, val):
            return
        if is_check(node):
            self.put_between(node, max(self.stage[n] for n in inputs))
            return
        if node in self.early:
            self.put_between(node, max((self.stage[n] for n in inputs), default=-1))
            return
        if node.target is aten.copy_.default and node.args[0].op == "placeholder":
            self.late.append(node)
            self.kind[node], self.stage[node], self.values[node] = "late", -1, self.values.get(node.args[0])
            return
        try:
            self.put_in_program(node, val)
        except Unsupported as reason:
            if node.target is not operator.getitem and not random and not self.plain:
                self.left.append((node.target, reason))
            self.put_between(node, max((self.stage[n] for n in inputs), default=-1))

    def is_pure(self, node):
        return node.target is operator.getitem or (isinstance(node.target, torch._ops.OpOverload) and not node.target._schema.is_mutable)

    def is_empty(self, node, val):
        """Whether a result, or all tensors of which it is made, have no elements: then it is a constant."""
        size = lambda t: math.prod(self.concrete(list(t.shape)))
        tensors = [t for t in pytree.tree_leaves(val) if isinstance(t, torch.Tensor)]
        inputs = [n.meta.get("val") for n in node.all_input_nodes]
        if not tensors or not is_on_cpu(val):
            return False
        if not any(map(size, tensors)):
            self.constants[node] = pytree.tree_map(lambda t: t if t is None else self.empty(t), val)
        elif inputs and all(isinstance(t, torch.Tensor) and not size(t) for t in inputs):
            get = lambda n: self.constants[n] if n in self.constants else self.empty(n.meta["val"])
            args, kwargs = self.arguments(node, get)
            with torch.no_grad(), torch._C._DisableAutocast():
                self.constants[node] = node.target(*args, **kwargs)
        else:
            return False
        self.kind[node] = "constant"
        self.constant_value(node)
        return True

    def empty(self, val):
        return torch.empty(self.concrete(list(val.shape)), dtype=val.dtype)

    def compute_constant(self, node):
        args, kwargs = self.arguments(node, lambda n: self.constants[n])
        with torch.no_grad(), torch._C._DisableAutocast():
            self.constants[node] = node.target(*args, **kwargs)
        self.kind[node] = "constant"
        self.constant_value(node)

    def arguments(self, node, get):
        """The arguments of a node, with numbers in the place of symbols."""
        args, kwargs = map_arg(node.args, get), map_arg(node.kwargs, get)
        return self.concrete(args), self.concrete(kwargs)

    def put_between(self, node, stage):
        counts["random in PyTorch"] += isinstance(node.target, torch._ops.OpOverload) and RANDOM in node.target.tags
        self.kind[node], self.stage[node] = "torch", stage
        self.last = max(self.last, stage + 1)
        self.between[stage].append(node)
        val = node.meta.get("val")
        if isinstance(val, torch.Tensor) and is_on_cpu(val) and self.is_sized(val):
            v = self.values[node] = Value(None, f"a{len(self.values)}", tuple(self.concrete(list(val.shape))), val.dtype)
            v.source = v

    def is_sized(self, val):
        """Whether the sizes of a result are known before the call."""
        try:
            self.concrete([list(t.shape) for t in pytree.tree_leaves(val) if isinstance(t, torch.Tensor)])
        except NotImplementedError:
            return False
        return True

    def put_in_program(self, node, val):
        inputs = node.all_input_nodes
        if self.plain:
            raise Unsupported("everything does")
        if not is_on_cpu(val) or not pytree.tree_leaves(val):
            raise Unsupported("on another device, or of another type")
        if not all(n in self.values or self.kind[n] == "constant" for n in inputs):
            raise Unsupported("of what is no tensor")
        stage = max([self.stage[n] + (self.kind[n] in ("torch", "input")) for n in inputs] + [0])
        several = isinstance(val, (list, tuple))
        results = [None if t is None else (tuple(self.concrete(list(t.shape))), t.dtype) for t in (val if several else [val])]
        if node.target in STRIDED and not self.lies_in_order(node.args[0].meta["val"]):
            raise Unsupported("of what does not lie in one piece")
        args, kwargs = self.arguments(node, lambda n: self.values[n] if n in self.values else self.constants[n])
        self.programs[stage].places = node.target is aten.max_pool2d_with_indices.default and self.shows_places(node)
        self.programs[stage].in_order = all(n.meta["val"].is_contiguous() for n in inputs[:1] if isinstance(n.meta.get("val"), torch.Tensor))
        found = lowered(self.programs[stage], node.target, args, kwargs, results)
        self.kind[node], self.stage[node] = "program", stage
        self.values[node] = found if several else found[0]
        self.last = max(self.last, stage)

    def lies_in_order(self, val):
        """Whether the elements of a tensor are the first ones of its storage, in their order."""
        return self.strides(val) == _memory.contiguous(self.concrete(list(val.shape))) and not self.concrete(val.storage_offset())

    def shows_places(self, node):
        """Whether somebody but the gradient reads the places of maxima."""
        shown = list(self.output.args[0])[: self.user_results]
        users = [u for n in node.users if n.target is operator.getitem and n.args[1] == 1 for u in ([n] if n in shown else n.users)]
        return any(u.op != "output" and u.target is not aten.max_pool2d_with_indices_backward.default for u in users)

    # Making the programs

    def finish(self):
        """Assigns to inputs at the end, and compiles."""
        given = self.output.args[0]
        self.outputs = self.only or (list(given) if isinstance(given, (list, tuple)) else [given])
        _memory.drop_freed()
        self.assignments = [n for n in self.late if not self.assign(n)]
        self.seen = set()  # values that PyTorch sees
        read = [n for stage in self.between.values() for k in stage for n in k.all_input_nodes] + self.assignments
        for n in [n for n in self.outputs if isinstance(n, Node)] + read:
            for k in [n] if n not in self.assignments else n.all_input_nodes:
                self.seen.update(v for v in pytree.tree_leaves(self.values.get(k)) if isinstance(v, Value))
        for program in self.programs.values():  # labels that a program computes are checked after it
            self.seen.update(v for v in program.labels if v.program is not None)
        needed = self.seen.union(*(program.inputs for program in self.programs.values()))
        self.steps = []
        for stage in range(-1, self.last + 1):
            program = self.programs.get(stage)
            if program is not None:
                results = list(dict.fromkeys(v for v in self.all_values() if v in needed and v.program is program))
                if results or program.written:
                    results = results or [self.something(program)]
                    self.steps.append(Plan(program, results))
            self.steps += self.between.get(stage, [])
        self.positions = {self.values[n]: i for i, n in enumerate(self.placeholders) if n in self.values}
        self.kept = {self.values[n]: t for n, t in self.constants.items() if n in self.values}
        counts["cuts"] += max(sum(isinstance(step, Plan) for step in self.steps) - 1, 0)
        self.prepare_outputs()

    def something(self, program):
        """A program returns at least one value: a small one."""
        v = program.op("fill", shape=[1], value=0.0)
        v.shape, v.dtype = (1,), torch.float32
        return v

    def all_values(self):
        for v in self.values.values():
            yield from (k for k in pytree.tree_leaves(v) if isinstance(k, Value))

    def assign(self, node):
        """An assignment to an input becomes part of the last program, unless PyTorch sees the old values."""
        to, source = node.args[:2]
        v, new = self.values.get(to), self.values.get(source) if isinstance(source, Node) else None
        val = to.meta["val"]
        simple = isinstance(v, Value) and isinstance(new, Value) and v.dtype == new.dtype and tuple(v.shape) == tuple(new.shape)
        if not simple or not self.programs or self.escapes(to) or not val.is_contiguous() or not v.size or v.ndim > MOST_AXES:
            return False
        program = self.programs[max(self.programs)]
        program.effect("assign", v, new, writes=[v])
        return True

    def escapes(self, node):
        """Whether PyTorch sees an input's values, or a view of them, after the programs have begun."""
        return any(
            u.op == "output" or self.kind[u] == "torch" or (isinstance(self.values.get(u), Value) and self.is_view(u) and self.escapes(u))
            for u in node.users if u not in self.late
        )  # fmt: skip

    def is_view(self, node):
        return node.target in VIEWS

    def strides(self, val):
        """The strides that PyTorch expects."""
        return tuple(self.concrete(list(val.stride())))

    def prepare_outputs(self):
        """Each output: how it is found, and the strides that it must have (None: any)."""
        self.found = []
        for i, n in enumerate(self.outputs):
            strides = None
            val = n.meta.get("val") if isinstance(n, Node) else None
            if isinstance(val, torch.Tensor) and (self.user_results is None or i < self.user_results) and val.layout == torch.strided:
                strides = self.strides(val)
                strides = None if strides == _memory.contiguous(self.concrete(list(val.shape))) else strides
            self.found.append((n, strides))
        self.find_aliases()
        self.quick = quick(self)

    def find_aliases(self):
        """Results that are views of another result must be that: changes of one are seen in the other."""
        groups = collections.defaultdict(list)
        for i, n in enumerate(self.outputs[: self.user_results]):
            val = n.meta.get("val") if isinstance(n, Node) else None
            if isinstance(val, torch.Tensor) and val.layout == torch.strided and self.kind[n] == "program":
                groups[StorageWeakRef(val.untyped_storage())].append(i)
        self.aliases = {}  # by output: (the output that it is a view of, shape, strides, offset)
        for members in groups.values():
            base = next((i for i in members if self.is_whole(self.outputs[i].meta["val"])), None)
            for i in members:
                val = self.outputs[i].meta["val"]
                if base is not None and self.outputs[i] is not self.outputs[base]:
                    self.aliases[i] = base, self.concrete(list(val.shape)), self.strides(val), self.concrete(val.storage_offset())

    def is_whole(self, val):
        """Whether a tensor has all elements of its storage, in their order."""
        shape = self.concrete(list(val.shape))
        whole = math.prod(shape) * val.element_size() == self.concrete(val.untyped_storage().nbytes())
        return whole and self.strides(val) == _memory.contiguous(shape)

    # Running

    def __call__(self, args, numbers=(), extra=()):
        try:
            found = self.quick and self.quick([*args, *extra] if extra else args, numbers)
            if found is not None:
                return found
            run = Run(self, args)
            run.theirs.update(zip(self.extra, extra))
            for step in self.steps:
                if isinstance(step, Plan):
                    run.program(step, numbers if step.updates else ())
                else:
                    run.node(step)
            for node in self.assignments:
                run.assign(node)
            return run.results()
        except Exception:
            _memory.forget()  # what was written is spoilt for the engine
            raise


class Function:
    """A graph for any sizes: programs are made for each that is met."""

    MOST = 64  # sizes whose programs are kept

    def __init__(self, gm, user_results=None):
        self.gm, self.user_results = gm, user_results
        self.symbols = Symbols([n for n in gm.graph.nodes if n.op == "placeholder"])
        self.known, self.generation = {}, None
        self.fast = None  # computes the only program in one call, or returns None

    def __call__(self, args):
        given = list(args)
        args.clear()  # memory goes with the last reader
        key = self.symbols.key(given)
        if self.generation != _memory.generation():  # the engine was stopped meanwhile
            self.known.clear()
            self.generation = _memory.generation()
        graph = self.known.get(key)
        if graph is None:
            with outside_of_tracing():
                graph = self.compile(self.symbols.concrete(key))
            if len(self.known) >= self.MOST:
                del self.known[next(iter(self.known))]
            self.known[key] = graph
            self.fast = graph.quick and graph.quick.compute if not self.symbols.by else None
        return graph(given)

    def compile(self, concrete):
        """The graph for these sizes; in PyTorch alone if the engine refuses it."""
        try:
            return Graph(self.gm, concrete, self.user_results)
        except (Error, NotImplementedError) as error:
            log.warning("a graph runs in PyTorch: %s", error)
            fallbacks[f"a graph: {error}"] += 1
            counts["left to PyTorch"] += 1
            return Graph(self.gm, concrete, self.user_results, plain=True)


@contextlib.contextmanager
def outside_of_tracing():
    """Computes constants with tensors that have values."""
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    with unset_fake_temporarily():
        yield
