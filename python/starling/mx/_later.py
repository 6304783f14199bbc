"""Symbols as calls of functions: what a symbol's function was called with is kept, so that a program can be run by the same
calls with arrays.  The engine's own program is used where it can: it lacks functions that need their inputs' shapes (or values),
which a variable does not have, and computes dropout and normalisation as at inference."""
import functools
import types
import weakref

from .._core import Error, StateError, Unsupported, callbacks
from .._engine import var
from .._tensor import Tensor
from . import _attributes
from .unsupported import Space, not_here

_calls: dict = {}  # by the id of a symbol: (a weak reference to it, its call, the number of the result)
_awaited: dict = {}  # by the name of a symbol that the engine could not make: (its call, the number of the result)
_SEVERAL = {"split": "num_outputs", "SliceChannel": "num_outputs", "split_v2": "num_outputs"}
_LOOPS = ("foreach", "while_loop", "cond")  # their results depend on what the program's functions return
_NAMED = ("unexpected keyword", "takes at most", "takes from", "missing ", "several values")  # mistakes of a call, whatever the shapes



def _statistics(call):
    return [*call.args[3:5], *(call.kwargs.get(n) for n in ("moving_mean", "moving_var"))]


group = list  # makes a group of symbols; set by _program.py
states_of = {"BatchNorm": _statistics, "SyncBatchNorm": _statistics}  # by a function's name: the arguments that are states


class Call:
    """A function with its arguments."""

    def __init__(self, function, args, kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.count, self.name = None, None  # the number of results, if these are a list; the name that the program gave

    def symbols(self):
        """The symbols among the arguments, in the order of the function's parameters."""
        code = getattr(getattr(self.function, "_unsigned", self.function), "__code__", None)
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else []
        named = sorted(self.kwargs, key=lambda n: names.index(n) if n in names else len(names))
        return _symbols([*self.args, *(self.kwargs[n] for n in named)])

    def several(self):
        """The number of results of a function that returns a list, as far as it is known without values; else None."""
        name = getattr(self.function, "__name__", "")
        if name in _SEVERAL:
            count = self.kwargs.get(_SEVERAL[name], self.args[1] if len(self.args) > 1 else None)
            return count if isinstance(count, int) else None
        if name == "RNN" and self.kwargs.get("state_outputs"):
            return 3 if self.kwargs.get("mode") == "lstm" else 2
        return 2 if name == "moments" or self.kwargs.get("ret_typ") == "both" else None


def _symbols(values):
    found = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += _symbols(v)
        elif isinstance(v, Tensor) and v.is_symbol:
            found.append(v)
    return found


def keep(symbol, call, number):
    """Notes the call that made a symbol."""
    if not isinstance(symbol, Tensor) or not symbol.is_symbol or any(symbol is s for s in call.symbols()):
        return
    key = id(symbol)
    _calls[key] = weakref.ref(symbol, lambda _: _calls.pop(key, None)), call, number


def call_of(symbol):
    """(the call, the number of its result) that made a symbol; None for variables and what the engine alone has made."""
    found = _calls.get(id(symbol))
    return found[1:] if found else None


def awaited(name):
    """The same by the name of a symbol that stands for a result the engine could not make; None for other names."""
    return _awaited.get(name)


def _wait_for(call, like):
    """Symbols for the results of a call that needs shapes."""
    made, call.count, call.name = [], call.several(), call.kwargs.get("name")
    for number in range(call.count or 1):
        symbol = var(name := f"{getattr(call.function, '__name__', 'symbol').lower()}_later{len(_awaited)}")
        symbol.__class__ = type(like)
        _awaited[name] = call, number
        keep(symbol, call, number)
        made.append(symbol)
    return group(made) if call.count else made[0]


def _needs_values(error, symbols):
    """Whether a call may have failed only because its symbols have no shape yet, or no values."""
    if any(text in str(error) for text in _NAMED):
        return False
    if all(s.shape is not None for s in symbols):
        return isinstance(error, (StateError, Unsupported)) or isinstance(error, NotImplementedError) and "is not in Starling" not in str(error)
    return isinstance(error, (Error, StateError, TypeError, AttributeError, IndexError, ValueError, NotImplementedError, ZeroDivisionError))


def _noted(kwargs):
    """Takes attributes out of a call's arguments."""
    options = {k: kwargs.pop(k) for k in _attributes.HIDDEN if k in kwargs}
    return _attributes.given(kwargs.pop("attr", None), options)


def _with(results, noted):
    """Results of a call, with its attributes."""
    for symbol in results if isinstance(results, (list, tuple)) else [results]:
        if isinstance(symbol, Tensor) and call_of(symbol):
            _attributes.keep(symbol, noted)
    return results


def kept(function):
    """The function, whose calls with symbols are kept, and are made later where the symbols' shapes are missing."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        symbols = _symbols([*args, *kwargs.values()])
        if not symbols or getattr(callbacks, "depth", 0):  # while the engine traces a block, its own program is what counts
            return function(*args, **kwargs)
        if isinstance(kwargs.get("out"), Tensor) and kwargs["out"].is_symbol:
            del kwargs["out"]  # a symbol is no place for values
        noted = _noted(kwargs)
        made = Call(function, args, kwargs)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            if not _needs_values(error, symbols):
                raise
            return _with(_wait_for(made, symbols[0]), noted)
        made.name = kwargs.get("name")
        made.count = len(result) if isinstance(result, (list, tuple)) else None
        for number, symbol in enumerate(result if made.count else [result]):
            keep(symbol, made, number)
        _with(result, noted)
        return group(result) if made.count and all(isinstance(s, Tensor) and s.is_symbol for s in result) else result

    call._unsigned = getattr(function, "_unsigned", function)
    return call


class Kept(types.ModuleType):
    """A module's functions, kept; the rest of the module as it is."""

    def __init__(self, module):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_module"] = module

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if isinstance(found, (types.ModuleType, Space)):  # np.linalg, too
            found = Kept(found)
        elif callable(found) and not isinstance(found, type) and name not in _LOOPS:
            found = kept(found)
        self.__dict__[name] = found
        return found


def method(kind, name):
    """A method of symbols: that of the classes after kind, kept as a function is."""

    def find(self, *args, **kwargs):
        return getattr(super(kind, self) if self.is_symbol else self, name)(*args, **kwargs)

    find.__name__ = name
    return kept(find)


# ---- running


class Run:
    """The values of symbols for values of the variables, each computed once."""

    def __init__(self, arrays, engine):
        self._arrays, self._engine, self._values, self._results = arrays, engine, {}, {}

    def value(self, symbol):
        """The value of a symbol."""
        if id(symbol) not in self._values:
            made = call_of(symbol)
            self._values[id(symbol)] = self._result(*made) if made else self._of_engine(symbol)
        return self._values[id(symbol)]

    def _of_engine(self, symbol):
        if symbol.name in self._arrays or awaited(symbol.name):
            return self.named(symbol.name)
        names = self._engine.names(symbol)
        return self._engine.run(symbol, {name: self.named(name) for name in names})

    def named(self, name):
        """The value of a variable, or of what stands for a result."""
        if made := awaited(name):
            return self._result(*made)
        if name not in self._arrays:
            raise ValueError(f"the argument {name!r} has no value")
        return self._arrays[name]

    def _result(self, call, number):
        if id(call) not in self._results:
            self._results[id(call)] = call.function(*map(self._given, call.args), **{k: self._given(v) for k, v in call.kwargs.items()})
        results = self._results[id(call)]
        if not isinstance(results, (list, tuple)):
            return results
        if len(results) != (call.count or 1):
            name = getattr(call.function, "__name__", "a function")
            raise not_here(f"{name} with {len(results)} results of a symbol without a shape", "sym.var(name, shape=…)")
        return results[number]

    def _given(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._given, value)) if not hasattr(value, "_fields") else value
        return self.value(value) if isinstance(value, Tensor) and value.is_symbol else value


def behind(symbols):
    """The symbols that others are computed from, and these, in the order of computation."""
    found, seen = [], set()

    def look(symbol):
        if id(symbol) in seen:
            return
        seen.add(id(symbol))
        made = call_of(symbol)
        for each in made[0].symbols() if made else ():
            look(each)
        found.append(symbol)

    for symbol in symbols:
        look(symbol)
    return found


def names_of(symbols, engine):
    """(the names of the variables behind symbols, in the order in which the calls need them; of these, running statistics; the
    variables' shapes as far as they were given)."""
    found, seen, states, shapes = {}, set(), set(), {}

    def look(symbol):
        if id(symbol) in seen:
            return
        seen.add(id(symbol))
        if made := call_of(symbol):
            through(made[0])
            return
        names = engine.names(symbol)
        if names == [symbol.name]:
            shapes[symbol.name] = symbol.shape
        for name in names:
            named(name)

    def named(name):
        if made := awaited(name):
            through(made[0])
        else:
            found[name] = True

    def through(call):
        for each in call.symbols():
            look(each)
        given = states_of.get(getattr(call.function, "__name__", ""), lambda _: ())(call)
        states.update(s.name for s in given if isinstance(s, Tensor) and not call_of(s))

    for symbol in symbols:
        look(symbol)
    return list(found), states | {n for n in found if "running_" in n or "moving_" in n}, shapes
