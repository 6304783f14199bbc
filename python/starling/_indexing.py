"""NumPy's indexing, in terms of the library's views and operations."""
import math
import operator

import numpy

from . import _core
from ._core import NULL, check, ffi, here, lib, raise_error, shape_of
from ._tensor import Tensor, _dtype_names, array, dtype_of, wrap
from ._values import fit, number_of


def _numpy_of(k):
    """An index for NumPy."""
    return k.numpy() if isinstance(k, Tensor) else k


def _expand(key, ndim):
    """The key as a list with one entry for each axis of the tensor; None entries are new axes."""
    key = list(key) if isinstance(key, tuple) else [key]
    used = sum(k.ndim if _is_mask(k) else 1 for k in key if k is not None and k is not Ellipsis)
    if used > ndim:
        raise IndexError(f"{used} indices for a tensor of {ndim} axes")
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can have only one ellipsis")
    at = dots[0] if dots else len(key)
    fill = [slice(None)] * (ndim - used)
    return key[:at] + fill + key[at + 1 :]


def _position(k, size, axis):
    k = operator.index(k)
    if not -size <= k < size:
        raise IndexError(f"index {k} is outside of axis {axis}, which has {size} elements")
    return k + size if k < 0 else k


def _cut(t, axis, size, k):
    """t with an axis cut to the slice k."""
    begin, end, step = k.indices(size)
    if (begin, end, step) == (0, size, 1):
        return t
    if step < 0:  # the same elements forwards, then turned round
        count = len(range(begin, end, step))
        last = begin + (count - 1) * step
        forwards = _cut(t, axis, size, slice(last, begin + 1, -step)) if count else _cut(t, axis, size, slice(0, 0))
        return wrap(lib.sl_flip_at(here(), forwards._p, (ffi.new("int[]", [axis]), 1, False)), type(t))
    end = max(begin, end)
    if axis == 0 and step == 1:
        return wrap(lib.sl_rows_at(here(), t._p, begin, end), type(t))
    return wrap(lib.sl_slice_at(here(), t._p, axis, begin, end, step), type(t))



def _chosen(t, axis, k):
    """t with an axis replaced by those of the index tensor k: gathers rows along the first axis."""
    if axis == 0:
        return wrap(lib.sl_gather_at(here(), t._p, k._p), type(t))
    order = [axis] + [i for i in range(t.ndim) if i != axis]
    moved = wrap(lib.sl_transpose_at(here(), t._p, (ffi.new("int[]", order), len(order), False)), type(t))
    rows = wrap(lib.sl_gather_at(here(), moved._p, k._p), type(t))
    back = list(range(k.ndim, k.ndim + axis)) + list(range(k.ndim)) + list(range(k.ndim + axis, rows.ndim))
    return wrap(lib.sl_transpose_at(here(), rows._p, (ffi.new("int[]", back), len(back), False)), type(t))


def _from_the_end(k, size):
    """Positions of a tensor, of which those below 0 are counted from the end."""
    if not k._truths or not lib.slpy_integers(k._p, NULL):
        return k
    return k.astype("int32") if k.dtype == numpy.uint8 else k + (k < 0) * size


def _is_mask(k):
    return isinstance(k, (Tensor, numpy.ndarray)) and k.dtype == bool


def _is_indices(k):
    return isinstance(k, (Tensor, numpy.ndarray, list)) and not (isinstance(k, Tensor) and k.size == 1 and k.ndim == 0)


def get(t, key):
    """t[key]: rows and parts of the first axis are views; anything else is an operation."""
    part = _part(t, key)
    part._part = part is not t and lib.sl_is_recording()
    return part


def _plain(k):
    """One index with lists as arrays, and arrays without axes as numbers."""
    if isinstance(k, (list, tuple)):
        k = numpy.asarray(k)
        k = k if k.size else k.astype(numpy.intp)
    if isinstance(k, numpy.ndarray):
        if k.dtype.kind not in "iub":
            raise IndexError(f"an index is {k.dtype}; whole numbers, bools, slices, None and ... are indices")
        return k if k.ndim else k[()]
    return k


def _is_usual(key):
    """Whether the parts of an index can be applied one after the other; those that NumPy combines cannot."""
    lists = [i for i, k in enumerate(key) if _is_indices(k)]
    if any(isinstance(k, (bool, numpy.bool_)) for k in key):
        return False
    if not lists:
        return True
    if len(lists) > 1 and not any(isinstance(key[i], Tensor) for i in lists):
        return False
    if any(_is_mask(key[i]) and key[i].ndim != 1 for i in lists):
        return False
    joined = [i for i, k in enumerate(key) if not (k is None or k is Ellipsis or isinstance(k, slice))]
    return joined[-1] - joined[0] < len(joined)


def _by_places(t, key):
    """NumPy's t[key] for any key: NumPy computes the elements' positions."""
    if any(isinstance(k, Tensor) and _is_mask(k) for k in key):
        raise IndexError("masks cannot be indices: a result's shape must not depend on values; starling.where and masked_fill take them")
    places = numpy.arange(t.size, dtype="int32").reshape(t.shape)[tuple(map(_numpy_of, key))]
    if not places.size:
        return wrap(lib.sl_zeros_at(here(), shape_of(places.shape), (dtype_of(t.dtype), t.device._c)), type(t))
    flat = t.reshape((-1,))
    found = get(flat, array(places.ravel(), device=t.device))
    return found.reshape(places.shape)


def _part(t, key):
    if t.shape is None:
        raise _core.StateError("a symbol whose shape is not known cannot be indexed; give starling.var a shape")
    if key.__class__ is not int:  # usual indices are fast
        key = tuple(map(_plain, key)) if isinstance(key, tuple) else (_plain(key),)
        if not _is_usual(key):
            return _by_places(t, key)
    keys = _expand(key, t.ndim)
    if any(_is_mask(k) and (isinstance(k, Tensor) or k.ndim != 1) for k in keys):
        raise IndexError("masks cannot be indices: a result's shape must not depend on values; starling.where and masked_fill take them")
    if sum(map(_is_indices, keys)) > 1:
        return _at_places(t, keys)
    shape, axis = [], 0
    for k in keys:
        if k is None:
            shape.append(1)
            continue
        size = t.shape[axis]
        if isinstance(k, slice):
            t = _cut(t, axis, size, k)
            shape.append(t.shape[axis])
            axis += 1
        elif _is_indices(k):
            k = _from_the_end(k, size) if isinstance(k, Tensor) else _index_array(t, k, axis, size)
            t = _chosen(t, axis, k)
            shape.extend(k.shape)
            axis += k.ndim
        else:
            i = _position(k, size, axis)
            t = _cut(t, axis, size, slice(i, i + 1, 1))
            axis += 1
    # Axes of a single index go, new ones come.
    if tuple(shape) != t.shape:
        t = wrap(lib.sl_reshape_at(here(), t._p, shape_of(shape)), type(t))
    return t


def _at_places(t, keys):
    """t[rows, columns]: the elements at places that several lists name together."""
    first = next(i for i, k in enumerate(keys) if _is_indices(k))
    lengths = iter(t.shape)
    lists = [(k, next(lengths)) for k in keys if k is not None]
    lists = [k if isinstance(k, Tensor) else _index_array(t, k, None, n) for k, n in lists if _is_indices(k)]
    if any(k is None for k in keys) or not all(map(_is_indices, keys[first : first + len(lists)])):
        raise IndexError("lists of indices stand side by side, without new axes")
    around = get(t, (*keys[:first], *[slice(None)] * len(lists), *keys[first + len(lists) :]))
    axis = first - sum(not isinstance(k, slice) for k in keys[:first])
    sizes = around.shape[axis : axis + len(lists)]
    flat, outside = 0, None
    for k, n in zip(lists, sizes):
        k = k + n * (k < 0).astype("int32")
        flat = flat * n + k
        if t._truths:  # what is outside of one axis must not be another place inside
            outside = (k < 0) | (k >= n) if outside is None else outside | (k < 0) | (k >= n)
    if outside is not None:
        flat = flat.masked_fill(outside, numpy.prod(sizes).item())
    together = around.reshape(around.shape[:axis] + (math.prod(around.shape[axis : axis + len(lists)]),) + around.shape[axis + len(lists) :])
    return get(together, (*[slice(None)] * axis, flat))


def _index_array(t, k, axis, size):
    """Indices whose values are known, a list or NumPy's, as a tensor of positions."""
    k = numpy.asarray(k)
    where = "" if axis is None else f" {axis}"
    if k.dtype == bool:
        if k.shape != (size,):
            raise IndexError(f"a mask of shape {k.shape} for axis{where}, which has {size} elements")
        k = k.nonzero()[0]
    elif k.size and not (-size <= k.min() and k.max() < size):
        raise IndexError(f"index {k.min() if k.min() < -size else k.max()} is outside of axis{where}, which has {size} elements")
    return array(numpy.where(k < 0, k + size, k).astype(numpy.int32), device=t.device)


def _whole(keys, shape):
    return all(isinstance(k, slice) and k.indices(n) == (0, n, 1) for k, n in zip(keys, shape))


def _given(t, value):
    """An element for t, or an array of elements, for NumPy: values that t's data type cannot hold are refused."""
    if not t._truths:
        return numpy.asarray(value, dtype=t.dtype)
    return fit(numpy.asarray(value), _dtype_names[dtype_of(t.dtype)], exact=True)


def _without_ones(shape, ndim):
    """A shape without surplus first axes of length 1."""
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return tuple(shape)


def _fitting(t, value, shape):
    """value as a tensor of this shape, with t's type and device."""
    if not isinstance(value, Tensor):
        value = _given(t, value)
        value = array(numpy.broadcast_to(value.reshape(_without_ones(value.shape, len(shape))), shape), t.dtype, t.device)
    elif value.ndim > len(shape):
        value = wrap(lib.sl_reshape_at(here(), value._p, shape_of(_without_ones(value.shape, len(shape)))), type(t))
    if value.device != t.device:
        value = wrap(lib.sl_copy_to_at(here(), value._p, t.device._c), type(t))
    if value.shape != tuple(shape):
        value = wrap(lib.sl_broadcast_to_at(here(), value._p, shape_of(shape)), type(t))
    return value if value.dtype == t.dtype else value.astype(t.dtype)


def _number_of(t, value):
    """A number as an element of t; None for anything else."""
    if isinstance(value, Tensor) or numpy.ndim(value) or not hasattr(value, "__float__"):
        return None
    return number_of(value, _dtype_names[dtype_of(t.dtype)], exact=True) if t._truths else float(value)


def _fill(t, value):
    """Sets all elements of t to value."""
    if isinstance(value, Tensor) and value._p == t._p:
        return  # t[:] += 1 has been done already
    number = _number_of(t, value)
    if number is not None and abs(number) <= 2**53 or number != number:
        done = lib.sl_fill_inplace_at(here(), t._p, number)
    else:
        value = _fitting(t, value, t.shape)
        done = lib.sl_copy_inplace_at(here(), t._p, value._p)
    if not done:
        raise_error()


def _with_rows(t, begin, end, value):
    """t with other rows [begin, end), by operations."""
    cuts = [(0, begin), (end, t.shape[0])]
    before, after = [wrap(lib.sl_slice_at(here(), t._p, 0, i, j, 1), type(t)) for i, j in cuts]
    parts = [before, _fitting(t, value, (end - begin, *t.shape[1:])), after]
    parts = [x for x in parts if x.shape[0]] or [t]
    return wrap(lib.sl_concat_at(here(), [x._p for x in parts], len(parts), 0), type(t))


def _with_places(t, key, value):
    """t with other elements at the positions of NumPy's t[key], by operations; of equal positions the last counts."""
    places = numpy.arange(t.size, dtype="int32").reshape(t.shape)[key]
    value = _fitting(t, value, places.shape).reshape((-1,))
    places, other = places.ravel(), numpy.zeros(t.size, bool)
    other[places] = True
    last = numpy.sort(places.size - 1 - numpy.unique(places[::-1], return_index=True)[1])
    if last.size < places.size:
        value, places = get(value, last), places[last]
    flat, mask, indices = t.reshape((-1,)), array(other, device=t.device), array(places, device=t.device)
    kept = wrap(lib.sl_masked_fill_at(here(), flat._p, mask._p, 0.0), type(t))
    return wrap(lib.sl_index_add_at(here(), kept._p, indices._p, value._p), type(t)).reshape(t.shape)


def _rows_of(t, keys):
    """[begin, end) where keys name rows that lie one after the other, whole; else None."""
    if not _whole(keys[1:], t.shape[1:]):
        return None
    k = keys[0]
    k = k if isinstance(k, slice) else slice(i := _position(k, t.shape[0], 0), i + 1)
    begin, end, step = k.indices(t.shape[0])
    return (begin, max(begin, end)) if step == 1 else None


def set_(t, key, value):
    """t[key] = value, in place and asynchronous for whole tensors and rows; else through the host.  While recording, operations
    compute a new t, so that gradients flow through them."""
    if isinstance(key, Tensor) and _is_mask(key) and key.shape == t.shape and (number := _number_of(t, value)) is not None and abs(number) <= 2**53:
        return _fill(t, wrap(lib.sl_masked_fill_at(here(), t._p, key._p, number), type(t)))
    if t.shape is None:
        raise _core.StateError("a symbol whose shape is not known cannot be indexed; give starling.var a shape")
    key = tuple(_plain(_numpy_of(k)) for k in (key if isinstance(key, tuple) else (key,)))
    usual = not any(k is None or _is_indices(k) or isinstance(k, (bool, numpy.bool_)) for k in key)
    keys = _expand(key, t.ndim) if usual else key
    if usual and _whole(keys, t.shape):
        return _fill(t, value)
    rows, recorded = _rows_of(t, keys) if usual else None, lib.sl_is_recording() and "float" in str(t.dtype)
    if recorded:
        return _fill(t, _with_rows(t, *rows, value) if rows else _with_places(t, key, value))
    if rows:
        view = wrap(lib.sl_rows_at(here(), t._p, *rows), type(t))
        if not isinstance(keys[0], slice):
            view = wrap(lib.sl_reshape_at(here(), view._p, shape_of(t.shape[1:])), type(t))
        return _fill(view, value)
    half = t.dtype == "bfloat16"  # which NumPy does not have
    values = t.astype("float32").numpy(copy=True) if half else t.numpy(copy=True)
    if isinstance(value, Tensor):
        value = (value if value.dtype == values.dtype else value.astype(values.dtype)).numpy()
        value = value if value.size != 1 else value.reshape(())
    else:
        value = _given(t, value)
    values[key] = value
    if half:
        return _fill(t, array(values, t.dtype, t.device, type(t)))
    check(lib.sl_write_at(here(), t._p, ffi.from_buffer(values), values.nbytes))
