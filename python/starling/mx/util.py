"""mx.util: its functions that programs use; whether blocks and loaders make arrays of mx.np, for a time or in a function."""
import contextlib
import functools
import inspect
import os

from . import _mode
from ._mode import is_np_array, is_np_shape, reset_np, set_np
from .context import num_gpus as get_gpu_count
from .unsupported import missing


@contextlib.contextmanager
def np_array(active=True):
    """Blocks and loaders make arrays of mx.np, or of mx.nd, inside."""
    before, _mode._np = _mode._np, bool(active)
    try:
        yield
    finally:
        _mode._np = before


@contextlib.contextmanager
def np_shape(active=True):
    """Shapes of symbols have NumPy's meaning, or MXNet's older one, inside; arrays of mx.np can always be without axes."""
    before = set_np_shape(active)
    try:
        yield
    finally:
        _mode._shapes = before


def set_np_shape(active):
    """Gives shapes of symbols NumPy's meaning, or MXNet's older one; returns the state before."""
    if not isinstance(active, (bool, int)):
        raise TypeError(f"set_np_shape: {type(active).__name__} is neither true nor false")
    before, _mode._shapes = _mode._shapes, bool(active)
    return before


def _inside(scope, thing):
    """A function that runs in a scope, or a class whose methods do."""
    if isinstance(thing, type):
        for name, method in inspect.getmembers(thing, inspect.isfunction):  # inherited ones, too, as in MXNet
            if not isinstance(inspect.getattr_static(thing, name), staticmethod) and (not name.startswith("_") or name in ("__init__", "__call__")):
                setattr(thing, name, _inside(scope, method))
        return thing
    if isinstance(thing, (staticmethod, classmethod, property)):
        return thing

    @functools.wraps(thing)
    def call(*args, **kwargs):
        with scope(True):
            return thing(*args, **kwargs)

    return call


def use_np_array(func):
    """The function, or class, with arrays of mx.np."""
    return _inside(np_array, func)


def use_np_shape(func):
    """The function, or class, with NumPy's meaning of shapes."""
    return _inside(np_shape, func)


def use_np(func):
    """The function, or class, with arrays of mx.np and NumPy's meaning of shapes."""
    return use_np_shape(use_np_array(func))


def wraps_safely(wrapped, assigned=functools.WRAPPER_ASSIGNMENTS):
    """functools.wraps, without attributes that are missing."""
    return functools.wraps(wrapped, [name for name in assigned if hasattr(wrapped, name)])


def makedirs(d):
    """Makes a folder, with those around it."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def getenv(name):
    """The value of an environment variable; None if it is not set."""
    return os.environ.get(name)


def setenv(name, value):
    """Sets an environment variable, or removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


__getattr__ = missing("mx.util")
