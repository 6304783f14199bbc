"""mx.gluon.nn: layers by MXNet's names; those of windows are in _windows.py."""
import warnings

from ... import _ops as ops
from ... import nn as _nn
from ..._blocks import Lambda as _Function
from .._signed import as_mxnet as _as_mxnet
from .. import init as _init
from ..autograd import is_training, predict_mode
from ..functions import numbers_of
from ..init import for_layer, keep
from ..layers import Dropout as _dropout
from ..unsupported import missing, not_here
from ._layer import _activation, _float32, _keep, _Layer, _moved, _Plain, _sizes
from ._windows import AvgPool1D, AvgPool2D, AvgPool3D, Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from ._windows import GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D, GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D
from ._windows import MaxPool1D, MaxPool2D, MaxPool3D
from .block import Block, HybridBlock, fit
from .symbol_block import SymbolBlock


class Dense(_Layer):
    """A fully connected layer."""

    def __init__(self, units, activation=None, use_bias=True, flatten=True, dtype="float32", weight_initializer=None,
                 bias_initializer="zeros", in_units=0, **common):
        _float32(dtype, "Dense")
        if units == 0:
            raise not_here("Dense(0)", "units from 1 on")
        inner = _nn.Dense(units, activation=_activation(activation), no_bias=not use_bias, no_flatten=not flatten,
                          in_units=in_units, weight_init=for_layer(weight_initializer), bias_init=for_layer(bias_initializer) if use_bias else None)

        def text(layer):
            known = _sizes(layer)[1] if len(_sizes(layer)) > 1 else 0
            return f"{known or None} -> {units}, " + (f"Activation({activation})" if activation else "linear")

        super().__init__(inner, text, **common)
        _keep(self, weight=weight_initializer, **({"bias": bias_initializer} if use_bias else {}))


class ReflectionPad2D(_Plain):
    """Images padded by reflection at the edges."""

    def __init__(self, padding=0, **common):
        super().__init__("", **common)
        self._padding = (0, 0, 0, 0, padding, padding, padding, padding) if isinstance(padding, int) else tuple(padding)

    def hybrid_forward(self, F, x):
        return F.pad(x, mode="reflect", pad_width=self._padding)


def _fix(layer, **trained):
    """Parameters that are not trained have no gradient."""
    for name, is_trained in trained.items():
        if not is_trained:
            layer.params.find(name).grad_req = "null"


class BatchNorm(_Layer):
    """Batch normalisation over the channels, which are on an axis."""

    def __init__(self, axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False, beta_initializer="zeros",
                 gamma_initializer="ones", running_mean_initializer="zeros", running_variance_initializer="ones", in_channels=0, **common):
        inner = _nn.BatchNorm(eps=epsilon, momentum=momentum, no_scale=not scale, no_center=not center, in_channels=in_channels)

        def text(layer):
            known = layer.params.find("running_mean").shape[0]
            return (f"axis={axis}, eps={epsilon}, momentum={momentum}, fix_gamma={not scale}, "
                    f"use_global_stats={use_global_stats}, in_channels={known or None}")

        super().__init__(inner, text, **common)
        object.__setattr__(self, "_channels_at", axis)
        object.__setattr__(self, "_fixed", use_global_stats)
        for name, value, usual in (("beta", beta_initializer, "zeros"), ("gamma", gamma_initializer, "ones"),
                                   ("running_mean", running_mean_initializer, "zeros"), ("running_var", running_variance_initializer, "ones")):  # fmt: skip
            keep(self.params.find(name), value, usual)
        _fix(self, beta=center, gamma=scale)

    def __call__(self, x):
        moved = _moved(x, self._channels_at, 1) if len(x.shape or ()) > 1 else x
        if self._fixed and is_training():
            with predict_mode():
                y = super().__call__(moved)
        else:
            y = super().__call__(moved)
        return _moved(y, 1, self._channels_at) if moved is not x else y


class LayerNorm(_Layer):
    """Normalisation over an axis."""

    def __init__(self, axis=-1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", in_channels=0,
                 **common):
        def text(layer):
            return f"eps={epsilon}, axis={axis}, center={center}, scale={scale}, in_channels={layer.params.find('gamma').shape[0]}"

        super().__init__(_nn.LayerNorm(eps=epsilon, in_channels=in_channels), text, **common)
        object.__setattr__(self, "_along", axis)
        for name, value, usual in (("beta", beta_initializer, "zeros"), ("gamma", gamma_initializer, "ones")):
            keep(self.params.find(name), value, usual)
        _fix(self, beta=center, gamma=scale)

    def __call__(self, x):
        return _moved(super().__call__(_moved(x, self._along, -1)), -1, self._along) if self._along != -1 else super().__call__(x)


class _Norm(_Plain):
    def __init__(self, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, text, **common):
        super().__init__(text, **common)
        self._eps = epsilon
        size = (in_channels or -1,)
        self.gamma = self.params.get("gamma", shape=size, init=gamma_initializer, grad_req="write" if scale else "null")
        self.beta = self.params.get("beta", shape=size, init=beta_initializer, grad_req="write" if center else "null")

    def _fit(self, x):
        for p in (self.gamma, self.beta):
            fit(p, (x.shape[1],))


class InstanceNorm(_Norm):
    """Normalisation of each channel of each sample."""

    def __init__(self, axis=1, epsilon=1e-5, center=True, scale=False, beta_initializer="zeros", gamma_initializer="ones", in_channels=0,
                 **common):
        text = f"eps={epsilon}, axis={axis}, center={center}, scale={scale}, in_channels="
        super().__init__(epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, text, **common)
        self._channels_at = axis

    def _fit(self, x):
        for p in (self.gamma, self.beta):
            fit(p, (x.shape[self._channels_at],))

    def __repr__(self):
        return f"InstanceNorm({self._text}{self.gamma.shape[0]})"

    def hybrid_forward(self, F, x, gamma, beta):
        y = F.InstanceNorm(_moved(x, self._channels_at, 1), gamma, beta, eps=self._eps)
        return _moved(y, 1, self._channels_at)


class GroupNorm(_Norm):
    """Normalisation of groups of channels of each sample; a factor and a bias for each group, as in MXNet 1.9.1."""

    def __init__(self, num_groups=1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", in_channels=0,
                 **common):
        text = f"eps={epsilon}, num_groups={num_groups}, center={center}, scale={scale}"
        super().__init__(epsilon, center, scale, beta_initializer, gamma_initializer, num_groups, text, **common)
        self._groups = num_groups

    def _fit(self, x):
        """One element for each group: known from the start."""

    def hybrid_forward(self, F, x, gamma, beta):
        return F.GroupNorm(x, gamma, beta, num_groups=self._groups, eps=self._eps)


class BatchNormReLU(HybridBlock):
    """BatchNorm, then relu."""

    def __init__(self, axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False, beta_initializer="zeros",
                 gamma_initializer="ones", running_mean_initializer="zeros", running_variance_initializer="ones", in_channels=0, prefix=None,
                 params=None):
        super().__init__(prefix, params)
        from .nn import BatchNorm

        self.norm = BatchNorm(axis, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer,
                              running_mean_initializer, running_variance_initializer, in_channels)  # fmt: skip

    def hybrid_forward(self, F, x):
        return F.relu(self.norm(x))


class Activation(_Layer):
    """relu, sigmoid, tanh, softrelu, softsign."""

    def __init__(self, activation, **common):
        functions = {"softsign": ops.softsign, "softrelu": ops.softplus}
        inner = _Function(functions[activation]) if activation in functions else _nn.Activation(_activation(activation))
        object.__setattr__(self, "_kind_of", activation)
        super().__init__(inner, activation, **common)

    def _hint(self):
        return self._kind_of


class LeakyReLU(_Plain):
    """x where it is positive, else alpha·x."""

    def __init__(self, alpha, **common):
        if alpha < 0:
            raise AssertionError("Slope coefficient for LeakyReLU must be no less than 0.")
        super().__init__(str(alpha), **common)
        self._alpha = alpha

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, slope=self._alpha)


class ELU(_Plain):
    """x where it is positive, else alpha·(exp(x) - 1)."""

    def __init__(self, alpha=1.0, **common):
        super().__init__("", **common)
        self._alpha = alpha

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(_Plain):
    """The scaled ELU that keeps mean and variance."""

    def __init__(self, **common):
        super().__init__("", **common)

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="selu")


class GELU(_Plain):
    """x times the probability of a standard normal number below x."""

    def __init__(self, approximation="erf", **common):
        if approximation != "erf":
            raise not_here(f"GELU(approximation={approximation!r})", "erf, or starling.gelu_tanh")
        super().__init__("", **common)

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, act_type="gelu")


class Swish(_Plain):
    """x·sigmoid(beta·x)."""

    def __init__(self, beta=1.0, **common):
        super().__init__("", **common)
        self._beta = beta

    def hybrid_forward(self, F, x):
        return x * F.sigmoid(x * self._beta)


class PReLU(_Plain):
    """x where it is positive, else alpha·x with a trained alpha."""

    def __init__(self, alpha_initializer=None, in_channels=1, **common):
        super().__init__("", **common)
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer or _init.Constant(0.25))

    def hybrid_forward(self, F, x, alpha):
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu")


class Dropout(_Layer):
    """Elements become zero with probability rate in training."""

    def __init__(self, rate, axes=(), **common):
        super().__init__(_nn.Dropout(rate), f"p = {rate}, axes={axes}", **common)
        object.__setattr__(self, "_options", (rate, "training", axes))

    def __call__(self, x):
        return _dropout(x, *self._options) if self._options[2] else super().__call__(x)


class Flatten(_Layer):
    """(n, …) as (n, elements)."""

    def __init__(self, **common):
        super().__init__(_nn.Flatten(), "", **common)


class Embedding(_Layer):
    """A row of numbers for each word."""

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None, sparse_grad=False, **common):
        _float32(dtype, "Embedding")
        super().__init__(_nn.Embedding(input_dim, output_dim), f"{input_dim} -> {output_dim}, float32", **common)
        self.params.find("weight").grad_stype = "row_sparse" if sparse_grad else "default"
        keep(self.params.find("weight"), weight_initializer)

    def __call__(self, x):
        # MXNet also takes words as floats.
        return super().__call__(numbers_of(x) if hasattr(x, "dtype") else x)


class Sequential(Block):
    """A chain of blocks."""

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)

    def add(self, *blocks):
        """Appends blocks."""
        for block in blocks:
            self.add_child(str(len(self._children)), block)

    def forward(self, x, *args):
        """The result of the last block; the list that a block returns becomes the arguments of the next one."""
        for block in self._children.values():
            y = block(x, *args)
            x, *args = y if isinstance(y, (list, tuple)) else (y,)
        return (x, *args) if args else x

    def hybridize(self, active=True, **options):
        """Compiles the hybrid blocks inside."""
        if self._children and all(isinstance(block, HybridBlock) for block in self._children.values()):
            warnings.warn(f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using HybridSequential for "
                          "the best performance.", stacklevel=2)  # fmt: skip
        super().hybridize(active, **options)

    def __len__(self):
        return len(self._children)

    def __getitem__(self, i):
        children = list(self._children.values())
        if not isinstance(i, slice):
            return children[i]
        part = type(self)(prefix=self.prefix)
        part.add(*children[i])
        return part

    def __iter__(self):
        return iter(self._children.values())


class HybridSequential(Sequential, HybridBlock):
    """A chain of hybrid blocks."""

    def hybrid_forward(self, F, x, *args):
        """The same as forward."""
        return self.forward(x, *args)

    def hybridize(self, active=True, **options):
        """Runs the blocks as one compiled program from now on."""
        HybridBlock.hybridize(self, active, **options)


def _named_function(name):
    """A function by its name: of mx.np or mx.npx after set_np, else of mx.nd."""
    from .. import nd, np, npx
    from .._mode import is_np_array

    if not is_np_array():
        return getattr(nd, name)
    return getattr(np, name) if hasattr(np, name) else getattr(npx, name)


def _function(function):
    if isinstance(function, str):
        _named_function(function)  # unknown names are errors now
    elif not callable(function):
        raise ValueError(f"Unrecognized function in lambda: {function} of type {type(function)}")
    return function


def _function_name(block):
    return f"{type(block).__name__}({getattr(block._function, '__name__', block._function)})"


class Lambda(Block):
    """A function of arrays as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix)
        object.__setattr__(self, "_function", _function(function))

    def forward(self, *args):
        return (_named_function(self._function) if isinstance(self._function, str) else self._function)(*args)

    __repr__ = _function_name


class HybridLambda(HybridBlock):
    """A function of F and arrays as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix)
        object.__setattr__(self, "_function", _function(function))

    def hybrid_forward(self, F, *args):
        if isinstance(self._function, str):
            return _named_function(self._function)(*args)
        return self._function(F, *args)

    __repr__ = _function_name


_as_mxnet("gluon.nn", globals())
__getattr__ = missing("mx.gluon.nn")
