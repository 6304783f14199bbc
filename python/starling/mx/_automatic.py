"""Weights that functions of mx.sym make themselves: variables NAME_weight, NAME_bias, …, whose shapes follow from the data's."""
import functools
import math

from .._tensor import Tensor
from ..autograd import is_training
from . import _attributes, fused_rnn as rnn
from ._shapes import parameters_of
from ._signed import own_parameters
from .init import Constant
from .name import current as names

def _pair(kernel):
    return tuple(kernel) if isinstance(kernel, (tuple, list)) else (kernel, kernel)


def _states(s, o):
    return (o["num_layers"] * (1 + bool(o.get("bidirectional", False))), s[1], o["state_size"])


# The parameters of each function: (argument, end of the name, the shape for the data's shape and the call's options).
_MADE = {
    "FullyConnected": (
        ("weight", "weight", lambda s, o: (o["num_hidden"], math.prod(s[1:]) if o.get("flatten", True) else s[-1])),
        ("bias", "bias", lambda s, o: (o["num_hidden"],)),
    ),
    "Convolution": (
        ("weight", "weight", lambda s, o: (o["num_filter"], s[1] // o.get("num_group", 1), *_pair(o["kernel"]))),
        ("bias", "bias", lambda s, o: (o["num_filter"],)),
    ),
    "BatchNorm": tuple((a, a, lambda s, o: (s[o.get("axis", 1)],)) for a in ("gamma", "beta", "moving_mean", "moving_var")),
    "Deconvolution": (
        ("weight", "weight", lambda s, o: (s[1], o["num_filter"] // o.get("num_group", 1), *_pair(o["kernel"]))),
        ("bias", "bias", lambda s, o: (o["num_filter"],)),
    ),
    "LayerNorm": tuple((a, a, lambda s, o: (s[o.get("axis", -1)],)) for a in ("gamma", "beta")),
    "InstanceNorm": tuple((a, a, lambda s, o: (s[1],)) for a in ("gamma", "beta")),
    "GroupNorm": tuple((a, a, lambda s, o: (s[1],)) for a in ("gamma", "beta")),
    "SoftmaxOutput": (("label", "label", lambda s, o: (s[0], *s[2:]) if o.get("multi_output") else s[:-1] if o.get("preserve_shape") else (s[0],)),),
    "LinearRegressionOutput": (("label", "label", lambda s, o: s),),
    "LogisticRegressionOutput": (("label", "label", lambda s, o: s),),
    "MAERegressionOutput": (("label", "label", lambda s, o: s),),
    "SVMOutput": (("label", "label", lambda s, o: (s[0],)),),
    "RNN": (
        ("parameters", "parameters", lambda s, o: (rnn.count(s[2], o["state_size"], o["num_layers"], o["mode"], o.get("bidirectional", False)),)),
        ("state", "state", lambda s, o: _states(s, o)),
        ("state_cell", "state_cell", lambda s, o: _states(s, o)),
    ),
    "LeakyReLU": (("gamma", "gamma", lambda s, o: (s[1],)),),
    "Embedding": (("weight", "weight", lambda s, o: (o["input_dim"], o["output_dim"])),),
}


def _making(function, kind, parameters, variable):
    @functools.wraps(function)
    def call(data=None, *args, name=None, attr=None, **options):
        if attr is not None:
            options["attr"] = attr
        if data is None and options.keys() <= own_parameters(call._unsigned)[1]:
            name = names().get(name, kind.lower())
            data = variable(f"{name}_data")
        wanted = [p for p in parameters[len(args) :] if options.get(p[0]) is None and (kind != "LeakyReLU" or options.get("act_type") == "prelu")
                  and not (p[0] == "state_cell" and options.get("mode") != "lstm") and not (p[0] == "bias" and options.get("no_bias", kind == "Deconvolution"))]
        if not wanted:
            return function(data, *args, **options, **({} if name is None else {"name": name}))
        name = options["name"] = names().get(name, kind.lower())
        hidden = {k: options[k] for k in _attributes.HIDDEN if k in options}
        shared = {k: v for k, v in _attributes.given(attr, hidden).items() if k.startswith("__")}
        for argument, end, _ in wanted:
            first = {"init": Constant(0.25)} if kind == "LeakyReLU" else {}
            options[argument] = _attributes.keep(variable(f"{name}_{end}", **first), shared)
        return function(data, *args, **options)

    call._unsigned = getattr(function, "_unsigned", function)
    return call


def _marked(dropout):
    """Dropout, which leaves a copy in a program made outside of training: so that running it in training is refused."""

    @functools.wraps(dropout)
    def call(data, p=0.5, *args, **options):
        y = dropout(data, p, *args, **options)
        return y.copy() if y.is_symbol and p and not is_training() and options.get("mode", "training") == "training" else y

    call._unsigned = dropout
    return call


def with_data(function, variable):
    """The function; called without its first argument, it makes a variable NAME_data, or as the argument is named, as MXNet does."""
    inner = getattr(function, "_unsigned", function)
    positional, own, several = own_parameters(inner)
    if not positional or several or len(inner.__defaults__ or ()) == len(positional):
        return function

    @functools.wraps(function)
    def call(*args, **options):
        if not args and positional[0] not in options and not _arrays_in(options) and options.keys() <= own | {"name", "attr"}:
            options["name"] = name = names().get(options.get("name"), inner.__name__.lower())
            args = (variable(f"{name}_{positional[0]}"),)
        return function(*args, **options)

    call._unsigned = inner
    return call


def _arrays_in(options):
    return any(isinstance(v, Tensor) for v in options.values())


def install(names, variable):
    """Puts functions that make their weights into the place of those in a module's names."""
    names["Dropout"] = _marked(names["Dropout"])
    parameters_of.update(_MADE, SparseEmbedding=_MADE["Embedding"])
    for kind, parameters in _MADE.items():
        names[kind] = _making(names[kind], kind, parameters, variable)
