"""Layers that are made of operations."""
from ..._core import pair
from .. import init as _init
from ..unsupported import not_here
from .block import HybridBlock, fit

__all__ = """AvgPool1D BatchNormReLU Conv1D Conv2DTranspose ELU GELU GlobalAvgPool1D GlobalMaxPool1D GroupNorm InstanceNorm LeakyReLU
    MaxPool1D PReLU ReflectionPad2D SELU Swish""".split()


class _Plain(HybridBlock):
    """A layer without parameters, with the text that it is printed as."""

    def __init__(self, text="", prefix=None, params=None):
        super().__init__(prefix, params)
        object.__setattr__(self, "_text", text)

    def __repr__(self):
        return f"{type(self).__name__}({self._text})" if self._text else super().__repr__()


# ---- activations


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
    """x times the share of normal numbers below x."""

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
    """x where it is positive, else alpha·x with an alpha that is trained."""

    def __init__(self, alpha_initializer=None, in_channels=1, **common):
        super().__init__("", **common)
        self.alpha = self.params.get("alpha", shape=(in_channels,), init=alpha_initializer or _init.Constant(0.25))

    def hybrid_forward(self, F, x, alpha):
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu")


# ---- normalisation


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
    """Normalisation of groups of channels of each sample; a factor and a bias for each group, as MXNet 1.9.1 has them."""

    def __init__(self, num_groups=1, epsilon=1e-5, center=True, scale=True, beta_initializer="zeros", gamma_initializer="ones", in_channels=0,
                 **common):
        text = f"eps={epsilon}, num_groups={num_groups}, center={center}, scale={scale}"
        super().__init__(epsilon, center, scale, beta_initializer, gamma_initializer, num_groups, text, **common)
        self._groups = num_groups

    def _fit(self, x):
        """One for each group: known from the beginning."""

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


# ---- windows


class _Windows(_Plain):
    """What convolutions here have in common: weight, bias, activation."""

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
