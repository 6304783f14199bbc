"""mx.autograd: recording and gradients."""
from .. import autograd as _autograd
from .._core import StateError, lib
from .._custom import Function
from ..autograd import backward, is_recording, is_training, pause, predict_mode, train_mode
from .unsupported import missing, not_here

__all__ = ["Function", "backward", "grad", "is_recording", "is_training", "mark_variables", "pause", "predict_mode", "record",
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
    raise not_here("autograd.mark_variables", "attach_grad of the arrays")


def grad(heads, variables, head_grads=None, retain_graph=None, create_graph=False, train_mode=True):
    """The gradients of heads with respect to variables: a list of new arrays.  create_graph: they can be differentiated again."""
    given = list(variables) if isinstance(variables, (list, tuple)) else [variables]
    try:
        found = _autograd.grad(heads, given, head_grads, bool(retain_graph), create_graph)
    except StateError as error:
        raise ValueError(f"autograd.grad: attach_grad() of the variables comes before the heads are computed: {error}") from None
    for g in found:
        if not create_graph:
            lib.sl_grad_as_constant(g._p)
    return found


__getattr__ = missing("mx.autograd")
