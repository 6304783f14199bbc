"""mx.gluon.Trainer."""
from ... import _training
from ..._core import StateError
from .. import optimizer as _optimizer
from ..missing import missing, not_here
from .._array import NDArray
from . import files
from .parameter import Parameter, ParameterDict


def _listed(params):
    """The parameters that were given."""
    if not isinstance(params, (ParameterDict, dict, list, tuple)):
        raise ValueError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
    listed = list(params) if isinstance(params, (list, tuple)) else list(params.values())
    for p in listed:
        if not isinstance(p, Parameter):
            raise ValueError(f"First argument must be a list or dict of Parameters, got list of {type(p)}.")
    return listed


def _block_of(params):
    """The block that these are all parameters of; None if they are not."""
    for block in {id(p._block): p._block for p in params}.values():
        if len(params) == len(block.params_()) and {p.name for p in params} == {p.name for p in block.params_()}:
            return block
    return None


class Trainer:
    """Updates parameters by their gradients, which are added up over contexts.

    All parameters of a block are updated by the engine's trainer; some of them, and such with factors of their own, one by one.
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
        self._scale, self._inner, self._states = self._optimizer.rescale_grad, None, None
        self._whole = _block_of(self._params)  # until the first step, which decides
        self._decided = False

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

    def _decide(self):
        """Which of the two ways it uses."""
        self._decided = True
        plain = self._scale == 1 and all(p.lr_mult == p.wd_mult == 1 and p.grad_req != "add" and (p.grad_req != "null" or "running_" in p.name) for p in self._params)
        engine = self._optimizer.engine()
        if self._whole is None or not plain or engine is None:
            self._states = {}
            return
        name, settings = engine
        settings = {**settings, "lr": self._optimizer.lr, "weight_decay": self._optimizer.wd, "clip_value": self._optimizer.clip_gradient or None}
        self._inner = _training.Trainer(self._whole, name, **settings)

    def step(self, batch_size, ignore_stale_grad=False):
        """Updates the parameters; gradients are divided by batch_size."""
        if not self._decided:
            self._decide()
        if self._inner is None:
            self._one_by_one(batch_size)
            return
        o = self._optimizer
        o.num_update += 1
        lr = o.learning_rate
        if lr != self._inner.lr:
            self._inner.lr = lr
        self._inner.step(batch_size, ignore_stale=ignore_stale_grad)

    update = step

    def _one_by_one(self, batch_size):
        o = self._optimizer
        o.rescale_grad = self._scale / batch_size
        for i, p in enumerate(self._params):
            if p.grad_req == "null":
                continue
            try:
                weight, grad = p._inner.data(), p._inner.grad()
            except StateError:
                continue  # no input has come yet
            o.lr_mult[i], o.wd_mult[i] = p.lr_mult, p.wd_mult
            weight.__class__ = grad.__class__ = NDArray
            if i not in self._states:
                self._states[i] = o.create_state(i, weight)
            o.update(i, weight, grad, self._states[i])

    def allreduce_grads(self):
        """Nothing: gradients of several contexts are added by the backward passes."""

    def save_states(self, fname):
        """Writes the optimiser's state to a file."""
        if not self._decided:
            self._decide()
        if self._inner is None:
            raise not_here("Trainer.save_states of some parameters, or of this optimizer", "all parameters with sgd, nag, adam, adamw")
        files.write(self._inner.save, fname)

    def load_states(self, fname):
        """Reads the optimiser's state from a file."""
        if not self._decided:
            self._decide()
        if self._inner is None:
            raise not_here("Trainer.load_states of some parameters, or of this optimizer", "all parameters with sgd, nag, adam, adamw")
        files.read(self._inner.load, fname)


__getattr__ = missing("mx.gluon.trainer")
