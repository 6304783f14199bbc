"""Convolutions and pooling over three axes, made of those over two: the depths of a window are channels of an image, or the
depth is pooled after the images."""
from .. import _ops as ops
from ._program import classify


def _cut(x, axis, begin, count, step=1):
    """count elements of an axis, from begin on, step apart."""
    return x[(slice(None),) * axis + (slice(begin, begin + (count - 1) * step + 1, step),)]


def _padded(x, axis, before, after):
    return ops.pad(x, axis, before=before, after=after) if before or after else x


def _as_images(parts):
    """Parts (n, c, depth, height, width), one for each depth of the window, as images (n·depth, c·parts, height, width)."""
    n, c, depth, height, width = parts[0].shape
    turned = [ops.transpose(p, [0, 2, 1, 3, 4]).reshape((n * depth, c, 1, height * width)) for p in parts]
    joined = turned[0] if len(turned) == 1 else ops.concat(turned, 2)
    return joined.reshape((n * depth, c * len(parts), height, width))


def convolution(data, weight, bias, stride, pad, dilate, groups):
    """The convolution of (n, channels, depth, height, width)."""
    depths = weight.shape[2]
    x = _padded(data, 2, pad[0], pad[0])
    count = (x.shape[2] - dilate[0] * (depths - 1) - 1) // stride[0] + 1
    images = _as_images([_cut(x, 2, k * dilate[0], count, stride[0]) for k in range(depths)])
    filters = weight.reshape((weight.shape[0], -1, *weight.shape[3:]))
    y = ops.conv2d(images, filters, bias, stride=stride[1:], pad=pad[1:], dilation=dilate[1:], groups=groups)
    y = y.reshape((data.shape[0], count, *y.shape[1:]))
    return classify(ops.transpose(y, [0, 2, 1, 3, 4]), data)


def _apart(x, axis, step):
    """The elements of an axis with step - 1 zeros between them."""
    if step == 1:
        return x
    shape, count = x.shape, x.shape[axis]
    x = _padded(x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])), axis + 1, 0, step - 1)
    return _cut(x.reshape((*shape[:axis], count * step, *shape[axis + 1 :])), axis, 0, (count - 1) * step + 1)


def transposed(data, weight, bias, stride, pad, dilate, adj, groups):
    """The transposed convolution of (n, channels, depth, height, width)."""
    n, c, depth = data.shape[:3]
    depths, channels = weight.shape[2], weight.shape[1] * groups
    images = ops.transpose(data, [0, 2, 1, 3, 4]).reshape((n * depth, c, *data.shape[3:]))
    filters = weight.reshape((weight.shape[0], -1, *weight.shape[3:]))
    y = ops.conv_transpose2d(images, filters, None, stride=stride[1:], pad=pad[1:], dilation=dilate[1:], output_pad=adj[1:], groups=groups)
    height, width = y.shape[2:]
    y = ops.transpose(y.reshape((n, depth, channels, depths, height * width)), [0, 2, 1, 3, 4])
    total = None
    for k in range(depths):
        part = _apart(_cut(y, 3, k, 1).reshape((n, channels, depth, height * width)), 2, stride[0])
        part = _padded(part, 2, k * dilate[0], (depths - 1 - k) * dilate[0] + adj[0])
        total = part if total is None else total + part
    total = _cut(total, 2, pad[0], total.shape[2] - 2 * pad[0]).reshape((n, channels, -1, height, width))
    return classify(total if bias is None else total + bias.reshape((1, -1, 1, 1, 1)), data)


def pooled(pooling, data, kernel, stride, pad, options):
    """Windows of (n, channels, depth, height, width): first of the images, then of their depths."""
    n, c, depth = data.shape[:3]
    y = pooling(data.reshape((n, c * depth, *data.shape[3:])), kernel[1:], stride=stride[1:], pad=pad[1:], **options)
    height, width = y.shape[2:]
    y = y.reshape((n, c, depth, height * width))
    if options["global_pool"]:
        y = pooling(y, (depth, 1), stride=(1, 1), **{**options, "global_pool": False})
    else:
        y = pooling(y, (kernel[0], 1), stride=(stride[0], 1), pad=(pad[0], 0), **options)
    return classify(y.reshape((n, c, -1, height, width)), data)
