"""mx.init: initialisers by MXNet's names."""
import json
import re

import numpy

from .. import init as _init
from .._blocks import Initializer as _Engine
from ._signed import as_mxnet as _as_mxnet
from .unsupported import missing, not_here


class _Described(_Engine):
    """An initialiser of the engine, with its name and options in MXNet."""

    __slots__ = ("_name", "_kwargs")

    def dumps(self):
        """The name and the options as JSON."""
        return json.dumps([self._name, self._kwargs])


def _described(made, name, **options):
    described = _Described()
    described._c, described._name, described._kwargs = made._c, name, options
    return described


def Normal(sigma=0.01):
    """Normal numbers with standard deviation sigma."""
    return _described(_init.normal(sigma), "normal", sigma=sigma)


def Uniform(scale=0.07):
    """Uniform numbers between -scale and scale."""
    return _described(_init.uniform(scale), "uniform", scale=scale)


def Constant(value=0.0):
    """Sets every element to value."""
    if isinstance(value, (int, float)):
        return _described(_init.constant(value), "constant", value=value)
    return _Values(value)


def Zero():
    """Sets every element to 0."""
    return _described(_init.zeros(), "zero")


def One():
    """Sets every element to 1."""
    return _described(_init.ones(), "one")


def Xavier(rnd_type="uniform", factor_type="avg", magnitude=3):
    """Glorot and Bengio's initialiser."""
    if rnd_type not in ("uniform", "gaussian") or factor_type not in ("avg", "in", "out"):
        raise ValueError(f"Xavier: rnd_type is {rnd_type!r}, factor_type {factor_type!r}; these are uniform, gaussian; avg, in, out")
    made = _init.xavier(magnitude or 1e-30, fan=factor_type, gaussian=rnd_type == "gaussian")  # 0 would be the engine's default
    return _described(made, "xavier", rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)


def MSRAPrelu(factor_type="avg", slope=0.25):
    """He's initialiser for parametric ReLUs: normal numbers with deviation sqrt(2 / (1 + slope²) / fan)."""
    made = _init.xavier(2.0 / (1 + slope**2), fan=factor_type, gaussian=True)
    return _described(made, "msraprelu", factor_type=factor_type, slope=slope)


# ---- initialisers in Python


class InitDesc(str):
    """The name of a parameter during its initialisation; global_init: the initialiser of the whole program."""

    global_init = None


class Initializer:
    """The base of initialisers in Python: a custom one has _init_weight(self, name, data), which changes data in place."""

    def __init__(self, **kwargs):
        self._kwargs = kwargs

    def __call__(self, desc, arr):
        self._init_weight(desc, arr)

    def _init_weight(self, name, arr):
        raise NotImplementedError("Must override it")

    def dumps(self):
        """The name and the options as JSON."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self._kwargs.items())})"


class _Values(Initializer):
    """Given values: Constant of an array."""

    def __init__(self, values):
        plain = values.asnumpy() if hasattr(values, "asnumpy") else numpy.asarray(values)
        super().__init__(value=plain.tolist())
        self._values = values

    def _init_weight(self, _, arr):
        arr[:] = self._values


class Orthogonal(Initializer):
    """Orthogonal rows."""

    def __init__(self, scale=1.414, rand_type="uniform"):
        super().__init__(scale=scale, rand_type=rand_type)

    def _init_weight(self, _, arr):
        from . import nd

        rows, columns = arr.shape[0], arr.size // arr.shape[0]
        uniform = self._kwargs["rand_type"] == "uniform"
        drawn = nd.random.uniform(-1, 1, (rows, columns)) if uniform else nd.random.normal(0, 1, (rows, columns))
        u, _, v = numpy.linalg.svd(drawn.asnumpy(), full_matrices=False)
        arr[:] = (self._kwargs["scale"] * (u if u.shape == (rows, columns) else v)).reshape(arr.shape)


class Bilinear(Initializer):
    """Weights with which a transposed convolution enlarges images bilinearly."""

    def _init_weight(self, _, arr):
        f = numpy.ceil(arr.shape[3] / 2.0)
        c = (2 * f - 1 - f % 2) / (2.0 * f)
        y, x = numpy.mgrid[: arr.shape[2], : arr.shape[3]]
        arr[:] = numpy.broadcast_to((1 - abs(x / f - c)) * (1 - abs(y / f - c)), arr.shape).astype("float32")


class Mixed(Initializer):
    """An initialiser for each pattern of names; the first match is used."""

    def __init__(self, patterns, initializers):
        super().__init__(patterns=patterns, initializers=initializers)
        self._map = [(re.compile(p), i) for p, i in zip(patterns, initializers)]

    def _init_weight(self, name, arr):
        for pattern, initializer in self._map:
            if pattern.match(name):
                return fill(initializer, name, arr)
        raise ValueError(f"Parameter name {name} did not match any pattern. Consider adding a \".*\" pattern at the end.")


class LSTMBias(Initializer):
    """Zeros, and another number for the gates that forget: the second quarter of the bias of an LSTM cell."""

    def __init__(self, forget_bias=1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name, arr):
        values = numpy.zeros(arr.shape, dtype="float32")
        values[arr.shape[0] // 4 : arr.shape[0] // 2] = self.forget_bias
        arr[:] = values

    _init_bias = _init_weight


class FusedRNN(Initializer):
    """The parameters of FusedRNNCell: each weight by an initialiser (None: that of the whole program), biases 0, but those that forget."""

    def __init__(self, init, num_hidden, num_layers, mode, bidirectional=False, forget_bias=1.0):
        super().__init__(init=init, num_hidden=num_hidden, num_layers=num_layers, mode=mode, bidirectional=bidirectional, forget_bias=forget_bias)

    def _init_weight(self, name, arr):
        from .rnn.fused import FusedRNNCell

        given = dict(self._kwargs)
        inner = given.pop("init") or getattr(name, "global_init", None) or Uniform()
        cell = FusedRNNCell(**given, prefix="")
        parts = cell.unpack_weights({"parameters": arr})
        for part, values in parts.items():
            if part.endswith("weight"):
                fill(inner, part, values)
            else:
                values[:] = given["forget_bias"] if part.endswith("i2h_f_bias") and given["mode"] == "lstm" else 0
        arr[:] = cell.pack_weights(parts)["parameters"]


def fill(initializer, name, arr, usual=None):
    """Gives an array the values of an initialiser; usual: that of the whole program."""
    initializer = named(initializer)
    if isinstance(initializer, Initializer):
        desc = InitDesc(name)
        desc.global_init = usual
        initializer(desc, arr)
        return
    from .. import _blocks

    block = _blocks.Block()
    block.param("weight", arr.shape, init=initializer)
    block.initialize()
    arr[:] = block.find("weight").data()


_names = {"normal": Normal, "uniform": Uniform, "zeros": Zero, "zero": Zero, "ones": One, "one": One, "xavier": Xavier,
          "constant": Constant, "msraprelu": MSRAPrelu, "orthogonal": Orthogonal, "bilinear": Bilinear, "lstmbias": LSTMBias}  # fmt: skip


def register(kind):
    """Registers a custom initialiser by its name in lower case."""
    _names[kind.__name__.lower()] = kind
    return kind


def create(name, *args, **kwargs):
    """The initialiser of that name."""
    if not isinstance(name, str):
        if args or kwargs:
            raise TypeError(f"init.create: an initializer takes no options any more: {', '.join(map(str, [*args, *kwargs]))}")
        return name
    if name.lower() not in _names:
        raise not_here(f"initializer {name!r}", ", ".join(sorted(_names)))
    return _names[name.lower()](*args, **kwargs)


def named(value):
    """An initialiser, or the one with a given name; None is the layer's own."""
    value = create(value)
    if value is not None and not isinstance(value, (_Engine, Initializer)):
        if callable(value):  # a class such as init.One
            return named(value())
        raise TypeError(f"init is {type(value).__name__}, an initialiser of mx.init is needed")
    return value


def split(value):
    """(the engine's initialiser or None, one in Python or None)."""
    value = named(value)
    return (None, value) if isinstance(value, Initializer) else (value, None)


def for_layer(value):
    """The part of an initialiser that a layer of the engine takes; the rest is that of keep."""
    return split(value)[0]


class _Engines(Initializer):
    """An initialiser of the engine for a parameter that the engine would set otherwise."""

    def __init__(self, inner):
        super().__init__()
        self._inner = inner

    def _init_weight(self, name, arr):
        fill(self._inner, name, arr)


def keep(parameter, value, usual=None):
    """Gives a layer's parameter its own initialiser, where the engine does not have it: one in Python, or another than the usual one."""
    value = None if value == usual else named(value)
    if value is not None:
        parameter._given = value if isinstance(value, Initializer) else _Engines(value)


_as_mxnet("init", globals())
__getattr__ = missing("mx.init")
