"""Updates by sparse gradients: only the rows that a gradient has, with their states, where an optimiser is lazy; else all."""
from .._tensor import Tensor
from ._sparse import BaseSparseNDArray, RowSparseNDArray, dense_of

_LAZY = ("AdaGrad", "Ftrl", "GroupAdaGrad")  # always; others where lazy_update is set


def _is_lazy(optimizer, grad):
    return isinstance(grad, RowSparseNDArray) and (type(optimizer).__name__ in _LAZY or getattr(optimizer, "lazy_update", False))


def _each(state, function):
    """A function of all arrays of a state."""
    if isinstance(state, (list, tuple)):
        return type(state)(_each(s, function) for s in state)
    return function(state) if isinstance(state, Tensor) else state


def sparse_update(optimizer, index, weight, grad, state):
    """optimizer.update with dense arrays in the place of sparse ones; the changes are put into the arrays that were given."""
    rows = grad.indices.asnumpy() if _is_lazy(optimizer, grad) else None
    if rows is not None and not len(rows):
        optimizer._update_count(index)
        return
    taken = []

    def part(t):
        """The rows of an array, or all of it."""
        if rows is None:
            copy = dense_of(t) if isinstance(t, BaseSparseNDArray) else t
        else:
            copy = dense_of(t)[_numbers(rows, t)]
        taken.append((t, copy))
        return copy

    inner = part(weight), dense_of(grad) if rows is None else grad.data, _each(state, part)
    optimizer.update(index, *inner)
    for target, copy in taken:
        _put_back(target, copy, rows)


def _numbers(rows, like):
    from . import nd

    return nd.array(rows, like.context, "int32")


def _put_back(target, copy, rows):
    if rows is None:
        if isinstance(target, BaseSparseNDArray):
            target[slice(None)] = copy
        return
    dense = dense_of(target)
    dense[_numbers(rows, target)] = copy
    if isinstance(target, BaseSparseNDArray):
        target[slice(None)] = dense.copy()
