"""Functions of mx.nd and mx.sym that rearrange elements: slices, orders, indices."""
import builtins

import numpy

from .. import _ops as ops
from .._core import InvalidArgument, ShapeError
from .._tensor import Tensor, array as _array
from .._extra import topk as _topk
from .functions import _no_scalar, concat, numbers_of, places_inside, turned
from .unsupported import not_here
from ._array import NDArray, axis_of
from ._program import classify

__all__ = []


def _public(function):
    __all__.append(function.__name__)
    return function


def _also(name, function):
    globals()[name] = function
    __all__.append(name)


def _whole(indices):
    """Indices for the engine; indices beyond int32 do not wrap around."""
    return numbers_of(indices)


# ---- parts


@_public
def slice(data, begin, end, step=None):
    """From begin to end of each axis; None is the end of an axis."""
    begin, end = ((v,) if v is None or isinstance(v, int) else v for v in (begin, end))
    step = (step,) if step is None or isinstance(step, int) else step
    step = tuple(step) + (None,) * (len(begin) - len(step))
    return data[tuple(_slice(b, e, s) for b, e, s in zip(begin, end, step))]


_slice = builtins.slice
_also("crop", slice)


@_public
def slice_like(data, shape_like, axes=()):
    """The first parts of axes, as long as those of another array."""
    for axis in axes or range(data.ndim):
        data = data.slice_axis(axis, 0, shape_like.shape[axis])
    return data


@_public
def split_v2(data, indices_or_sections, axis=0, squeeze_axis=False):
    """Splits an array into equal parts, or before the given indices of an axis."""
    size = data.shape[axis]
    if isinstance(indices_or_sections, int):
        if size % indices_or_sections:
            raise InvalidArgument(f"split_v2: {size} elements of axis {axis} are not {indices_or_sections} equal parts")
        bounds = list(range(0, size + 1, size // indices_or_sections))
    else:
        bounds = [0, *indices_or_sections, size]
    parts = [data.slice_axis(axis, b, e) for b, e in zip(bounds, bounds[1:])]
    return [p.squeeze(axis) for p in parts] if squeeze_axis else parts


@_public
def diag(data, k=0, axis1=0, axis2=1):
    """The diagonal over two axes, or a matrix with that diagonal."""
    if data.ndim == 1:
        n = data.shape[0] + abs(k)
        eye = numpy.zeros((data.shape[0], n), "float32")
        eye[range(data.shape[0]), numpy.arange(data.shape[0]) + max(k, 0)] = 1
        rows = data.reshape((-1, 1))
        cut = rows * _like(data, eye)
        above = abs(min(k, 0))
        return ops.pad(cut, 0, before=above, after=n - data.shape[0] - above)
    axis1, axis2 = axis1 % data.ndim, axis2 % data.ndim
    if axis1 == axis2:
        raise InvalidArgument(f"diag: axis1 and axis2 are both {axis1}")
    rest = [i for i in range(data.ndim) if i not in (axis1, axis2)]
    height, width = data.shape[axis1], data.shape[axis2]
    places = [i * width + i + k for i in range(height) if 0 <= i + k < width]
    if not places:
        raise ShapeError(f"diag: k is {k}, there is no such diagonal of {height} × {width}")
    cells = ops.transpose(data, [axis1, axis2, *rest]).reshape((-1, *[data.shape[i] for i in rest]))
    chosen = classify(ops.gather(cells, _array(numpy.int32(places), device=data.device)))
    return ops.transpose(chosen, [*range(1, chosen.ndim), 0]) if rest else chosen


def _like(data, values):
    """Constant values beside an array."""
    return _array(values, dtype=str(numpy.dtype(data.dtype)), device=data.device, like=data._array)


# ---- orders


@_public
def flip(data, axis):
    """Reverses an array along one or several axes."""
    return ops.flip(data, axis if isinstance(axis, int) else list(axis))


_also("reverse", flip)


@_public
def repeat(data, repeats, axis=None):
    """Each element several times."""
    return ops.repeat(data.reshape((-1,)), 0, times=repeats) if axis is None else ops.repeat(data, axis, times=repeats)


@_public
def moveaxis(tensor, source, destination):
    """With an axis at another place."""
    source, destination = ([axis_of("moveaxis", i, tensor.ndim) for i in ([a] if isinstance(a, int) else a)] for a in (source, destination))
    if len(set(source)) != len(source) or len(set(destination)) != len(destination):
        raise InvalidArgument("moveaxis: an axis is named twice")
    if len(source) != len(destination):
        raise InvalidArgument("moveaxis: source and destination are as many axes")
    order = [i for i in range(tensor.ndim) if i not in source]
    for to, axis in sorted(zip(destination, source)):
        order.insert(to, axis)
    return ops.transpose(tensor, order)


@_public
def SwapAxis(data, dim1=0, dim2=0):
    """With two axes exchanged."""
    return data.swapaxes(dim1, dim2)


@_public
def pad(data, mode="constant", pad_width=(), constant_value=0):
    """Pads an array with a value, with the elements at the edge, or by reflection."""
    for axis in range(data.ndim):
        before, after = pad_width[2 * axis : 2 * axis + 2]
        if not before and not after:
            continue
        if mode == "edge":
            first, last = data.slice_axis(axis, 0, 1), data.slice_axis(axis, -1, None)
            data = concat(*[first] * before, data, *[last] * after, dim=axis)
        else:
            data = ops.pad(data, axis, before=before, after=after, value=0 if mode == "reflect" else constant_value, reflect=mode == "reflect")
    return data


_also("Pad", pad)


def _images(name, data, block):
    """The shape of images, which must have elements, for blocks of a size from 1 on."""
    if data.ndim != 4 or 0 in data.shape or block < 1:
        raise ShapeError(f"{name}: data has the shape {data.shape}, block_size is {block}; images with elements, and blocks from 1 on, are needed")
    return data.shape


@_public
def depth_to_space(data, block_size):
    """(n, c·b², h, w) as (n, c, h·b, w·b)."""
    n, c, h, w = _images("depth_to_space", data, block_size)
    b = block_size
    if c % b**2:
        raise ShapeError(f"depth_to_space: {c} channels are no multiple of {b}²")
    blocks = ops.transpose(data.reshape((n, b, b, c // b**2, h, w)), [0, 3, 4, 1, 5, 2])
    return blocks.reshape((n, c // b**2, h * b, w * b))


@_public
def space_to_depth(data, block_size):
    """(n, c, h·b, w·b) as (n, c·b², h, w)."""
    n, c, h, w = _images("space_to_depth", data, block_size)
    b = block_size
    if h % b or w % b:
        raise ShapeError(f"space_to_depth: images of {h} × {w} have no blocks of {b} × {b}")
    blocks = ops.transpose(data.reshape((n, c, h // b, b, w // b, b)), [0, 3, 5, 1, 2, 4])
    return blocks.reshape((n, c * b**2, h // b, w // b))


@_public
def UpSampling(data, *more, scale, sample_type="nearest", num_filter=0, multi_input_mode="concat"):
    """Each pixel several times, of several arrays so that all get the size of the first; "bilinear": by the weight, the second array."""
    if sample_type == "bilinear":
        from .layers import Deconvolution

        if len(more) != 1:
            raise InvalidArgument("UpSampling: sample_type='bilinear' needs data and a weight")
        kernel = 2 * scale - scale % 2
        return Deconvolution(data, more[0], kernel=(kernel, kernel), stride=(scale, scale), pad=(scale // 2, scale // 2), num_filter=num_filter,
                             num_group=num_filter)  # fmt: skip
    if sample_type != "nearest" or multi_input_mode not in ("concat", "sum"):
        raise InvalidArgument(f"UpSampling: sample_type is {sample_type!r}, multi_input_mode {multi_input_mode!r}; these are nearest, bilinear; concat, sum")
    height = data.shape[2] * scale
    parts = [ops.repeat(ops.repeat(x, 2, times=height // x.shape[2]), 3, times=height // x.shape[2]) for x in (data, *more)]
    if multi_input_mode == "concat":
        return classify(ops.concat(parts, 1), data) if more else parts[0]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@_public
def khatri_rao(*args):
    """The products of all rows of matrices with the same number of columns, column by column."""
    result = args[0]
    for each in args[1:]:
        if result.ndim != 2 or each.ndim != 2 or result.shape[1] != each.shape[1]:
            raise InvalidArgument(f"khatri_rao: matrices of {result.shape} and {each.shape} do not have the same number of columns")
        rows = result.expand_dims(1) * each.expand_dims(0)
        result = rows.reshape((-1, result.shape[1]))
    return result


# ---- shapes


@_public
def broadcast_axis(data, axis=(), size=()):
    """Axes of length 1 repeated to these lengths."""
    shape = list(data.shape)
    for a, n in zip([axis] if isinstance(axis, int) else axis, [size] if isinstance(size, int) else size):
        shape[a] = n
    return ops.broadcast_to(data, shape)


_also("broadcast_axes", broadcast_axis)


@_public
def broadcast_like(lhs, rhs, lhs_axes=None, rhs_axes=None):
    """Repeated to the shape of another array, or some axes to the lengths of some of its axes."""
    if (lhs_axes is None) != (rhs_axes is None) or lhs_axes is not None and not 0 < len(lhs_axes) == len(rhs_axes):
        raise InvalidArgument("broadcast_like: lhs_axes and rhs_axes are as many axes")
    if lhs_axes is None:
        return ops.broadcast_to(lhs, rhs.shape)
    return broadcast_axis(lhs, lhs_axes, [rhs.shape[a] for a in rhs_axes])


@_public
def shape_array(data):
    """The lengths of the axes as an array."""
    return _array(numpy.array(data.shape), "int64", like=NDArray)


@_public
def size_array(data):
    """The number of elements as an array."""
    return _array(numpy.array([data.size]), "int64", like=NDArray)


# ---- indices


@_public
def where(condition, x, y):
    """The elements of x where the condition is not 0, else those of y."""
    if condition.ndim == 1 and x.ndim and x.ndim > 1:  # a condition for each row
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return classify(ops.where(condition, x, y))


@_public
def take(a, indices, axis=0, mode="clip"):
    """The parts of an axis at the given indices; an index out of range becomes the nearest, or wraps around ("wrap")."""
    return classify(a[(_slice(None),) * (axis % a.ndim) + (places_inside(indices, a.shape[axis], mode),)])


@_public
def pick(data, index, axis=-1, keepdims=False, mode="clip"):
    """One element of each row along an axis."""
    axis = axis_of("pick", axis, data.ndim)
    chosen = places_inside(index, data.shape[axis], mode)
    chosen = chosen.reshape(data.shape[:axis] + (1,) + data.shape[axis + 1 :])
    result = classify(ops.take_along(data, chosen, axis))
    return result if keepdims else result.squeeze(axis)


@_public
def batch_take(a, indices):
    """One element of each row."""
    return pick(a, indices)


@_public
def gather_nd(data, indices):
    """The elements at positions, given by their coordinates along the first axis of indices."""
    m, rest = indices.shape[0], data.shape[indices.shape[0] :]
    flat = _places(indices, data.shape[:m])
    return classify(ops.gather(data.reshape((-1,) + rest), _whole(flat)))


def _ravel(indices, shape):
    flat = indices[0] * 0
    for i, n in enumerate(shape):
        flat = flat * n + indices[i]
    return flat


def _places(indices, shape):
    """The numbers of elements by their coordinates; negative ones count from the end, and what is outside of an axis is -1, which
    the engine refuses."""
    whole = _whole(indices)
    flat = outside = ops.mul_scalar(whole[0], 0)
    for i, n in enumerate(shape):
        at = ops.add(whole[i], ops.mul_scalar(ops.lt_scalar(whole[i], 0), n))
        outside = ops.add(outside, ops.add(ops.lt_scalar(at, 0), ops.ge_scalar(at, n)))
        flat = ops.add(ops.mul_scalar(flat, n), at)
    return classify(ops.where(ops.gt_scalar(outside, 0), ops.sub_scalar(ops.mul_scalar(flat, 0), 1), flat), indices)


@_public
def scatter_nd(data, indices, shape):
    """Zeros, except for data at the given positions."""
    m, rest = indices.shape[0], tuple(shape[indices.shape[0] :])
    rows = int(numpy.prod(shape[:m]))
    empty = _array(numpy.zeros((rows, *rest), "float32"), device=data.device, like=type(data)).astype(data.dtype)
    flat, data = _last_of_each(_places(indices, shape[:m]).reshape((-1,)), data.reshape((-1, *rest)))
    return classify(ops.index_add(empty, flat, data.reshape((-1,) + rest))).reshape(shape)


def _last_of_each(places, rows):
    """Positions and rows without those that a later one overwrites."""
    if places.is_symbol:
        return places, rows
    known = places.numpy()
    last = numpy.sort(known.size - 1 - numpy.unique(known[::-1], return_index=True)[1])
    if last.size == known.size:
        return places, rows
    chosen = _array(last.astype("int32"), device=places.device)
    return ops.gather(places, chosen), ops.gather(rows, chosen)


@_public
def ravel_multi_index(data, shape):
    """Coordinates as indices in the flattened array."""
    return _ravel(data, shape)


@_public
def one_hot(indices, depth, on_value=1.0, off_value=0.0, dtype="float32"):
    """on_value at the indices, else off_value."""
    hot = ops.one_hot(_whole(indices), depth, dtype=dtype)
    return classify(hot if (on_value, off_value) == (1, 0) else hot * (on_value - off_value) + off_value)


# ---- sorting


def _flat(data, axis):
    return (data.reshape((-1,)), 0) if axis is None else (data, axis)


@_public
def sort(data, axis=-1, is_ascend=True):
    """The elements in sorted order."""
    data, axis = _flat(data, axis)
    return ops.sort(data, axis, descending=not is_ascend)


@_public
def argsort(data, axis=-1, is_ascend=True, dtype="float32"):
    """The indices that sort the elements."""
    data, axis = _flat(data, axis)
    return ops.argsort(data, axis, descending=not is_ascend).astype(dtype)


@_public
def topk(data, axis=-1, k=1, ret_typ="indices", is_ascend=False, dtype="float32"):
    """The k largest elements along an axis, all if k is below 1: their indices, values, both, or a mask."""
    shape = data.shape
    data, axis = _flat(data, axis)
    values, places = _topk(turned(data) if is_ascend else data, k if k > 0 else data.shape[axis], axis)
    if is_ascend:
        values = classify(ops.take_along(data, places, axis), data)
    if ret_typ == "value":
        return values
    if ret_typ == "both":
        return [values, places.astype(dtype)]
    if ret_typ == "indices":
        return places.astype(dtype)
    if ret_typ != "mask":
        raise InvalidArgument(f"topk: ret_typ is {ret_typ!r}; these are value, indices, mask, both")
    hot = ops.one_hot(places, data.shape[axis], dtype="float32")  # one axis more, the last
    mask = moveaxis(ops.sum(moveaxis(hot, axis % data.ndim, 0), 0), data.ndim - 1, axis % data.ndim)
    return classify(mask, data).astype(str(Tensor.dtype.fget(data))).reshape(shape)


# ---- sequences: (time, batch, …)


def _times(data, axis):
    shape = [1] * data.ndim
    shape[axis] = data.shape[axis]
    return _like(data, numpy.arange(data.shape[axis], dtype="float32").reshape(shape))


def _has_lengths(name, lengths, used):
    """Whether sequences have lengths of their own; refused where these and the option do not belong together, as in MXNet."""
    if used != (lengths is not None):
        raise InvalidArgument(f"{name}: sequence_length and use_sequence_length=True belong together")
    return used


@_public
def SequenceMask(data, sequence_length=None, use_sequence_length=False, value=0.0, axis=0):
    """A value after the end of each sequence."""
    if not _has_lengths("SequenceMask", sequence_length, bool(use_sequence_length)):
        return data
    shape = [1] * data.ndim
    shape[1 - axis] = data.shape[1 - axis]
    outside = _times(data, axis) >= sequence_length.astype("float32").reshape(tuple(shape))
    return classify(ops.masked_fill(data, outside, value))


@_public
def SequenceLast(data, sequence_length=None, use_sequence_length=False, axis=0):
    """The last step of each sequence."""
    if not _has_lengths("SequenceLast", sequence_length, bool(use_sequence_length)):
        return data.slice_axis(axis, -1, None).squeeze(axis)
    last = _whole(sequence_length - 1)
    steps = ops.transpose(data, [1, 0, *range(2, data.ndim)]) if axis == 0 else data
    places = ops.arange(0, steps.shape[0], 1, dtype="int32", device=data.device) * steps.shape[1] + last
    return classify(ops.gather(steps.reshape((-1,) + steps.shape[2:]), places))


@_public
def SequenceReverse(data, sequence_length=None, use_sequence_length=False, axis=0):
    """The steps in reverse: for each sequence those before its end."""
    if axis != 0:
        raise not_here(f"SequenceReverse(axis={axis})", "axis 0")
    if not _has_lengths("SequenceReverse", sequence_length, bool(use_sequence_length)):
        return ops.flip(data, 0)
    steps, n = data.shape[:2]
    step = _array(numpy.arange(steps, dtype="int32").reshape(-1, 1), device=data.device, like=data._array)
    ends = ops.cast(sequence_length, "int32").reshape((1, -1))
    sources = ops.where(step < ends, ops.sub(ops.sub_scalar(ends, 1), step), ops.add(step, ops.mul_scalar(ends, 0)))
    places = ops.add(ops.mul_scalar(sources, n), _array(numpy.arange(n, dtype="int32").reshape(1, -1), device=data.device))
    return classify(ops.gather(data.reshape((steps * n, *data.shape[2:])), places.reshape((-1,)))).reshape(data.shape)


def split(data, num_outputs, axis=1, squeeze_axis=False):
    """Splits an array into equal parts along an axis; a single part is the array itself."""
    parts = split_v2(data, num_outputs, axis, squeeze_axis)
    return parts[0] if num_outputs == 1 else parts


__all__.append("split")
_also("SliceChannel", split)
