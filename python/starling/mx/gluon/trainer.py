"""mx.gluon.Trainer."""
from ... import _training
from ..missing import missing, not_here
from .parameter import ParameterDict

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


class Trainer:
    """Updates parameters by their gradients, which it adds up over contexts."""

    def __init__(self, params, optimizer, optimizer_params=None, kvstore="device", **_):
        if not isinstance(params, ParameterDict):
            raise not_here("Trainer of a list of parameters", "net.collect_params() without a selection")
        if optimizer == "rmsprop":
            raise not_here("optimizer 'rmsprop' with epsilon under the root", "starling.Trainer(net, 'rmsprop'), which adds it outside")
        if optimizer not in _optimizers:
            raise not_here(f"optimizer {optimizer!r}", ", ".join(_optimizers))
        settings = {"nesterov": True} if optimizer == "nag" else {}
        for name, value in (optimizer_params or {}).items():
            if name not in _names:
                raise not_here(f"optimizer_params {name!r}", ", ".join(_names))
            if value is not None:
                settings[_names[name]] = value
        self._inner = _training.Trainer(params._block, _optimizers[optimizer], **settings)

    def step(self, batch_size, ignore_stale_grad=False):
        """Updates the parameters; gradients are divided by batch_size."""
        self._inner.step(batch_size, ignore_stale=ignore_stale_grad)

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
