"""The text of programs under construction, from values that PyTorch describes by shape and type."""
import torch

from .._core import failure, ffi, lib
from .._words import in_python

DTYPES = {
    torch.float32: "float32", torch.float64: "float64", torch.int32: "int32", torch.uint8: "uint8", torch.bfloat16: "bfloat16",
    torch.float16: "float16", torch.int64: "int64", torch.bool: "bool",
}  # fmt: skip
NUMBERS = {dtype: getattr(lib, f"SL_{name.upper()}") for dtype, name in DTYPES.items()}
MOST_AXES = 6
MOVES = {"reshape", "slice", "transpose"}  # whose results are views in PyTorch
HERE = ffi.new("char[]", b"torch.compile")  # where calls of the engine come from, in its messages


class Unsupported(Exception):
    """The table has no way to compute this: it runs in PyTorch."""


def raise_error(status=0):
    """Raises the engine's error of this thread; status: what a function returned, which took the error."""
    status, message = status or lib.sl_error(), ffi.string(lib.sl_error_message()).decode(errors="replace")
    lib.sl_error_clear()
    raise failure(status, in_python(message))


def checked_status(status):
    """Raises the error that a function of the engine returned."""
    if status:
        raise_error(status)


class Value:
    """A value of a graph: its name in the program that computes it, and its type.

    base: the value that this is the transpose of, if it is one of matrices, its last two axes: products take that as an attribute.
    source: the input of a program whose elements it has, if it is a view of one.
    known: the tensor that it is, if it is a constant.  made: (operation, arguments, attributes) that made it, if it moves elements.
    """

    __slots__ = ("program", "ref", "shape", "dtype", "base", "source", "known", "made")

    def __init__(self, program, ref, shape=None, dtype=None):
        self.program, self.ref, self.shape, self.dtype = program, ref, shape, dtype
        self.base = self.source = self.known = self.made = None

    @property
    def name(self):
        """Its name as an input of another program."""
        return self.ref.replace("[", "_").rstrip("]")

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of elements."""
        n = 1
        for d in self.shape:
            n *= d
        return n


def word(x):
    """An attribute's value as text."""
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, (list, tuple)):
        return "(" + ", ".join(map(word, x)) + ("," if len(x) == 1 else "") + ")"
    return repr(x)


class Program:
    """Lines of text; values of other programs that operations use become inputs."""

    count = 0  # of names, in all programs

    def __init__(self):
        self.lines, self.inputs, self.written = [], {}, {}
        self.updates = False  # whether it has updates of optimisers
        self.labels = {}  # inputs of the graph that must be numbers of classes: (how many there are, the number to ignore)
        self.in_order = True  # whether PyTorch's first argument lies in order: determinants are those of its transpose then
        self.places = False  # whether the places of maxima are read, but for the gradient
        self.shape = self.dtype = None  # of the result of the ATen operation that is being lowered

    def use(self, v):
        """The name of a value in this program."""
        if v.program is self:
            return v.ref
        self.inputs[v] = None
        return v.name

    def op(self, name, *args, n=1, **attrs):
        """An operation; its result, or a list of n results."""
        given = [self.use(a) for a in args] + [f"{key}={word(x)}" for key, x in attrs.items()]
        Program.count += 1
        ref = f"v{Program.count}"
        self.lines.append(f"{ref} = {name}({', '.join(given)})")
        if name in MOVES:
            y = Value(self, ref)
            y.made = name, args, attrs
            return y
        return Value(self, ref) if n == 1 else [Value(self, f"{ref}[{i}]" if i else ref) for i in range(n)]

    def effect(self, name, *args, writes, **attrs):
        """An operation without a result, which writes the inputs `writes`."""
        given = [self.use(a) for a in args] + [f"{key}={word(x)}" for key, x in attrs.items()]
        self.lines.append(f"{name}({', '.join(given)})")
        self.updates |= "lr" in attrs
        self.written.update(dict.fromkeys(writes))

    def cast(self, x, dtype):
        """x in another type."""
        if x.dtype == dtype:
            return x
        y = self.op("cast", x, dtype=NUMBERS[dtype])
        y.shape, y.dtype = x.shape, dtype
        return y

    def text(self, results):
        """The whole program."""
        inputs = [f"input {v.name}: {DTYPES[v.dtype]} {word(tuple(v.shape))}" for v in self.inputs]
        returned = ", ".join(f"{self.use(v)} as r{i}" for i, v in enumerate(results))
        return "\n".join([*inputs, *self.lines, f"return {returned}"])
