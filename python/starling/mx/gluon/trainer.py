"""mx.gluon.Trainer."""
import os

import numpy

from ... import dist
from ..._core import FormatError, StateError, here, lib
from ..._tensor import borrow
from .. import nd, optimizer as _optimizer
from ..autograd import is_training, pause
from ..unsupported import missing, not_here
from .._array import NDArray
from .._insides import inside
from .._sparse import labelled
from .parameter import Parameter, ParameterDict


def _listed(params):
    """The parameters that were given."""
    if not isinstance(params, (ParameterDict, dict, list, tuple)):
        raise ValueError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
    listed = list(params) if isinstance(params, (list, tuple)) else [params[name] for name in sorted(params.keys())]
    for p in listed:
        if not isinstance(p, Parameter):
            raise ValueError(f"First argument must be a list or dict of Parameters, got list of {type(p)}.")
    return listed


class Trainer:
    """Updates parameters by their gradients, which are summed over contexts and processes (sl-launch).

    Each step uses the current settings of the optimiser and the parameters: rates, decay, factors, grad_req.
    """

    def __init__(self, params, optimizer, optimizer_params=None, kvstore="device", compression_params=None, update_on_kvstore=None):
        if kvstore not in (None, "local", "device", "nccl"):
            raise not_here(f"kvstore={kvstore!r}", "one process, with several contexts (kvstore='device')")
        if compression_params:
            raise not_here("Trainer(compression_params=…)", "gradients as they are")
        self._params = _listed(params)
        if isinstance(optimizer, _optimizer.Optimizer) and optimizer_params:
            raise AssertionError("optimizer_params must be None if optimizer is an instance of Optimizer instead of str")
        self._optimizer = _optimizer.create(optimizer, **(optimizer_params or {}))
        self._optimizer.param_dict = dict(enumerate(self._params))
        for p in self._params:
            p._set_trainer(self)
        self._scale, self._states, self._shared = self._optimizer.rescale_grad, {}, False
        if dist.size() > 1 and all(weight is not None for _, weight, _ in (self._values(here(), i, p) for i, p in enumerate(self._params))):
            self._share()

    @property
    def optimizer(self):
        """The optimiser."""
        return self._optimizer

    @property
    def learning_rate(self):
        """The learning rate."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr):
        """Sets the learning rate."""
        self._optimizer.set_learning_rate(lr)

    def step(self, batch_size, ignore_stale_grad=False):
        """Updates the parameters; gradients are divided by batch_size.  UserWarning: a gradient is that of an earlier step."""
        at = here()
        found = [self._values(at, i, p) for i, p in enumerate(self._params) if (p._grad_req or p.grad_req) != "null"]
        fresh = [each for each in found if each[1] is not None and lib.sl_grad_is_fresh(each[1]._p) or self._is_stale(*each[:2], ignore_stale_grad)]
        processes = dist.size()
        if processes > 1:
            self._over_processes(fresh)
        self._optimizer.rescale_grad = self._scale / batch_size / processes
        with pause(train_mode=is_training()):
            self._update(fresh)

    update = step

    def _values(self, at, i, p):
        """(number, values, gradient) of a parameter; both are None before the first input."""
        inner = p._inner._p
        weight = lib.sl_param_data_at(at, inner, (0, 0))
        grad = lib.sl_param_grad_at(at, inner) if weight else weight
        if not grad:
            lib.sl_error_clear()
            return i, None, None
        grad = borrow(grad, NDArray)
        return i, borrow(weight, NDArray), grad if p.grad_stype == "default" else labelled(grad, p.grad_stype, live=True)

    def _is_stale(self, i, weight, ignore):
        """False for a parameter that no backward pass has reached, if that is to be ignored."""
        if ignore:
            return False
        p = self._params[i]
        if weight is None:
            p._dense(p._known_ctx()[0])  # raises
        raise UserWarning(
            f"Gradient of Parameter `{p.name}` on context {p._known_ctx()[0]} has not been updated by backward since last `step`. This could "
            "mean a bug in your model that made it only use a subset of the Parameters (Blocks) for this iteration. If you are "
            "intentionally only using a subset, call step with ignore_stale_grad=True to suppress this warning and skip updating of "
            "Parameters with stale gradient"
        )

    def _share(self):
        """Sends the parameters of rank 0 to all processes."""
        for block in {id(p._block): p._block for p in self._params}.values():
            dist.broadcast(block)
        self._shared = True

    def _compare(self, found):
        """Checks, once, that all processes computed their gradients with the same parameters."""
        for i, weight, _ in found:
            mean = dist.sum_(weight.copy()).asnumpy() / dist.size()
            if not numpy.allclose(mean, weight.asnumpy(), rtol=1e-5, equal_nan=True):
                raise StateError(f"Trainer.step: parameter {self._params[i].name} has other values in other processes; make the trainer "
                                 "once the parameters have values, before the first recorded forward pass")  # fmt: skip
        self._shared = True

    def _over_processes(self, found):
        """Adds the gradients of all processes."""
        if not self._shared:
            self._compare(found)
        for _, _, grad in found:
            dist.sum_(grad)

    def _update(self, found):
        o = self._optimizer
        for i, weight, _ in found:
            if self._states.get(i) is None:  # also where momentum was set after the first step
                self._states[i] = o.create_state_multi_precision(i, weight)
        if found:
            numbers, weights, grads = map(list, zip(*found))
            o.update_several(numbers, weights, grads, [self._states[i] for i in numbers])
        for weight in weights if found else ():
            lib.sl_grad_used(weight._p)

    def __getattr__(self, name):
        raise inside("Trainer", name, "the trainer's public functions: the backward passes add the gradients of several contexts")

    def allreduce_grads(self):
        """No effect: the backward passes add the gradients of several contexts."""

    def save_states(self, fname):
        """Writes the optimiser's states to a file."""
        o = self._optimizer
        arrays = {"num_update": nd.array([o.num_update], dtype="int64")}
        for i, state in self._states.items():
            arrays[f"{i}.count"] = nd.array([o._index_update_count.get(i, 0)], dtype="int64")
            for j, a in enumerate(state if isinstance(state, (list, tuple)) else [state]):
                if a is not None:
                    arrays[f"{i}.{j}"] = a
        nd.save(os.fspath(fname), arrays)

    def load_states(self, fname):
        """Reads the optimiser's states from a file that save_states wrote, for the same parameters."""
        read, o = nd.load(os.fspath(fname)), self._optimizer
        if not isinstance(read, dict) or "num_update" not in read:
            raise FormatError(f"load_states: {fname} has no states of an optimizer")
        self._states = {}
        for i in sorted({int(name.split(".")[0]) for name in read if name != "num_update"}):
            if i >= len(self._params):
                raise FormatError(f"load_states: {fname} has states of {i + 1} parameters, there are {len(self._params)}")
            _, weight, _ = self._values(here(), i, self._params[i])
            if weight is None:
                raise StateError(f"load_states: parameter {self._params[i].name} has no values yet")
            state = self._states[i] = o.create_state_multi_precision(i, weight)
            for j, a in enumerate(state if isinstance(state, (list, tuple)) else [state]):
                if (a is not None) != (f"{i}.{j}" in read) or a is not None and read[f"{i}.{j}"].shape != a.shape:
                    raise FormatError(f"load_states: {fname} was written by another optimizer, or for other parameters")
                if a is not None:
                    a[:] = read[f"{i}.{j}"]
            o._index_update_count[i] = int(read[f"{i}.count"].asscalar())
        o.num_update = int(read["num_update"].asscalar())


__getattr__ = missing("mx.gluon.trainer")
