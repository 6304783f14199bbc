"""mx.gluon.nn: layers of the engine (_Layer), and layers made of operations (_Plain)."""
from ... import _ops as ops
from ... import nn as _nn
from ..._blocks import Lambda as _Function
from ..._core import lib, pair
from .._signed import as_mxnet as _as_mxnet
from .. import init as _init
from .._program import classify
from ..autograd import is_training, predict_mode
from ..functions import numbers_of
from ..init import for_layer, keep
from ..layers import Dropout as _dropout
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
        _keep(self, weight=weight_initializer, **({"bias": bias_initializer} if use_bias else {}))


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
        _keep(self, weight=weight_initializer, **({"bias": bias_initializer} if use_bias else {}))


def _pooling(size, strides, padding, ceil_mode, whole, kind, layout):
    return (f"size={pair(size)}, stride={pair(strides)}, padding={pair(padding)}, ceil_mode={ceil_mode}, "
            f"global_pool={whole}, pool_type={kind}, layout={layout}")


class _OfImages(_Layer):
    """A layer of images whose channels may be at the end."""

    def _lay_out(self, layout):
        if layout not in ("NCHW", "NHWC"):
            raise ValueError(f"{type(self).__name__}: Only NCHW and NHWC layouts are valid for 2D Pooling, got {layout!r}")
        object.__setattr__(self, "_last", layout == "NHWC")

    def __call__(self, x):
        return _moved(super().__call__(_moved(x, -1, 1)), 1, -1) if self._last else super().__call__(x)


class _Pool(_OfImages):
    _type = "max"

    def __init__(self, pool_size, strides, padding, ceil_mode, layout, exclude_pad=False, **common):
        size, strides = pair(pool_size, "pool_size"), pool_size if strides is None else strides
        options = {"stride": pair(strides, "strides"), "pad": pair(padding, "padding"), "ceil": ceil_mode, "exclude_pad": exclude_pad}
        if size[0] == size[1]:
            inner = (_nn.MaxPool2d if self._type == "max" else _nn.AvgPool2d)(size[0], **options)
        else:
            inner = _Function(lambda x: ops.pool2d(x, type=self._type, kernel=size, **options))
        super().__init__(inner, _pooling(pool_size, strides, padding, ceil_mode, False, self._type, layout), **common)
        self._lay_out(layout)


class MaxPool2D(_Pool):
    """The maximum of windows."""

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, layout="NCHW", ceil_mode=False, **common):
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **common)


class AvgPool2D(_Pool):
    """The mean of windows."""

    _type = "avg"

    def __init__(self, pool_size=(2, 2), strides=None, padding=0, ceil_mode=False, layout="NCHW", count_include_pad=True, **common):
        super().__init__(pool_size, strides, padding, ceil_mode, layout, not count_include_pad, **common)


class GlobalAvgPool2D(_OfImages):
    """The mean of each channel."""

    def __init__(self, layout="NCHW", **common):
        super().__init__(_nn.GlobalAvgPool2d(), _pooling(1, 1, 0, True, True, "avg", layout), **common)
        self._lay_out(layout)


class GlobalMaxPool2D(_OfImages):
    """The maximum of each channel."""

    def __init__(self, layout="NCHW", **common):
        super().__init__(_nn.GlobalMaxPool2d(), _pooling(1, 1, 0, True, True, "max", layout), **common)
        self._lay_out(layout)


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


def _lengths(n, **options):
    """Options of windows over n axes, as tuples."""
    found = []
    for name, value in options.items():
        value = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
        if len(value) != n or not all(hasattr(v, "__index__") for v in value):
            raise TypeError(f"{name} is {value!r}, {n} whole number{'s are' if n > 1 else ' is'} needed")
        found.append(value)
    return found


def _windows_text(kernel, stride, pad, dilate, groups, use_bias, adj=None):
    """The options of a convolution as MXNet prints them."""
    n = len(kernel)
    return f"kernel_size={kernel}, stride={stride}" + (f", padding={pad}" if pad != (0,) * n else "") + (
        f", dilation={dilate}" if dilate != (1,) * n else "") + (f", output_padding={adj}" if adj and adj != (0,) * n else "") + (
        f", groups={groups}" if groups != 1 else "") + ("" if use_bias else ", bias=False")


class _Convolution(_Windows):
    _function, _layout = "Convolution", "NCW"

    def __init__(self, channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
                 bias_initializer, in_channels, **common):
        kernel, stride, pad, dilate = _lengths(len(self._layout) - 2, kernel_size=kernel_size, strides=strides, padding=padding, dilation=dilation)
        super().__init__(channels, kernel, {"stride": stride, "pad": pad, "dilate": dilate, "num_group": groups},
                         _windows_text(kernel, stride, pad, dilate, groups, use_bias), activation, use_bias, weight_initializer,
                         bias_initializer, in_channels, layout, self._layout, **common)  # fmt: skip


class Conv1D(_Convolution):
    """A convolution of rows (n, channels, width)."""

    def __init__(self, channels, kernel_size, strides=1, padding=0, dilation=1, groups=1, layout="NCW", activation=None, use_bias=True,
                 weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
                         bias_initializer, in_channels, **common)


class Conv3D(_Convolution):
    """A convolution of (n, channels, depth, height, width)."""

    _layout = "NCDHW"

    def __init__(self, channels, kernel_size, strides=(1, 1, 1), padding=(0, 0, 0), dilation=(1, 1, 1), groups=1, layout="NCDHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
                         bias_initializer, in_channels, **common)


class _Transposed(_Windows):
    _function, _layout = "Deconvolution", "NCHW"

    def __init__(self, channels, kernel_size, strides, padding, output_padding, dilation, groups, layout, activation, use_bias,
                 weight_initializer, bias_initializer, in_channels, **common):
        kernel, stride, pad, dilate, adj = _lengths(len(self._layout) - 2, kernel_size=kernel_size, strides=strides, padding=padding,
                                                    dilation=dilation, output_padding=output_padding)
        options = {"stride": stride, "pad": pad, "dilate": dilate, "adj": adj, "num_group": groups}
        super().__init__(channels, kernel, options, _windows_text(kernel, stride, pad, dilate, groups, use_bias, adj), activation, use_bias,
                         weight_initializer, bias_initializer, in_channels, layout, self._layout, **common)  # fmt: skip

    def _shape(self, channels):
        return (-1 if channels < 0 else channels, self._channels // self._options["num_group"], *self._kernel)

    def __repr__(self):
        return super().__repr__().replace(f"{self._known or None} -> {self._channels}", f"{self._channels} -> {self._known or None}", 1)


class Conv1DTranspose(_Transposed):
    """A transposed convolution of rows."""

    _layout = "NCW"

    def __init__(self, channels, kernel_size, strides=1, padding=0, output_padding=0, dilation=1, groups=1, layout="NCW", activation=None,
                 use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, output_padding, dilation, groups, layout, activation, use_bias,
                         weight_initializer, bias_initializer, in_channels, **common)


class Conv2DTranspose(_Transposed):
    """A transposed convolution of images."""

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), output_padding=(0, 0), dilation=(1, 1), groups=1, layout="NCHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, output_padding, dilation, groups, layout, activation, use_bias,
                         weight_initializer, bias_initializer, in_channels, **common)


class Conv3DTranspose(_Transposed):
    """A transposed convolution of (n, channels, depth, height, width)."""

    _layout = "NCDHW"

    def __init__(self, channels, kernel_size, strides=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), dilation=(1, 1, 1), groups=1,
                 layout="NCDHW", activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, output_padding, dilation, groups, layout, activation, use_bias,
                         weight_initializer, bias_initializer, in_channels, **common)


class _Windowed(_Plain):
    """Pooling over one axis or three."""

    _type, _whole, _layout = "max", False, "NCW"

    def __init__(self, pool_size=2, strides=None, padding=0, layout=None, ceil_mode=False, count_include_pad=True, **common):
        layout, last = layout or self._layout, f"N{self._layout[2:]}C"
        if layout not in (self._layout, last):
            raise ValueError(f"{type(self).__name__}: layout is {layout!r}; these are {self._layout} and {last}")
        size, stride, pad = _lengths(len(self._layout) - 2, pool_size=pool_size, strides=pool_size if strides is None else strides, padding=padding)
        super().__init__(f"size={size}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, global_pool={self._whole}, "
                         f"pool_type={self._type}, layout={layout}", **common)  # fmt: skip
        self._options = {"kernel": size, "stride": stride, "pad": pad, "pool_type": self._type, "global_pool": self._whole, "layout": layout,
                         "pooling_convention": "full" if ceil_mode else "valid", "count_include_pad": count_include_pad}  # fmt: skip

    def hybrid_forward(self, F, x):
        return F.Pooling(x, **self._options)


class MaxPool1D(_Windowed):
    """The maximum of windows of rows."""

    def __init__(self, pool_size=2, strides=None, padding=0, layout="NCW", ceil_mode=False, **common):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **common)


class AvgPool1D(_Windowed):
    """The mean of windows of rows."""

    _type = "avg"

    def __init__(self, pool_size=2, strides=None, padding=0, layout="NCW", ceil_mode=False, count_include_pad=True, **common):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, count_include_pad, **common)


class MaxPool3D(_Windowed):
    """The maximum of windows of (n, channels, depth, height, width)."""

    _layout = "NCDHW"

    def __init__(self, pool_size=(2, 2, 2), strides=None, padding=0, ceil_mode=False, layout="NCDHW", **common):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, **common)


class AvgPool3D(_Windowed):
    """The mean of windows of (n, channels, depth, height, width)."""

    _type, _layout = "avg", "NCDHW"

    def __init__(self, pool_size=(2, 2, 2), strides=None, padding=0, ceil_mode=False, layout="NCDHW", count_include_pad=True, **common):
        super().__init__(pool_size, strides, padding, layout, ceil_mode, count_include_pad, **common)


class _Whole(_Windowed):
    """Pooling of all of each channel."""

    _whole = True

    def __init__(self, layout=None, **common):
        super().__init__(1, None, 0, layout, True, **common)


class GlobalMaxPool1D(_Whole):
    """The maximum of each channel of rows."""

    def __init__(self, layout="NCW", **common):
        super().__init__(layout, **common)


class GlobalAvgPool1D(GlobalMaxPool1D):
    """The mean of each channel of rows."""

    _type = "avg"


class GlobalMaxPool3D(_Whole):
    """The maximum of each channel of (n, channels, depth, height, width)."""

    _layout = "NCDHW"

    def __init__(self, layout="NCDHW", **common):
        super().__init__(layout, **common)


class GlobalAvgPool3D(GlobalMaxPool3D):
    """The mean of each channel of (n, channels, depth, height, width)."""

    _type = "avg"


class ReflectionPad2D(_Plain):
    """Images padded by reflection at the edges."""

    def __init__(self, padding=0, **common):
        super().__init__("", **common)
        self._padding = (0, 0, 0, 0, padding, padding, padding, padding) if isinstance(padding, int) else tuple(padding)

    def hybrid_forward(self, F, x):
        return F.pad(x, mode="reflect", pad_width=self._padding)


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

    def __call__(self, x):
        moved = _moved(x, self._channels_at, 1) if x.ndim and x.ndim > 1 else x
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
        for name, value, usual, trained in (("beta", beta_initializer, "zeros", center), ("gamma", gamma_initializer, "ones", scale)):
            keep(self.params.find(name), value, usual)
            if not trained:
                self.params.find(name).grad_req = "null"

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
        if sparse_grad:
            raise not_here("Embedding(sparse_grad=True)", "dense gradients")
        super().__init__(_nn.Embedding(input_dim, output_dim), f"{input_dim} -> {output_dim}, float32", **common)
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
