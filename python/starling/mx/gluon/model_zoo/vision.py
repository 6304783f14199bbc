"""mx.gluon.model_zoo.vision: networks for images, with the layers and the names of parameters that MXNet's have.

Their weights are random; pretrained=True reads them from a file in `root` that MXNet has stored there.
"""
import glob
import os

from ... import init
from ...unsupported import missing
from .. import nn
from ..block import HybridBlock
from ..contrib.nn import HybridConcurrent, Identity


def _chain(*layers, prefix=""):
    chain = nn.HybridSequential(prefix=prefix)
    with chain.name_scope():
        for layer in layers:
            chain.add(layer() if callable(layer) and not isinstance(layer, HybridBlock) else layer)
    return chain


class _Network(HybridBlock):
    """A network of features and an output."""

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


# ---- ResNet


def _conv3(channels, stride, in_channels):
    return nn.Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


class _ResidualV1(HybridBlock):
    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.body = nn.HybridSequential(prefix="")
        self._fill(channels, stride, in_channels)
        self.downsample = None
        if downsample:
            self.downsample = nn.HybridSequential(prefix="")
            self.downsample.add(nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=False, in_channels=in_channels), nn.BatchNorm())

    def hybrid_forward(self, F, x):
        rest = self.downsample(x) if self.downsample else x
        return F.Activation(rest + self.body(x), act_type="relu")


class BasicBlockV1(_ResidualV1):
    """Two convolutions beside a shortcut."""

    def _fill(self, channels, stride, in_channels):
        self.body.add(_conv3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"), _conv3(channels, 1, channels), nn.BatchNorm())


class BottleneckV1(_ResidualV1):
    """Three convolutions, of few channels in the middle, beside a shortcut."""

    def _fill(self, channels, stride, in_channels):
        few = channels // 4
        self.body.add(nn.Conv2D(few, kernel_size=1, strides=stride), nn.BatchNorm(), nn.Activation("relu"), _conv3(few, 1, few), nn.BatchNorm(),
                      nn.Activation("relu"), nn.Conv2D(channels, kernel_size=1, strides=1), nn.BatchNorm())  # fmt: skip


class _ResidualV2(HybridBlock):
    def __init__(self, channels, stride, downsample=False, in_channels=0, **kwargs):
        super().__init__(**kwargs)
        self.pairs = []
        for i, (wide, kernel, step, known) in enumerate(self._convolutions(channels, stride, in_channels)):
            setattr(self, f"bn{i + 1}", nn.BatchNorm())
            conv = nn.Conv2D(wide, kernel_size=kernel, strides=step, padding=kernel // 2, use_bias=False, in_channels=known)
            setattr(self, f"conv{i + 1}", conv)
            self.pairs.append(i + 1)
        self.downsample = nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels) if downsample else None

    def hybrid_forward(self, F, x):
        rest = x
        for i in self.pairs:
            x = F.Activation(getattr(self, f"bn{i}")(x), act_type="relu")
            if i == 1 and self.downsample:
                rest = self.downsample(x)
            x = getattr(self, f"conv{i}")(x)
        return x + rest


class BasicBlockV2(_ResidualV2):
    """Two convolutions after normalisations, beside a shortcut."""

    def _convolutions(self, channels, stride, in_channels):
        return (channels, 3, stride, in_channels), (channels, 3, 1, channels)


class BottleneckV2(_ResidualV2):
    """Three convolutions after normalisations, of few channels in the middle, beside a shortcut."""

    def _convolutions(self, channels, stride, in_channels):
        few = channels // 4
        return (few, 1, 1, 0), (few, 3, stride, few), (channels, 1, 1, 0)


class ResNetV1(_Network):
    """Deep residual networks, with normalisation after each convolution."""

    _second = False

    def __init__(self, block, layers, channels, classes=1000, thumbnail=False, **kwargs):
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise AssertionError("there is one more number of channels than of layers")
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            if self._second:
                self.features.add(nn.BatchNorm(scale=False, center=False))
            self._begin(channels[0], thumbnail)
            for i, count in enumerate(layers):
                self.features.add(self._stage(block, count, channels[i + 1], 1 if i == 0 else 2, i + 1, channels[i]))
            if self._second:
                self.features.add(nn.BatchNorm(), nn.Activation("relu"))
            self.features.add(nn.GlobalAvgPool2D())
            if self._second:
                self.features.add(nn.Flatten())
            self.output = nn.Dense(classes, in_units=channels[-1])

    def _begin(self, channels, thumbnail):
        if thumbnail:
            self.features.add(_conv3(channels, 1, 0))
            return
        self.features.add(nn.Conv2D(channels, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))

    def _stage(self, block, count, channels, stride, number, in_channels):
        stage = nn.HybridSequential(prefix=f"stage{number}_")
        with stage.name_scope():
            stage.add(block(channels, stride, channels != in_channels, in_channels=in_channels, prefix=""))
            for _ in range(count - 1):
                stage.add(block(channels, 1, False, in_channels=channels, prefix=""))
        return stage


class ResNetV2(ResNetV1):
    """Deep residual networks, with normalisation before each convolution."""

    _second = True


_DEPTHS = {18: (0, [2, 2, 2, 2]), 34: (0, [3, 4, 6, 3]), 50: (1, [3, 4, 6, 3]), 101: (1, [3, 4, 23, 3]), 152: (1, [3, 8, 36, 3])}
_WIDTHS = ([64, 64, 128, 256, 512], [64, 256, 512, 1024, 2048])
resnet_net_versions = [ResNetV1, ResNetV2]
resnet_block_versions = [{"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1}, {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2}]


def get_resnet(version, num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """A ResNet of version 1 or 2 with 18, 34, 50, 101 or 152 layers."""
    if num_layers not in _DEPTHS:
        raise AssertionError(f"Invalid number of layers: {num_layers}. Options are {sorted(_DEPTHS)}")
    if version not in (1, 2):
        raise AssertionError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers = _DEPTHS[num_layers]
    block = resnet_block_versions[version - 1][("basic_block", "bottle_neck")[kind]]
    net = resnet_net_versions[version - 1](block, layers, _WIDTHS[kind], **kwargs)
    return _loaded(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


# ---- VGG, AlexNet, SqueezeNet


class VGG(_Network):
    """Convolutions of 3 × 3 in groups, then three dense layers."""

    def __init__(self, layers, filters, classes=1000, batch_norm=False, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            for count, channels in zip(layers, filters):
                for _ in range(count):
                    self.features.add(nn.Conv2D(channels, kernel_size=3, padding=1, bias_initializer="zeros",
                                                weight_initializer=init.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)))  # fmt: skip
                    if batch_norm:
                        self.features.add(nn.BatchNorm())
                    self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(nn.Dense(4096, activation="relu", weight_initializer="normal", bias_initializer="zeros"), nn.Dropout(rate=0.5))
            self.output = nn.Dense(classes, weight_initializer="normal", bias_initializer="zeros")


_VGG = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}


def get_vgg(num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """A VGG network with 11, 13, 16 or 19 layers."""
    net = VGG(_VGG[num_layers], [64, 128, 256, 512, 512], **kwargs)
    return _loaded(net, f"vgg{num_layers}" + ("_bn" if kwargs.get("batch_norm") else ""), pretrained, ctx, root)


class AlexNet(_Network):
    """Five convolutions and three dense layers."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                self.features.add(nn.Conv2D(64, 11, 4, 2, activation="relu"), nn.MaxPool2D(3, 2),
                                  nn.Conv2D(192, 5, padding=2, activation="relu"), nn.MaxPool2D(3, 2))  # fmt: skip
                for channels in (384, 256, 256):
                    self.features.add(nn.Conv2D(channels, 3, padding=1, activation="relu"))
                self.features.add(nn.MaxPool2D(3, 2), nn.Flatten())
                for _ in range(2):
                    self.features.add(nn.Dense(4096, activation="relu"), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def alexnet(pretrained=False, ctx=None, root=None, **kwargs):
    """AlexNet."""
    return _loaded(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)


def _fire(squeeze, one, three):
    def conv(channels, kernel, padding=0):
        return _chain(nn.Conv2D(channels, kernel, padding=padding), nn.Activation("relu"))

    fire, paths = nn.HybridSequential(prefix=""), HybridConcurrent(axis=1, prefix="")
    fire.add(conv(squeeze, 1))
    paths.add(conv(one, 1), conv(three, 3, 1))
    fire.add(paths)
    return fire


_FIRES = {"1.0": (96, 7, [[16, 16, 32], [32, 48, 48, 64], [64]]), "1.1": (64, 3, [[16, 16], [32, 32], [48, 48, 64, 64]])}


class SqueezeNet(_Network):
    """A small network of "fire" blocks."""

    def __init__(self, version, classes=1000, **kwargs):
        super().__init__(**kwargs)
        if version not in _FIRES:
            raise AssertionError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        channels, kernel, groups = _FIRES[version]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(channels, kernel_size=kernel, strides=2), nn.Activation("relu"))
            for group in groups:
                self.features.add(nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
                self.features.add(*(_fire(n, 4 * n, 4 * n) for n in group))
            self.features.add(nn.Dropout(0.5))
            self.output = nn.HybridSequential(prefix="")
            self.output.add(nn.Conv2D(classes, kernel_size=1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten())


def get_squeezenet(version, pretrained=False, ctx=None, root=None, **kwargs):
    """A SqueezeNet, version "1.0" or "1.1"."""
    return _loaded(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)


# ---- DenseNet


def _grown(growth, size, dropout):
    new = nn.HybridSequential(prefix="")
    new.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(size * growth, kernel_size=1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"),
            nn.Conv2D(growth, kernel_size=3, padding=1, use_bias=False))  # fmt: skip
    if dropout:
        new.add(nn.Dropout(dropout))
    both = HybridConcurrent(axis=1, prefix="")
    both.add(Identity(), new)
    return both


class DenseNet(_Network):
    """Networks whose layers get the results of all layers before them."""

    def __init__(self, num_init_features, growth_rate, block_config, bn_size=4, dropout=0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(nn.Conv2D(num_init_features, 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1))
            channels = num_init_features
            for i, count in enumerate(block_config):
                stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
                with stage.name_scope():
                    stage.add(*(_grown(growth_rate, bn_size, dropout) for _ in range(count)))
                self.features.add(stage)
                channels += count * growth_rate
                if i != len(block_config) - 1:
                    channels //= 2
                    between = nn.HybridSequential(prefix="")
                    between.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(channels, kernel_size=1, use_bias=False), nn.AvgPool2D(2, 2))
                    self.features.add(between)
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)


_DENSE = {121: (64, 32, [6, 12, 24, 16]), 161: (96, 48, [6, 12, 36, 24]), 169: (64, 32, [6, 12, 32, 32]), 201: (64, 32, [6, 12, 48, 32])}


def get_densenet(num_layers, pretrained=False, ctx=None, root=None, **kwargs):
    """A DenseNet with 121, 161, 169 or 201 layers."""
    return _loaded(DenseNet(*_DENSE[num_layers], **kwargs), f"densenet{num_layers}", pretrained, ctx, root)


# ---- Inception


def _conv(channels, kernel, strides=None, padding=None):
    options = {name: value for name, value in (("strides", strides), ("padding", padding)) if value is not None}
    chain = nn.HybridSequential(prefix="")
    chain.add(nn.Conv2D(channels, kernel, use_bias=False, **options), nn.BatchNorm(epsilon=0.001), nn.Activation("relu"))
    return chain


def _branch(pool, *convolutions):
    branch = nn.HybridSequential(prefix="")
    if pool:
        branch.add(nn.AvgPool2D(3, 1, 1) if pool == "avg" else nn.MaxPool2D(3, 2))
    branch.add(*(_conv(*each) for each in convolutions))
    return branch


def _side_by_side(prefix, *branches):
    block = HybridConcurrent(axis=1, prefix=prefix)
    with block.name_scope():
        for branch in branches:
            block.add(branch() if callable(branch) and not isinstance(branch, HybridBlock) else _branch(*branch))
    return block


_FLAT, _HIGH = ((1, 7), None, (0, 3)), ((7, 1), None, (3, 0))


def _inception_a(pool, prefix):
    return _side_by_side(prefix, (None, (64, 1)), (None, (48, 1), (64, 5, None, 2)), (None, (64, 1), (96, 3, None, 1), (96, 3, None, 1)),
                         ("avg", (pool, 1)))  # fmt: skip


def _inception_b(prefix):
    return _side_by_side(prefix, (None, (384, 3, 2)), (None, (64, 1), (96, 3, None, 1), (96, 3, 2)), ("max",))


def _inception_c(c, prefix):
    return _side_by_side(prefix, (None, (192, 1)), (None, (c, 1), (c, *_FLAT), (192, *_HIGH)),
                         (None, (c, 1), (c, *_HIGH), (c, *_FLAT), (c, *_HIGH), (192, *_FLAT)), ("avg", (192, 1)))  # fmt: skip


def _inception_d(prefix):
    return _side_by_side(prefix, (None, (192, 1), (320, 3, 2)), (None, (192, 1), (192, *_FLAT), (192, *_HIGH), (192, 3, 2)), ("max",))


def _split(*convolutions):
    """A chain whose result two convolutions share."""

    def make():
        chain, both = nn.HybridSequential(prefix=""), HybridConcurrent(axis=1, prefix="")
        chain.add(_branch(None, *convolutions))
        both.add(_branch(None, (384, (1, 3), None, (0, 1))), _branch(None, (384, (3, 1), None, (1, 0))))
        chain.add(both)
        return chain

    return make


def _inception_e(prefix):
    return _side_by_side(prefix, (None, (320, 1)), _split((384, 1)), _split((448, 1), (384, 3, None, 1)), ("avg", (192, 1)))


class Inception3(_Network):
    """Inception v3, for images of 299 × 299."""

    def __init__(self, classes=1000, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(_conv(32, 3, 2), _conv(32, 3), _conv(64, 3, None, 1), nn.MaxPool2D(3, 2), _conv(80, 1), _conv(192, 3), nn.MaxPool2D(3, 2))
            self.features.add(*(_inception_a(n, f"A{i + 1}_") for i, n in enumerate((32, 64, 64))), _inception_b("B_"))
            self.features.add(*(_inception_c(n, f"C{i + 1}_") for i, n in enumerate((128, 160, 160, 192))), _inception_d("D_"))
            self.features.add(_inception_e("E1_"), _inception_e("E2_"), nn.AvgPool2D(8), nn.Dropout(0.5))
            self.output = nn.Dense(classes)


def inception_v3(pretrained=False, ctx=None, root=None, **kwargs):
    """Inception v3."""
    return _loaded(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)


# ---- MobileNet


class RELU6(HybridBlock):
    """Numbers between 0 and 6; those outside become 0 or 6."""

    def hybrid_forward(self, F, x):
        return F.clip(x, 0, 6)


def _add_conv(to, channels, kernel=1, stride=1, pad=0, groups=1, active=True, six=False):
    to.add(nn.Conv2D(channels, kernel, stride, pad, groups=groups, use_bias=False), nn.BatchNorm(scale=True))
    if active:
        to.add(RELU6() if six else nn.Activation("relu"))


class MobileNet(_Network):
    """Depthwise convolutions; multiplier is the factor of all numbers of channels."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        widths = [64] + [128] * 2 + [256] * 2 + [512] * 6 + [1024] * 2
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), kernel=3, pad=1, stride=2)
                for deep, wide, stride in zip([32, *widths[:-1]], widths, [1, 2] * 3 + [1] * 5 + [2, 1]):
                    deep, wide = int(deep * multiplier), int(wide * multiplier)
                    _add_conv(self.features, deep, kernel=3, stride=stride, pad=1, groups=deep)
                    _add_conv(self.features, wide)
                self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class LinearBottleneck(HybridBlock):
    """A depthwise convolution of t times as many channels, beside a shortcut."""

    def __init__(self, in_channels, channels, t, stride, **kwargs):
        super().__init__(**kwargs)
        object.__setattr__(self, "use_shortcut", stride == 1 and in_channels == channels)
        with self.name_scope():
            self.out = nn.HybridSequential()
            _add_conv(self.out, in_channels * t, six=True)
            _add_conv(self.out, in_channels * t, kernel=3, stride=stride, pad=1, groups=in_channels * t, six=True)
            _add_conv(self.out, channels, active=False, six=True)

    def hybrid_forward(self, F, x):
        y = self.out(x)
        return y + x if self.use_shortcut else y


class MobileNetV2(_Network):
    """MobileNet of linear bottlenecks."""

    def __init__(self, multiplier=1.0, classes=1000, **kwargs):
        super().__init__(**kwargs)
        widths = [16] + [24] * 2 + [32] * 3 + [64] * 4 + [96] * 3 + [160] * 3 + [320]
        strides = [1, 2, 1, 2, 1, 1, 2, *[1] * 6, 2, 1, 1, 1]
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                _add_conv(self.features, int(32 * multiplier), kernel=3, stride=2, pad=1, six=True)
                for before, wide, t, stride in zip([32, *widths[:-1]], widths, [1] + [6] * 16, strides):
                    self.features.add(LinearBottleneck(int(before * multiplier), int(wide * multiplier), t, stride))
                _add_conv(self.features, int(1280 * multiplier) if multiplier > 1.0 else 1280, six=True)
                self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _of_width(kind, name):
    def get(multiplier, pretrained=False, ctx=None, root=None, **kwargs):
        return _loaded(kind(multiplier, **kwargs), f"{name}{multiplier}", pretrained, ctx, root)

    get.__doc__ = f"{kind.__name__} with that factor of channels."
    return get


get_mobilenet, get_mobilenet_v2 = _of_width(MobileNet, "mobilenet"), _of_width(MobileNetV2, "mobilenetv2_")

# ---- by name


def _loaded(net, name, pretrained, ctx, root):
    if pretrained:
        folder = os.path.expanduser(root or os.path.join("~", ".mxnet", "models"))
        found = sorted(glob.glob(os.path.join(glob.escape(folder), f"{name}*.params")))
        if not found:
            raise FileNotFoundError(f"no weights of {name} in {folder}; nothing is downloaded here")
        net.load_parameters(found[0], ctx=ctx)
    return net


def _named(function, *args, **fixed):
    def make(**kwargs):
        return function(*args, **fixed, **kwargs)

    make.__doc__ = function.__doc__
    return make


_models = {f"resnet{n}_v{v}": _named(get_resnet, v, n) for v in (1, 2) for n in _DEPTHS}
_models.update({f"vgg{n}": _named(get_vgg, n) for n in _VGG})
_models.update({f"vgg{n}_bn": _named(get_vgg, n, batch_norm=True) for n in _VGG})
_models.update({f"densenet{n}": _named(get_densenet, n) for n in _DENSE})
_models.update({f"squeezenet{v}": _named(get_squeezenet, v) for v in _FIRES})
_models.update({f"mobilenet{m}": _named(get_mobilenet, m) for m in (1.0, 0.75, 0.5, 0.25)})
_models.update({f"mobilenetv2_{m}": _named(get_mobilenet_v2, m) for m in (1.0, 0.75, 0.5, 0.25)})
_models.update({"alexnet": alexnet, "inceptionv3": inception_v3})
for _name, _make in _models.items():  # mobilenet0.25 is the function mobilenet0_25
    _python = _name.replace(".", "_") if not _name.startswith("inception") else "inception_v3"
    if _python not in globals():
        _make.__name__ = _python
        globals()[_python] = _make
mobilenet_v2_1_0, mobilenet_v2_0_75, mobilenet_v2_0_5, mobilenet_v2_0_25 = (_models[f"mobilenetv2_{m}"] for m in (1.0, 0.75, 0.5, 0.25))


def get_model(name, **kwargs):
    """The network with that name, such as "resnet18_v1"."""
    if name.lower() not in _models:
        raise ValueError(f"Model {name} is not supported. Available options are\n\t" + "\n\t".join(sorted(_models)))
    return _models[name.lower()](**kwargs)


__getattr__ = missing("mx.gluon.model_zoo.vision")
