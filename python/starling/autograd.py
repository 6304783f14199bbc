"""Gradients: recording, and the backward pass."""
from ._core import NULL, check, ffi, here, lib, pointer, raise_error

__all__ = ["autocast", "record", "pause", "train_mode", "predict_mode", "is_recording", "is_training", "backward", "grad"]


class _Mode:
    """A state of the calling thread, as a context manager."""

    def __init__(self, recording, training):
        self._wanted, self._modes = (recording, training), []

    def __enter__(self):
        mode = ffi.new("sl_mode *")
        lib.sl_mode_enter(mode, *self._wanted)
        self._modes.append(mode)
        return self

    def __exit__(self, *exception):
        lib.sl_mode_leave(self._modes.pop())


def record(train_mode=True):
    """Records the operations inside, in training mode unless train_mode is False."""
    return _Mode(1, 1 if train_mode else 0)


def pause(train_mode=False):
    """Does not record the operations inside, in inference mode unless train_mode is True."""
    return _Mode(0, 1 if train_mode else 0)


def train_mode():
    """Runs the code inside in training mode; does not change recording."""
    return _Mode(-1, 1)


def predict_mode():
    """Runs the code inside in inference mode; does not change recording."""
    return _Mode(-1, 0)


class autocast:
    """Runs the code inside in a half type where it suits the operation: with autocast("bfloat16")."""

    def __init__(self, dtype="bfloat16"):
        self._dtype, self._modes = dtype, []

    def __enter__(self):
        from ._tensor import dtype_of

        mode = ffi.new("sl_autocast_mode *")
        lib.sl_autocast_enter_at(here(), mode, dtype_of(self._dtype))
        if lib.sl_error():
            raise_error()
        self._modes.append(mode)
        return self

    def __exit__(self, *exception):
        lib.sl_autocast_leave(self._modes.pop())


def is_recording():
    """Whether operations of this thread are recorded."""
    return bool(lib.sl_is_recording())


def is_training():
    """Whether this thread is in training mode."""
    return bool(lib.sl_is_training())


def backward(heads, head_grads=None, retain_graph=False, scale=1, create_graph=False):
    """Computes the gradients of the heads (a tensor or several) with respect to all tensors with a gradient attached.

    head_grads: the gradients of the heads, one each, or None for ones.
    scale: the factor of all gradients, by which a trainer divides them: trainer.loss_scale.
    create_graph: records the gradients, so that they can be differentiated; starling.grad is usually better, because a gradient
    that belongs to a tensor keeps the record until the next backward().
    """
    array, count, options, _kept = _arguments(heads, head_grads, retain_graph, scale, create_graph)
    check(lib.sl_backward_heads_at(here(), array, count, options))


def grad(heads, variables, head_grads=None, retain_graph=False, create_graph=False, scale=1):
    """The gradients of the heads, of their sum if there are several, with respect to variables alone: a tensor or a list of them.

    variables are tensors with a gradient attached, or results computed from such under record().  One that no head depends on has
    zeros.  create_graph: records the gradients, so that they can be differentiated again:

        with starling.record():
            slope = starling.grad(critic(x), x, create_graph=True)
            penalty = ((slope.norm(1) - 1) ** 2).mean()
        penalty.backward()
    """
    from ._tensor import Tensor, wrap

    one = isinstance(variables, Tensor)
    given = [variables] if one else list(variables)
    array, count, options, _kept = _arguments(heads, head_grads, retain_graph, scale, create_graph)
    wants = ffi.new("sl_tensor *[]", [pointer("a variable", v, Tensor) for v in given] or 1)
    out = ffi.new("sl_tensor *[]", max(len(given), 1))
    check(lib.sl_gradients_at(here(), array, count, wants, len(given), out, options))
    found = [wrap(out[i], type(v)) for i, v in enumerate(given)]
    return found[0] if one else found


def _arguments(heads, head_grads, retain_graph, scale, create_graph):
    """(the heads in C, their number, the options, the arrays that the options refer to)."""
    from ._tensor import Tensor

    heads = list(heads) if isinstance(heads, (list, tuple)) else [heads]
    array = ffi.new("sl_tensor *[]", [pointer("a head", h, Tensor) for h in heads])
    grads = NULL
    if head_grads is not None:
        given = list(head_grads) if isinstance(head_grads, (list, tuple)) else [head_grads]
        if len(given) != len(heads):
            raise ValueError(f"{len(given)} gradients of {len(heads)} heads")
        grads = ffi.new("sl_tensor *[]", [NULL if g is None else pointer("a gradient of a head", g, Tensor) for g in given])
    return array, len(heads), (grads, retain_graph, scale, create_graph, True), grads
