"""A whole training step as one program: forward pass, loss, backward pass, the optimiser's update."""
import collections
import contextlib
import operator

import torch
from torch._functorch.aot_autograd import aot_export_module
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.utils.stateless import _reparametrize_module

from . import _memory
from ._backend import decompositions
from ._graph import Graph
from ._settings import Settings, refuse_hooks
from ._text import Value

_Late = collections.namedtuple("_Late", "args all_input_nodes")  # an assignment to an input
_REFUSED = ("amsgrad", "maximize", "differentiable")
_LEAST = 1e-30  # the factor of a learning rate of 0 in a group beside others: 0 itself means the default


@contextlib.contextmanager
def _compiling():
    """Makes torch.compiler.is_compiling() true: models leave out checks of values then."""
    before, torch.compiler._is_compiling_flag = torch.compiler._is_compiling_flag, True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


class _Whole(torch.nn.Module):
    """Model and loss as a module with one result."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs):
        if self.loss is None:
            return (self.model(*inputs),)
        return (self.loss(self.model(*inputs[:-1]), inputs[-1]),)


def _without_values(whole, inputs):
    """({name: parameter or buffer}, inputs) without values: PyTorch would compute a step of those that have some while it traces."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    named = {name: fake.from_tensor(t) for name, t in whole.named_buffers(remove_duplicate=False)}
    first = dict(whole.named_parameters())
    for name, t in whole.named_parameters(remove_duplicate=False):
        with fake:  # each name of a tied parameter has a gradient of its own
            named[name] = fake.from_tensor(t) if name in first else torch.nn.Parameter(torch.empty_like(t), t.requires_grad)
    return named, tuple(fake.from_tensor(t, static_shapes=True) for t in inputs)


def _freeze_unused(whole, named, inputs):
    """Names of parameters that the loss does not use want no gradient: PyTorch refuses to trace them."""
    wanted = [t for t in named.values() if t.requires_grad]
    with wanted[0].fake_mode:
        gradients = torch.autograd.grad(whole(*inputs)[0], wanted, allow_unused=True)
    for t, g in zip(wanted, gradients):
        t.requires_grad_(g is not None)


def _detached(t):
    return t.detach() if t.is_floating_point() else t


def _without_cycles():
    """Keeps what a backward pass needs without its history: a result that its own operation saves would never be freed."""
    return torch.autograd.graph.saved_tensors_hooks(_detached, lambda t: t)


def _traced(whole, inputs):
    """(graph of the forward and backward pass, its signature)"""
    named, inputs = _without_values(whole, inputs)
    trace = lambda: aot_export_module(whole, inputs, trace_joint=True, output_loss_index=0, decompositions=decompositions())
    with _compiling(), _without_cycles(), _reparametrize_module(whole, named):
        try:
            return trace()
        except AssertionError:
            _freeze_unused(whole, named, inputs)
            return trace()


class _Rule:
    """An optimiser of PyTorch as operations of programs: their names, and the states that they write."""

    def __init__(self, operation, plain, states, options):
        self.operation, self.plain, self.states, self.options = operation, plain, states, options


_ADAM = (("eps", "eps"), ("weight_decay", "weight_decay"))
_RULES = {
    torch.optim.SGD: _Rule("sgd_momentum", "sgd", ("momentum_buffer",), (("weight_decay", "weight_decay"),)),
    torch.optim.Adam: _Rule("adam", None, ("exp_avg", "exp_avg_sq"), _ADAM),
    torch.optim.AdamW: _Rule("adamw", None, ("exp_avg", "exp_avg_sq"), _ADAM),
}


def _rule(optimizer, group):
    """(operation, its states, its attributes) for a group of parameters."""
    rule = _RULES[type(optimizer)]
    attrs = {ours: float(group[theirs]) for ours, theirs in rule.options}
    if rule.plain:
        momentum = float(group["momentum"])
        if group["dampening"] and momentum:
            raise NotImplementedError("compile_step: SGD with dampening")
        if not momentum:
            return rule.plain, (), attrs
        return rule.operation, rule.states, {**attrs, "momentum": momentum, "nesterov": bool(group["nesterov"])}
    attrs["step"] = 1  # a run sets it
    attrs["beta1"], attrs["beta2"] = map(float, group["betas"])
    return "adamw" if group.get("decoupled_weight_decay") else rule.operation, rule.states, attrs


def _refuse_sharing(a, b):
    raise NotImplementedError(f"compile_step: {a} and {b} share memory, and are not the same tensor")


def _ties(tensors):
    """{name: the first name of the same memory}; an error where tensors of which one is trained share a part of it."""
    first, found, ranges = {}, {}, []
    for name, t in tensors.items():
        known = first.setdefault((t.data_ptr(), t.shape, t.stride(), t.dtype) if t.numel() else name, name)
        found[name] = known
        if tensors[known] is not t and t.requires_grad and tensors[known].requires_grad:
            _refuse_sharing(known, name)
        if known == name and t.numel():
            reach = 1 + sum((n - 1) * k for n, k in zip(t.shape, t.stride()))
            ranges.append((t.data_ptr(), t.data_ptr() + reach * t.itemsize, name, t.requires_grad))
    far = {True: (0, ""), False: (0, "")}  # the furthest end so far: of tensors that are trained, of others
    for begin, end, name, trained in sorted(ranges):
        for kind in (True, False) if trained else (True,):
            if begin < far[kind][0]:
                _refuse_sharing(far[kind][1], name)
        far[trained] = max(far[trained], (end, name))
    return found


class _Compiled:
    """A step for certain shapes and settings."""

    def __init__(self, step, inputs):
        self.step = step
        whole = step.whole
        gm, signature = _traced(whole, inputs)
        self.signature = signature
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self.inputs = {n.name: n for n in placeholders}
        self.slots = []  # where each argument is found: (dictionary of a module, name); those of users come last
        tied, first = {}, {}
        for n in placeholders:
            name = signature.inputs_to_parameters.get(n.name) or signature.inputs_to_buffers.get(n.name)
            if name is None:
                continue
            owner, _, attribute = name.rpartition(".")
            module = whole.get_submodule(owner)
            slot = (module._parameters if attribute in module._parameters else module._buffers, attribute)
            self.slots.append(slot)
            leader = first.setdefault(step.ties[name], n)
            if leader is not n:
                tied[n] = leader
        outputs = list(next(n for n in gm.graph.nodes if n.op == "output").args[0])
        self.by_name = {n.name: n for n in outputs if isinstance(n, torch.fx.Node)}
        loss = self.by_name[signature.user_outputs[0]]
        self.states, self.updated = [], []  # (parameter, name of a state) of each further input; parameters
        self.graph = Graph(gm, lambda x: x, None, self.add_updates, tied=tied, outputs=[loss])

    def gradients(self, graph):
        """(parameter, its value, its gradient's node) of each parameter that the loss depends on; tied ones together."""
        named = dict(self.step.whole.named_parameters(remove_duplicate=False))
        of = {name: self.inputs[n] for n, name in self.signature.inputs_to_parameters.items()}
        found = {}
        for out, name in self.signature.backward_signature.gradients_to_parameters.items():
            node = self.by_name.get(out)
            if node is None or graph.kind[node] == "constant":
                continue  # zeros: PyTorch's optimisers leave out what has no gradient
            found.setdefault(graph.values[of[name]], (named[name], []))[1].append(node)
        return found

    def add_updates(self, graph):
        """Adds the updates of parameters, and of buffers, to the last program."""
        for out, name in self.signature.buffers_to_mutate.items():
            buffer = self.inputs[next(n for n, b in self.signature.inputs_to_buffers.items() if b == name)]
            source = self.by_name[out]
            graph.late.append(_Late((buffer, source), [buffer, source]))
        found = self.gradients(graph)
        nodes = [n for _, listed in found.values() for n in listed]
        stage = max([graph.stage[n] + (graph.kind[n] == "torch") for n in nodes] + list(graph.programs) + [0])
        graph.last = max(graph.last, stage)
        program = graph.programs[stage]
        by_parameter = {id(p): (w, listed) for w, (p, listed) in found.items()}
        for group, scale in zip(self.step.optimizer.param_groups, self.step.scales()):
            self.add_group(graph, program, group, scale, by_parameter)

    def add_group(self, graph, program, group, scale, found):
        operation, states, attrs = _rule(self.step.optimizer, group)
        by_type = {}
        for p in group["params"]:
            if id(p) in found:
                by_type.setdefault(p.dtype, []).append(p)
        for dtype, parameters in by_type.items():
            if dtype not in (torch.float32, torch.float64):
                raise NotImplementedError(f"compile_step: parameters of {dtype}; float32 or float64 is needed")
            operands, written = [], []
            for p in parameters:
                w, listed = found[id(p)]
                gradient = graph.values[listed[0]]
                for more in listed[1:]:
                    gradient = program.op("add", gradient, graph.values[more])
                own = [self.state(graph, p, name) for name in states]
                operands += [w, gradient, *own]
                written += [w, *own]
            self.updated += parameters
            program.effect(operation, *operands, writes=written, lr=1.0, lr_scale=scale, **attrs)

    def state(self, graph, p, name):
        """A further input: a state of the optimiser."""
        v = Value(None, f"s{len(self.states)}", tuple(p.shape), p.dtype)
        graph.extra.append(v)
        self.states.append((p, name))
        return v

    def __call__(self, inputs, lr, number):
        state = self.step.optimizer.state
        arguments = [owner[name] for owner, name in self.slots]
        extra = [state[p][name] for p, name in self.states]
        numbers = [(b"lr", lr)] + ([(b"step", float(number))] if self.step.counts else [])
        (loss,) = self.graph([*arguments, *inputs], numbers if self.updated else (), extra)
        torch.autograd.graph.increment_version(self.updated + extra)
        return loss


class CompiledStep:
    """A training step; see compile_step."""

    MOST = 64  # sizes and settings whose programs are kept

    def __init__(self, model, loss, optimizer):
        if type(optimizer) not in _RULES:
            known = ", ".join(kind.__name__ for kind in _RULES)
            raise NotImplementedError(f"compile_step: {type(optimizer).__name__} is none of the optimisers that are programs: {known}")
        self.whole, self.optimizer, self.known, self.generation = _Whole(model, loss), optimizer, {}, None
        self.counts = type(optimizer) is not torch.optim.SGD
        self.modules, self.parts, self.places, self.ties, self.settings = [], [], None, {}, Settings()

    def made_of(self):
        """The modules and tensors of the model, and the optimiser's parameters."""
        found = [x for m in self.modules for d in (m._modules, m._parameters, m._buffers) for x in d.values()]
        return found + [p for g in self.optimizer.param_groups for p in g["params"]]

    def look(self):
        """Drops the programs if the model is not made of the same modules and tensors any more, with the same ties."""
        parts = self.made_of()
        if len(parts) != len(self.parts) or not all(map(operator.is_, parts, self.parts)):
            self.modules = list(self.whole.modules())
            self.settings = Settings(self.modules)
            self.parts, self.places = self.made_of(), None
            self.known.clear()
        places = [t.data_ptr() for t in self.parts if isinstance(t, torch.Tensor)]
        if places != self.places:
            named = dict(self.whole.named_parameters(remove_duplicate=False))
            ties = _ties({**named, **dict(self.whole.named_buffers(remove_duplicate=False))})
            if ties != self.ties:
                self.known.clear()
            self.ties, self.places = ties, places

    def scales(self):
        """The learning rates of the groups over the largest one, which a run is given."""
        rates = [float(g["lr"]) for g in self.optimizer.param_groups]
        most = max(rates)
        return tuple(max(rate / most, _LEAST) if most else 1.0 for rate in rates)

    def key(self, inputs):
        """All that a program depends on."""
        groups = tuple(
            (len(g["params"]), *(repr(value) for name, value in g.items() if name not in ("params", "lr"))) for g in self.optimizer.param_groups
        )  # fmt: skip
        return (
            tuple((t.shape, t.dtype, t.is_contiguous()) for t in inputs), tuple(m.training for m in self.modules), groups, self.scales(),
            self.settings.now(),
            tuple(p.requires_grad for g in self.optimizer.param_groups for p in g["params"]),
            torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"),
        )  # fmt: skip

    def check_settings(self):
        for g in self.optimizer.param_groups:
            for name in _REFUSED:
                if g.get(name):
                    raise NotImplementedError(f"compile_step: {type(self.optimizer).__name__} with {name}")

    def begin_states(self, updated):
        """States of these parameters that PyTorch's optimiser makes in its first step; the number of this step."""
        updated, numbers = set(updated), set()
        for g in self.optimizer.param_groups:
            _, states, _ = _rule(self.optimizer, g)
            for p in updated.intersection(g["params"]) if states or self.counts else ():
                state = self.optimizer.state[p]
                for name in states:
                    if state.get(name) is None:
                        state[name] = torch.zeros_like(p, memory_format=torch.preserve_format)
                if self.counts:
                    if "step" not in state:
                        state["step"] = torch.tensor(0.0)
                    numbers.add(int(state["step"]))
        if len(numbers) > 1:
            raise NotImplementedError(f"compile_step: parameters have made different numbers of steps, {sorted(numbers)}")
        return max(numbers, default=0) + 1

    def __call__(self, *inputs):
        for i, t in enumerate(inputs):
            if not isinstance(t, torch.Tensor):
                raise TypeError(f"compile_step: input {i} is {type(t).__name__}, a tensor is needed")
            if t.requires_grad:
                raise NotImplementedError(f"compile_step: input {i} wants a gradient; only parameters get one")
        if self.generation != _memory.generation():
            self.known.clear()
            self.generation = _memory.generation()
        refuse_hooks(self.optimizer)
        self.look()
        key = self.key(inputs)
        compiled = self.known.get(key)
        if compiled is None:
            self.check_settings()
            if len(self.known) >= self.MOST:
                del self.known[next(iter(self.known))]
            compiled = self.known[key] = _Compiled(self, inputs)
        number = self.begin_states(compiled.updated)
        loss = compiled(inputs, max(float(g["lr"]) for g in self.optimizer.param_groups), number)
        if self.counts:
            steps = [self.optimizer.state[p]["step"] for p in compiled.updated]
            if steps:
                torch._foreach_add_(steps, 1)
        self.optimizer._opt_called = True  # schedules look at it
        return loss


def compile_step(model, loss, optimizer):
    """A training step as a function: forward pass, loss, backward pass and the optimiser's update as one program.

    step(*inputs, target) computes loss(model(*inputs), target), updates the parameters of the optimiser (SGD, Adam, AdamW of
    torch.optim) and returns the loss; with loss None the model's result is the loss.  Parameters, buffers and the optimiser's
    state are PyTorch's: state_dict() of both is that of the last step, and learning rates may be changed between steps.
    Gradients are not kept in .grad.

        step = starling.torch.compile_step(model, torch.nn.functional.cross_entropy, optimizer)
        for x, y in batches:
            loss = step(x, y)
    """
    return CompiledStep(model, loss, optimizer)
