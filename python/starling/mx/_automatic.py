"""Weights that functions of mx.sym make themselves: variables NAME_weight, NAME_bias, …, whose shapes follow from the data's."""
import functools
import math

from .._tensor import Tensor
from ..autograd import is_training
from . import _attributes, _later, fused_rnn as rnn
from ._signed import own_parameters
from .init import Constant
from .name import NameManager
from .unsupported import not_here

_names = NameManager()
_rules: dict = {}  # by the variable's name: (the data, the shape of the variable for that of the data); the latest program's
shape_of = None  # set by _program.py: the shape of a symbol's result for shapes of variables


def complete(names, shapes):
    """Adds the shapes of variables made here, as far as they follow from known ones."""
    for name in names:
        if name in shapes or name not in _rules:
            continue
        data, rule = _rules[name]
        try:
            shapes[name] = rule(shape_of(data, dict(shapes)))
        except NotImplementedError:  # a shape is missing: the caller says which
            continue


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
            raise not_here(f"sym.{kind} without data, to be composed later", "the data as the first argument")
        _note(data, dict(zip((p[0] for p in parameters), args)) | options, parameters)
        wanted = [p for p in parameters[len(args) :] if options.get(p[0]) is None and (kind != "LeakyReLU" or options.get("act_type") == "prelu")
                  and not (p[0] == "state_cell" and options.get("mode") != "lstm") and not (p[0] == "bias" and options.get("no_bias", kind == "Deconvolution"))]
        if not wanted:
            return function(data, *args, **options, **({} if name is None else {"name": name}))
        name = options["name"] = _names.get(name, kind.lower())
        hidden = {k: options[k] for k in _attributes.HIDDEN if k in options}
        shared = {k: v for k, v in _attributes.given(attr, hidden).items() if k.startswith("__")}
        for argument, end, shape in wanted:
            first = {"init": Constant(0.25)} if kind == "LeakyReLU" else {}
            options[argument] = _attributes.keep(variable(f"{name}_{end}", **first), shared)
            _rules[f"{name}_{end}"] = data, functools.partial(_shape, shape, {k: v for k, v in options.items() if k not in (argument, "attr")})
        return function(data, *args, **options)

    call._unsigned = getattr(function, "_unsigned", function)
    return call


def _note(data, options, parameters):
    """Keeps how the shapes of the program's own variables follow from the data's."""
    given = {k: v for k, v in options.items() if not isinstance(v, Tensor)}
    for argument, _, shape in parameters:
        variable = options.get(argument)
        if isinstance(variable, Tensor) and variable.is_symbol and variable.shape is None and not _later.call_of(variable):
            _rules[variable.name] = data, functools.partial(_shape, shape, given)


def _shape(shape, options, data):
    return shape(data, options)


def _marked(dropout):
    """Dropout, which leaves a copy in a program made outside of training: so that running it in training is refused."""

    @functools.wraps(dropout)
    def call(data, p=0.5, *args, **options):
        y = dropout(data, p, *args, **options)
        return y.copy() if y.is_symbol and p and not is_training() and options.get("mode", "training") == "training" else y

    call._unsigned = dropout
    return call


def install(names, variable):
    """Puts functions that make their weights into the place of those in a module's names."""
    names["Dropout"] = _marked(names["Dropout"])
    for kind, parameters in _MADE.items():
        names[kind] = _making(names[kind], kind, parameters, variable)
