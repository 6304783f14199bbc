"""Images resized and padded on the host, with the bytes that OpenCV gives, as MXNet's images have them."""
import numpy

from .._core import InvalidArgument
from .unsupported import not_here

NEAREST, LINEAR, CUBIC, AREA = 0, 1, 2, 3
_ONE = 2048  # OpenCV's weights of bytes are integers


def _places(size, wanted):
    """(whole positions, fractions) of the elements of a resized axis."""
    at = ((numpy.arange(wanted) + 0.5) * (size / wanted) - 0.5).astype(numpy.float32)
    low = numpy.floor(at).astype(int)
    return low, at - low.astype(numpy.float32)


def _linear(size, wanted):
    """(positions (wanted, 2), weights (wanted, 2)) of bilinear resizing along an axis."""
    low, part = _places(size, wanted)
    part = numpy.where((low < 0) | (low >= size - 1), 0, part).astype(numpy.float32)
    low = numpy.clip(low, 0, size - 1)
    return numpy.stack([low, numpy.minimum(low + 1, size - 1)], 1), numpy.stack([1 - part, part], 1)


def _cubic(size, wanted):
    """The same of bicubic resizing, with four elements each."""
    low, x = _places(size, wanted)
    a, one = numpy.float32(-0.75), numpy.float32(1)
    first = ((a * (x + one) - 5 * a) * (x + one) + 8 * a) * (x + one) - 4 * a
    second = ((a + 2) * x - (a + 3)) * x * x + one
    third = ((a + 2) * (one - x) - (a + 3)) * (one - x) * (one - x) + one
    weights = numpy.stack([first, second, third, one - first - second - third], 1).astype(numpy.float32)
    return numpy.clip(low[:, None] + numpy.arange(-1, 3), 0, size - 1), weights


def _along_columns(x, places, weights):
    return sum(x[:, places[:, k]] * weights[:, k][None, :, None] for k in range(places.shape[1]))


def _along_rows(x, places, weights):
    return sum(x[places[:, k]] * weights[:, k][:, None, None] for k in range(places.shape[1]))


def _bytes_linear(x, columns, rows):
    """Bilinear resizing of bytes in the integers of OpenCV."""
    across = _along_columns(x.astype(numpy.int64), columns[0], numpy.rint(columns[1] * _ONE).astype(numpy.int64))
    down = numpy.rint(rows[1] * _ONE).astype(numpy.int64)
    parts = [((across[rows[0][:, k]] >> 4) * down[:, k][:, None, None]) >> 16 for k in range(2)]
    return numpy.clip((parts[0] + parts[1] + 2) >> 2, 0, 255).astype(numpy.uint8)


def _bytes_cubic(x, columns, rows):
    across = _along_columns(x.astype(numpy.int64), columns[0], numpy.rint(columns[1] * _ONE).astype(numpy.int64))
    down = numpy.rint(rows[1] * _ONE).astype(numpy.float64)
    return numpy.clip(numpy.rint(_along_rows(across.astype(numpy.float64), rows[0], down) / _ONE**2), 0, 255).astype(numpy.uint8)


def _shares(size, wanted):
    """The share of each old element in each new one: (wanted, size)."""
    bounds = numpy.arange(wanted + 1) * (size / wanted)
    covered = numpy.minimum(bounds[1:, None], numpy.arange(1, size + 1)) - numpy.maximum(bounds[:-1, None], numpy.arange(size))
    return numpy.maximum(covered, 0) * (wanted / size)


def _area(x, width, height):
    made = numpy.einsum("hy,yxc,wx->hwc", _shares(x.shape[0], height), x.astype(numpy.float64), _shares(x.shape[1], width), optimize=True)
    if x.dtype != numpy.uint8:
        return made.astype(x.dtype)
    halves = x.shape[:2] == (2 * height, 2 * width)
    return numpy.clip(numpy.floor(made + 0.5) if halves else numpy.rint(made), 0, 255).astype(numpy.uint8)


def resized(x, width, height, interpolation=LINEAR):
    """An image (height, width, channels) in another size; interpolation: 0 nearest, 1 bilinear, 2 bicubic, 3 by areas."""
    if x.ndim != 3 or min(width, height, *x.shape) < 1:
        raise InvalidArgument(f"an image of shape {x.shape} cannot be resized to {width} × {height}; it is (height, width, channels)")
    if interpolation not in (NEAREST, LINEAR, CUBIC, AREA):
        raise not_here(f"resizing with interpolation {interpolation!r}", "0 (nearest), 1 (bilinear), 2 (bicubic) or 3 (areas)")
    if x.shape[:2] == (height, width):
        return x.copy()
    if interpolation == NEAREST:
        down, across = (numpy.minimum((numpy.arange(n) * (m / n)).astype(int), m - 1) for n, m in ((height, x.shape[0]), (width, x.shape[1])))
        return x[down][:, across]
    shrinks = height <= x.shape[0] and width <= x.shape[1]
    if interpolation == AREA and shrinks or interpolation == LINEAR and x.shape[:2] == (2 * height, 2 * width):
        return _area(x, width, height)
    if interpolation == AREA:
        raise not_here("enlarging an image by areas (interpolation 3)", "1 (bilinear) or 2 (bicubic)")
    weights = _cubic if interpolation == CUBIC else _linear
    columns, rows = weights(x.shape[1], width), weights(x.shape[0], height)
    if x.dtype == numpy.uint8:
        return (_bytes_cubic if interpolation == CUBIC else _bytes_linear)(x, columns, rows)
    return _along_rows(_along_columns(x.astype(numpy.float32), *columns), *rows).astype(x.dtype)


_BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}  # OpenCV's numbers


def padded(x, top, bottom, left, right, kind=0, values=0.0):
    """An image with a border; kind 0: of the values, 1: of its edge, 2 and 4: reflected, 3: repeated."""
    if kind not in _BORDERS:
        raise InvalidArgument(f"copyMakeBorder: type is {kind!r}, a number from 0 to 4 is needed")
    around = ((top, bottom), (left, right), (0, 0))
    if kind:
        return numpy.pad(x, around, _BORDERS[kind])
    made = numpy.empty((x.shape[0] + top + bottom, x.shape[1] + left + right, x.shape[2]), x.dtype)
    made[:] = values
    made[top : top + x.shape[0], left : left + x.shape[1]] = x
    return made
