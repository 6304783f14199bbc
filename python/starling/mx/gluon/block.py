"""Gluon's Block and HybridBlock."""
import contextlib

from ... import _blocks, _core
from ..._core import NULL, ffi, lib
from .. import init as _init
from .. import nd, sym
from ..context import Context, current_context
from ..ndarray import NDArray
from ..symbol import Symbol, classify
from .parameter import Parameter, ParameterDict


def _contexts(ctx):
    ctx = ctx or [current_context()]
    return list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]


class Block(_blocks.Block):
    """The base of networks and layers; one of your own has a forward(self, x)."""

    _kind = NDArray

    def __init__(self, prefix=None, params=None):
        super().__init__()
        self._prepare()

    def _prepare(self):
        object.__setattr__(self, "_contexts", [])
        object.__setattr__(self, "_own_parameters", {})

    def _own(self, p):
        super()._own(p)
        self._prepare()

    def add_child(self, name, child):
        super().add_child(name, child)
        return child

    def register_child(self, block, name=None):
        """Makes another block part of this one."""
        self.add_child(name or str(len(self._children)), block)

    @property
    def prefix(self):
        """What its parameters' names begin with."""
        return self.name + "_"

    @contextlib.contextmanager
    def name_scope(self):
        """Nothing: names are unique without."""
        yield self

    @property
    def params(self):
        """The parameters of this block itself; params.get makes one."""
        return ParameterDict(self, inside=False)

    def params_(self):
        """All parameters as the engine has them."""
        return _blocks.Block.params(self)

    def collect_params(self, select=None):
        """All parameters, those of blocks inside, too."""
        everything = ParameterDict(self)
        return everything.matching(select) if select else everything

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False):
        """Gives the parameters their first values, on one context or several."""
        contexts = _contexts(ctx)
        devices = list(dict.fromkeys(c.device for c in contexts))
        _blocks.Block.initialize(self, _init.named(init), devices=devices, force=force_reinit)
        self._set_contexts(contexts)

    def _set_contexts(self, contexts):
        object.__setattr__(self, "_contexts", contexts)
        for child in self._children.values():
            child._set_contexts(contexts)

    def forward(self, *args):
        """Computes the result; blocks of one's own define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args):
        return classify(super().__call__(*args))

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **_):
        """Compiles the hybrid blocks inside."""
        for child in self._children.values():
            child.hybridize(active, static_alloc=static_alloc, static_shape=static_shape)

    def save_parameters(self, filename, deduplicate=False):
        """Writes the parameters to a file."""
        self.save_params(filename)

    def load_parameters(self, filename, ctx=None, allow_missing=False, ignore_extra=False, **_):
        """Reads parameters from a file, and puts them on contexts."""
        if not self._contexts:
            self.initialize(ctx=ctx)
        self.load_params(filename, lenient=allow_missing or ignore_extra)

    def summary(self, *inputs):
        """Prints the layers."""
        print(_blocks.Block.summary(self, inputs[0].shape))

    def __repr__(self):
        inside = "".join(f"  ({n}): {repr(c)}\n".replace("\n", "\n  ").rstrip(" ") for n, c in self._children.items())
        return f"{type(self).__name__}(\n{inside})" if inside else f"{type(self).__name__}()"


class HybridBlock(Block):
    """A block that can be compiled; one of your own has a hybrid_forward(self, F, x), in which F is mx.nd or mx.sym."""

    def hybrid_forward(self, F, *args, **params):
        """Computes the result; blocks of one's own define it."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")

    def forward(self, *args):
        F = sym if any(a.is_symbol for a in args) else nd
        params = {name: classify(p._inner.on(args[0])) for name, p in self._own_parameters.items()}
        return self.hybrid_forward(F, *(classify(a) for a in args), **params)

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **_):
        """Runs the block as a compiled program from now on."""
        _blocks.Block.hybridize(self, active, static_alloc=static_alloc, static_shape=static_shape)

    def export(self, path, epoch=0, remove_amp_cast=True):
        """Writes PATH-symbol.json and PATH-0000.params; the block must have run once after hybridize()."""
        _blocks.Block.export(self, path, epoch=epoch)
        return f"{path}-symbol.json", f"{path}-{epoch:04d}.params"

    def infer_shape(self, *args):
        """Nothing: shapes are known after the first input."""


class SymbolBlock(HybridBlock):
    """A network from files."""

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None):
        """The network in PREFIX-symbol.json and PREFIX-0000.params."""
        inner = _blocks.load(symbol_file, input_names, param_file)
        block = SymbolBlock.__new__(SymbolBlock)
        block._own(lib.sl_block_retain(inner._p))
        block._set_contexts(_contexts(ctx))
        return block
