"""mx.autograd: recording and gradients."""
import weakref

from .. import autograd as _autograd
from .._core import StateError, lib
from .._custom import Function
from .._tensor import Tensor
from ..autograd import backward, is_recording, is_training, pause, predict_mode, train_mode
from ._array import NDArray
from .unsupported import missing, not_here

__all__ = ["Function", "NDArray", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables", "pause", "predict_mode", "record",
           "set_recording", "set_training", "train_mode"]  # fmt: skip


_RECORD = 2  # differentiated results are constants, as in MXNet


def record(train_mode=True):
    """Records the operations inside, in training mode unless train_mode is False."""
    return _autograd._Mode(_RECORD, 1 if train_mode else 0)


def _set(recording, training, before):
    _autograd._Mode(recording, training).__enter__()
    return before


def set_recording(is_record):
    """Switches recording on or off; returns the previous state."""
    return _set(_RECORD if is_record else 0, -1, is_recording())


def set_training(train):
    """Switches training mode on or off; returns the previous state."""
    return _set(-1, int(train), is_training())


def mark_variables(variables, gradients, grad_reqs="write"):
    """Attaches gradients to arrays; backward passes write them into the given arrays."""
    variables, gradients = (list(v) if isinstance(v, (list, tuple)) else [v] for v in (variables, gradients))
    reqs = [grad_reqs] * len(variables) if isinstance(grad_reqs, str) else list(grad_reqs)
    if not len(variables) == len(gradients) == len(reqs):
        raise ValueError(f"mark_variables: {len(variables)} arrays, {len(gradients)} gradients, {len(reqs)} grad_reqs")
    for variable, gradient, req in zip(variables, gradients, reqs):
        if variable.shape != gradient.shape:
            raise ValueError(f"mark_variables: an array of shape {variable.shape} has a gradient of shape {gradient.shape}")
        variable.attach_grad(req)
        own = variable.grad
        if own is not None:
            own[slice(None) if own.ndim else ()] = gradient
            gradient._p = own._p  # from now on the gradient itself


def grad(heads, variables, head_grads=None, retain_graph=None, create_graph=False, train_mode=True):
    """The gradients of heads with respect to variables: a list of new arrays.  create_graph: they can be differentiated again."""
    given = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    try:
        found = _autograd.grad(heads, given, head_grads, bool(retain_graph), create_graph)
    except StateError as error:
        if all(map(_gradient_of, heads if isinstance(heads, (list, tuple)) else [heads])):
            return [v.zeros_like() for v in given]  # a gradient that does not depend on the variables
        raise ValueError(f"autograd.grad: attach_grad() of the variables comes before the heads are computed: {error}") from None
    for g in found:
        if not create_graph:
            lib.sl_grad_as_constant(g._p)
        else:
            key = id(g)
            _gradients[key] = weakref.ref(g, lambda _, key=key: _gradients.pop(key, None)), given
    return found


_gradients: dict = {}  # by the id of a gradient that can be differentiated: (a weak reference to it, the variables)


def _gradient_of(array):
    """The variables of a gradient of create_graph=True; None for other arrays."""
    found = _gradients.get(id(array))
    return found and found[1]


def differentiate(array, out_grad, retain_graph):
    """array.backward(): one that is itself a gradient, and constant, has gradients of 0."""
    if not array.is_symbol and "float" not in (kind := str(Tensor.dtype.fget(array))):
        raise not_here(f"a gradient of an array of {kind}", "an array of floats")
    try:
        Tensor.backward(array, out_grad, retain_graph)
    except StateError:
        if not _gradient_of(array):
            raise
        for v in _gradient_of(array):
            if v.grad is not None:
                v.grad[slice(None) if v.ndim else ()] = 0


def get_symbol(x):
    """Not supported: recorded operations are no program of symbols."""
    raise not_here("autograd.get_symbol", "a HybridBlock, hybridize and export")


__getattr__ = missing("mx.autograd")
