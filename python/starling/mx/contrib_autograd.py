"""mx.contrib.autograd: the functions that MXNet had before mx.autograd."""
import functools

from . import autograd
from ._array import NDArray
from .autograd import mark_variables
from .unsupported import missing

__all__ = ["backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables", "set_is_training", "test_section", "train_section", "NDArray"]


def set_is_training(is_train):
    """Switches training mode and recording on or off; returns the previous state."""
    before = autograd.set_training(is_train)
    autograd.set_recording(is_train)
    return before


def train_section():
    """Records in training mode."""
    return autograd.record()


def test_section():
    """Neither records nor trains."""
    return autograd.pause()


def backward(outputs, out_grads=None, retain_graph=False):
    """Computes the gradients of outputs with respect to all arrays with a gradient attached."""
    autograd.backward(outputs, out_grads, retain_graph)


def compute_gradient(outputs):
    """The same, without gradients of the outputs."""
    backward(outputs)


def grad_and_loss(func, argnum=None):
    """A function that returns the gradients of func, with respect to some of its arguments, and its result."""

    @functools.wraps(func)
    def wrapped(*args):
        numbers = range(len(args)) if argnum is None else argnum if isinstance(argnum, list) else [argnum]
        variables = [args[i] for i in numbers]
        for x in variables:
            if not isinstance(x, NDArray):
                raise TypeError("type of autograd input should NDArray.")
        grads = [x.zeros_like() for x in variables]
        mark_variables(variables, grads)
        with autograd.record():
            outputs = func(*args)
        backward([outputs] if isinstance(outputs, NDArray) else outputs)
        return grads, outputs

    return wrapped


def grad(func, argnum=None):
    """A function that returns the gradients of func."""
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args):
        return both(*args)[0]

    return wrapped


__getattr__ = missing("mx.contrib.autograd")
