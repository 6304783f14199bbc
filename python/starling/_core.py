"""The base of all modules: the library, its errors as exceptions, places of calls, references to tensors."""
import functools
import inspect
import os
import sys
import threading

import numpy

from ._defaults import DEFAULTS, UNSET as UNSET, UNSET_INT as UNSET_INT
from ._ffi import ffi, lib

NULL = ffi.NULL

# ---- errors -----------------------------------------------------------------------------------------------------------


class Error(RuntimeError):
    """An error of the library: with the operation, shapes, and the Python file and line of the call.

    .status is the name of the C library's status, "SL_ESHAPE" for example.
    """

    status = "SL_EINTERNAL"


def _error(name, *bases):
    return type(name, (Error, *bases), {"__doc__": None, "__module__": "starling"})


InvalidArgument = _error("InvalidArgument", ValueError)
ShapeError = _error("ShapeError", ValueError)
DTypeError = _error("DTypeError", TypeError)
DeviceError = _error("DeviceError", ValueError)
StateError = _error("StateError")
OutOfMemory = _error("OutOfMemory", MemoryError)
FileError = _error("FileError", OSError)
FormatError = _error("FormatError", ValueError)
KernelError = _error("KernelError")
Unsupported = _error("Unsupported", NotImplementedError)
Timeout = _error("Timeout", TimeoutError)
InternalError = _error("InternalError")

_classes = {
    "SL_EINVAL": InvalidArgument,
    "SL_ESHAPE": ShapeError,
    "SL_EDTYPE": DTypeError,
    "SL_EDEVICE": DeviceError,
    "SL_ESTATE": StateError,
    "SL_ENOMEM": OutOfMemory,
    "SL_EIO": FileError,
    "SL_EFORMAT": FormatError,
    "SL_EKERNEL": KernelError,
    "SL_EUNSUPPORTED": Unsupported,
    "SL_ETIME": Timeout,
}
for _name, _class in _classes.items():
    _class.status = _name
    _class.__doc__ = f"{_name}: {ffi.string(lib.sl_status_name(getattr(lib, _name))).decode()}."

# Taken between a call that returns a tensor without a reference and taking one, and around calls that replace such tensors.
sharing = threading.RLock()

callbacks = threading.local()  # .depth: depth of callbacks from C in this thread; .failure: the exception of one of them


def failure(status, message):
    """The exception for a status of the library."""
    name = ffi.string(lib.sl_status_name(status)).decode()
    for symbol, kind in _classes.items():
        if getattr(lib, symbol) == status:
            return kind(message)
    return InternalError(f"{name}: {message}")


def raise_error(status=0):
    """Raises the library's error of this thread, or the exception of a callback, and clears it."""
    status = status or lib.sl_error()
    message = ffi.string(lib.sl_error_message()).decode(errors="replace")
    lib.sl_error_clear()
    raised = getattr(callbacks, "failure", None)
    if raised is not None:
        callbacks.failure = None
        raise raised
    if not status:
        raise InvalidArgument(message or "an argument is missing")
    from ._words import in_python  # which needs the operations

    raise failure(status, in_python(message))


def check(status):
    """Raises unless the status is SL_OK."""
    if status:
        raise_error(status)


# ---- places -----------------------------------------------------------------------------------------------------------

_package = os.path.dirname(os.path.abspath(__file__)) + os.sep
_texts: dict = {}  # (file, line): "FILE:LINE" in memory that is never freed
_known: dict = {}  # (id of a code object, instruction): such a text, or None inside this package
_codes: list = []  # keeps the code objects of _known, so that their ids stay theirs
_getframe = sys._getframe
_KNOWN_MAX = 100_000


def _learn(frame, key):
    if len(_known) > _KNOWN_MAX:
        _known.clear()
        _codes.clear()
    name = frame.f_code.co_filename
    text = None
    if not name.startswith(_package) and not name.startswith("<frozen"):
        place = (name, frame.f_lineno)
        text = _texts.get(place)
        if text is None:
            text = _texts[place] = ffi.new("char[]", f"{name}:{frame.f_lineno}".encode())
    _known[key] = text
    _codes.append(frame.f_code)
    return text


_outside = ffi.new("char[]", b"python")


def here():
    """The place of the call in the user's program."""
    frame = _getframe(2)
    while frame is not None:
        key = (id(frame.f_code), frame.f_lasti)
        try:
            text = _known[key]
        except KeyError:
            text = _learn(frame, key)
        if text is not None:
            return text
        frame = frame.f_back
    return _outside


# ---- arguments --------------------------------------------------------------------------------------------------------

_AXES = ffi.sizeof(ffi.typeof("sl_shape").fields[1][1].type) // 8


def options(struct, /, **given):
    """A structure of options; omitted fields, or None, have their defaults, and 0 means 0, as in a call in C."""
    defaults = DEFAULTS.get(struct, {})
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, dict) and name in defaults:
            given[name] = {**defaults[name], **value}
    return ffi.new(f"struct {struct} *", {**defaults, **given})[0]


def buckets_of(axis, sizes):
    """The C structure of buckets: sizes that an axis is padded to."""
    sizes = tuple(size.__index__() for size in sizes)
    if len(sizes) > 16 or any(size < 1 for size in sizes):
        raise ValueError(f"buckets are at most 16 sizes, from 1 on, not {sizes}")
    return {"axis": axis, "sizes": sizes}


def wrong(name, value, wanted):
    """The error for an argument of a wrong type."""
    return TypeError(f"{name} is {type(value).__name__}, {wanted} is needed")


def seed_of(value):
    """A seed for C: a whole number that 64 bits hold."""
    if not hasattr(value, "__index__"):
        raise wrong("seed", value, "a whole number")
    if not 0 <= (n := value.__index__()) < 2**64:
        raise InvalidArgument(f"seed is {n}, a number from 0 to 2**64 - 1 is needed")
    return n


def exact(value):
    """A number as a double for C: integers that a double cannot hold exactly are refused."""
    if value.__class__ is not float and isinstance(value, (int, numpy.integer)) and not -(2**53) <= (n := int(value)) <= 2**53 and (
        abs(n) >= 2**1000 or int(float(n)) != n):  # fmt: skip
        raise DTypeError(f"{value} is not a value of float64, in which the library takes numbers; give a tensor of int64")
    return value


def pointer(name, value, kind):
    """The C object behind an argument that must be of this class."""
    if not isinstance(value, kind):
        raise wrong(name, value, kind.__name__)
    return value._p


def owned(p, free, *kept):
    """A pointer that keeps the reference to its object, which is released with the pointer; raises if it is NULL.

    So f(x)._p is safe: the object that f made is freed after the call that gets the pointer.  kept: Python objects that the
    object needs.
    """
    if not p:
        raise_error()
    return ffi.gc(p, (lambda p, kept=kept: free(p)) if kept else free)


#: What __del__ does when it is called by hand: nothing, quickly.  The pointer frees the object.
nothing = object.__init_subclass__


class Owner:
    """The base of Python objects that own an object of the library: a copy would free it twice.

    A subclass that can be made again, from a file for example, may define __reduce__ or __deepcopy__.
    """

    __slots__ = ()
    _instead = "make another one in the same way"
    __del__ = nothing

    def __reduce__(self):
        raise TypeError(f"copy and pickle cannot copy {type(self).__name__}, a part of the engine: {self._instead}")


class Settled(Owner):
    """An owner whose settings come from its constructor: setting one later would have no effect, and is refused."""

    def __setattr__(self, name, value):
        kind = type(self)
        if not name.startswith("_") and not isinstance(getattr(kind, name, None), property):
            if name in settings_of(kind):
                raise AttributeError(f"{kind.__name__} has its {name} from when it was made: make another one")
            if kind.__module__.startswith("starling"):  # subclasses may have more
                raise AttributeError(f"{kind.__name__} has no attribute {name!r}")
        object.__setattr__(self, name, value)

    def _refer(self, **objects):
        """Sets read-only attributes."""
        for name, value in objects.items():
            object.__setattr__(self, name, value)


@functools.lru_cache(maxsize=None)
def settings_of(kind):
    """The names of the constructor's arguments of this class of the package."""
    names = set(getattr(kind, "_settings", ()))
    for base in kind.__mro__:
        if base.__module__.startswith("starling") and "__init__" in base.__dict__:
            parameters = list(inspect.signature(base.__init__).parameters.values())[1:]
            names |= {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    return frozenset(names)


def shape_of(value, name="shape"):
    """The C structure of a shape given as an int or a sequence."""
    try:
        dims = (value.__index__(),) if hasattr(value, "__index__") and not getattr(value, "ndim", 0) else tuple(d.__index__() for d in value)
    except (AttributeError, TypeError):
        raise wrong(name, value, "a length or a sequence of lengths (whole numbers)") from None
    if len(dims) > _AXES:
        raise ShapeError(f"a shape has at most {_AXES} axes, {dims} has {len(dims)}")
    return (len(dims), dims + (0,) * (_AXES - len(dims)))  # omitted elements would not be zero


def shape_from(shape):
    """A shape from C as a tuple; None if it is not known."""
    return None if shape.ndim < 0 else tuple(shape.dim[0 : shape.ndim])


def pair(value, name="an option of windows", least=None):
    """One number or two as two; numbers below `least` are refused, because in C a second 0 may mean another number."""
    try:
        first, second = (value, value) if hasattr(value, "__index__") else value
        both = (first.__index__(), second.__index__())
    except (AttributeError, TypeError, ValueError):
        raise wrong(name, value, "a whole number or two") from None
    if least is not None and min(both) < least:
        raise InvalidArgument(f"{name} is {value!r}, numbers from {least} on are needed")
    return both


def axes_of(value, same=None):
    """(array to keep alive, its length) of axes given as None, an int or a sequence, under one of two names."""
    if same is not None:
        if value is not None:
            raise TypeError("axes and axis: give one")
        value = same
    if value is None:
        return NULL, 0
    try:
        axes = [value] if hasattr(value, "__index__") else list(value)
        return ffi.new("int[]", axes), len(axes)
    except TypeError:
        raise wrong("axis", value, "a whole number or a sequence of them") from None


def text_of(value, name):
    """The C string of a str or path."""
    if value is None:
        return NULL
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise wrong(name, value, "str or a path")
    return os.fsencode(value)


def choice(kinds, value, name):
    """A member of an enum by its number or its lower-case name."""
    if isinstance(value, str):
        try:
            return kinds[value]
        except KeyError:
            raise InvalidArgument(f"{name}: {value!r} must be one of {', '.join(kinds)}") from None
    if value is not None and not hasattr(value, "__index__"):
        raise wrong(name, value, "str")
    return 0 if value is None else value


def bad_argument(function, given, error):
    """Turns the failed conversion of arguments into a message that names the one that is wrong.

    given: (name, value, wanted) of each; wanted is a class, "number" or "int".
    """
    for name, value, wanted in given:
        if wanted == "number":
            fine = hasattr(value, "__float__") or hasattr(value, "__index__")
        elif wanted == "int":
            fine = hasattr(value, "__index__")
        else:
            fine = value is None or isinstance(value, wanted)
        if not fine:
            kind = wanted if isinstance(wanted, str) else wanted.__name__
            raise TypeError(f"{function}: {name} is {type(value).__name__}, {kind} is needed") from None
    raise error
