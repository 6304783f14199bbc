"""Gluon's Block and HybridBlock."""
import contextlib

from ... import _blocks, _core
from ..._core import NULL, ffi, lib
from .. import init as _init
from .. import nd, sym
from ..context import current_context, known
from .._mode import array_class
from ..symbol import classify
from .parameter import ParameterDict


def _contexts(ctx):
    ctx = ctx or [current_context()]
    return [known(c) for c in (ctx if isinstance(ctx, (list, tuple)) else [ctx])]


def indented(block):
    """A block inside another one as that prints it."""
    return repr(block).replace("\n", "\n  ")


class Block(_blocks.Block):
    """The base of networks and layers; one of your own has a forward(self, x)."""

    _kind = property(lambda self: array_class())
    _in_python = True  # whether forward is Python's, not a layer of the engine's

    def __init__(self, prefix=None, params=None):
        super().__init__()
        self._prepare()

    def _prepare(self):
        object.__setattr__(self, "_contexts", [])
        object.__setattr__(self, "_own_parameters", {})
        object.__setattr__(self, "_compiled", False)  # True after hybridize(), "ran" after a call since

    def _own(self, p):
        super()._own(p)
        self._prepare()

    def __getattr__(self, name):
        # A layer's parameters are attributes: net[0].weight.
        if not name.startswith("_") and "_p" in self.__dict__:
            found = self.params.find(name)
            if found:
                return found
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

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
        return ParameterDict(self, select=select)

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False):
        """Gives the parameters their first values, on one context or several."""
        contexts = _contexts(ctx)
        devices = list(dict.fromkeys(c.device for c in contexts))
        gather = len(contexts) if len(contexts) > 1 else 0  # each context has a backward pass of its own
        _blocks.Block.initialize(self, _init.named(init), devices=devices, force=force_reinit, gather=gather)
        self._set_contexts(contexts)

    def _set_contexts(self, contexts):
        object.__setattr__(self, "_contexts", contexts)
        for child in self._children.values():
            child._set_contexts(contexts)

    def forward(self, *args):
        """Computes the result; blocks of one's own define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        # Python's own forward may take and give what is no array, unless it is compiled.
        if self._in_python and not self._compiled and not any(getattr(a, "is_symbol", False) for a in args):
            return self.forward(*args, **kwargs)
        y = classify(super().__call__(*args, **kwargs))
        if self._compiled:
            object.__setattr__(self, "_compiled", "ran")
        return y

    def apply(self, fn):
        """Calls fn with every block inside, and this one."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

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
        inside = "\n".join(f"  ({n}): {indented(c)}" for n, c in self._children.items())
        return f"{type(self).__name__}(\n{inside}\n)"


class HybridBlock(Block):
    """A block that can be compiled; one of your own has a hybrid_forward(self, F, x), in which F is mx.nd or mx.sym."""

    def hybrid_forward(self, F, *args, **params):
        """Computes the result; blocks of one's own define it."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")

    def forward(self, *args):
        F = sym if any(getattr(a, "is_symbol", False) for a in args) else nd
        params = {name: classify(p._inner.on(args[0])) for name, p in self._own_parameters.items()}
        if not all(hasattr(a, "_p") for a in args):
            return self.hybrid_forward(F, *args, **params)
        return self.hybrid_forward(F, *(classify(a) for a in args), **params)

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **_):
        """Runs the block as a compiled program from now on."""
        self._mark_compiled(active)
        _blocks.Block.hybridize(self, active, static_alloc=static_alloc, static_shape=static_shape)

    def add_child(self, name, child):
        if not isinstance(child, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {child!r} has type {type(child)}. "
                "If you are using Sequential, please try HybridSequential instead."
            )
        return super().add_child(name, child)

    def _mark_compiled(self, active):
        object.__setattr__(self, "_compiled", bool(active))
        for child in self._children.values():
            child._mark_compiled(active)

    def export(self, path, epoch=0, remove_amp_cast=True):
        """Writes PATH-symbol.json and PATH-0000.params; the block must have run once after hybridize()."""
        if self._compiled != "ran":
            raise RuntimeError(
                "Please first call block.hybridize() and then run forward with this block at least once before calling export."
            )
        _blocks.Block.export(self, path, epoch=epoch)
        return f"{path}-symbol.json", f"{path}-{epoch:04d}.params"

    def infer_shape(self, *args):
        """Nothing: shapes are known after the first input."""


class SymbolBlock(HybridBlock):
    """A network from files."""

    _in_python = False

    @staticmethod
    def imports(symbol_file, input_names, param_file=None, ctx=None):
        """The network in PREFIX-symbol.json and PREFIX-0000.params."""
        inner = _blocks.load(symbol_file, input_names, param_file)
        block = SymbolBlock.__new__(SymbolBlock)
        block._own(lib.sl_block_retain(inner._p))
        block._set_contexts(_contexts(ctx))
        return block
