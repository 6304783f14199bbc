"""Functions of mx.np that rearrange elements."""
import numpy

from .. import _ops as ops
from .._core import InvalidArgument
from . import manipulation as _manipulation
from . import nd as _f
from ._np import as_array, flat, named
from ._signed import into
from .unsupported import not_here

__all__ = """append array_split broadcast_to column_stack concat concatenate dstack expand_dims flip fliplr flipud hsplit hstack meshgrid moveaxis
    pad ravel repeat reshape roll rot90 shape split squeeze stack swapaxes take tile transpose vsplit vstack""".split()


def _enter(name, function, doc):
    globals()[name] = named(function, name, doc)
    __all__.append(name)


def rows_first(name, order):
    """Refuses another order of elements than C's."""
    if order != "C":
        raise not_here(f"np.{name}(order={order!r})", "order C")


def transpose(a, axes=None):
    """With the axes in another order, or in reverse."""
    return ops.transpose(a, axes or None)


def reshape(a, newshape, order="C"):
    """The same values in another shape."""
    rows_first("reshape", order)
    return a.reshape(newshape)


def ravel(x, order="C"):
    """The values as one axis."""
    rows_first("ravel", order)
    return x.reshape((-1,))


def expand_dims(a, axis):
    """With one more axis, of length 1."""
    return a.expand_dims(axis)


def squeeze(a, axis=None):
    """Without axes of length 1."""
    return a.squeeze(axis)


def swapaxes(a, axis1, axis2):
    """With two axes exchanged."""
    return _f.swapaxes(a, axis1, axis2)


def broadcast_to(array, shape):
    """Repeated to a shape; -2 keeps a length."""
    array = as_array(array)
    wanted = [shape] if isinstance(shape, int) else list(shape)
    for at in range(-len(wanted), 0):
        if wanted[at] == -2:
            wanted[at] = array.shape[at]
    return ops.broadcast_to(array, wanted)


def concatenate(seq, axis=0, out=None):
    """Arrays one after the other along an axis; with axis=None their elements."""
    seq = [ravel(a) for a in seq] if axis is None else list(seq)
    return into(_f.concatenate(seq, axis or 0), out)


concat = concatenate


def stack(arrays, axis=0, out=None):
    """Arrays side by side along a new axis."""
    return into(_f.stack(*map(as_array, arrays), axis=axis), out)


def vstack(arrays):
    """Arrays one under the other."""
    return concatenate([a if a.ndim > 1 else a.reshape((1, -1)) for a in arrays], 0)


def hstack(arrays):
    """Arrays one beside the other; an array without axes is one element."""
    arrays = [a if a.ndim else a.reshape((1,)) for a in arrays]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1)


def split(ary, indices_or_sections, axis=0):
    """Splits an array into parts along an axis."""
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise InvalidArgument("array split does not result in an equal division")
        indices_or_sections = [size // indices_or_sections * i for i in range(1, indices_or_sections)]
    return _cut(ary, indices_or_sections, axis)


def _cut(ary, bounds, axis):
    """The parts of an array between bounds along an axis; as in NumPy, bounds beyond the end give empty parts."""
    bounds, front = [0, *(int(b) for b in bounds), ary.shape[axis]], (slice(None),) * (axis % ary.ndim)
    return [ary[front + (slice(b, e),)] for b, e in zip(bounds, bounds[1:])]


def take(a, indices, axis=None, mode="raise", out=None):
    """The parts of an axis at the given indices."""
    indices = as_array(indices, "int32")
    return into(_f.take(a if axis is not None else ravel(a), indices, axis or 0, mode), out)


def shape(a):
    """The lengths of the axes."""
    return a.shape


def flip(m, axis=None, out=None):
    """In reverse along an axis, several, or all."""
    return into(ops.flip(m, axis if axis is None or isinstance(axis, int) else list(axis)), out)


def flipud(m):
    """In reverse along the first axis."""
    return flip(m, 0)


def fliplr(m):
    """In reverse along the second axis."""
    return flip(m, 1)


def roll(a, shift, axis=None):
    """Rotates elements along an axis; those at the end reappear at the beginning."""
    if isinstance(axis, (tuple, list)):
        for s, x in zip(shift, axis):
            a = roll(a, s, x)
        return a
    whole, at = flat(a, axis)
    cut = -shift % whole.shape[at] if whole.shape[at] else 0
    rolled = _f.concat(whole.slice_axis(at, cut, None), whole.slice_axis(at, 0, cut), dim=at) if cut else whole
    return rolled.reshape(a.shape)


def rot90(m, k=1, axes=(0, 1)):
    """Turned by 90 degrees, k times."""
    for _ in range(k % 4):
        m = flip(m.swapaxes(*axes), axes[0])
    return m


def tile(A, reps):
    """Copies of an array side by side along its axes."""
    A, reps = as_array(A), (reps,) if isinstance(reps, int) else tuple(reps)
    if 0 in reps:  # no copies are an axis without elements
        reps = (1,) * (A.ndim - len(reps)) + reps
        A = A.reshape((1,) * (len(reps) - A.ndim) + A.shape)[tuple(slice(0 if r == 0 else None) for r in reps)]
        reps = tuple(r or 1 for r in reps)
    return _f.tile(A, reps) if reps else A.copy()


def repeat(a, repeats, axis=None):
    """Each element several times."""
    return _manipulation.repeat(a, repeats, axis)


def moveaxis(a, source, destination):
    """With an axis at another place."""
    return _manipulation.moveaxis(a, source, destination)


def pad(x, pad_width=None, mode="constant", constant_values=0):
    """Pads an array with a value, the elements at the edge, by reflection, or with the largest or smallest of an axis."""
    widths = numpy.broadcast_to(numpy.asarray(pad_width), (x.ndim, 2)).tolist()
    if mode == "constant":
        return _manipulation.pad(x, mode, sum(widths, []), constant_values)
    if mode not in ("edge", "reflect", "symmetric", "maximum", "minimum"):
        raise not_here(f"np.pad(mode={mode!r})", "constant, edge, reflect, symmetric, maximum, minimum")
    for axis, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode in ("maximum", "minimum"):
            most = getattr(_f, mode[:3])(x, axis, True)
            x = _f.concat(*[most] * before, x, *[most] * after, dim=axis)
        else:
            x = x[(slice(None),) * axis + (numpy.pad(numpy.arange(x.shape[axis]), (before, after), mode).tolist(),)]
    return x


def dstack(arrays):
    """Arrays side by side along the third axis."""
    def deep(a):
        a = a.reshape((1, -1)) if a.ndim < 2 else a
        return a.expand_dims(2) if a.ndim == 2 else a

    return _f.concat(*map(deep, arrays), dim=2)


def column_stack(tup):
    """Arrays as columns side by side."""
    return _f.concat(*[a.reshape((-1, 1)) if a.ndim < 2 else a for a in tup], dim=1)


def array_split(ary, indices_or_sections, axis=0):
    """An array cut into parts, which need not be equal."""
    if not isinstance(indices_or_sections, int):
        return _cut(ary, indices_or_sections, axis)
    each, more = divmod(ary.shape[axis], indices_or_sections)
    sizes = [each + 1] * more + [each] * (indices_or_sections - more)
    return _cut(ary, numpy.cumsum(sizes)[:-1].tolist(), axis)


def hsplit(ary, indices_or_sections):
    """Parts side by side."""
    if not ary.ndim:
        raise InvalidArgument("hsplit only works on arrays of 1 or more dimensions")
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


def vsplit(ary, indices_or_sections):
    """Parts stacked along the first axis."""
    if ary.ndim < 2:
        raise InvalidArgument("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


def append(arr, values, axis=None):
    """An array with more at the end."""
    arr, values = (as_array(a).reshape((-1,)) if axis is None else as_array(a) for a in (arr, values))
    return _f.concat(arr, values, dim=axis or 0)


def _at_least(n):
    def call(*arys):
        made = [a if a.ndim >= n else a.reshape((1,) * (n - a.ndim) + a.shape) for a in map(as_array, arys)]
        return made[0] if len(made) == 1 else made

    _enter(f"atleast_{n}d", call, f"With at least {n} axes.")


_at_least(1)
_at_least(2)


def meshgrid(*xi, indexing="xy"):
    """Coordinates of a grid."""
    shape = [x.size for x in xi]
    grids = [ops.broadcast_to(x.reshape(tuple(-1 if i == j else 1 for j in range(len(xi)))), shape) for i, x in enumerate(xi)]
    return [g.swapaxes(0, 1) for g in grids] if indexing == "xy" and len(xi) > 1 else grids
