"""The bases of layers: those of the engine (_Layer), and those made of operations (_Plain)."""
import re

from ... import _ops as ops
from ..._core import lib
from .. import init as _init
from .._program import classify
from ..init import keep
from ..unsupported import not_here
from .block import HybridBlock

_activations = {None: "identity", "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}


def _activation(name):
    if name not in _activations:
        raise not_here(f"activation {name!r} of a layer", ", ".join(n for n in _activations if n) + ", or a layer of its own")
    return _activations[name]


# Attributes that MXNet's layers keep, and read at each call.
_KEPT = frozenset("_units _in_units _flatten _channels _in_channels _kwargs _rate _axes _axis _input_dim _output_dim _epsilon _act_type act".split())


def _same_options(layer, shared):
    """Layers that share parameters are one layer of the engine: they have the same options but for lengths that inputs determine."""
    first, second = (re.sub(r"\w+ -> |in_channels=\w+", "", repr(b)) for b in (layer, shared))
    if first != second:
        raise not_here(f"{first} with the parameters of {second}", "layers with the same options")


class _Layer(HybridBlock):
    """A layer of the engine with Gluon's name and options."""

    _in_python = False

    def __init__(self, inner, text, prefix=None, params=None):
        shared = params._block if params is not None else None
        if shared is not None and type(shared) is not type(self):
            if shared._in_python and not any(name.startswith(shared.prefix) and "_" not in name[len(shared.prefix) :] for name in params):
                shared, prefix = None, shared.prefix  # as in MXNet: the names begin like those of that block, which has none of these
            else:
                raise not_here(f"{type(self).__name__}(params=…) of another kind of layer", "the params of a layer of the same kind")
        self._own(lib.sl_block_retain((shared or inner)._p))  # with shared parameters: the same layer
        self._prepare()
        object.__setattr__(self, "_text", text)
        if shared is None:
            self._take_names(prefix)
            shared = self._counterpart()
        if shared is not None and shared._p is not self._p:
            _same_options(self, shared)
            self._own(lib.sl_block_retain(shared._p))
            object.__setattr__(self, "_prefix", shared._prefix)
        object.__setattr__(self, "_inner", shared or inner)

    def __setattr__(self, name, value):
        if name in _KEPT:
            raise AttributeError(f"{type(self).__name__}.{name} is from when the layer was made: make another one")
        super().__setattr__(name, value)

    def __repr__(self):
        text = self._text(self) if callable(self._text) else self._text
        return f"{type(self).__name__}({text})" if text else type(self).__name__


def _keep(layer, **initializers):
    """Notes the initialisers of a layer's parameters that the engine does not have."""
    for name, value in initializers.items():
        if isinstance(_init.named(value), _init.Initializer):
            keep(layer.params.find(name), value)


def _moved(x, axis, to):
    """The array with an axis in another place."""
    axis %= x.ndim
    to %= x.ndim
    if axis == to:
        return x
    order = [i for i in range(x.ndim) if i != axis]
    order.insert(to, axis)
    return classify(ops.transpose(x, order), x)


class _Plain(HybridBlock):
    """A layer made of operations, with its printed text."""

    def __init__(self, text="", prefix=None, params=None):
        HybridBlock.__init__(self, prefix, params)
        object.__setattr__(self, "_text", text)

    def __repr__(self):
        return f"{type(self).__name__}({self._text})" if self._text else super().__repr__()


def _sizes(layer):
    return layer.params.find("weight").shape


def _ending(activation):
    return f", Activation({activation})" if activation else ""


def _float32(dtype, name):
    if str(dtype) not in ("float32", "None", "<class 'numpy.float32'>"):
        raise not_here(f"{name}(dtype={dtype!r})", "float32, and starling.autocast")
