"""Executor: a program of symbols whose variables have values."""
import math

from .._core import StateError
from .._tensor import Tensor
from . import _later, _shapes, autograd
from ._program import _all_shapes as all_shapes, _Program as Program, _zeros as zeros
from .unsupported import not_here


_NUMBERED = {"Activation": "input", "SoftmaxActivation": "input", "concat": "arg", "stack": "arg", "add_n": "arg", "UpSampling": "arg"}


def _names_of_inputs(call):
    """MXNet's names of the places of a call's arguments."""
    symbols, function = call.symbols(), getattr(call.function, "__name__", "")
    if function in _NUMBERED:
        return [f"{call.name}_{_NUMBERED[function]}{i}" for i in range(len(symbols))]
    named = {id(s): n for n, s in _shapes.options_of(call).items() if isinstance(s, Tensor)}
    return [f"{call.name}_{named.get(id(s), f'arg{i}')}" for i, s in enumerate(symbols)]


class Executor:
    """A program whose variables have values."""

    def __init__(self, heads, ctx, arrays, grads=None, grad_req="write", states=()):
        self._heads, self._graph, self._ctx, self._outputs, self._recorded = heads, Program(heads), ctx, None, None
        self.arg_dict = {n: a for n, a in arrays.items() if n not in states}
        self.aux_dict = {n: a for n, a in arrays.items() if n in states}
        self.grad_dict = dict(grads or {})
        plain = list(self.arg_dict)
        if isinstance(grad_req, (list, tuple)):
            grad_req = dict(zip(plain, grad_req))
        self._req = {n: grad_req.get(n, "null") if isinstance(grad_req, dict) else grad_req for n in self.grad_dict}
        self._monitor = None
        if wrong_ := set(self._req.values()) - {"write", "add", "null"}:
            raise ValueError(f"grad_req is {wrong_.pop()!r}, not write, add or null")

    @property
    def outputs(self):
        """The results of the last run; of a first one, if there was none."""
        return self.forward() if self._outputs is None else self._outputs

    @property
    def arg_arrays(self):
        """The values of the variables."""
        return list(self.arg_dict.values())

    @property
    def grad_arrays(self):
        """The gradients of the variables; None for a variable without one."""
        return [self.grad_dict.get(n) for n in self.arg_dict]

    @property
    def aux_arrays(self):
        """The values of running statistics."""
        return list(self.aux_dict.values())

    def set_monitor_callback(self, callback, monitor_all=False):
        """callback(name, array) is called with each result of forward, and with variables and arguments, too, if monitor_all."""
        self._monitor = callback, monitor_all

    def _watched(self):
        if self._monitor is None:
            return None
        callback, everything = self._monitor

        def watch(call, names, args, results):
            for argument, x, value in zip(_names_of_inputs(call), call.symbols(), args) if everything else ():
                if _later.call_of(x) is None:
                    callback(x.name, value)
                callback(argument, value)
            for name, value in zip(names, results):
                callback(name, value)

        return watch

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_here(f"Executor.{name}", "what help(executor) lists")

    @property
    def output_dict(self):
        """The results by their names."""
        return dict(zip((n for h in self._heads for n in h.list_outputs()), self.outputs))

    def reshape(self, partial_shaping=False, allow_up_sizing=False, **shapes):
        """An executor of the same program for other shapes; arrays whose shape stays are shared."""
        old = {n: a.shape for n, a in {**self.arg_dict, **self.aux_dict}.items()}
        found = all_shapes(self._graph, shapes)[0]
        found = {n: s if _shapes.known(s) else old[n] for n, s in found.items()}

        def again(arrays):
            return {n: self._part(a, found.get(n, a.shape)) for n, a in arrays.items()}

        return Executor(self._heads, self._ctx, {**again(self.arg_dict), **again(self.aux_dict)}, again(self.grad_dict), self._req, list(self.aux_dict))

    def _part(self, array, shape):
        """The array, the first of its elements in another shape, or zeros where it has too few."""
        if shape == array.shape:
            return array
        count = math.prod(shape)
        return array.reshape((-1,))[:count].reshape(shape) if count <= array.size else zeros(shape, self._ctx, array.dtype)

    def copy_params_from(self, arg_params, aux_params=None, allow_extra_params=False):
        """Copies values into the variables."""
        for given, own in ((arg_params, self.arg_dict), (aux_params or {}, self.aux_dict)):
            for name, value in given.items():
                if name in own:
                    own[name][:] = value
                elif not allow_extra_params:
                    raise ValueError(f'Find name "{name}" that is not in the arguments')

    def forward(self, is_train=False, **arrays):
        """Runs the program; returns the results.  With is_train=True, backward() can follow."""
        for name, value in arrays.items():
            if name not in self.arg_dict:
                raise TypeError(f"Unknown argument {name}")
            own = self.arg_dict[name]
            if isinstance(value, Tensor) and value.shape != own.shape:
                self.arg_dict[name] = value
            else:
                own[slice(None) if own.ndim else ()] = value
        values = {**self.arg_dict, **self.aux_dict}
        self._recorded = None
        if not is_train:
            self._outputs = self._graph.run(self._ctx, values, self._watched())
            return self._outputs
        return self._run_recorded(True)

    def _run_recorded(self, train):
        """Runs the program so that backward can follow."""
        values, self._recorded = {**self.arg_dict, **self.aux_dict}, {}
        for name in [n for n, req in self._req.items() if req != "null"]:
            values[name] = self._recorded[name] = values[name].detach()
            values[name].attach_grad()
        with autograd.record(train_mode=train):
            self._outputs = self._graph.call(values, self._watched())
        return self._outputs

    def backward(self, out_grads=None, is_train=True):
        """Puts the gradients of the results' sum, or with the results' gradients out_grads, into grad_dict."""
        if self._recorded is None:  # the last run was at inference, or there was none
            with autograd.pause():
                self._run_recorded(is_train and self._outputs is None)
        if not self._recorded:
            return
        given = out_grads if out_grads is None or isinstance(out_grads, (list, tuple)) else [out_grads]
        names = list(self._recorded)
        found = self._gradients([self._recorded[n] for n in names], given)
        for name, value in zip(names, found):
            target = self.grad_dict[name]
            target[:] = target + value if self._req[name] == "add" else value

    def _gradients(self, variables, given):
        """The gradients of the results' sum; a result that is constant adds none."""
        found = [v.zeros_like() for v in variables]
        for i, y in enumerate(self.outputs):
            unlike = given is not None and given[i].shape != y.shape
            try:
                head = None if given is None or unlike else given[i] if given[i].dtype == y.dtype else given[i].astype(y.dtype)
                parts = autograd.grad(y, variables, head, retain_graph=True)
            except ValueError as error:
                if not isinstance(error.__context__, StateError):
                    raise
                continue  # it depends on no variable, or is constant to them, as comparisons are
            if unlike:
                raise ValueError(f"Executor.backward: the gradient of result {i} has the shape {given[i].shape}, the result {y.shape}")
            found = [a + b for a, b in zip(found, parts)]
        return found
