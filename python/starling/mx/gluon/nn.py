"""mx.gluon.nn: layers of the engine (_Layer), and layers made of operations (_Plain)."""
from ... import _ops as ops
from ... import nn as _nn
from ..._blocks import Lambda as _Function
from ..._core import lib, pair
from .._signed import as_mxnet as _as_mxnet
from .. import init as _init
from ..functions import numbers_of
from ..init import for_layer
from ..unsupported import missing, not_here
from .block import Block, HybridBlock, SymbolBlock, fit

_activations = {None: "identity", "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh"}


def _activation(name):
    if name not in _activations:
        raise not_here(f"activation {name!r} of a layer", ", ".join(n for n in _activations if n) + ", or a layer of its own")
    return _activations[name]


# Attributes that MXNet's layers keep, and read at each call.
_KEPT = frozenset("_units _in_units _flatten _channels _in_channels _kwargs _rate _axes _axis _input_dim _output_dim _epsilon _act_type act".split())


class _Layer(HybridBlock):
    """A layer of the engine with Gluon's name and options."""

    _in_python = False

    def __init__(self, inner, text, prefix=None, params=None):
        shared = params._block if params is not None else None
        if shared is not None and type(shared) is not type(self):
            raise not_here(f"{type(self).__name__}(params=…) of another kind of layer", "the params of a layer of the same kind")
        self._own(lib.sl_block_retain((shared or inner)._p))  # with shared parameters: the same layer
        self._prepare()
        if shared is None:
            self._take_names(prefix)
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "_inner", shared or inner)

    def __setattr__(self, name, value):
        if name in _KEPT:
            raise AttributeError(f"{type(self).__name__}.{name} is from when the layer was made: make another one")
        super().__setattr__(name, value)

    def __repr__(self):
        text = self._text(self) if callable(self._text) else self._text
        return f"{type(self).__name__}({text})" if text else type(self).__name__


class _Plain(HybridBlock):
    """A layer made of operations, with its printed text."""

    def __init__(self, text="", prefix=None, params=None):
        super().__init__(prefix, params)
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


class Dense(_Layer):
    """A fully connected layer."""

    def __init__(self, units, activation=None, use_bias=True, flatten=True, dtype="float32", weight_initializer=None,
                 bias_initializer="zeros", in_units=0, **common):
        _float32(dtype, "Dense")
        inner = _nn.Dense(units, activation=_activation(activation), no_bias=not use_bias, no_flatten=not flatten,
                          in_units=in_units, weight_init=for_layer(weight_initializer), bias_init=for_layer(bias_initializer) if use_bias else None)

        def text(layer):
            known = _sizes(layer)[1] if len(_sizes(layer)) > 1 else 0
            return f"{known or None} -> {units}, " + (f"Activation({activation})" if activation else "linear")

        super().__init__(inner, text, **common)


class Conv2D(_Layer):
    """A convolution of images (n, channels, height, width)."""

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, layout="NCHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        if layout != "NCHW":
            raise not_here(f"Conv2D(layout={layout!r})", "layout NCHW")
        inner = _nn.Conv2d(channels, kernel=kernel_size, stride=strides, pad=padding, dilation=dilation, groups=groups,
                           no_bias=not use_bias, activation=_activation(activation), in_channels=in_channels,
                           weight_init=for_layer(weight_initializer), bias_init=for_layer(bias_initializer) if use_bias else None)

        def text(layer):
            known = _sizes(layer)[1]
            return f"{known or None} -> {channels}, kernel_size={pair(kernel_size)}, stride={pair(strides)}" + (
                f", padding={pair(padding)}" if pair(padding) != (0, 0) else "") + (
                f", dilation={pair(dilation)}" if pair(dilation) != (1, 1) else "") + (
                f", groups={groups}" if groups != 1 else "") + ("" if use_bias else ", bias=False") + _ending(activation)

        super().__init__(inner, text, **common)


def _pooling(size, strides, padding, ceil_mode, whole, kind):
    return (f"size={pair(size)}, stride={pair(strides)}, padding={pair(padding)}, ceil_mode={ceil_mode}, "
            f"global_pool={whole}, pool_type={kind}, layout=NCHW")


def _images(layout, name):
    if layout != "NCHW":
        raise not_here(f"{name}(layout={layout!r})", "layout NCHW")


class _Pool(_Layer):
    _type = "max"

    def __init__(self, pool_size, strides, padding, ceil_mode, layout, exclude_pad=False, **common):
        _images(layout, type(self).__name__)
        size, strides = pair(pool_size, "pool_size"), pool_size if strides is None else strides
        options = {"stride": pair(strides, "strides"), "pad": pair(padding, "padding"), "ceil": ceil_mode, "exclude_pad": exclude_pad}
        if size[0] == size[1]:
            inner = (_nn.MaxPool2d if self._type == "max" else _nn.AvgPool2d)(size[0], **options)
        else:
            inner = _Function(lambda x: ops.pool2d(x, type=self._type, kernel=size, **options))
        super().__init__(inner, _pooling(pool_size, strides, padding, ceil_mode, False, self._type), **common)


class MaxPool2D(_Pool):
    """The maximum of windows."""

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, layout="NCHW", ceil_mode=False, **common):
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **common)


class AvgPool2D(_Pool):
    """The mean of windows."""

    _type = "avg"

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, ceil_mode=False, layout="NCHW", count_include_pad=True, **common):
        super().__init__(pool_size, strides, padding, ceil_mode, layout, not count_include_pad, **common)


class GlobalAvgPool2D(_Layer):
    """The mean of each channel."""

    def __init__(self, layout="NCHW", **common):
        _images(layout, type(self).__name__)
        super().__init__(_nn.GlobalAvgPool2d(), _pooling(1, 1, 0, True, True, "avg"), **common)


class GlobalMaxPool2D(_Layer):
    """The maximum of each channel."""

    def __init__(self, layout="NCHW", **common):
        _images(layout, type(self).__name__)
        super().__init__(_nn.GlobalMaxPool2d(), _pooling(1, 1, 0, True, True, "max"), **common)


class _Windows(_Plain):
    """The common parts of convolutions: weight, bias, activation."""

    def __init__(self, channels, kernel, options, text, activation, use_bias, weight_initializer, bias_initializer, in_channels, layout,
                 wanted, **common):
        if layout != wanted:
            raise not_here(f"{type(self).__name__}(layout={layout!r})", f"layout {wanted}")
        super().__init__(text, **common)
        self._channels, self._kernel, self._options, self._activation, self._known = channels, kernel, options, activation, in_channels
        self.weight = self.params.get("weight", shape=self._shape(in_channels or -options["num_group"]), init=weight_initializer)
        self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer) if use_bias else None

    def _shape(self, channels):
        return (self._channels, channels // self._options["num_group"], *self._kernel)

    def _fit(self, x):
        fit(self.weight, self._shape(x.shape[1]))
        object.__setattr__(self, "_known", x.shape[1])

    def hybrid_forward(self, F, x, weight, bias=None):
        y = getattr(F, self._function)(x, weight, bias, kernel=self._kernel, num_filter=self._channels, no_bias=bias is None, **self._options)
        return F.Activation(y, act_type=self._activation) if self._activation else y

    def __repr__(self):
        end = f", Activation({self._activation})" if self._activation else ""
        return f"{type(self).__name__}({self._known or None} -> {self._channels}, {self._text}{end})"


def _length(value, name):
    """An option of windows over one axis, as a tuple."""
    value = value if isinstance(value, (tuple, list)) else (value,)
    if len(value) != 1 or not hasattr(value[0], "__index__"):
        raise TypeError(f"{name} is {value!r}, one whole number is needed")
    return tuple(value)


class Conv1D(_Windows):
    """A convolution of rows (n, channels, width)."""

    _function = "Convolution"

    def __init__(self, channels, kernel_size, strides=1, padding=0, dilation=1, groups=1, layout="NCW", activation=None, use_bias=True,
                 weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        kernel, stride, pad, dilate = (_length(v, n) for v, n in ((kernel_size, "kernel_size"), (strides, "strides"), (padding, "padding"),
                                                                  (dilation, "dilation")))  # fmt: skip
        text = f"kernel_size={kernel}, stride={stride}" + (f", padding={pad}" if pad != (0,) else "") + (
            f", dilation={dilate}" if dilate != (1,) else "") + (f", groups={groups}" if groups != 1 else "") + (
            "" if use_bias else ", bias=False")
        super().__init__(channels, kernel, {"stride": stride, "pad": pad, "dilate": dilate, "num_group": groups}, text, activation, use_bias,
                         weight_initializer, bias_initializer, in_channels, layout, "NCW", **common)


class Conv2DTranspose(_Windows):
    """A transposed convolution of images."""

    _function = "Deconvolution"

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), output_padding=(0, 0), dilation=(1, 1), groups=1, layout="NCHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        kernel, stride, pad, dilate, adj = map(pair, (kernel_size, strides, padding, dilation, output_padding))
        text = f"kernel_size={kernel}, stride={stride}" + (f", padding={pad}" if pad != (0, 0) else "") + (
            f", dilation={dilate}" if dilate != (1, 1) else "") + (f", output_padding={adj}" if adj != (0, 0) else "") + (
            f", groups={groups}" if groups != 1 else "") + ("" if use_bias else ", bias=False")
        options = {"stride": stride, "pad": pad, "dilate": dilate, "adj": adj, "num_group": groups}
        super().__init__(channels, kernel, options, text, activation, use_bias, weight_initializer, bias_initializer, in_channels, layout,
                         "NCHW", **common)

    def _shape(self, channels):
        return (-1 if channels < 0 else channels, self._channels // self._options["num_group"], *self._kernel)

    def __repr__(self):
        return super().__repr__().replace(f"{self._known or None} -> {self._channels}", f"{self._channels} -> {self._known or None}", 1)


class _Pool1D(_Plain):
    _type, _whole = "max", False

    def __init__(self, pool_size=2, strides=None, padding=0, layout="NCW", ceil_mode=False, count_include_pad=True, **common):
        if layout != "NCW":
            raise not_here(f"{type(self).__name__}(layout={layout!r})", "layout NCW")
        size, stride, pad = (_length(v, n) for v, n in ((pool_size, "pool_size"), (pool_size if strides is None else strides, "strides"),
                                                        (padding, "padding")))  # fmt: skip
        super().__init__(f"size={size}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, global_pool={self._whole}, "
                         f"pool_type={self._type}, layout=NCW", **common)  # fmt: skip
        self._options = {"kernel": size, "stride": stride, "pad": pad, "pool_type": self._type, "global_pool": self._whole,
                         "pooling_convention": "full" if ceil_mode else "valid", "count_include_pad": count_include_pad}  # fmt: skip

    def hybrid_forward(self, F, x):
        return F.Pooling(x, **self._options)


class MaxPool1D(_Pool1D):
    """The maximum of windows of rows."""


class AvgPool1D(_Pool1D):
    """The mean of windows of rows."""

    _type = "avg"


class GlobalMaxPool1D(_Pool1D):
    """The maximum of each channel of rows."""

    _whole = True

    def __init__(self, layout="NCW", **common):
        super().__init__(1, None, 0, layout, True, **common)


class GlobalAvgPool1D(GlobalMaxPool1D):
    """The mean of each channel of rows."""

    _type = "avg"


class ReflectionPad2D(_Plain):
    """Images padded by reflection at the edges."""

    def __init__(self, padding=0, **common):
        super().__init__("", **common)
        self._padding = (0, 0, 0, 0, padding, padding, padding, padding) if isinstance(padding, int) else tuple(padding)

    def hybrid_forward(self, F, x):
        return F.pad(x, mode="reflect", pad_width=self._padding)


def _standard(gamma, beta, name):
    if (gamma, beta) != ("ones", "zeros"):
        raise not_here(f"{name}(gamma_initializer={gamma!r}, beta_initializer={beta!r})", "ones and zeros, then set_data")


class BatchNorm(_Layer):
    """Batch normalisation over the channels."""

    def __init__(self, axis=1, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False, beta_initializer="zeros",
                 gamma_initializer="ones", running_mean_initializer="zeros", running_variance_initializer="ones", in_channels=0, **common):
        _standard(gamma_initializer, beta_initializer, "BatchNorm")
        if (running_mean_initializer, running_variance_initializer) != ("zeros", "ones"):
            raise not_here("BatchNorm(running_mean_initializer=…)", "zeros for the mean, ones for the variance")
        if axis != 1:
            raise not_here(f"BatchNorm(axis={axis})", "axis 1")
        if use_global_stats:
            raise not_here("BatchNorm(use_global_stats=True)", "autograd.predict_mode")
        inner = _nn.BatchNorm(eps=epsilon, momentum=momentum, no_scale=not scale, no_center=not center, in_channels=in_channels)

        def text(layer):
            known = layer.params.find("running_mean").shape[0]
            return (f"axis=1, eps={epsilon}, momentum={momentum}, fix_gamma={not scale}, "
                    f"use_global_stats=False, in_channels={known or None}")

        super().__init__(inner, text, **common)


class LayerNorm(_Layer):
    """Normalisation over the last axis."""

    def __init__(self, axis=-1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", in_channels=0,
                 **common):
        _standard(gamma_initializer, beta_initializer, "LayerNorm")
        if axis != -1 or not center or not scale:
            raise not_here("LayerNorm over another axis than the last, or without scale or center", "nd.LayerNorm")

        def text(layer):
            return f"eps={epsilon}, axis=-1, center=True, scale=True, in_channels={layer.params.find('gamma').shape[0]}"

        super().__init__(_nn.LayerNorm(eps=epsilon, in_channels=in_channels), text, **common)


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
        if axis != 1:
            raise not_here(f"InstanceNorm(axis={axis})", "axis 1")
        text = f"eps={epsilon}, axis=1, center={center}, scale={scale}, in_channels="
        super().__init__(epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, text, **common)

    def __repr__(self):
        return f"InstanceNorm({self._text}{self.gamma.shape[0]})"

    def hybrid_forward(self, F, x, gamma, beta):
        return F.InstanceNorm(x, gamma, beta, eps=self._eps)


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
        if axes:
            raise not_here("Dropout(axes=…)", "Dropout without axes")
        super().__init__(_nn.Dropout(rate), f"p = {rate}, axes=()", **common)


class Flatten(_Layer):
    """(n, …) as (n, elements)."""

    def __init__(self, **common):
        super().__init__(_nn.Flatten(), "", **common)


class Embedding(_Layer):
    """A row of numbers for each word."""

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None, sparse_grad=False, **common):
        _float32(dtype, "Embedding")
        if weight_initializer is not None or sparse_grad:
            raise not_here("Embedding(weight_initializer=…) or sparse_grad", "initialize(init), and dense gradients")
        super().__init__(_nn.Embedding(input_dim, output_dim), f"{input_dim} -> {output_dim}, float32", **common)

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
