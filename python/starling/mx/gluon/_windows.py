"""Layers of windows: convolutions and pooling over one, two or three axes."""
from ... import _ops as ops
from ... import nn as _nn
from ..._blocks import Lambda as _Function
from ..._core import pair
from ..init import for_layer
from ..unsupported import not_here
from ._layer import _activation, _ending, _keep, _Layer, _moved, _Plain, _sizes
from .block import HybridBlock, fit


class Conv2D(_Layer):
    """A convolution of images (n, channels, height, width), or with the channels at the end (layout="NHWC"), also of the weight."""

    def __new__(cls, *args, layout="NCHW", **options):
        layout = args[6] if len(args) > 6 else layout
        return super().__new__(_Conv2DAtEnd if cls is Conv2D and layout == "NHWC" else cls)

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, layout="NCHW",
                 activation=None, use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        if layout != "NCHW":
            raise not_here(f"Conv2D(layout={layout!r})", "layout NCHW or NHWC")
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
        last = f"N{wanted[2:]}C"
        if layout not in (wanted, last):
            raise not_here(f"{type(self).__name__}(layout={layout!r})", f"layout {wanted} or {last}")
        super().__init__(text, **common)
        object.__setattr__(self, "_last", layout == last)
        if self._last:
            options["layout"] = layout
        self._channels, self._kernel, self._options, self._activation, self._known = channels, kernel, options, activation, in_channels
        self.weight = self.params.get("weight", shape=self._laid_out(in_channels or -options["num_group"]), init=weight_initializer)
        self.bias = self.params.get("bias", shape=(channels,), init=bias_initializer) if use_bias else None

    def _shape(self, channels):
        return (self._channels, channels // self._options["num_group"], *self._kernel)

    def _laid_out(self, channels):
        """The shape of the weight in the layout of the data."""
        first, second, *kernel = self._shape(channels)
        return (first, *kernel, second) if self._last else (first, second, *kernel)

    def _fit(self, x):
        channels = x.shape[-1 if self._last else 1]
        fit(self.weight, self._laid_out(channels))
        object.__setattr__(self, "_known", channels)

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


class _Conv2DAtEnd(_Convolution, Conv2D):
    """Conv2D with the channels at the end."""

    _layout, _in_python, __setattr__ = "NCHW", True, HybridBlock.__setattr__

    def __init__(self, channels, kernel_size, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, layout="NHWC", activation=None,
                 use_bias=True, weight_initializer=None, bias_initializer="zeros", in_channels=0, **common):
        super().__init__(channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
                         bias_initializer, in_channels, **common)


_Conv2DAtEnd.__name__ = "Conv2D"  # in names and when it is printed


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
