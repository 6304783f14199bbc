"""Checks calls against MXNet's signatures (_signatures.py).

Arguments of a function here are passed to it.  Arguments that only MXNet's function has are refused by name, unless they have
MXNet's default or change no value; any other is a TypeError.  out= works for every function for which MXNet has it.
"""
import functools

import numpy

from .._core import DTypeError, Error, InvalidArgument, ShapeError, lib
from .._tensor import Tensor
from ._signatures import LINES
from .unsupported import not_here

_lines = {line.split(" ", 1)[0]: line for line in LINES.splitlines()}
# Options of how MXNet computes, without effect on values; names of nodes in programs, which arrays lack.
_HINTS = frozenset("name attr workspace cudnn_tune cudnn_off cudnn_algo_verbose num_args infer_range lazy_update".split())
_OF_UFUNCS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}
_REQUIRED = object()
hooks: list = []  # once there is a sparse array: the function that computes calls with sparse arrays, or returns None


class Signature:
    """MXNet's parameters: their names in order, their defaults, whether any number of arrays comes first."""

    def __init__(self, line):
        self.names, self.defaults, self.several, self.open = [], {}, False, False
        for word in line.split(" ")[1:]:
            if word == "**":
                self.open = True
            elif word.startswith("*"):
                self.several = True
            else:
                name, given, default = word.partition("=")
                self.names.append(name)
                self.defaults[name] = _value(default) if given else _REQUIRED
        if self.names[:1] in (["x"], ["x1"]) and "out" in self.names and self.open:
            self.defaults.update({name: value for name, value in _OF_UFUNCS.items() if name not in self.names})


def _value(text):
    if text == "...":
        return None
    words = {"None": None, "True": True, "False": False, "()": ()}
    if text in words:
        return words[text]
    if text[0] in "'\"":
        return text[1:-1]
    if text[0] in "([":
        return tuple(_value(word) for word in text[1:-1].split(",") if word)
    if text in ("inf", "nan"):
        return float(text)
    return float(text) if "." in text or "e" in text else int(text)


def signature(full):
    """MXNet's signature of a function or class; None if MXNet has none of that name."""
    line = _lines.get(full)
    return None if line is None else Signature(line)


def names_in(space):
    """MXNet's names in a module."""
    return [full[len(space) + 1 :] for full in _lines if full.startswith(space + ".") and "." not in full[len(space) + 1 :]]


def own_parameters(function):
    """(names of positional parameters, all names, whether it takes any number of arrays)."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[: code.co_argcount], frozenset(names), bool(code.co_flags & 4)


def _same(value, default):
    """Whether an argument equals MXNet's default."""
    if value is None:
        return True
    if isinstance(value, (Tensor, numpy.ndarray)):
        return False
    if isinstance(default, str) and not isinstance(value, str):
        try:
            return numpy.dtype(value).name == default
        except TypeError:
            return False
    return (tuple(value) if isinstance(value, list) else value) == default


def left_over(full, known, name, value):
    """Checks an argument that the function here lacks: ignored, or an exception."""
    if name in known.defaults or name in known.names:
        default = known.defaults.get(name, _REQUIRED)
        if name in _HINTS or _same(value, default) or name.endswith("stype") and value == "default":
            return
        text = repr(value) if isinstance(value, (str, int, float, bool, tuple, list)) else "…"
        raise not_here(f"{full}({name}={text})", f"{name}={default!r}, MXNet's default" if default is not _REQUIRED else "the other arguments")
    raise TypeError(f"{full}() got an unexpected keyword argument {name!r}")


def into(result, out):
    """The result, put into the array out if there is one, or several into several."""
    if out is None:
        return result
    if isinstance(out, (list, tuple)):
        results = result if isinstance(result, (list, tuple)) else [result]
        if len(out) != len(results):
            raise ValueError(f"out has {len(out)} arrays, there are {len(results)} results")
        return [into(r, o) for r, o in zip(results, out)]
    if not isinstance(out, Tensor):
        raise TypeError(f"out is {type(out).__name__}, an array is needed")
    if isinstance(result, (list, tuple)):
        result = result[0]  # further results are for gradients
    if out.shape != result.shape:
        raise ShapeError(f"out has the shape {out.shape}, the result {result.shape}")
    if lib.sl_tensor_dtype(out._p) != lib.sl_tensor_dtype(result._p):
        raise DTypeError(f"out holds {Tensor.dtype.fget(out)}, the result is {Tensor.dtype.fget(result)}")
    out[slice(None) if out.ndim else ()] = result
    return out


def signed(full, function):
    """The function with MXNet's signature; unchanged if MXNet has none of that name."""
    function = getattr(function, "_unsigned", function)
    known = signature(full)
    if known is None or not hasattr(function, "__code__"):
        return function
    positional, own, several = own_parameters(function)
    order = known.names
    lead, renamed = _agreeing(positional, own, order)
    if several or known.several:
        lead = 1 << 30
    takes_out, open_ = "out" in own, bool(function.__code__.co_flags & 8)

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            if hooks and (found := hooks[0](full, call, order, args, kwargs)) is not None:
                return found
            if len(args) > lead:
                args, kwargs = _by_name(full, order, lead, args, kwargs)
            if not kwargs or kwargs.keys() <= own:
                return function(*args, **kwargs)
            for name in kwargs.keys() & renamed.keys():
                kwargs[renamed[name]] = kwargs.pop(name)
            out = None
            if not takes_out and "out" in known.defaults:
                out = kwargs.pop("out", None)
            for name in [n for n in kwargs if n not in own]:
                if not (open_ and (known.open or name in known.defaults)):
                    left_over(full, known, name, kwargs.pop(name))
            return into(function(*args, **kwargs), out)
        except (ValueError, ZeroDivisionError) as error:
            if isinstance(error, Error):
                raise
            raise InvalidArgument(str(error)) from error  # programs for MXNet catch MXNetError, and ValueError

    call._unsigned = function
    return call


def _agreeing(positional, own, order):
    """(the number of parameters at the same position as MXNet's, MXNet's names of those with another name here)."""
    renamed = {}
    for i, (ours, theirs) in enumerate(zip(positional, order)):
        if ours != theirs:
            if theirs in own or ours in order or theirs in _HINTS:
                return i, renamed
            renamed[theirs] = ours
    return len(positional), renamed


def _by_name(full, order, lead, args, kwargs):
    """Arguments after those at the same position here, by name."""
    if len(args) > len(order):
        raise TypeError(f"{full}() takes at most {len(order)} arguments, {len(args)} were given")
    for name, value in zip(order[lead:], args[lead:]):
        if name in kwargs:
            raise TypeError(f"{full}() got several values for {name!r}")
        kwargs[name] = value
    return args[:lead], kwargs


def signed_class(full, kind):
    """Makes a class first refuse, by name, MXNet's options that it lacks, and unknown options."""
    known, inner = signature(full), kind.__init__
    if known is None or known.open or not hasattr(inner, "__code__") or hasattr(kind.__dict__.get("__init__"), "_unsigned"):
        return
    inits = [b.__dict__["__init__"] for b in kind.__mro__[:-1] if hasattr(b.__dict__.get("__init__"), "__code__")]
    taken = frozenset().union(*(own_parameters(getattr(init, "_unsigned", init))[1] for init in inits))
    own = own_parameters(getattr(inner, "_unsigned", inner))[1]

    @functools.wraps(inner)
    def init(self, *args, **kwargs):
        if kwargs and type(self) is kind:
            for name in [n for n in kwargs if n not in own and not (n in taken and n in known.defaults)]:
                left_over(full, known, name, kwargs.pop(name))
        inner(self, *args, **kwargs)

    init._unsigned = getattr(inner, "_unsigned", inner)
    kind.__init__ = init


def as_mxnet(space, names):
    """Applies MXNet's signatures to all functions and classes of a module; names is its globals()."""
    for name in names_in(space):
        thing = names.get(name)
        if isinstance(thing, type):
            signed_class(f"{space}.{name}", thing)
        elif callable(thing):
            names[name] = signed(f"{space}.{name}", thing)
