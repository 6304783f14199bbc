"""mx.gluon.Trainer."""
from ... import _training
from ..missing import missing, not_here
from .parameter import Parameter, ParameterDict

_names = {
    "learning_rate": "lr",
    "momentum": "momentum",
    "wd": "weight_decay",
    "beta1": "beta1",
    "beta2": "beta2",
    "epsilon": "eps",
    "clip_gradient": "clip_value",
}
_optimizers = {"sgd": "sgd", "nag": "sgd", "adam": "adam", "adamw": "adamw"}


def _block_of(params):
    """The block that all these parameters are of."""
    if not isinstance(params, (ParameterDict, dict, list, tuple)):
        raise ValueError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
    if isinstance(params, ParameterDict):
        block, given = params._block, set(params)
    else:
        listed = list(params.values()) if isinstance(params, dict) else list(params)
        if not listed or not all(isinstance(p, Parameter) for p in listed):
            raise ValueError(f"First argument must contain Parameters, got {listed}.")
        block, given = listed[0]._block, {p.name for p in listed}
    if given != set(ParameterDict(block)):
        raise not_here("Trainer of some parameters of a network", "all of them, net.collect_params()")
    return block


class Trainer:
    """Updates parameters by their gradients, which it adds up over contexts."""

    def __init__(self, params, optimizer, optimizer_params=None, kvstore="device", **_):
        if kvstore not in (None, "local", "device", "nccl"):
            raise not_here(f"kvstore={kvstore!r}", "one process, with several contexts (kvstore='device')")
        block = _block_of(params)
        if optimizer == "rmsprop":
            raise not_here("optimizer 'rmsprop' with epsilon under the root", "starling.Trainer(net, 'rmsprop'), which adds it outside")
        if optimizer not in _optimizers:
            raise not_here(f"optimizer {optimizer!r}", ", ".join(_optimizers))
        settings = {"lr": 0.01 if optimizer in ("sgd", "nag") else 0.001}  # MXNet's own
        if optimizer == "nag":
            settings["nesterov"] = True
        for name, value in (optimizer_params or {}).items():
            if name not in _names:
                raise not_here(f"optimizer_params {name!r}", ", ".join(_names))
            if value is not None:
                settings[_names[name]] = value
        self._inner = _training.Trainer(block, _optimizers[optimizer], **settings)

    def step(self, batch_size, ignore_stale_grad=False):
        """Updates the parameters; gradients are divided by batch_size."""
        self._inner.step(batch_size, ignore_stale=ignore_stale_grad)

    update = step

    def allreduce_grads(self):
        """Nothing: gradients of several contexts are added by the backward passes."""

    @property
    def learning_rate(self):
        """The learning rate."""
        return self._inner.lr

    def set_learning_rate(self, lr):
        """Sets the learning rate."""
        self._inner.lr = lr

    def save_states(self, fname):
        """Writes the optimiser's state to a file."""
        self._inner.save(fname)

    def load_states(self, fname):
        """Reads the optimiser's state from a file."""
        self._inner.load(fname)


__getattr__ = missing("mx.gluon.trainer")
