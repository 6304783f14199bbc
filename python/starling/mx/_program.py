"""Symbol: an array without values, in programs; their files, and running them."""
import json
import os
import tempfile

from .. import _blocks, _engine, _whole_files
from .._core import NULL, Owner, ffi, here, lib, options, owned, raise_error, shape_of, wrong
from .._tensor import Tensor, wrap
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

    def run(self, ctx, arrays):
        """The values of the heads for given values of the variables."""
        given = []
        for name in self.inputs():
            if name not in arrays:
                raise ValueError(f"the argument {name!r} has no value")
            if not isinstance(arrays[name], Tensor):
                raise wrong(name, arrays[name], "an array")
            given.append(arrays[name])
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


class Symbol(NDArray):
    """A symbol: made by sym.var, and passed to blocks while they are traced."""

    __slots__ = ()

    @property
    def name(self):
        """The name of the operation that computes it."""
        return ffi.string(lib.sl_symbol_name(self._p)).decode()

    def as_np_ndarray(self):
        """The same symbol for mx.np."""
        from .np import _Symbol

        self.__class__ = _Symbol
        return self

    def as_nd_ndarray(self):
        """The same symbol for mx.nd."""
        self.__class__ = Symbol
        return self

    def tojson(self, remove_amp_cast=True):
        """The program in MXNet's JSON format."""
        with tempfile.TemporaryDirectory() as folder:
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
        """The names of variables and parameters, in the order in which they are needed."""
        try:
            return [n["name"] for n in json.loads(self.tojson())["nodes"] if n["op"] == "null"]
        except (RuntimeError, NotImplementedError):  # an operation that MXNet lacks
            return _Graph([self]).inputs()

    list_inputs = list_arguments

    def list_outputs(self):
        """The name of the result."""
        return [self.name if self.name in _Graph([self]).inputs() else f"{self.name}_output"]

    def list_auxiliary_states(self):
        """The names of running statistics."""
        return [n for n in self.list_arguments() if "running_" in n]

    def infer_shape(self, **shapes):
        """(of the arguments, of the results, of running statistics), for the shapes of the variables."""
        names = _Graph([self]).inputs()
        zeros = {n: _zeros(shapes[n]) for n in names if n in shapes}
        if len(zeros) < len(names):
            raise not_here("infer_shape with unknown shapes of variables", "a shape for each of " + ", ".join(names))
        result = _Graph([self]).run(known(None), zeros)[0]
        return [shapes.get(n) for n in self.list_arguments()], [result.shape], []

    def eval(self, ctx=None, **arrays):
        """The value for given values of the variables: a list with one array."""
        return _Graph([self]).run(known(ctx), arrays)

    def bind(self, ctx=None, args=None, args_grad=None, grad_req="write", aux_states=None, group2ctx=None, shared_exec=None):
        """The program with values for its variables; forward() runs it."""
        if group2ctx or aux_states:
            raise not_here("Symbol.bind(group2ctx=…) or aux_states", "one context, and all values in args")
        if args_grad:
            raise not_here("Symbol.bind(args_grad=…)", "a HybridBlock under autograd.record")
        names = _Graph([self]).inputs()
        return Executor([self], known(ctx), dict(args) if isinstance(args, dict) else dict(zip(names, args or ())))

    def simple_bind(self, ctx=None, grad_req="null", type_dict=None, **shapes):
        """bind with zeros of these shapes."""
        if type_dict or grad_req != "null":
            raise not_here("Symbol.simple_bind(type_dict=…) or grad_req", "float32, and a HybridBlock under autograd.record")
        if unknown := shapes.keys() - set(self.list_arguments()):
            raise TypeError(f"simple_bind() got shapes of {', '.join(sorted(unknown))}; there are {', '.join(self.list_arguments())}")
        return self.bind(ctx, {n: _zeros(shape) for n, shape in shapes.items()})

    def attr(self, key):
        """The name; symbols have no other attributes."""
        return self.name if key == "name" else None

    def wait_to_read(self):
        """Symbols have no values."""
        raise not_here("Symbol.wait_to_read", "Symbol.eval")


def _zeros(shape):
    from . import nd

    return nd.zeros(shape)


class Executor:
    """A program whose variables have values."""

    def __init__(self, heads, ctx, arrays):
        self._graph, self._ctx, self.arg_dict, self.outputs = _Graph(heads), ctx, arrays, []

    @property
    def arg_arrays(self):
        """The values of the variables."""
        return list(self.arg_dict.values())

    def forward(self, is_train=False, **arrays):
        """Runs the program; returns the results."""
        if is_train:
            raise not_here("Executor.forward(is_train=True)", "a HybridBlock under autograd.record")
        self.arg_dict.update(arrays)
        self.outputs = self._graph.run(self._ctx, self.arg_dict)
        return self.outputs

    def backward(self, *_):
        """Programs of symbols have no backward pass."""
        raise not_here("Executor.backward", "a HybridBlock under autograd.record")


class Group(list):
    """Several symbols."""

    def list_outputs(self):
        """The names of the results."""
        return [name for s in self for name in s.list_outputs()]

    def list_arguments(self):
        """The names of variables and parameters."""
        return list(dict.fromkeys(name for s in self for name in s.list_arguments()))

    def eval(self, ctx=None, **arrays):
        """The results for given values of the variables."""
        return _Graph(list(self)).run(known(ctx), arrays)

    def bind(self, ctx=None, args=None):
        """The programs with values for their variables."""
        return Executor(list(self), known(ctx), dict(args or {}))


def load(fname):
    """The program in a file of MXNet, as a symbol."""
    try:
        program = json.loads(_whole_files.read("sym.load", fname))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"sym.load: {fname} is not JSON: {error}") from None
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


fromjson = load_json
NDArray._array, NDArray._symbol = NDArray, Symbol
