"""Symbol: an array without values, in programs; their files, and running them."""
import json
import os
import tempfile
import warnings

from .. import _blocks, _engine, _whole_files
from .._core import NULL, Owner, StateError, callbacks, ffi, here, lib, options, owned, raise_error, shape_of, wrong
from .._files import captured
from .._tensor import Tensor, borrow, wrap
from . import _attributes, _json, _later, _loops, _shapes, _types, autograd
from .base import NotImplementedForSymbol
from .context import known
from .unsupported import not_here
from ._array import NDArray, classify


class _Fixed(_blocks.Block):
    """A block whose result is an existing symbol."""

    def __init__(self, symbol):
        super().__init__()
        self._symbol = symbol

    def forward(self, *_):
        return self._symbol


class _Graph(Owner):
    """The operations behind symbols."""

    def __init__(self, heads):
        self._heads = heads  # they keep the objects that the graph refers to
        p = lib.sl_graph_define_at(here(), ffi.new("sl_tensor *[]", [h._p for h in heads]), len(heads))
        if not p:
            raise_error()
        self._p = owned(p, lib.sl_graph_free)

    def inputs(self):
        """The names of the variables."""
        names = ffi.new("const char *[]", max(n := lib.sl_graph_inputs(self._p, NULL, 0), 1))
        lib.sl_graph_inputs(self._p, names, n)
        return [ffi.string(names[i]).decode() for i in range(n)]

    def call(self, arrays):
        """The values of the heads, computed call by call: recorded if this thread records."""
        given, out = self._given(arrays), ffi.new("sl_tensor *[]", len(self._heads))
        if lib.sl_graph_call_at(here(), self._p, ffi.new("sl_tensor *[]", [a._p for a in given] or 1), len(given), out):
            raise_error()
        return [wrap(out[i], h._array) for i, h in enumerate(self._heads)]

    def other_in_training(self):
        """The name of a layer that the program has as it is at inference; None if there is no such layer."""
        text = captured(lambda file: lib.sl_graph_print_at(here(), file, self._p))
        return next((name for op, name in (("batch_norm_infer(", "BatchNorm"), ("copy(", "Dropout")) if op in text), None)

    def _given(self, arrays):
        """The values of the variables in their order."""
        given = []
        for name in self.inputs():
            if name not in arrays:
                raise ValueError(f"the argument {name!r} has no value")
            if not isinstance(arrays[name], Tensor):
                raise wrong(name, arrays[name], "an array")
            given.append(arrays[name])
        return given

    def run(self, ctx, arrays):
        """The values of the heads for given values of the variables."""
        given = self._given(arrays)
        shapes = ffi.new("sl_shape[]", [shape_of(a.shape) for a in given] or 1)
        opts = options("sl_compile_opts", shapes=shapes if given else NULL, device=ctx.device._c)
        plan = lib.sl_compile_at(here(), self._p, opts)
        if not plan:
            raise_error()
        out = ffi.new("sl_tensor *[]", len(self._heads))
        try:
            if lib.sl_plan_run_at(here(), plan, ffi.new("sl_tensor *[]", [a._p for a in given] or 1), len(given), out):
                raise_error()
        finally:
            lib.sl_plan_free(plan)
        return [wrap(out[i], h._array) for i, h in enumerate(self._heads)]


class _Engine:
    """What the engine knows of single symbols."""

    @staticmethod
    def names(symbol):
        """The names of the variables of a symbol."""
        return _Graph([symbol]).inputs()

    @staticmethod
    def run(symbol, arrays):
        """The value of a symbol."""
        return _in_mode(_Graph([symbol])).call(arrays)[0]


def _in_mode(graph):
    """The program, if it computes in training what was meant."""
    if autograd.is_training() and (layer := graph.other_in_training()):
        raise not_here(f"training a program of {layer} that is not made by functions of mx.sym", "a HybridBlock under autograd.record")
    return graph


class _Program:
    """What symbols compute: by the calls that made them, and by the engine what it alone has made, as from a file."""

    def __init__(self, heads):
        self._heads, self._engine = heads, None
        self._names, self._states, self._shapes = _later.names_of(heads, _Engine)

    @property
    def _graph(self):
        """The engine's program."""
        if self._engine is None:
            self._engine = _Graph(self._heads)
        return self._engine

    @property
    def later(self):
        """Whether some results are those that the engine could not make."""
        return any(map(_later.awaited, self._graph.inputs()))

    def inputs(self):
        """The names of the variables."""
        return self._names if any(map(_later.call_of, self._heads)) else self._graph.inputs()

    def shapes(self):
        """The shapes that variables were made with, by name."""
        return {n: s for n, s in self._shapes.items() if s and 0 not in s}

    def heads(self):
        """The symbols whose values it computes."""
        return self._heads

    def states(self):
        """The names of the variables that are running statistics, in order."""
        return [n for n in self.inputs() if n in self._states]

    def call(self, arrays, watch=None):
        """The values of the heads, computed call by call: recorded if this thread records."""
        for name, value in arrays.items():
            if not isinstance(value, Tensor):
                raise wrong(name, value, "an array")
        run = _later.Run(arrays, _Engine, self._heads, watch=watch)
        return [run.value(h) for h in self._heads]

    def run(self, ctx, arrays, watch=None):
        """The values of the heads for given values of the variables."""
        if not any(map(_later.call_of, self._heads)):
            return self._graph.run(ctx, arrays)
        with autograd.pause(), ctx:
            return self.call(arrays, watch)


class Symbol(NDArray):
    """A symbol: made by sym.var, and passed to blocks while they are traced."""

    __slots__ = ()

    @property
    def name(self):
        """The name of the operation that computes it: the one that the program gave, or the engine's."""
        made = _later.call_of(self)
        return made and made[0].name or ffi.string(lib.sl_symbol_name(self._p)).decode()

    @property
    def ndim(self):
        """The number of axes; StateError where the shape is unknown, so that the call is made later, with arrays."""
        if self.shape is None and not getattr(callbacks, "depth", 0):
            raise StateError(f"the shape of the symbol {self.name} is not known")
        return Tensor.ndim.fget(self)

    def as_np_ndarray(self):
        """The same symbol for mx.np."""
        from .np import _Symbol

        return self._as(_Symbol)

    def as_nd_ndarray(self):
        """The same symbol for mx.nd."""
        return self._as(Symbol)

    def _as(self, kind):
        """The same symbol as an object of another class."""
        if type(self) is kind:
            return self
        found = _later.call_of(self)
        other = borrow(self._p, kind)
        if found:
            _later.keep(other, *found)
        return other

    def tojson(self, remove_amp_cast=True):
        """The program in MXNet's JSON format."""
        try:
            return _json.text_of([self])
        except NotImplementedError:
            if _Program([self]).later:
                raise
        with tempfile.TemporaryDirectory() as folder:  # a program that the engine has made
            path = os.path.join(folder, "symbol")
            _Fixed(self).export(path, shapes=[(1,)])
            with open(f"{path}-symbol.json") as file:
                program = json.load(file)
        used = {source for node in program["nodes"] for source, *_ in node["inputs"]} | {head for head, *_ in program["heads"]}
        while program["nodes"] and len(program["nodes"]) - 1 not in used:  # the input that the program was traced with
            program["nodes"].pop()
        program["arg_nodes"] = [i for i in program["arg_nodes"] if i < len(program["nodes"])]
        return json.dumps(program, indent=2)

    def save(self, fname, remove_amp_cast=True):
        """Writes the program to a file in MXNet's format."""
        _whole_files.write(fname, self.tojson().encode())

    def list_arguments(self):
        """The names of variables and parameters, in the order in which they are needed, without running statistics."""
        states = self.list_auxiliary_states()
        return [n for n in self.list_inputs() if n not in states]

    def list_inputs(self):
        """The names of variables, parameters and running statistics."""
        names = _Program([self]).inputs()
        if _json.can_write([self]):
            return names
        try:
            found = [n["name"] for n in json.loads(self.tojson())["nodes"] if n["op"] == "null"]
        except (RuntimeError, NotImplementedError):  # an operation that MXNet lacks
            return names
        return names if set(names) == set(found) else found  # with parameters of blocks

    def list_outputs(self):
        """The name of the result."""
        made = _later.call_of(self)
        if not made and _Graph([self]).inputs() == [self.name]:
            return [self.name]
        return [f"{self.name}_output{made[1] if made and made[0].count else ''}"]

    def list_auxiliary_states(self):
        """The names of running statistics."""
        return _Program([self]).states()

    def infer_shape(self, *args, **shapes):
        """(of the arguments, of the results, of running statistics), for the shapes of the variables; those of weights that
        sym.FullyConnected and others made may be omitted."""
        return _infer_shape([self], args, shapes)

    def infer_shape_partial(self, *args, **shapes):
        """The same as far as the shapes are known: unknown lengths are 0, unknown shapes ()."""
        return _infer_shape([self], args, shapes, partial=True)

    def infer_type(self, *args, **types):
        """(of the arguments, of the results, of running statistics), for the data types of the variables."""
        return _infer_type([self], args, types)

    def infer_type_partial(self, *args, **types):
        """The same as far as the types are known, else None."""
        return _infer_type([self], args, types, partial=True)

    def eval(self, ctx=None, **arrays):
        """The value for given values of the variables: a list with one array."""
        return _Program([self]).run(known(ctx), arrays)

    def bind(self, ctx=None, args=None, args_grad=None, grad_req="write", aux_states=None, group2ctx=None, shared_exec=None):
        """The program with values for its variables; forward() runs it, and backward() puts gradients into args_grad."""
        if group2ctx:
            raise not_here("Symbol.bind(group2ctx=…)", "one context")
        return _bound([self], known(ctx), args, args_grad, grad_req, aux_states)

    def simple_bind(self, ctx=None, grad_req="write", type_dict=None, **shapes):
        """bind with zeros of these shapes, and of gradients; those of weights that were made automatically may be omitted."""
        return _simple_bind([self], ctx, grad_req, type_dict, shapes)

    def __call__(self, *args, name=None, **variables):
        """The program with symbols in the place of its variables, by their order or names."""
        return _composed([self], args, variables, name)[0]

    def __bool__(self):
        raise NotImplementedForSymbol(f"a symbol ({self.name}) is neither true nor false: it has no value")

    def __reduce__(self):
        """How pickle makes a symbol again: a variable, or the program of its file."""
        if _later.call_of(self) or self.list_arguments() != [self.name]:
            try:
                return load_json, (self.tojson(),)
            except NotImplementedError as error:
                raise TypeError(f"copy and pickle cannot copy this symbol: {error}") from None
        return _variable_again, (self.name, self.shape, _attributes.of(self))

    def __copy__(self):
        return self  # a symbol does not change

    def __deepcopy__(self, _):
        return self

    def get_internals(self):
        """All symbols behind this one, in the order in which they are computed, by number or name."""
        return Group(_later.behind([self]))

    def get_children(self):
        """The symbols that this one is computed from; None for a variable."""
        return _children([self])

    def attr(self, key):
        """An attribute; None if the symbol has none of that name."""
        if key == "name":
            return self.name
        found = _attributes.of(self)
        return found.get(key, found.get(f"__{key}__"))

    def list_attr(self, recursive=False):
        """The attributes by their names."""
        if recursive:
            raise DeprecationWarning("Symbol.list_attr with recursive=True has been deprecated. Please use attr_dict instead.")
        return _attributes.of(self)

    def attr_dict(self):
        """The attributes of all symbols behind this one, and the options of their functions, as texts, by the symbols' names."""
        found = {}
        for s in self.get_internals():
            made = _later.call_of(s)
            options = {k: str(v) for k, v in made[0].kwargs.items() if k != "name" and isinstance(v, (int, float, str, tuple))} if made else {}
            if together := {**options, **_attributes.of(s)}:
                found[s.name] = together
        return found

    def _set_attr(self, **attributes):
        """Sets attributes."""
        _attributes.keep(self, {**_attributes.of(self), **_attributes.given(attributes)})

    def wait_to_read(self):
        """Symbols have no values."""
        raise not_here("Symbol.wait_to_read", "Symbol.eval")


def _children(heads):
    """The symbols that these are computed from, each once; None for variables."""
    found = {id(s): s for made in map(_later.call_of, heads) if made for s in made[0].symbols()}
    return Group(found.values()) if found else None


_stypes_of_variables: dict = {}  # storage types by the variables' names; the latest program's


def _zeros(shape, ctx=None, dtype=None, stype=None):
    from . import nd

    if 0 in shape or not shape:  # with NumPy's meaning of shapes, wherever the program was made
        return nd.full(shape, 0, ctx, dtype=dtype or "float32")
    return nd.zeros(shape, ctx, dtype=dtype or "float32", stype=stype)


def _sparse_gradients(heads):
    """The storage types of gradients that a function's sparse_grad makes sparse, by the names of the weights."""
    calls = [made[0] for s in _later.behind(heads) if (made := _later.call_of(s))]
    given = [c.kwargs.get("weight", c.args[1] if len(c.args) > 1 else None) for c in calls if c.kwargs.get("sparse_grad")]
    return {w.name: "row_sparse" for w in given if isinstance(w, Tensor)}


def _inferred(heads, shapes):
    """The shapes in a program, as far as they follow from these of variables; a name that is no variable's is an error, as in MXNet."""
    return _shapes.Inference(heads, _Engine, shapes)


def _all_shapes(program, shapes):
    """The shapes of the variables, and the names of those that do not follow from what is known."""
    found = _inferred(program.heads(), shapes)
    return {n: found.variable(n) for n in program.inputs()}, [n for n in program.inputs() if not _shapes.known(found.variable(n))]


def _infer_shape(heads, args, shapes, partial=False):
    """(of arguments, of results, of running statistics); three times None where some do not follow, unless partial."""
    program = _Program(heads)
    arguments, states = [n for n in program.inputs() if n not in program.states()], program.states()
    found = _inferred(heads, {**dict(zip(arguments, args)), **shapes})
    parts = [[found.variable(n) for n in arguments], found.heads(), [found.variable(n) for n in states]]
    if partial or all(_shapes.known(s) for part in parts for s in part):
        return tuple([_shapes.given(s) for s in part] for part in parts)
    unknown = ", ".join(n for n in program.inputs() if not _shapes.known(found.variable(n)))
    warnings.warn(f"Cannot decide shape for the following arguments (0s in shape means unknown dimensions): {unknown or 'none, but for results'}", stacklevel=3)
    return None, None, None


def _infer_type(heads, args, types, partial=False):
    """The same of data types."""
    program = _Program(heads)
    arguments, states = [n for n in program.inputs() if n not in program.states()], program.states()
    found = _types.Inference(heads, {**{n: t for n, t in zip(arguments, args) if t is not None}, **types})
    parts = [[found.variable(n) for n in arguments], found.heads(), [found.variable(n) for n in states]]
    if partial or all(t for part in parts for t in part):
        return tuple([_types.given(t) for t in part] for part in parts)
    return None, None, None


def _simple_bind(heads, ctx, grad_req, types, shapes):
    from ._executor import Executor

    program, ctx = _Program(heads), known(ctx)
    names = program.inputs()
    shapes = {n: s for n, s in shapes.items() if isinstance(s, (tuple, list))}  # as in MXNet, other options have no effect
    if unknown := shapes.keys() - set(names):
        raise TypeError(f"simple_bind() got shapes of {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    shapes, missing = _all_shapes(program, shapes)
    if missing:
        raise ValueError(f"simple_bind() needs shapes of {', '.join(missing)}")
    states, found = program.states(), _types.Inference(heads, types or {})
    types, usual = {n: found.variable(n) for n in names}, next(iter((types or {}).values()), None)
    arrays = {n: _zeros(shapes[n], ctx, types[n] or usual, _stypes_of_variables.get(n)) for n in names}
    sparse = _sparse_gradients(heads)
    grads = {n: _zeros(shapes[n], ctx, types[n] or usual, sparse.get(n)) for n in names if n not in states} if grad_req != "null" else None
    return Executor(heads, ctx, arrays, grads, grad_req, states)


def _by_name(values, names, what):
    """Values given as a dictionary or in the order of the names."""
    if values is None:
        return {}
    if isinstance(values, dict):
        if unknown := values.keys() - set(names):
            raise ValueError(f"bind: {what} has {', '.join(sorted(unknown))}; the variables are {', '.join(names)}")
        return dict(values)
    values = list(values)
    if len(values) != len(names):
        raise ValueError(f"bind: {what} has {len(values)} entries for {len(names)} variables: {', '.join(names)}")
    return {n: v for n, v in zip(names, values) if v is not None}


def _bound(heads, ctx, args, args_grad=None, grad_req="write", aux_states=None):
    """An executor of these symbols."""
    from ._executor import Executor

    program = _Program(heads)
    names, states = program.inputs(), program.states()
    plain = [n for n in names if n not in states]
    if isinstance(args, dict):
        if missing := [n for n in plain if n not in args]:
            raise ValueError(f"bind: args lacks {', '.join(missing)}")
        args = {n: args[n] for n in plain}  # as in MXNet, others are not looked at
    arrays = {**_by_name(args, plain, "args"), **_by_name(aux_states, states, "aux_states")}
    if isinstance(args_grad, dict):
        args_grad = {n: g for n, g in args_grad.items() if n in plain}
    return Executor(heads, ctx, arrays, _by_name(args_grad, plain, "args_grad"), grad_req, states)


def _composed(heads, args, variables, name):
    """Symbols of the same calls with others in the place of variables."""
    names = _Program(heads).inputs()
    if args and variables:
        raise TypeError("compose only accept input Symbols either as positional or keyword arguments, not both")
    for each in [*args, *variables.values()]:
        if not isinstance(each, Symbol):
            raise TypeError(f"Compose expect `Symbol` as arguments, not {type(each).__name__}")
    values = {**dict(zip(names, args)), **{n: s for n, s in variables.items() if n in names}}
    found = _later.replaced(heads, values)
    for head in found:
        if name and (made := _later.call_of(head)):
            made[0].name = name
    return found


class Group(list):
    """Several symbols."""

    def __init__(self, symbols):
        super().__init__(each for s in symbols for each in (s if isinstance(s, (list, tuple)) else [s]))
        if wrong_ := [s for s in self if not isinstance(s, Symbol)]:
            raise TypeError(f"Group: {type(wrong_[0]).__name__} is no symbol")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_here(f"Group.{name}", "the symbols in the group")

    def __getitem__(self, which):
        """A symbol by its number or the name of its result."""
        if not isinstance(which, str):
            return super().__getitem__(which)
        found = [s for s in self if which in s.list_outputs()]
        if len(found) != 1:
            raise ValueError(f"There are {len(found)} outputs named {which!r}; these are {', '.join(self.list_outputs())}")
        return found[0]

    def __call__(self, *args, name=None, **variables):
        """The programs with symbols in the place of their variables, by their order or names."""
        return Group(_composed(list(self), args, variables, name))

    def list_outputs(self):
        """The names of the results."""
        return [name for s in self for name in s.list_outputs()]

    def get_children(self):
        """The symbols that these are computed from; None if all are variables."""
        return _children(self)

    def get_internals(self):
        """All symbols behind these, in the order in which they are computed."""
        return Group(_later.behind(self))

    def list_inputs(self):
        """The names of variables, parameters and running statistics."""
        return _Program(list(self)).inputs()

    def tojson(self, remove_amp_cast=True):
        """The programs in MXNet's JSON format."""
        return _json.text_of(list(self))

    def save(self, fname, remove_amp_cast=True):
        """Writes the programs to a file in MXNet's format."""
        _whole_files.write(fname, self.tojson().encode())

    def __reduce__(self):
        """How copy and pickle make a group again."""
        return Group, (list(self),)

    def list_arguments(self):
        """The names of variables and parameters."""
        return list(dict.fromkeys(name for s in self for name in s.list_arguments()))

    def list_auxiliary_states(self):
        """The names of running statistics."""
        return list(dict.fromkeys(name for s in self for name in s.list_auxiliary_states()))

    def infer_shape(self, *args, **shapes):
        """As of a symbol, for all results."""
        return _infer_shape(list(self), args, shapes)

    def infer_shape_partial(self, *args, **shapes):
        """As of a symbol, for all results."""
        return _infer_shape(list(self), args, shapes, partial=True)

    def infer_type(self, *args, **types):
        """(of the arguments, of the results, of running statistics), for the data types of the variables."""
        return _infer_type(list(self), args, types)

    def infer_type_partial(self, *args, **types):
        """The same as far as the types are known, else None."""
        return _infer_type(list(self), args, types, partial=True)

    def eval(self, ctx=None, **arrays):
        """The results for given values of the variables."""
        return _Program(list(self)).run(known(ctx), arrays)

    def bind(self, ctx=None, args=None, args_grad=None, grad_req="write", aux_states=None, group2ctx=None, shared_exec=None):
        """The programs with values for their variables."""
        return _bound(list(self), known(ctx), args, args_grad, grad_req, aux_states)

    def simple_bind(self, ctx=None, grad_req="write", type_dict=None, **shapes):
        """The programs with zeros for their variables."""
        return _simple_bind(list(self), ctx, grad_req, type_dict, shapes)


_later.group, _later.infer, _later.engine_names = Group, _shapes.Inference, _Engine.names
_loops.engine, _loops.symbol_class = _Engine, Symbol


def _variable_again(name, shape, attributes):
    from . import sym

    return _attributes.keep(sym.var(name, shape), attributes)


def load(fname):
    """The program in a file of MXNet, as a symbol."""
    text = _whole_files.read("sym.load", fname)
    try:
        program = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"sym.load: {fname} is not JSON: {error}") from None
    try:
        heads = _json.symbols_of(program)
    except NotImplementedError:  # an operator that only the engine has
        heads = [_of_engine(fname, program)]
    return heads[0] if len(heads) == 1 else Group(heads)


def _of_engine(fname, program):
    names = [n["name"] for n in program.get("nodes", ()) if n.get("op") == "null"]
    variables = []
    for name in names:
        variables.append(_engine.var(name))
        variables[-1].__class__ = Symbol
    return classify(_blocks.load(fname, names)(*variables))


def load_json(json_str):
    """The program in MXNet's JSON text, as a symbol."""
    with tempfile.NamedTemporaryFile("w", suffix="-symbol.json") as file:
        file.write(json_str)
        file.flush()
        return load(file.name)


# Methods whose calls are kept: those that compute something.
_OPERATORS = """add radd sub rsub mul rmul truediv rtruediv pow rpow mod rmod neg abs eq ne lt le gt ge getitem matmul rmatmul""".split()
_OTHER = frozenset("""asnumpy asscalar as_in_context as_in_ctx as_nd_ndarray as_np_ndarray attach_grad backward copyto device_type item numpy
                   tostype wait wait_to_read wait_to_write zero_grad to tolist eval""".split())  # fmt: skip
for _name in [f"__{n}__" for n in _OPERATORS] + [n for n in dir(NDArray) if not n.startswith("_")]:
    if callable(getattr(NDArray, _name)) and _name not in vars(Symbol) and _name not in _OTHER:
        setattr(Symbol, _name, _later.method(Symbol, _name))


fromjson = load_json
NDArray._array, NDArray._symbol = NDArray, Symbol
