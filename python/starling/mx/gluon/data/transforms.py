"""mx.gluon.data.vision.transforms: transforms of images, (height, width, channels) of bytes or floats.

Images are NumPy arrays until they are assembled to batches; arrays of mx.nd and mx.np stay arrays.
"""
import numpy

from ...._tensor import Tensor, array
from ..._signed import as_mxnet as _as_mxnet
from ...unsupported import missing, not_here


class _Transform:
    """A function of an image; takes_batches: also of a batch of images."""

    takes_batches = False

    def __call__(self, x, *rest):
        if not isinstance(x, Tensor):
            y = self._of(numpy.asarray(x))
        else:
            y = array(numpy.ascontiguousarray(self._of(x.numpy())), device=x.device, like=type(x))
        return (y, *rest) if rest else y

    forward = hybrid_forward = __call__

    def hybridize(self, *_, **__):
        """No effect: images are transformed on the host."""

    def __repr__(self):
        return type(self).__name__


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
        return (x - self._mean) / self._std


class Cast(_Transform):
    """Converts to another data type."""

    takes_batches = True

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


def _weights(size, wanted):
    """(lower indices, upper indices, weights of the upper ones) of bilinear resizing."""
    at = numpy.clip((numpy.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
    low = at.astype(int)
    return low, numpy.minimum(low + 1, size - 1), (at - low).astype(numpy.float32)


def _resized(x, width, height, interpolation=1):
    if interpolation not in (0, 1):
        raise not_here(f"Resize(interpolation={interpolation})", "0 (nearest) or 1 (bilinear)")
    if interpolation == 0:
        return x[(numpy.arange(height) * x.shape[0] // height)][:, numpy.arange(width) * x.shape[1] // width]
    (top, bottom, down), (left, right, along) = _weights(x.shape[0], height), _weights(x.shape[1], width)
    rows = x[top] * (1 - down)[:, None, None] + x[bottom] * down[:, None, None]
    made = rows[:, left] * (1 - along)[:, None] + rows[:, right] * along[:, None]
    return (numpy.rint(made) if x.dtype.kind in "iu" else made).astype(x.dtype)


def _pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


class Resize(_Transform):
    """An image as (width, height), bilinear; with keep_ratio the shorter side gets that length."""

    def __init__(self, size, keep_ratio=False, interpolation=1):
        self._size, self._keep, self._how = size, keep_ratio, interpolation

    def _of(self, x):
        width, height = _pair(self._size)
        if self._keep and isinstance(self._size, int):
            h, w = x.shape[:2]
            width, height = (self._size, int(h * self._size / w)) if h > w else (int(w * self._size / h), self._size)
        return _resized(x, width, height, self._how)


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
        return part if (w, h) == (width, height) else _resized(part, width, height, self._how)


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
                return _resized(part, *self._size, self._how)
        return _resized(x, *self._size, self._how)


class RandomFlipLeftRight(_Transform):
    """Flips each image with probability one half."""

    _axis = 1

    def _of(self, x):
        return numpy.flip(x, self._axis) if numpy.random.rand() < 0.5 else x


class RandomFlipTopBottom(RandomFlipLeftRight):
    """Flips each image upside down with probability one half."""

    _axis = 0


_as_mxnet("gluon.data.vision.transforms", globals())
__getattr__ = missing("mx.gluon.data.vision.transforms")
