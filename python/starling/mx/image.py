"""mx.image: images from files, resized and cut, and augmenters.

PNG and JPEG files are read by the engine; the rest is computed on the host, with the values of MXNet and OpenCV.
"""
import json
import os
import random as _random

import numpy

from .._core import here, lib, ffi
from .._tensor import Tensor, array as _array, wrap
from . import _resize
from ._mode import array_class
from .context import cpu
from .image_iter import ImageIter
from .unsupported import missing, not_here


def _made(values):
    return _array(numpy.ascontiguousarray(values), str(values.dtype), cpu().device, array_class())


def _host(image):
    return image.numpy() if isinstance(image, Tensor) else numpy.asarray(image)


def _like(values, image):
    """The values as what the image is: an array, or NumPy's."""
    if not isinstance(image, Tensor):
        return values
    return _array(numpy.ascontiguousarray(values), str(values.dtype), image.device, type(image))


# ---- files


def _decoded(data, flag, to_rgb):
    if flag not in (0, 1):
        raise not_here(f"imdecode(flag={flag!r})", "1 (colours) or 0 (grey)")
    data = bytes(data.numpy()) if isinstance(data, Tensor) else bytes(data)
    image = wrap(lib.sl_image_decode_at(here(), ffi.from_buffer(data), len(data)), array_class()).numpy()
    if flag == 0:
        return image if image.shape[2] == 1 else _grey(image)
    image = numpy.repeat(image, 3, 2) if image.shape[2] == 1 else image
    return image if to_rgb else image[:, :, ::-1]


def _grey(image):
    """Grey values as OpenCV computes them."""
    r, g, b = (image[:, :, i].astype(numpy.int64) for i in range(3))
    return ((r * 4899 + g * 9617 + b * 1868 + (1 << 13)) >> 14).astype(numpy.uint8)[:, :, None]


def imdecode(buf, flag=1, to_rgb=True, out=None):
    """The image in the bytes of a PNG or JPEG file: (height, width, channels) of bytes."""
    from ._signed import into

    return into(_made(_decoded(buf, flag, to_rgb)), out)


def imread(filename, flag=1, to_rgb=True):
    """The image in a PNG or JPEG file: (height, width, channels) of bytes; flag=0: grey."""
    with open(os.fspath(filename), "rb") as file:
        return _made(_decoded(file.read(), flag, to_rgb))


# ---- sizes


def imresize(src, w, h, interp=1):
    """The image in another size."""
    return _like(_resize.resized(_host(src), w, h, _method(interp, (*src.shape[:2], h, w))), src)


def _method(interp, sizes):
    """The interpolation: 9 chooses it by the sizes, 10 at random."""
    if interp == 9:
        old_h, old_w, new_h, new_w = sizes
        return 2 if new_h > old_h and new_w > old_w else 3 if new_h < old_h and new_w < old_w else 1
    return _random.randint(0, 3) if interp == 10 else interp


def copyMakeBorder(src, top, bot, left, right, type=0, value=0.0, values=()):
    """The image with a border."""
    return _like(_resize.padded(_host(src), top, bot, left, right, type, values or value), src)


def scale_down(src_size, size):
    """(width, height) that fits into an image, with the proportions of size."""
    w, h = size
    width, height = src_size
    if height < h:
        w, h = float(w * height) / h, height
    if width < w:
        w, h = width, float(h * width) / w
    return int(w), int(h)


def resize_short(src, size, interp=2):
    """The image resized so that its shorter side has that length."""
    h, w = src.shape[:2]
    wide, high = (size, size * h // w) if h > w else (size * w // h, size)
    return imresize(src, wide, high, interp)


def fixed_crop(src, x0, y0, w, h, size=None, interp=2):
    """A part of the image, resized to size."""
    part = src[y0 : y0 + h, x0 : x0 + w]
    return part if size is None or (w, h) == tuple(size) else imresize(part, *size, interp)


def random_crop(src, size, interp=2):
    """A random part with the proportions of size, and (x, y, width, height) of it."""
    h, w = src.shape[:2]
    width, height = scale_down((w, h), size)
    x, y = _random.randint(0, w - width), _random.randint(0, h - height)
    return fixed_crop(src, x, y, width, height, size, interp), (x, y, width, height)


def center_crop(src, size, interp=2):
    """The middle with the proportions of size, and (x, y, width, height) of it."""
    h, w = src.shape[:2]
    width, height = scale_down((w, h), size)
    x, y = int((w - width) / 2), int((h - height) / 2)
    return fixed_crop(src, x, y, width, height, size, interp), (x, y, width, height)


def random_size_crop(src, size, area, ratio, interp=2, **kwargs):
    """A random part with a share of the area and a proportion from ratio, and (x, y, width, height) of it."""
    h, w = src.shape[:2]
    area = kwargs.pop("min_area", area)
    if kwargs:
        raise TypeError(f"random_size_crop() got an unexpected keyword argument {next(iter(kwargs))!r}")
    area = (area, 1.0) if isinstance(area, (int, float)) else area
    for _ in range(10):
        target = _random.uniform(*area) * h * w
        proportion = numpy.exp(_random.uniform(*numpy.log(ratio)))
        width, height = int(round(numpy.sqrt(target * proportion))), int(round(numpy.sqrt(target / proportion)))
        if width <= w and height <= h:
            x, y = _random.randint(0, w - width), _random.randint(0, h - height)
            return fixed_crop(src, x, y, width, height, size, interp), (x, y, width, height)
    return center_crop(src, size, interp)


def color_normalize(src, mean, std=None):
    """(src - mean) / std."""
    if mean is not None:
        src = src - mean
    return src if std is None else src / std


# ---- augmenters


class Augmenter:
    """A change of images; dumps() describes it."""

    def __init__(self, **kwargs):
        self._kwargs = {k: numpy.asarray(_host(v)).tolist() if isinstance(v, (Tensor, numpy.ndarray)) else v for k, v in kwargs.items()}

    def dumps(self):
        """The name and the parameters in JSON."""
        return json.dumps([self.__class__.__name__.lower(), self._kwargs])

    def __call__(self, src):
        """The changed image."""
        raise NotImplementedError("Must override implementation.")


class SequentialAug(Augmenter):
    """Augmenters one after the other."""

    def __init__(self, ts):
        super().__init__()
        self.ts = ts

    def dumps(self):
        return [self.__class__.__name__.lower(), [t.dumps() for t in self.ts]]

    def __call__(self, src):
        for t in self.ts:
            src = t(src)
        return src


class RandomOrderAug(SequentialAug):
    """Augmenters in a random order."""

    def __call__(self, src):
        _random.shuffle(self.ts)
        return super().__call__(src)


class ResizeAug(Augmenter):
    """Resizes so that the shorter side has that length."""

    def __init__(self, size, interp=2):
        super().__init__(size=size, interp=interp)
        self.size, self.interp = size, interp

    def __call__(self, src):
        return resize_short(src, self.size, self.interp)


class ForceResizeAug(ResizeAug):
    """Resizes to (width, height)."""

    def __call__(self, src):
        return imresize(src, *self.size, self.interp)


class RandomCropAug(ResizeAug):
    """A random part."""

    def __call__(self, src):
        return random_crop(src, self.size, self.interp)[0]


class CenterCropAug(ResizeAug):
    """The middle."""

    def __call__(self, src):
        return center_crop(src, self.size, self.interp)[0]


class RandomSizedCropAug(Augmenter):
    """A random part of random size."""

    def __init__(self, size, area, ratio, interp=2, **kwargs):
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size, self.area, self.ratio, self.interp = size, kwargs.get("min_area", area), ratio, interp

    def __call__(self, src):
        return random_size_crop(src, self.size, self.area, self.ratio, self.interp)[0]


_GREY = numpy.array([[[0.299, 0.587, 0.114]]], numpy.float32)


class BrightnessJitterAug(Augmenter):
    """Multiplies by a random factor around 1."""

    def __init__(self, brightness):
        super().__init__(brightness=brightness)
        self.brightness = brightness

    def __call__(self, src):
        return src * (1.0 + _random.uniform(-self.brightness, self.brightness))


class ContrastJitterAug(Augmenter):
    """Changes the contrast by a random factor around 1."""

    def __init__(self, contrast):
        super().__init__(contrast=contrast)
        self.contrast = contrast

    def __call__(self, src):
        alpha = 1.0 + _random.uniform(-self.contrast, self.contrast)
        grey = float((_host(src) * _GREY).sum()) * (3.0 * (1.0 - alpha) / src.size)
        return src * alpha + grey


class SaturationJitterAug(Augmenter):
    """Changes the saturation by a random factor around 1."""

    def __init__(self, saturation):
        super().__init__(saturation=saturation)
        self.saturation = saturation

    def __call__(self, src):
        alpha = 1.0 + _random.uniform(-self.saturation, self.saturation)
        grey = (_host(src) * _GREY).sum(2, keepdims=True) * (1.0 - alpha)
        return src * alpha + _like(grey.astype("float32"), src)


_YIQ = numpy.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_RGB = numpy.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])


class HueJitterAug(Augmenter):
    """Turns the colours by a random angle."""

    def __init__(self, hue):
        super().__init__(hue=hue)
        self.hue, self.tyiq, self.ityiq = hue, _YIQ, _RGB

    def __call__(self, src):
        angle = _random.uniform(-self.hue, self.hue) * numpy.pi
        u, w = numpy.cos(angle), numpy.sin(angle)
        turn = numpy.array([[1.0, 0.0, 0.0], [0.0, u, -w], [0.0, w, u]])
        return _like((_host(src) @ (self.ityiq @ turn @ self.tyiq).T).astype("float32"), src)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation in a random order."""

    def __init__(self, brightness, contrast, saturation):
        kinds = ((BrightnessJitterAug, brightness), (ContrastJitterAug, contrast), (SaturationJitterAug, saturation))
        super().__init__([kind(value) for kind, value in kinds if value > 0])


class LightingAug(Augmenter):
    """Adds noise along the principal components of colours."""

    def __init__(self, alphastd, eigval, eigvec):
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd, self.eigval, self.eigvec = alphastd, eigval, eigvec

    def __call__(self, src):
        alpha = numpy.random.normal(0, self.alphastd, size=(3,))
        return src + _like(numpy.dot(_host(self.eigvec) * alpha, _host(self.eigval)).astype("float32"), src)


class ColorNormalizeAug(Augmenter):
    """(x - mean) / std."""

    def __init__(self, mean, std):
        super().__init__(mean=mean, std=std)
        self.mean, self.std = (None if v is None else v if isinstance(v, Tensor) else _made(numpy.asarray(v, "float32")) for v in (mean, std))

    def __call__(self, src):
        return color_normalize(src, self.mean, self.std)


class RandomGrayAug(Augmenter):
    """Grey with probability p."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p, self.mat = p, numpy.array([[0.21, 0.21, 0.21], [0.72, 0.72, 0.72], [0.07, 0.07, 0.07]], "float32")

    def __call__(self, src):
        return _like((_host(src) @ self.mat).astype("float32"), src) if _random.random() < self.p else src


class HorizontalFlipAug(Augmenter):
    """Flipped with probability p."""

    def __init__(self, p):
        super().__init__(p=p)
        self.p = p

    def __call__(self, src):
        return _like(_host(src)[:, ::-1], src) if _random.random() < self.p else src


class CastAug(Augmenter):
    """Converts to another data type."""

    def __init__(self, typ="float32"):
        super().__init__(type=typ)
        self.typ = typ

    def __call__(self, src):
        return src.astype(self.typ)


_MEAN, _STD = numpy.array([123.68, 116.28, 103.53]), numpy.array([58.395, 57.12, 57.375])
_EIGVAL = numpy.array([55.46, 4.794, 1.148])
_EIGVEC = numpy.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def _default(value, usual):
    return usual if value is True else None if value is None or value is False else numpy.asarray(value)


def CreateAugmenter(data_shape, resize=0, rand_crop=False, rand_resize=False, rand_mirror=False, mean=None, std=None, brightness=0, contrast=0,
                    saturation=0, hue=0, pca_noise=0, rand_gray=0, inter_method=2):
    """The list of the usual augmenters for images (channels, height, width)."""
    size = (data_shape[2], data_shape[1])
    found = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise AssertionError("rand_resize needs rand_crop")
        found.append(RandomSizedCropAug(size, 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        found.append((RandomCropAug if rand_crop else CenterCropAug)(size, inter_method))
    found += [HorizontalFlipAug(0.5)] if rand_mirror else []
    found.append(CastAug())
    found += [ColorJitterAug(brightness, contrast, saturation)] if brightness or contrast or saturation else []
    found += [HueJitterAug(hue)] if hue else []
    found += [LightingAug(pca_noise, _EIGVAL, _EIGVEC)] if pca_noise > 0 else []
    found += [RandomGrayAug(rand_gray)] if rand_gray > 0 else []
    mean, std = _default(mean, _MEAN), _default(std, _STD)
    return found + ([ColorNormalizeAug(mean, std)] if mean is not None or std is not None else [])


__getattr__ = missing("mx.image")
