"""mx.nd.image: functions of images (height, width, channels), or of batches of them, on the host."""
import numpy

from .gluon.data import transforms as _transforms
from .unsupported import missing


def to_tensor(data):
    """Bytes as (channels, height, width) in [0, 1]."""
    return _transforms.ToTensor()(data)


def normalize(data, mean=0.0, std=1.0):
    """(x - mean) / std of (channels, height, width)."""
    return _transforms.Normalize(mean, std)(data)


def resize(data, size=(), keep_ratio=False, interp=1):
    """Images in another size, (width, height)."""
    size = size if isinstance(size, int) or len(size) != 1 else size[0]
    return _transforms.Resize(size, keep_ratio, interp)(data)


def crop(data, x, y, width, height):
    """Parts of images."""
    return _transforms.CropResize(x, y, width, height)(data)


def _flip(data, axis):
    from ._host import made

    return made(numpy.flip(data.numpy(), axis), data)


def flip_left_right(data):
    """Images with left and right exchanged."""
    return _flip(data, -2)


def flip_top_bottom(data):
    """Images upside down."""
    return _flip(data, -3)


def random_flip_left_right(data):
    """Images with left and right exchanged, with probability one half."""
    return flip_left_right(data) if numpy.random.rand() < 0.5 else data


def random_flip_top_bottom(data):
    """Images upside down, with probability one half."""
    return flip_top_bottom(data) if numpy.random.rand() < 0.5 else data


__getattr__ = missing("mx.nd.image")
