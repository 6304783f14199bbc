"""SymbolBlock: a network from files, or of symbols, whose variables are its inputs and parameters."""
from ... import _blocks
from ..._core import lib
from .. import _attributes, _shapes
from .._program import _Engine, _Program
from ..unsupported import not_here
from .block import HybridBlock, _contexts, fit, tensors_in


def _many(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class SymbolBlock(HybridBlock):
    """A network from files, or of symbols.  params: parameters of other blocks, by the variables' names."""

    _in_python = False

    def __init__(self, outputs, inputs, params=None):
        super().__init__(prefix="")
        object.__setattr__(self, "_in_python", True)
        program = _Program(_many(outputs))
        self._heads, self._inputs_given = program.heads(), [symbol.name for symbol in _many(inputs)]
        if unknown := [n for n in self._inputs_given if n not in program.inputs()]:
            raise ValueError(f"SymbolBlock: the input {unknown[0]} is no variable of the program; these are {', '.join(program.inputs())}")
        self._shared = {n: p for n, p in dict(params or {}).items() if n in program.inputs()}
        inside = {n for head in self._heads for n in head.list_inputs()}  # also parameters of blocks that made the symbols
        self._lent = {n: p for n, p in dict(params or {}).items() if n in inside}
        self._one = not isinstance(outputs, (list, tuple))
        states = program.states()
        found = _shapes.Inference(self._heads, _Engine, {n: p.shape for n, p in self._shared.items() if p.shape})
        for name in program.inputs():
            if name not in self._inputs_given and name not in self._shared:
                self._make(name, found.variable(name), name in states)
        object.__setattr__(self, "_inputs_named", len(self._inputs_given))

    def _make(self, name, shape, state):
        """Makes a parameter, whose lengths may be unknown."""
        if shape is None:
            shape = _shapes.axes_of(self._heads, name)
        if shape is None:
            raise not_here(f"SymbolBlock with the parameter {name}, whose number of axes does not follow from the program", "sym.var(name, shape=…)")
        init = _attributes.initialisers.get(name)
        usual = ("ones" if name.endswith("var") else "zeros") if state else None  # others begin as initialize() says, whatever their names
        setattr(self, name, self.params.get(name, [max(d, 0) for d in shape], init=init or usual, grad_req="null" if state else "write"))

    def forward(self, *args):
        """Infers unknown shapes from those of the inputs, and runs the program."""
        waiting = [p for p in self._own_parameters.values() if 0 in p.shape]
        given = list(tensors_in(args))
        if waiting and all(x.shape is not None for x in given):
            found = _shapes.Inference(self._heads, _Engine, dict(zip(self._inputs_given, (x.shape for x in given))))
            for name, p in self._own_parameters.items():
                if p in waiting:
                    fit(p, found.variable(name))
        return super().forward(*args)

    def hybrid_forward(self, F, *inputs, **params):
        """The results of the program."""
        first = next(tensors_in(inputs))
        shared = {n: p.used_for(first) for n, p in self._shared.items()}
        found = _Program(self._heads).call({**dict(zip(self._inputs_given, tensors_in(inputs))), **shared, **params})
        return found[0] if self._one else found

    def collect_params(self, select=None):
        """The parameters, and those of other blocks that it uses."""
        found = super().collect_params(select)
        return found.with_others(self._lent) if self.__dict__.get("_lent") else found

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None):
        """The network in PREFIX-symbol.json and PREFIX-0000.params."""
        inner = _blocks.load(symbol_file, input_names, param_file)
        block = SymbolBlock.__new__(SymbolBlock)
        block._own(lib.sl_block_retain(inner._p))
        block._set_contexts(_contexts(ctx))
        object.__setattr__(block, "_inputs_named", 1 if isinstance(input_names, str) else len(input_names))
        return block

    def __repr__(self):
        return f"SymbolBlock(\n<Symbol {self.name}> : {self._inputs_named} -> 1\n)"
