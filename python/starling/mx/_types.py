"""Data types in programs of symbols, as far as they follow from one another: what a function computes with has one type, but for
conversions, and arguments that are indices."""
import numpy

from . import _attributes, _later
from ._shapes import options_of

NUMBERS = {"float32": 0, "float64": 1, "float16": 2, "uint8": 3, "int32": 4, "int8": 5, "int64": 6, "bool": 7}  # MXNet's
_INDICES = {"take": (1,), "batch_take": (1,), "pick": (1,), "gather_nd": (1,), "Embedding": (0,), "one_hot": (0,), "SequenceMask": (1,),
            "SequenceLast": (1,), "SequenceReverse": (1,), "where": (0,)}  # fmt: skip
_CONVERTING = ("cast", "astype", "amp_cast", "one_hot", "argsort", "topk", "argmax", "argmin", "shape_array", "size_array")


def named(dtype):
    """A type's name."""
    return None if dtype is None else "bfloat16" if str(dtype) == "bfloat16" else numpy.dtype(dtype).name


def given(name):
    """The type as programs get it: NumPy's class."""
    return None if name is None else numpy.dtype(name).type if name != "bfloat16" else name


def attribute(dtype):
    """A variable's type as its attribute."""
    return str(NUMBERS[named(dtype)]) if named(dtype) in NUMBERS else named(dtype)


def of_variable(symbol):
    """The type that a variable was made with; None if it was none."""
    text = _attributes.of(symbol).get("__dtype__")
    return next((n for n, number in NUMBERS.items() if str(number) == text), text)


class Inference:
    """The types of the variables and results behind symbols."""

    def __init__(self, heads, types):
        self._types, self._keys, seen = {n: named(t) for n, t in types.items()}, [], set()
        self._groups = []  # places with one type
        self._heads = [self._place(s, seen) for s in heads]
        self._settle()

    def variable(self, name):
        """The type of a variable."""
        return self._types.get(name)

    def heads(self):
        """The types of the symbols."""
        return [self._types.get(k) for k in self._heads]

    def _place(self, symbol, seen):
        made = _later.call_of(symbol) or _later.awaited(symbol.name)
        if not made:
            if own := of_variable(symbol):
                self._types.setdefault(symbol.name, own)
            return symbol.name
        call, number = made
        if id(call) not in seen:
            seen.add(id(call))
            self._note(call, [self._place(s, seen) for s in call.symbols()])
        return id(call), number

    def _note(self, call, ins):
        name, options = getattr(call.function, "__name__", ""), options_of(call)
        outs = [(id(call), number) for number in range(call.count or 1)]
        dtype = options.get("dtype") or (options["*"][0] if name == "astype" and options["*"] else None)
        free = _INDICES.get(name, ())
        if name in _CONVERTING or not ins or dtype is not None and name == "Embedding":
            for key in [*outs, *(k for i, k in enumerate(ins) if name == "Embedding" and i not in free)]:
                self._types.setdefault(key, named(dtype or "float32"))
        elif dtype is not None:
            self._types.update(dict.fromkeys(outs, named(dtype)))
        else:
            self._groups.append([*(k for i, k in enumerate(ins) if i not in free), *outs])

    def _settle(self):
        changed = True
        while changed:
            changed = False
            for group in [*self._groups, *reversed(self._groups)]:
                one = next((self._types[k] for k in group if self._types.get(k)), None)
                for key in group:
                    if one and not self._types.get(key):
                        self._types[key] = one
                        changed = True
