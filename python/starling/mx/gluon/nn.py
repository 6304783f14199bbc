"""mx.gluon.nn: layers."""
from ... import nn as _nn
from ..._core import NULL, here, lib, pair
from ..init import named
from ..missing import missing, not_here
from .block import Block, HybridBlock, SymbolBlock

_activations = {"softrelu": "softplus"}


def _activation(name):
    return _activations.get(name, name) if name else "identity"


class _Layer(HybridBlock):
    """A layer of the engine's with Gluon's name and options."""

    _in_python = False

    def __init__(self, inner, text):
        self._own(lib.sl_block_retain(inner._p))
        object.__setattr__(self, "_text", text)

    def __repr__(self):
        text = self._text(self) if callable(self._text) else self._text
        return f"{type(self).__name__}({text})" if text else type(self).__name__


def _sizes(layer):
    return layer.params.find("weight").shape


def _ending(activation):
    return f", Activation({activation})" if activation else ""


class Dense(_Layer):
    """A fully connected layer."""

    def __init__(self, units, activation=None, use_bias=True, flatten=True, dtype="float32", weight_initializer=None,
                 bias_initializer="zeros", in_units=0, **_):
        inner = _nn.Dense(units, activation=_activation(activation), no_bias=not use_bias, no_flatten=not flatten,
                          in_units=in_units, weight_init=named(weight_initializer), bias_init=named(bias_initializer))

        def text(layer):
            known = _sizes(layer)[1] if len(_sizes(layer)) > 1 else 0
            return f"{known or None} -> {units}, " + (f"Activation({activation})" if activation else "linear")

        super().__init__(inner, text)


class Conv2D(_Layer):
    """A convolution of images (n, channels, height, width)."""

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, layout="NCHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **_):
        if layout != "NCHW":
            raise not_here(f"Conv2D(layout={layout!r})", "layout NCHW")
        inner = _nn.Conv2d(channels, kernel=kernel_size, stride=strides, pad=padding, dilation=dilation, groups=groups,
                           no_bias=not use_bias, activation=_activation(activation), in_channels=in_channels,
                           weight_init=named(weight_initializer), bias_init=named(bias_initializer))

        def text(layer):
            known = _sizes(layer)[1]
            return f"{known or None} -> {channels}, kernel_size={pair(kernel_size)}, stride={pair(strides)}" + (
                f", padding={pair(padding)}" if pair(padding) != (0, 0) else "") + (
                f", dilation={pair(dilation)}" if pair(dilation) != (1, 1) else "") + (
                f", groups={groups}" if groups != 1 else "") + ("" if use_bias else ", bias=False") + _ending(activation)

        super().__init__(inner, text)


def _pooling(size, strides, padding, ceil_mode, whole, kind):
    return (f"size={pair(size)}, stride={pair(strides)}, padding={pair(padding)}, ceil_mode={ceil_mode}, "
            f"global_pool={whole}, pool_type={kind}, layout=NCHW")


class _Pool(_Layer):
    _type = "max"

    def __init__(self, kind, pool_size, strides, padding, ceil_mode, **options):
        strides = pool_size if strides is None else strides
        inner = kind(pair(pool_size)[0], stride=strides, pad=padding, ceil=ceil_mode, **options)
        if pair(pool_size)[0] != pair(pool_size)[1]:
            raise not_here(f"{type(self).__name__}(pool_size={pool_size})", "starling.pool2d")
        super().__init__(inner, _pooling(pool_size, strides, padding, ceil_mode, False, self._type))


class MaxPool2D(_Pool):
    """The maximum of windows."""

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, layout="NCHW", ceil_mode=False, **_):
        super().__init__(_nn.MaxPool2d, pool_size, strides, padding, ceil_mode)


class AvgPool2D(_Pool):
    """The mean of windows."""

    _type = "avg"

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, ceil_mode=False, layout="NCHW", count_include_pad=True, **_):
        super().__init__(_nn.AvgPool2d, pool_size, strides, padding, ceil_mode, exclude_pad=not count_include_pad)


class GlobalAvgPool2D(_Layer):
    """The mean of each channel."""

    def __init__(self, layout="NCHW", **_):
        super().__init__(_nn.GlobalAvgPool2d(), _pooling(1, 1, 0, True, True, "avg"))


class GlobalMaxPool2D(_Layer):
    """The maximum of each channel."""

    def __init__(self, layout="NCHW", **_):
        super().__init__(_nn.GlobalMaxPool2d(), _pooling(1, 1, 0, True, True, "max"))


class BatchNorm(_Layer):
    """Batch normalisation over the channels."""

    def __init__(self, axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False, in_channels=0, **_):
        if axis != 1:
            raise not_here(f"BatchNorm(axis={axis})", "axis 1")
        if use_global_stats:
            raise not_here("BatchNorm(use_global_stats=True)", "autograd.predict_mode")
        inner = _nn.BatchNorm(eps=epsilon, momentum=momentum, no_scale=not scale, no_center=not center, in_channels=in_channels)

        def text(layer):
            known = layer.params.find("running_mean").shape[0]
            return (f"axis=1, eps={epsilon}, momentum={momentum}, fix_gamma={not scale}, "
                    f"use_global_stats=False, in_channels={known or None}")

        super().__init__(inner, text)


class LayerNorm(_Layer):
    """Normalisation over the last axis."""

    def __init__(self, axis=-1, epsilon=1e-5, in_channels=0, **_):
        if axis != -1:
            raise not_here(f"LayerNorm(axis={axis})", "axis -1")
        super().__init__(_nn.LayerNorm(eps=epsilon, in_channels=in_channels), f"eps={epsilon}, axis=-1, center=True, scale=True, in_channels={in_channels}")


class Activation(_Layer):
    """relu, sigmoid, tanh, softrelu."""

    def __init__(self, activation, **_):
        super().__init__(_nn.Activation(_activation(activation)), activation)


class LeakyReLU(HybridBlock):
    """x where it is positive, else alpha·x."""

    def __init__(self, alpha, **_):
        super().__init__()
        object.__setattr__(self, "_alpha", alpha)

    def hybrid_forward(self, F, x):
        return F.LeakyReLU(x, slope=self._alpha)

    def __repr__(self):
        return f"LeakyReLU({self._alpha})"


class Dropout(_Layer):
    """Elements become zero with probability rate in training."""

    def __init__(self, rate, **_):
        super().__init__(_nn.Dropout(rate), f"p = {rate}, axes=()")


class Flatten(_Layer):
    """(n, …) as (n, elements)."""

    def __init__(self, **_):
        super().__init__(_nn.Flatten(), "")


class Embedding(_Layer):
    """A row of numbers for each word."""

    def __init__(self, input_dim, output_dim, **_):
        super().__init__(_nn.Embedding(input_dim, output_dim), f"{input_dim} -> {output_dim}, float32")


class Sequential(Block):
    """Blocks one after the other."""

    _in_python = False

    def __init__(self, prefix=None, params=None):
        self._own(lib.sl_sequential_at(here(), NULL, 0))

    def add(self, *blocks):
        """Appends blocks."""
        for block in blocks:
            self.add_child(str(len(self._children)), block)

    def __len__(self):
        return len(self._children)

    def __getitem__(self, i):
        children = list(self._children.values())
        if not isinstance(i, slice):
            return children[i]
        part = type(self)()
        part.add(*children[i])
        return part

    def __iter__(self):
        return iter(self._children.values())


class HybridSequential(Sequential, HybridBlock):
    """Hybrid blocks one after the other."""

    def hybridize(self, active=True, **options):
        """Runs the blocks as one compiled program from now on."""
        HybridBlock.hybridize(self, active, **options)


def _function_name(block):
    return f"{type(block).__name__}({getattr(block._function, '__name__', block._function)})"


class Lambda(Block):
    """A function of arrays as a block."""

    def __init__(self, function, prefix=None):
        super().__init__()
        object.__setattr__(self, "_function", function)

    def forward(self, *args):
        from .. import nd

        function = getattr(nd, self._function) if isinstance(self._function, str) else self._function
        return function(*args)

    __repr__ = _function_name


class HybridLambda(HybridBlock):
    """A function of F and arrays as a block."""

    def __init__(self, function, prefix=None):
        super().__init__()
        object.__setattr__(self, "_function", function)

    def hybrid_forward(self, F, *args):
        if isinstance(self._function, str):
            return getattr(F, self._function)(*args)
        return self._function(F, *args)

    __repr__ = _function_name


__getattr__ = missing("mx.gluon.nn")
