"""mx.gluon.data.vision.transforms: transforms of images, (height, width, channels) of bytes or floats.

Images are NumPy arrays until they are assembled to batches; arrays of mx.nd and mx.np stay arrays.
"""
import numpy

from ...._core import InvalidArgument, ShapeError
from ...._tensor import Tensor, array
from ..._signed import as_mxnet as _as_mxnet
from ..._resize import resized
from ...unsupported import missing


class _Transform:
    """A function of an image; takes_batches: also of a batch of images."""

    takes_batches = False

    def __call__(self, x, *rest):
        if not isinstance(x, Tensor):
            y = self._of(numpy.asarray(x))
        else:
            y = array(numpy.ascontiguousarray(self._each(x.numpy())), device=x.device, like=type(x))
        return (y, *rest) if rest else y

    def _each(self, x):
        """The transformed image, or batch of images."""
        if x.ndim not in (3, 4):
            raise ShapeError(f"{type(self).__name__}: an array of {x.ndim} axes is neither an image nor a batch")
        return self._of(x) if x.ndim == 3 or self.takes_batches else numpy.stack([self._of(image) for image in x])

    forward = hybrid_forward = __call__

    def hybridize(self, *_, **__):
        """No effect: images are transformed on the host."""

    def __repr__(self):
        return type(self).__name__

    __name__ = property(lambda self: type(self).__name__)


class ToTensor(_Transform):
    """(…, height, width, channels) of bytes as (…, channels, height, width) in [0, 1]."""

    takes_batches = True

    def _of(self, x):
        return numpy.moveaxis(x, -1, -3).astype(numpy.float32) / 255


class Normalize(_Transform):
    """(x - mean) / std of (…, channels, height, width)."""

    takes_batches = True

    def __init__(self, mean=0.0, std=1.0):
        self._mean, self._std = (numpy.asarray(v, numpy.float32).reshape(-1, 1, 1) if numpy.ndim(v) else numpy.float32(v) for v in (mean, std))

    def _of(self, x):
        if x.shape[-3] not in (1, 3):
            raise ShapeError(f"Normalize: an image of {x.shape[-3]} channels; (…, channels, height, width) with 1 or 3 is needed")
        return (x - self._mean) / self._std


class Cast(_Transform):
    """Converts to another data type."""

    takes_batches = True

    def _each(self, x):
        return self._of(x)

    def __init__(self, dtype="float32"):
        self._dtype = dtype

    def _of(self, x):
        return x.astype(self._dtype)


class Compose(_Transform):
    """Transforms one after the other."""

    def __init__(self, transforms):
        self._all = list(transforms)
        self.takes_batches = all(getattr(t, "takes_batches", False) for t in self._all)

    def __call__(self, x, *rest):
        for one in self._all:
            x = one(x)
        return (x, *rest) if rest else x


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class Resize(_Transform):
    """An image as (width, height), bilinear; with keep_ratio the shorter side gets that length."""

    def __init__(self, size, keep_ratio=False, interpolation=1):
        self._size, self._keep, self._how = size, keep_ratio, interpolation

    def _of(self, x):
        if not isinstance(self._size, int) and len(self._size) != 2:
            raise InvalidArgument(f"Resize: the size {self._size} is neither one number nor (width, height)")
        width, height = _pair(self._size)
        if self._keep and isinstance(self._size, int):
            h, w = x.shape[:2]
            width, height = (self._size, int(h * self._size / w)) if h > w else (int(w * self._size / h), self._size)
        return resized(x, width, height, self._how)


def _cut(x, width, height, left, top):
    return x[top : top + height, left : left + width]


class CenterCrop(_Transform):
    """The middle of an image; one that is too small is enlarged."""

    def __init__(self, size, interpolation=1):
        self._size, self._how = _pair(size), interpolation

    def _of(self, x):
        width, height = self._size
        w, h = min(width, x.shape[1]), min(height, x.shape[0])
        part = _cut(x, w, h, (x.shape[1] - w) // 2, (x.shape[0] - h) // 2)
        return part if (w, h) == (width, height) else resized(part, width, height, self._how)


class RandomResizedCrop(_Transform):
    """A random part of an image, resized."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4.0, 4.0 / 3.0), interpolation=1):
        self._size, self._scale, self._ratio, self._how = _pair(size), scale, ratio, interpolation

    def _of(self, x):
        h, w = x.shape[:2]
        for _ in range(10):
            area = h * w * numpy.random.uniform(*self._scale)
            ratio = numpy.exp(numpy.random.uniform(*numpy.log(self._ratio)))
            width, height = int(round((area * ratio) ** 0.5)), int(round((area / ratio) ** 0.5))
            if 0 < width <= w and 0 < height <= h:
                part = _cut(x, width, height, numpy.random.randint(w - width + 1), numpy.random.randint(h - height + 1))
                return resized(part, *self._size, self._how)
        return resized(x, *self._size, self._how)


class RandomFlipLeftRight(_Transform):
    """Flips each image with probability one half."""

    _axis = 1

    def _of(self, x):
        return numpy.flip(x, self._axis) if numpy.random.rand() < 0.5 else x


class RandomFlipTopBottom(RandomFlipLeftRight):
    """Flips each image upside down with probability one half."""

    _axis = 0


class CropResize(_Transform):
    """The part of an image from (x, y) on, of that width and height, resized to size."""

    def __init__(self, x, y, width, height, size=None, interpolation=None):
        self._part, self._size, self._how = (x, y, width, height), size and _pair(size), 1 if interpolation is None else interpolation

    def _of(self, image):
        x, y, width, height = self._part
        if width <= 0 or height <= 0 or x + width > image.shape[1] or y + height > image.shape[0]:
            raise InvalidArgument(f"CropResize: {width} × {height} from ({x}, {y}) on is not within an image of {image.shape[1]} × {image.shape[0]}")
        part = _cut(image, width, height, x, y)
        return resized(part, *self._size, self._how) if self._size else part


class RandomCrop(_Transform):
    """A random part of an image that pad pixels of pad_value surround; one that is too small is enlarged."""

    def __init__(self, size, pad=None, interpolation=1):
        self._size, self._pad, self._how = _pair(size), pad, interpolation

    def _of(self, x):
        if self._pad:
            x = numpy.pad(x, self._pad if isinstance(self._pad, tuple) else ((self._pad,) * 2, (self._pad,) * 2, (0, 0)))
        width, height = self._size
        w, h = min(width, x.shape[1]), min(height, x.shape[0])
        part = _cut(x, w, h, numpy.random.randint(x.shape[1] - w + 1), numpy.random.randint(x.shape[0] - h + 1))
        return part if (w, h) == (width, height) else resized(part, width, height, self._how)


def _as_type(made, x):
    """Floats as the image's type: bytes lose their fractions, and stay between 0 and 255."""
    return numpy.clip(made, 0, 255).astype(x.dtype) if x.dtype == numpy.uint8 else made.astype(x.dtype)


_GREY = numpy.array([0.299, 0.587, 0.114], numpy.float32)


class _Jitter(_Transform):
    """A change by a random factor around 1."""

    def __init__(self, strength):
        if not strength >= 0:
            raise InvalidArgument(f"{type(self).__name__}: {strength} is not a number from 0 on")
        self._range = max(0, 1 - strength), 1 + strength

    def _of(self, x):
        return _as_type(self._changed(x.astype(numpy.float32), numpy.float32(numpy.random.uniform(*self._range))), x)


class RandomBrightness(_Jitter):
    """Brightness times a random factor."""

    def _changed(self, x, factor):
        return x * factor


class RandomContrast(_Jitter):
    """Contrast times a random factor: towards, or away from, the mean of the grey values."""

    def _changed(self, x, factor):
        return x * factor + (x @ _GREY if x.shape[2] == 3 else x).mean() * (1 - factor)


class RandomSaturation(_Jitter):
    """Saturation times a random factor: towards, or away from, each pixel's grey value."""

    def _changed(self, x, factor):
        return x * factor + (x @ _GREY)[..., None] * (1 - factor)


_YIQ = numpy.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_RGB = numpy.linalg.inv(_YIQ)


class RandomHue(_Jitter):
    """Colours turned by a random angle."""

    def _changed(self, x, factor):
        angle = (factor - 1) * numpy.pi
        turn = numpy.array([[1, 0, 0], [0, numpy.cos(angle), -numpy.sin(angle)], [0, numpy.sin(angle), numpy.cos(angle)]])
        return x @ (_RGB @ turn @ _YIQ).T


class RandomColorJitter(_Transform):
    """Random brightness, contrast, saturation and hue, in a random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0):
        kinds = ((RandomBrightness, brightness), (RandomContrast, contrast), (RandomSaturation, saturation), (RandomHue, hue))
        self._all = [kind(strength) for kind, strength in kinds if strength]

    def _of(self, x):
        for i in numpy.random.permutation(len(self._all)):
            x = self._all[i]._of(x)
        return x


_EIGVAL = numpy.array([55.46, 4.794, 1.148])
_EIGVEC = numpy.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


class RandomLighting(_Transform):
    """Noise along the principal components of colours, with the deviation alpha."""

    def __init__(self, alpha):
        self._alpha = alpha

    def _of(self, x):
        return _as_type(x + _EIGVEC @ (numpy.random.normal(0, self._alpha, 3) * _EIGVAL), x)


class RandomGray(_Transform):
    """Grey with probability p."""

    def __init__(self, p=0.5):
        self._p = p

    def _of(self, x):
        return _as_type(numpy.repeat((x @ _GREY)[..., None], 3, -1), x) if numpy.random.rand() < self._p else x


class RandomApply(_Transform):
    """Another transform with probability p."""

    def __init__(self, transforms, p=0.5):
        self._inner, self._p = transforms, p

    def __call__(self, x, *rest):
        x = self._inner(x) if numpy.random.rand() < self._p else x
        return (x, *rest) if rest else x


HybridCompose, HybridRandomApply = Compose, RandomApply
_as_mxnet("gluon.data.vision.transforms", globals())
__getattr__ = missing("mx.gluon.data.vision.transforms")
