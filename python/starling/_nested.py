"""Lists and tuples of tensors, also nested, as inputs and results of blocks; the library takes single tensors."""
import math

from . import _ops
from ._core import here, lib, shape_of
from ._tensor import Tensor, wrap


def flatten(value, leaves):
    """Appends the tensors in value to leaves; returns its form: None, "x" for a tensor, or (type, forms …)."""
    if isinstance(value, Tensor):
        leaves.append(value)
        return "x"
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{type(value).__name__} is among them, a tensor is needed")
    return (list if isinstance(value, list) else tuple, *(flatten(v, leaves) for v in value))


def unflatten(form, leaves):
    """The value of that form of the next tensors."""
    if form is None:
        return None
    return next(leaves) if form == "x" else form[0](unflatten(f, leaves) for f in form[1:])


def join(value, of):
    """(one tensor with all elements of those in value, how cut() gets value from it)."""
    leaves = []
    try:
        form = flatten(value, leaves)
    except TypeError as error:
        raise TypeError(f"{of}: {error}") from None
    if not leaves:
        raise TypeError(f"{of} returned an empty {type(value).__name__}, a tensor is needed")
    types = [str(t.dtype) if not isinstance(t.dtype, type) else t.dtype.__name__ for t in leaves]
    common = types[0] if len(set(types)) == 1 else "float64"  # which has every value of the others but large whole numbers
    rows = [t.reshape((-1,)) if d == common else t.reshape((-1,)).astype(common) for t, d in zip(leaves, types)]
    return _ops.concat(rows, 0), (form, [(t.shape, d) for t, d in zip(leaves, types)], common)


def cut(y, parts):
    """The tensors that were joined; y itself if nothing was joined."""
    if parts is None:
        return y
    form, leaves, common = parts
    tensors, begin = [], 0
    for shape, dtype in leaves:
        end = begin + math.prod(shape)
        rows = wrap(lib.sl_rows_at(here(), y._p, begin, end), type(y))
        t = wrap(lib.sl_reshape_at(here(), rows._p, shape_of(shape)), type(y))
        tensors.append(t if dtype == common else t.astype(dtype))
        begin = end
    return unflatten(form, iter(tensors))
