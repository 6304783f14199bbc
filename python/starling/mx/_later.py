"""Symbols as calls of functions: what a symbol's function was called with is kept, so that a program can be run by the same
calls with arrays.  The engine's own program is used where it can: it lacks functions that need their inputs' shapes (or values),
which a variable does not have, and computes dropout and normalisation as at inference."""
import functools
import threading
import types
import weakref

from .._core import Error, StateError, Unsupported, callbacks
from .._engine import var
from .._tensor import Tensor
from . import _attributes
from ._mode import is_np_shape
from .name import current as names
from .unsupported import Space, not_here

_calls: dict = {}  # by the id of a symbol: (a weak reference to it, its call, the number of the result)
_awaited: dict = {}  # by the name of a symbol that the engine could not make: (its call, the number of the result)
_inside = threading.local()  # call: whether a kept call runs
_SEVERAL = {"split": "num_outputs", "SliceChannel": "num_outputs", "split_v2": "num_outputs"}
_COUNTS = {"moments": 2, "syevd": 2, "gelqf": 2, "slogdet": 2}  # of results
_LOOPS = ("foreach", "while_loop", "cond")  # their results depend on what the program's functions return
_NAMED = ("unexpected keyword", "takes at most", "takes from", "missing ", "several values")  # mistakes of a call, whatever the shapes



def _statistics(call):
    return [*call.args[3:5], *(call.kwargs.get(n) for n in ("moving_mean", "moving_var"))]


group = list  # makes a group of symbols; set by _program.py
engine_names = None  # the names of the variables behind a symbol of the engine; set by _program.py
infer = None  # infers shapes: the class of _shapes.py
states_of = {"BatchNorm": _statistics, "SyncBatchNorm": _statistics}  # by a function's name: the arguments that are states


class Call:
    """A function with its arguments."""

    def __init__(self, function, args, kwargs, name=None):
        self.function, self.args, self.kwargs = function, args, kwargs
        self.alias = self._symbols = None
        self.count = None  # the number of results, if these are a list
        self.name = name  # the name that the program gave, or one by the function's

    def named(self):
        """Gives the call a name, if it has none."""
        if self.name is None:
            self.name = names().get(None, (self.alias or kind_of(self)).lower())

    def given_shape(self):
        """The shape that a source was called with; None if it has none."""
        shape = self.kwargs.get("shape", self.args[0] if self.args and getattr(self.function, "__name__", "") in ("zeros", "ones") else None)
        return (shape,) if isinstance(shape, int) else shape

    def without_length(self):
        """Whether a source was called with an unknown length."""
        if self.kwargs.get("infer_range"):
            return True
        shape = self.given_shape() if getattr(self.function, "__name__", "") in ("zeros", "ones") else None
        return shape is not None and not self.symbols() and any(d < 0 or not d and not is_np_shape() for d in shape)

    def of_shape(self, shape):
        """The arguments of a source for a length that was unknown."""
        kwargs = {k: v for k, v in self.kwargs.items() if k not in ("infer_range", "stop")}
        if not self.kwargs.get("infer_range"):
            return (), {**kwargs, "shape": shape}
        start, step = kwargs.pop("start", self.args[0] if self.args else 0), kwargs.get("step", 1.0)
        return (start, start + step * (shape[0] // kwargs.get("repeat", 1))), kwargs

    def symbols(self):
        """The symbols among the arguments, in the order of the function's parameters."""
        if self._symbols is None:
            self._symbols = self._found()
        return self._symbols

    def _found(self):
        code = getattr(getattr(self.function, "_unsigned", self.function), "__code__", None)
        names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) if code else []
        named = sorted(self.kwargs, key=lambda n: names.index(n) if n in names else len(names))
        return symbols_in([*self.args, *(self.kwargs[n] for n in named)])

    def again(self, args, kwargs):
        """The results of the same call with other arguments."""
        return kept(self.function)(*args, **kwargs, name=self.name)

    def several(self):
        """The number of results of a function that returns a list, as far as it is known without values; else None."""
        name = getattr(self.function, "__name__", "")
        if name in _SEVERAL:
            count = self.kwargs.get(_SEVERAL[name], self.args[1] if len(self.args) > 1 else None)
            if name == "split_v2" and isinstance(count, (list, tuple)):
                return len(count) + (0 not in count)  # places where parts begin
            return count if isinstance(count, int) else None
        if name == "RNN" and self.kwargs.get("state_outputs"):
            return 3 if self.kwargs.get("mode") == "lstm" else 2
        return _COUNTS.get(name) or (2 if self.kwargs.get("ret_typ") == "both" else None)


_OPERATORS = {"add": "Plus", "sub": "Minus", "mul": "Mul", "truediv": "Div", "pow": "Power", "mod": "Mod", "eq": "equal", "ne": "not_equal",
              "lt": "lesser", "le": "lesser_equal", "gt": "greater", "ge": "greater_equal"}  # fmt: skip


def kind_of(call):
    """The name of a call's function; an operator's in MXNet."""
    name = getattr(call.function, "__name__", "symbol")
    plain = name.strip("_")
    back, plain = (True, plain[1:]) if plain[:1] == "r" and plain[1:] in _OPERATORS and name.startswith("__") else (False, plain)
    if not name.startswith("__") or plain not in _OPERATORS:
        return {"neg": "negative"}.get(plain, plain) if name.startswith("__") else name
    return ("_R" if back else "_") + _OPERATORS[plain] + ("" if len(call.symbols()) == 2 else "Scalar")


def symbols_in(values):
    found = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += symbols_in(v)
        elif isinstance(v, Tensor) and v.is_symbol:
            found.append(v)
    return found


def keep(symbol, call, number):
    """Notes the call that made a symbol."""
    if not isinstance(symbol, Tensor) or not symbol.is_symbol or any(symbol is s for s in call.symbols()):
        return
    if type(symbol) is getattr(type(symbol), "_array", None):
        symbol.__class__ = type(symbol)._symbol
    key = id(symbol)
    _calls[key] = weakref.ref(symbol, lambda _: _calls.pop(key, None)), call, number


def kept_ids():
    """The ids of all symbols that calls have made."""
    return frozenset(_calls)


def call_of(symbol):
    """(the call, the number of its result) that made a symbol; None for variables and what the engine alone has made."""
    found = _calls.get(id(symbol))
    return found[1:] if found else None


def is_variable(symbol):
    """Whether a symbol is a variable."""
    return call_of(symbol) is None and not awaited(symbol.name) and engine_names(symbol) == [symbol.name]


def awaited(name):
    """The same by the name of a symbol that stands for a result the engine could not make; None for other names."""
    return _awaited.get(name)


def wait_for(call, like, name=None):
    """Symbols for the results of a call that needs shapes, of the class like."""
    made, call.count, call.name = [], call.several(), name or call.name
    call.named()
    for number in range(call.count or 1):
        symbol = var(name := f"{getattr(call.function, '__name__', 'symbol').lower()}_later{len(_awaited)}")
        symbol.__class__ = like
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


class Plainly:
    """Inside, functions of symbols are not kept: they belong to a call that is."""

    def __enter__(self):
        self._before = getattr(_inside, "call", False)
        _inside.call = True

    def __exit__(self, *exception):
        _inside.call = self._before


def kept(function, alias=None):
    """The function, whose calls with symbols are kept, and are made later where the symbols' shapes are missing.  alias: the name that
    its results' names begin with, if that is not its own."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        symbols = symbols_in([*args, *kwargs.values()])
        if not symbols or getattr(callbacks, "depth", 0) or getattr(_inside, "call", False):  # while the engine traces a block, its own program is what counts
            return function(*args, **kwargs)
        if isinstance(kwargs.get("out"), Tensor) and kwargs["out"].is_symbol:
            del kwargs["out"]  # a symbol is no place for values
        noted, name = _noted(kwargs), kwargs.pop("name", None)
        made = Call(function, args, kwargs, name)
        made.alias = alias
        try:
            with Plainly():
                result = function(*args, **kwargs)
        except Exception as error:
            if not _needs_values(error, symbols):
                raise
            return _with(wait_for(made, type(symbols[0])), noted)
        # An array is no result of symbols, as that of shape_array; a symbol that was given stays that of another call.
        if isinstance(result, Tensor) and (not result.is_symbol or any(result is s for s in symbols)):
            return _with(wait_for(made, type(symbols[0])), noted)
        made.count = len(result) if isinstance(result, (list, tuple)) else None
        made.named()
        for number, symbol in enumerate(result if made.count else [result]):
            keep(symbol, made, number)
        _with(result, noted)
        return group(result) if made.count and all(isinstance(s, Tensor) and s.is_symbol for s in result) else result

    call._unsigned = getattr(function, "_unsigned", function)
    return call


class Kept(types.ModuleType):
    """A module's functions, kept; the rest of the module as it is."""

    def __init__(self, module, sources=None):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__["_module"] = module
        self.__dict__["_sources"] = sources  # the class of the symbols that its functions without symbols make

    def __getattr__(self, name):
        found = getattr(self._module, name)
        if isinstance(found, (types.ModuleType, Space)):  # np.linalg, too
            found = Kept(found)
        elif callable(found) and not isinstance(found, type) and name not in _LOOPS:
            found = kept(found) if self._sources is None else source(found, self._sources, ("shape", "dtype", "ctx"))
        self.__dict__[name] = found
        return found


def method(kind, name):
    """A method of symbols: that of the classes after kind, kept as a function is."""

    def find(self, *args, **kwargs):
        return getattr(super(kind, self) if self.is_symbol else self, name)(*args, **kwargs)

    find.__name__, find._is_method = name, True
    return kept(find)


def source(function, like, names=()):
    """A function that makes arrays from no others, as zeros does: outside of blocks, a symbol whose value is made when the program
    runs.  like: the class of the symbol; names: MXNet's parameters."""
    of_symbols = kept(function)
    code = getattr(function, "_unsigned", function).__code__
    known = {"out", "attr", *_attributes.HIDDEN, *names, *code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]}

    @functools.wraps(function)
    def call(*args, name=None, **kwargs):
        if getattr(callbacks, "depth", 0) or symbols_in([*args, *kwargs.values()]):
            return of_symbols(*args, **kwargs)
        if unknown := kwargs.keys() - known:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {unknown.pop()!r}")
        noted = _noted(kwargs)
        made = Call(function, args, {k: v for k, v in kwargs.items() if k != "out"})
        return _with(wait_for(made, like, name), noted)

    call._unsigned = getattr(function, "_unsigned", function)
    return call


def with_values(call, values):
    """The arguments of a call with values, by the symbols' ids, in the place of symbols."""

    def look(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(look, value)) if not hasattr(value, "_fields") else value
        return values[id(value)] if isinstance(value, Tensor) and value.is_symbol else value

    return tuple(map(look, call.args)), {k: look(v) for k, v in call.kwargs.items()}


# ---- running


class Run:
    """The values of symbols for values of the variables, each computed once."""

    def __init__(self, arrays, engine, heads=(), known=(), watch=None):
        self._arrays, self._engine, self._heads, self._known = arrays, engine, heads, dict(known)  # known: values by the ids of symbols
        self._values, self._results, self._shapes = dict(known), {}, None
        self._watch = watch  # is told of each call: (the call, names of the results, values of its symbols, results)

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
            args, kwargs = with_values(call, {id(s): self.value(s) for s in call.symbols()})
            if call.without_length():
                args, kwargs = call.of_shape(self._shape_of(call))
            self._results[id(call)] = call.function(*args, **kwargs)
            if self._watch:
                found = self._results[id(call)]
                name, several = call.name or call.function.__name__, isinstance(found, (list, tuple))
                names = [f"{name}_output{i}" for i in range(len(found))] if several else [f"{name}_output"]
                self._watch(call, names, [self.value(s) for s in call.symbols()], found if several else [found])
        results = self._results[id(call)]
        if not isinstance(results, (list, tuple)):
            return results
        if len(results) != (call.count or 1):
            name = getattr(call.function, "__name__", "a function")
            raise not_here(f"{name} with {len(results)} results of a symbol without a shape", "sym.var(name, shape=…)")
        return results[number]

    def _shape_of(self, call):
        """The shape of a source of which only part was given, by those of the arrays."""
        if self._shapes is None:
            shapes, inside = ({k: a.shape for k, a in each.items()} for each in (self._arrays, self._known))
            self._shapes = infer(self._heads, self._engine, shapes, inside)
        shape = self._shapes.result(call)
        if shape is None or -1 in shape:
            raise ValueError(f"the shape {call.given_shape()} of {call.name or call.function.__name__} does not follow from the program's other shapes")
        return shape


def replaced(symbols, values):
    """Symbols of the same calls, with other symbols in the place of variables, by their names."""
    again = {}

    def look(symbol):
        found = call_of(symbol)
        if found is None:
            return values.get(symbol.name, symbol)
        call, number = found
        if not call.symbols():
            return symbol
        if id(call) not in again:
            again[id(call)] = call.again(*with_values(call, {id(s): look(s) for s in call.symbols()}))
        result = again[id(call)]
        return result[number] if isinstance(result, (list, tuple)) else result

    return [look(s) for s in symbols]


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
            shapes[symbol.name] = symbol.shape or _attributes.partial_shape(symbol)
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
