"""Start and stop of the engine, random numbers, statistics, symbols."""
import contextlib
import os

from . import _core
from ._core import NULL, check, ffi, here, lib, shape_of
from ._tensor import Tensor, dtype_of, wrap

_settings = [name for name, _ in ffi.typeof("struct sl_config").fields]
# A 0 in C's structure means the default; here a 0 means none, or is refused.
_none = ("gpus", "cuda_graphs")
_from_one = ("teams", "bulk", "runahead_tasks", "runahead_bytes")
_tf32 = {"none": lib.SL_TF32_NONE, "conv": lib.SL_TF32_CONV, "all": lib.SL_TF32_ALL}


def _setting(name, value, kept):
    """A setting as C takes it."""
    if name == "untrusted":
        return _untrusted(value)
    if name == "tf32":
        value = _core.choice(_tf32, value, name)
        if value not in _tf32.values():
            raise _core.InvalidArgument(f"tf32: {value!r} must be one of {', '.join(_tf32)}; omit it for its default")
        return value
    if isinstance(value, str):
        if ffi.typeof("struct sl_config").fields[_settings.index(name)][1].type.kind != "pointer":
            raise _core.wrong(name, value, "a number")
        kept.append(ffi.new("char[]", value.encode()))
        return kept[-1]
    if name in _none and value == 0:
        return -1
    if name in _from_one and value == 0:
        raise _core.InvalidArgument(f"{name} is 0, a number from 1 on is needed; omit it for its default")
    return value


@contextlib.contextmanager
def _environment(settings):
    """A False, for which C would use the environment's value."""
    before = os.environ.get("SL_EXPLAIN")
    if before is None or settings.get("explain") is None or settings["explain"]:
        yield
        return
    os.environ["SL_EXPLAIN"] = "0"
    try:
        yield
    finally:
        os.environ["SL_EXPLAIN"] = before


def _untrusted(limits):
    """The limits of untrusted files as C's structure: positive numbers by name; omitted ones are no limits."""
    known = [name for name, _ in ffi.typeof("struct sl_untrusted").fields]
    for name, value in dict(limits).items():
        if name not in known:
            raise TypeError(f"untrusted has no limit {name!r}; it has {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise _core.InvalidArgument(f"untrusted: {name} is {value!r}, a number above 0 is needed")
    return {name: int(value) if name == "bytes" else value for name, value in limits.items()}


def init_engine(**settings):
    """Starts the engine with other settings than the defaults, before the first operation: teams=2, sched="dmdas", …

    untrusted={"bytes": 2**30, "seconds": 10, "operations": 1e12} limits the cost of reading a file, and of running a network
    from it.  Without this call the first operation starts the engine with the defaults.
    """
    kept = []
    for name, value in settings.items():
        if name not in _settings:
            raise TypeError(f"the engine has no setting {name!r}; it has {', '.join(_settings)}")
        settings[name] = _setting(name, value, kept)
    with _environment(settings):
        check(lib.sl_init_at(here(), ffi.new("struct sl_config *", settings)))


def spill(path, memory=None):
    """Keeps values that do not fit into main memory in a new file, or in a folder; memory: the bytes that values may take there.

    Call it before the first operation; None: nothing is spilled.  Without GPUs only.
    """
    check(lib.sl_spill_at(here(), _core.text_of(path, "path"), _core.options("sl_spill_opts", memory=memory)))


when_stopped: list = []  # functions that shutdown calls


def shutdown():
    """Waits for everything and stops the engine; tensors lose their values."""
    if lib.sl_is_initialized():
        lib.sl_shutdown()
        for function in when_stopped:
            function()


def seed(value):
    """Restarts random numbers with this seed."""
    lib.sl_seed(_core.seed_of(value))


def poll(tensor=None, seconds=0.0):
    """Whether a tensor's values (without a tensor: all values) are computed; waits at most `seconds`."""
    return bool(lib.sl_poll_at(here(), NULL if tensor is None else _core.pointer("tensor", tensor, Tensor), seconds))


def stats():
    """Statistics of the runtime so far, as a dictionary."""
    c = ffi.new("struct sl_stats *")
    lib.sl_stats_get(c)
    plain = {name for name, field in ffi.typeof("struct sl_stats").fields if field.type.kind == "primitive"}
    return {name: getattr(c, name) for name in plain}


def version():
    """The library's version."""
    return ffi.string(lib.sl_version()).decode()


def var(name, shape=None, dtype=None):
    """A symbol: a tensor without values, for programs.  Every operation and every block takes it."""
    if not isinstance(name, str):
        raise _core.wrong("name", name, "str")
    c_shape = NULL if shape is None else ffi.new("sl_shape *", shape_of(shape))
    return wrap(lib.sl_var_at(here(), ffi.new("char[]", name.encode()), (c_shape, dtype_of(dtype))), Tensor)
