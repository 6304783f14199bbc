"""Shapes in programs of symbols, as far as they follow from one another, as in MXNet: of results, by calling the functions with symbols
of these shapes; of arguments, by rules.  An unknown length is -1 here, an unknown shape None."""
import math

from .. import _engine
from .._tensor import Tensor
from . import _later, autograd
from ._mode import is_np_shape
from .base import MXNetError

_TRIALS = 24, 48  # lengths in the place of unknown ones: lengths of results that are the same for both do not depend on them
_WHOLE_ONLY = ("where",)  # as in MXNet, of known arguments alone
_CUTTING = ("slice", "slice_axis")  # the part of an axis of unknown length has an unknown length
parameters_of: dict = {}  # by a function's name: its own variables, as _automatic.py has them


def taken(shape):
    """A shape as a program gives it: 0, or -1 with NumPy's shapes, is an unknown length."""
    if shape is None or not len(shape) and not is_np_shape():
        return None
    return tuple(int(d) if is_np_shape() else int(d) or -1 for d in shape)


def given(shape):
    """The same for the program."""
    if is_np_shape():
        return shape
    return () if shape is None else tuple(max(d, 0) for d in shape)


def known(shape):
    """Whether all lengths are known."""
    return shape is not None and -1 not in shape


def joined(a, b, name="a symbol"):
    """A shape by two partial ones, which must agree."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(x != y and -1 not in (x, y) for x, y in zip(a, b)):
        raise MXNetError(f"infer_shape: {name} has the shape {given(a)} and the shape {given(b)}")
    return tuple(max(x, y) for x, y in zip(a, b))


# ---- rules: the shapes of arguments and results by one another

_rules: dict = {}  # by a function's name: function(options, shapes of the arguments, shapes of the results), which changes the lists


def rule(*names):
    """Registers a rule."""

    def register(function):
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


def _all_the_same(options, ins, outs):
    one = None
    for shape in [*ins, *outs]:
        one = joined(one, shape)
    ins[:], outs[:] = [one] * len(ins), [one] * len(outs)


_OPERATORS = [f"__{back}{n}__" for n in "add sub mul truediv pow mod".split() for back in ("", "r")]
_OPERATORS += [f"__{n}__" for n in "eq ne lt le gt ge neg abs".split()]
_ELEMENTS = """elemwise_add elemwise_sub elemwise_mul elemwise_div add_n identity cast astype copy detach BlockGrad make_loss exp log sqrt relu
               sigmoid tanh reciprocal square abs negative sign clip sin cos tan sinh cosh arcsinh arccosh arctanh arcsin arccos arctan erf
               log1p expm1 log2 log10 rsqrt cbrt rcbrt floor ceil round rint trunc fix degrees radians softsign logical_not gelu hard_sigmoid
               smooth_l1 gamma gammaln Activation Dropout zeros_like ones_like _identity_with_attr_like_rhs""".split()
rule(*_ELEMENTS)(_all_the_same)


@rule(*_OPERATORS)
def _operator(options, ins, outs):
    if not options.get("broadcasts") and not all(map(known, ins)):  # arrays of known shapes are broadcast
        _all_the_same(options, ins, outs)


@rule("BatchNorm", "LayerNorm", "InstanceNorm", "GroupNorm", "SoftmaxOutput", "LinearRegressionOutput", "LogisticRegressionOutput",
      "MAERegressionOutput", "LeakyReLU", "softmax", "log_softmax", "softmin")  # fmt: skip
def _as_the_first(options, ins, outs):
    ins[0] = outs[0] = joined(ins[0], outs[0])


@rule("FullyConnected")
def _dense(options, ins, outs):
    if ins[0] is None or len(ins) < 2:
        return
    count, flat = options.get("num_hidden") or -1, options.get("flatten", True)
    width = -1 if ins[1] is None else ins[1][1]
    rest = (-1,) * (len(ins[0]) - 1)
    if len(ins[0]) == 2 or not flat:
        ins[0] = joined(ins[0], (*rest, width))
    if outs[0] is None:
        outs[0] = (-1, count) if flat else (*ins[0][:-1], count)
    outs[0] = joined(outs[0], (ins[0][0], count) if flat else (*ins[0][:-1], count))
    ins[0] = joined(ins[0], (outs[0][0], *rest) if flat else (*outs[0][:-1], -1))


@rule("Convolution")
def _windows(options, ins, outs):
    if ins[0] is None or outs[0] is None or options.get("layout") not in (None, "NCW", "NCHW", "NCDHW"):
        return
    n = len(ins[0]) - 2
    kernel, dilate, pad, stride = (tuple(options.get(k) or (usual,) * n) for k, usual in (("kernel", 1), ("dilate", 1), ("pad", 0), ("stride", 1)))
    before = [y - 1 + d * (k - 1) + 1 - 2 * p if y > 0 and s == 1 else -1 for y, k, d, p, s in zip(outs[0][2:], kernel, dilate, pad, stride)]
    ins[0] = joined(ins[0], (outs[0][0], -1, *before))


@rule("concat")
def _chain(options, ins, outs):
    first = next((s for s in [*ins, *outs] if s is not None), None)
    if first is None:
        return
    axis = options.get("dim", 1) % len(first)
    apart = [None if s is None else (*s[:axis], -1, *s[axis + 1 :]) for s in [*ins, *outs]]
    common = None
    for shape in apart:
        common = joined(common, shape)
    lengths = [-1 if s is None else s[axis] for s in ins]
    total = -1 if outs[0] is None else outs[0][axis]
    if -1 not in lengths:
        total = sum(lengths)
    elif lengths.count(-1) == 1 and total > 0:
        lengths[lengths.index(-1)] = total - sum(d for d in lengths if d > 0)
    ins[:] = [(*common[:axis], d, *common[axis + 1 :]) for d in lengths]
    outs[0] = joined(outs[0], (*common[:axis], total, *common[axis + 1 :]))


@rule("split")
def _parts(options, ins, outs):
    count, squeezed = options.get("num_outputs"), options.get("squeeze_axis", False)
    one = None
    for shape in outs:
        one = joined(one, shape)
    ndim = len(ins[0]) if ins[0] is not None else None if one is None else len(one) + bool(squeezed)
    if ndim is None or not isinstance(count, int):
        return
    axis = options.get("axis", 1) % ndim
    if one is not None:
        part = (*one[:axis], 1, *one[axis:]) if squeezed else one
        ins[0] = joined(ins[0], tuple(d * count if i == axis and d > 0 else d for i, d in enumerate(part)))
    length = ins[0][axis] // count if ins[0][axis] > 0 else -1
    part = (*ins[0][:axis], *(() if squeezed else (length,)), *ins[0][axis + 1 :])
    outs[:] = [joined(s, part) for s in outs]


@rule("transpose", "T")
def _turned(options, ins, outs):
    axes = options.get("axes") or options["*"] or ()
    axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
    ndim = next((len(s) for s in [*ins, *outs] if s is not None), None)
    if ndim is None or axes and len(axes) != ndim:
        return
    axes = [a % ndim for a in axes] if axes else list(range(ndim))[::-1]
    if ins[0] is not None:
        outs[0] = joined(outs[0], tuple(ins[0][a] for a in axes))
    back = [-1] * ndim
    for place, a in enumerate(axes):
        back[a] = outs[0][place]
    ins[0] = joined(ins[0], tuple(back))


@rule("reshape", "flatten")
def _of_one_size(options, ins, outs):
    """One unknown length follows from the number of elements."""
    if known(outs[0]) and ins[0] is not None and ins[0].count(-1) == 1:
        rest = math.prod(d for d in ins[0] if d >= 0)
        if rest and math.prod(outs[0]) % rest == 0:
            ins[0] = tuple(math.prod(outs[0]) // rest if d < 0 else d for d in ins[0])


@rule("expand_dims")
def _with_one(options, ins, outs):
    if outs[0] is not None and isinstance(axis := options.get("axis"), int):
        ins[0] = joined(ins[0], tuple(d for i, d in enumerate(outs[0]) if i != axis % len(outs[0])))


# ---- inference


def axes_of(heads, name):
    """The shape of a function's weight for data of unknown lengths: its known lengths, and the number of its axes; None for other
    variables."""
    for symbol in _later.behind(heads):
        made = _later.call_of(symbol)
        options = options_of(made[0]) if made else {}
        for argument, _, shape in parameters_of.get(getattr(made[0].function, "__name__", "") if made else "", ()):
            variable = options.get(argument)
            if isinstance(variable, Tensor) and variable.name == name:
                axes = 2 + len(options["kernel"]) if options.get("kernel") else 2
                return _tried(lambda data: [shape(data, options)], [(-1,) * axes], [None])[0]
    return None


def options_of(call):
    """The arguments of a call by the parameters' names; "*": further ones in their order."""
    function = call.function
    if getattr(function, "_is_method", False):
        from . import nd

        function = vars(nd).get(function.__name__, function)
    code = getattr(getattr(function, "_unsigned", function), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    return {**dict(zip(names, call.args)), **call.kwargs, "*": call.args[len(names) :]}


class _Node:
    """A call, with the places of its arguments' and results' shapes."""

    def __init__(self, call, ins, of_arrays=False):
        self.call, self.ins, self.of_arrays = call, ins, of_arrays
        self.done = hasattr(call, "infer")  # whether the results' shapes need not be computed any more
        self.outs = [(id(call), number) for number in range(call.count or 1)]
        self.name = getattr(call.function, "__name__", "")
        self.options = options_of(call)
        if self.name in _OPERATORS:
            self.options["broadcasts"] = any(getattr(type(s), "_scalars", False) for s in call.symbols())


class Inference:
    """The shapes of the variables and of all results behind symbols."""

    def __init__(self, heads, engine, shapes, inside=(), results=()):
        """shapes: of variables, by name; inside: partial shapes of symbols by their ids; results: those of the heads."""
        self._engine, self._nodes, self._kept = engine, [], []
        self._places = {i: ("inside", i) for i in inside}
        names, _, own = _later.names_of(heads, engine)
        self._shapes = {n: taken(shapes.get(n) if shapes.get(n) is not None else own.get(n)) for n in names}
        self._shapes.update({("inside", i): shape for i, shape in dict(inside).items()})
        self._keys = [self._place(s) for s in heads]
        for key, shape in zip(self._keys, results):
            self._shapes[key] = joined(self._shapes.get(key), shape)
        self._settle()

    def of(self, symbol):
        """The shape of a symbol of the program."""
        return self._shapes.get(self._places.get(id(symbol), symbol.name))

    def variable(self, name):
        """The shape of a variable."""
        return self._shapes.get(name)

    def heads(self):
        """The shapes of the symbols."""
        return [self._shapes.get(k) for k in self._keys]

    def result(self, call, number=0):
        """The shape of a call's result."""
        return self._shapes.get((id(call), number))

    # the program

    def _place(self, symbol):
        """The place of a symbol's shape."""
        if id(symbol) not in self._places:
            made = _later.call_of(symbol) or _later.awaited(symbol.name)
            if made:
                self._places[id(symbol)] = self._called(*made)
            elif symbol.name in self._shapes:
                self._places[id(symbol)] = symbol.name
            else:
                self._places[id(symbol)] = self._of_engine(symbol)
        return self._places[id(symbol)]

    def _called(self, call, number):
        if ("call", id(call)) not in self._places:
            self._places["call", id(call)] = True
            self._nodes.append(_Node(call, [self._place(s) for s in call.symbols()]))
        return id(call), number

    def _of_engine(self, symbol):
        """A symbol that the engine alone has made: its function is the engine's program."""

        def compute(*arrays):
            return self._engine.run(symbol, dict(zip(names, arrays)))

        names = self._engine.names(symbol)
        call = _later.Call(compute, (), {})
        self._kept.append(call)
        self._nodes.append(_Node(call, [self._called(*made) if (made := _later.awaited(n)) else n for n in names], of_arrays=True))
        return id(call), 0

    # the shapes

    def _settle(self):
        changed = True
        while changed:
            changed = False
            for node in self._nodes:
                changed |= self._step(node)
            for node in reversed(self._nodes):
                changed |= self._step(node)

    def _step(self, node):
        ins, outs = ([self._shapes.get(k) for k in keys] for keys in (node.ins, node.outs))
        before = ins[:], outs[:]
        infer = getattr(node.call, "infer", None) or _rules.get(node.name)
        if not node.done and all(map(known, ins)):
            outs = [joined(a, b, node.name) for a, b in zip(outs, self._computed(node, ins, outs))]
            node.done = True
        if infer and (ins or outs):
            infer(node.options, ins, outs)
        self._of_parameters(node, ins)
        if not node.done and node.name not in _WHOLE_ONLY and None not in ins:
            outs = [joined(a, b, node.name) for a, b in zip(outs, self._partly(node, ins, outs))]
        if (ins, outs) == before:
            return False
        for keys, shapes in ((node.ins, ins), (node.outs, outs)):
            for key, shape in zip(keys, shapes):
                self._shapes[key] = joined(self._shapes.get(key), shape, node.name)
        return True

    def _of_parameters(self, node, ins):
        """The shapes of a function's weights, by that of its data."""
        if not ins or ins[0] is None or node.name not in parameters_of:
            return
        symbols = node.call.symbols()
        for argument, _, shape in parameters_of[node.name]:
            place = next((i for i, s in enumerate(symbols) if node.options.get(argument) is s), None)
            if place:
                ins[place] = joined(ins[place], _tried(lambda data: [shape(data, node.options)], ins[:1], [None])[0], node.name)

    def _computed(self, node, ins, outs):
        """The shapes of the results, all arguments' being known."""
        if not ins:
            return [_of_source(node, outs)]
        if not node.of_arrays:
            try:
                return _called_with(node.call, ins)
            except Exception:  # noqa: BLE001, the function needs values, or refuses the shapes: arrays show which
                pass
        from . import nd

        with autograd.pause():
            return _shapes_of(_call_again(node.call, [nd.full(s, 0) for s in ins]), outs)

    def _partly(self, node, ins, outs):
        if node.of_arrays or not ins:
            return outs
        found = _tried(lambda *shapes: _called_with(node.call, shapes), ins, outs)
        if node.name in _CUTTING and found[0] is not None:  # a short axis may have fewer elements than the part
            found = [tuple(-1 if d < 0 else n for d, n in zip(ins[0], found[0]))]
        return found


def _tried(function, ins, outs):
    """function(*shapes), a list, for partial shapes: the lengths that do not depend on unknown ones."""
    try:
        first, second = (function(*(tuple(n if d < 0 else d for d in s) for s in ins)) for n in _TRIALS)
    except Exception:  # noqa: BLE001, whatever the function says of these lengths is about lengths made up
        return outs
    if any(len(a) != len(b) for a, b in zip(first, second)):
        return outs
    return [tuple(x if x == y else -1 for x, y in zip(a, b)) for a, b in zip(first, second)]


def _of_source(node, outs):
    """The shape of a function's result that has no symbols among its arguments."""
    shape = node.options.get("shape")
    if node.options.get("infer_range"):
        return outs[0]
    if shape is not None:
        return taken((shape,) if isinstance(shape, int) else shape)
    if outs[0] is not None:
        return outs[0]
    with autograd.pause():
        return tuple(node.call.function(*node.call.args, **node.call.kwargs).shape)


def _call_again(call, values):
    args, kwargs = _later.with_values(call, dict(zip(map(id, call.symbols()), values)))
    return call.function(*args, **kwargs) if call.symbols() else call.function(*values)  # the latter: the engine's program


def _called_with(call, shapes):
    """The shapes of the results for symbols of these shapes."""
    symbols = call.symbols()
    made = []
    for i, (symbol, shape) in enumerate(zip(symbols, shapes)):
        made.append(_engine.var(f"shape{i}", shape))
        made[-1].__class__ = type(symbol)
    with _later.Plainly():
        found = _shapes_of(_call_again(call, made), None)
    if None in found:
        raise MXNetError("no shape")
    return found


def _shapes_of(results, outs):
    results = results if isinstance(results, (list, tuple)) else [results]
    return [None if r.shape is None else tuple(r.shape) for r in results][: None if outs is None else len(outs)]
