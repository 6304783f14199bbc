"""Gluon's Block and HybridBlock."""
import os
import re
import threading
import warnings
import weakref

import numpy

from ... import _blocks, _core, _nested
from ..._core import InvalidArgument, check, ffi, here, lib, shape_of, text_of
from ..._tensor import Tensor, wrap
from .. import _later, autograd, init as _init, nd, sym
from ..context import current_context, known
from .._array import NDArray
from .._mode import array_class, is_np_array
from .._insides import inside
from ..unsupported import NotHere, missing, not_here
from .._program import classify
from . import files
from .parameter import Parameter, ParameterDict


def _contexts(ctx):
    ctx = ctx or [current_context()]
    return [known(c) for c in (ctx if isinstance(ctx, (list, tuple)) else [ctx])]


def indented(block):
    """The text of an inner block."""
    return repr(block).replace("\n", "\n  ")


def tensors_in(value):
    """The tensors among values that may be nested."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_in(v)


def _classified(value):
    if isinstance(value, Tensor):
        return classify(value)
    return type(value)(map(_classified, value)) if isinstance(value, (list, tuple)) else value


def _lists(value):
    """The results of a compiled block: lists instead of tuples, as in MXNet."""
    return [_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def _only_hints(options):
    """Options of hybridize about how MXNet's engine runs a program, which do not change values; others are errors."""
    for name, value in options.items():
        if name in ("backend", "backend_opts") and value:
            raise not_here(f"hybridize({name}=…)", "the engine's own compiler")
        if name not in ("backend", "backend_opts", "clear", "inline_limit", "forward_bulk_size", "backward_bulk_size"):
            raise TypeError(f"hybridize() got an unexpected keyword argument {name!r}")


def _has_blocks(value, known):
    """Whether there is a block among nested values that is not among the known ones."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_blocks(v, known) for v in value)
    return isinstance(value, Block) and not any(value is block for block in known)


def _blocks_in(block):
    """A block and all blocks inside."""
    yield block
    for child in block._children.values():
        if isinstance(child, Block):
            yield from _blocks_in(child)


def _of_no_values(error, args):
    """Refuses symbols as arguments of a block whose parameters have no values yet."""
    if "is not initialised" in str(error) and any(t.is_symbol for t in tensors_in(args)):
        raise not_here("a block called with symbols before initialize()", "initialize() first") from error


def _as_stored(cast_dtype, dtype_source):
    if cast_dtype or dtype_source != "current":
        raise not_here("loading with cast_dtype or dtype_source", "parameters of the file's data type")


def _has_old_names(filename):
    """Whether a file is of the older form: its names are those of collect_params(), perhaps without the prefix."""
    try:
        names = nd.load(os.fspath(filename))
    except (_core.Error, OSError):
        return False
    return isinstance(names, dict) and bool(names) and not any("." in name for name in names)


class _NoCopy(NotHere, TypeError):
    """Blocks cannot be copied."""


class _Hook:
    """A registered hook: detach() removes it."""

    def __init__(self, hooks, hook):
        self._hooks, self._hook = hooks, hook
        hooks.append(hook)

    def detach(self):
        """Removes the hook."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.detach()


def _form_of(args):
    """The number of arguments if all are arrays; else their structure, without None at the end."""
    form = ["" if isinstance(a, Tensor) else _form_of(a) if isinstance(a, (list, tuple)) else str(type(a).__name__) for a in args]
    while form and form[-1] == "NoneType":
        form.pop()
    return len(form) if not any(form) else tuple(form)


class _Children(dict):
    """The inner blocks by name; adding one makes it a child of the block."""

    def __init__(self, block):
        super().__init__()
        self._block = weakref.ref(block)

    def __setitem__(self, name, child):
        if name in self:
            self._block()._replace_child(name, child)
        else:
            self._block().add_child(name, child)


class _Scope:
    """Blocks made in the scope get its block's prefix before their own, and a separate count."""

    _of_thread, _everywhere = threading.local(), {}

    def __init__(self, block):
        self._block, self._counts, self._before = weakref.ref(block), {}, []

    @classmethod
    def prefix_for(cls, prefix, hint):
        """The whole prefix of a new block."""
        scope = getattr(cls._of_thread, "current", None)
        if prefix is None:
            counts = cls._everywhere if scope is None else scope._counts
            number = counts[hint] = counts.get(hint, -1) + 1
            prefix = f"{hint}{number}_"
        return prefix if scope is None else scope._block().prefix + prefix

    @classmethod
    def shared_for(cls, prefix):
        """(the block, the prefix there) whose parameters a new block with that whole prefix shares, because the block around it
        was made with params; None if it was not."""
        scope = getattr(cls._of_thread, "current", None)
        around = scope and scope._block()._shared
        return around and (around[0], around[1] + prefix[len(scope._block().prefix) :])

    def __enter__(self):
        self._before.append(getattr(self._of_thread, "current", None))
        if not self._block()._empty_prefix:
            self._of_thread.current = self
        return self

    def __exit__(self, *exception):
        self._of_thread.current = self._before.pop()


# Methods of MXNet's blocks that are missing, and their replacements.
_MISSING = {"load": "load_parameters", "save": "save_parameters", "register_op_hook": "register_forward_hook", "infer_type": "float32",
            "_unfuse": "cells of its own", "_cached_graph": "export", "_build_cache": "hybridize", "optimize_for": "hybridize", "reset_ctx": "collect_params().reset_ctx"}  # fmt: skip
_NEED_VALUES = ("has no values: they exist only when", "which cannot be compiled")  # errors of programs that depend on values
_HINTS = {"conv1d": "conv", "conv2d": "conv", "conv2dtranspose": "conv", "lstmcell": "lstm", "grucell": "gru", "rnncell": "rnn"}


class Block(_blocks.Block):
    """The base of networks and layers; a custom block has a forward(self, x)."""

    _arrays_are = property(lambda self: array_class())
    _in_python = True  # whether forward is Python's, not that of a layer in the engine

    def __init__(self, prefix=None, params=None):
        super().__init__()
        self._prepare(params)
        self._take_names(prefix)

    def _hint(self):
        """The beginning of its name."""
        hint = type(self).__name__.lower()
        return "pool" if re.search(r"pool\dd$", hint) else _HINTS.get(hint, hint)

    def _take_names(self, prefix):
        """Sets the block's names, from its prefix and the scope that it is made in."""
        object.__setattr__(self, "_empty_prefix", prefix == "")  # its scope is that around it
        prefix = _Scope.prefix_for(prefix, self._hint())
        check(lib.sl_block_set_prefix_at(here(), self._p, text_of(prefix, "prefix")))
        object.__setattr__(self, "_prefix", prefix)
        if not self._shared:
            object.__setattr__(self, "_shared", _Scope.shared_for(prefix))

    def _prepare(self, params=None):
        object.__setattr__(self, "_children", _Children(self))
        for name, value in (("_contexts", []), ("_own_parameters", {}), ("_before", []), ("_after", []), ("_prefix", None),
                            ("_compiled", False), ("_late", False), ("_kept", {}), ("_cast_to", None), ("_init_given", None),
                            ("_empty_prefix", False), ("_result_class", None), ("_form", None)):  # fmt: skip
            object.__setattr__(self, name, value)  # _compiled: True after hybridize(), "ran" after a call since
        if params is not None and not isinstance(params, ParameterDict):
            raise _core.wrong("params", params, "the params of another block")
        if params is not None and params._block is None:
            raise not_here(f"{type(self).__name__}(params=…) of a ParameterDict without a block", "the params of another block")
        object.__setattr__(self, "_shared", None if params is None else (params._block, params.prefix))

    def _counterpart(self):
        """The block, at the same place of the block whose params that around this one shares, that this one shares; or None."""
        shared = _Scope.shared_for(self.prefix)
        found = shared and next((b for b in _blocks_in(shared[0]) if b.prefix == shared[1]), None)
        if found and type(found) is not type(self):
            raise not_here(f"{type(self).__name__} with the parameters of {type(found).__name__}", "layers of the same kind in the same order")
        return found

    def _own(self, p):
        super()._own(p)
        self._prepare()

    def __setattr__(self, name, value):
        before = self.__dict__.get(name)
        if isinstance(before, (Parameter, _blocks.Block)) and not isinstance(value, type(before)):
            raise TypeError(f"Changing attribute type for {name} from {type(before)} to {type(value)} is not allowed.")
        if isinstance(value, Parameter):
            self._own_parameters[name] = value
            if value._standalone:
                _blocks.Block.add_child(self, f"{name}_", value._block)
        if isinstance(value, _blocks.Block) and name in self._children:
            self._replace_child(name, value)
            object.__setattr__(self, name, value)
            return
        super().__setattr__(name, value)

    def _replace_child(self, name, child):
        """Replaces a child block."""
        if self._children[name] is child:
            return
        if not lib.sl_block_replace_at(here(), self._p, name.encode(), lib.sl_block_retain(child._p)):
            _core.raise_error()
        dict.__setitem__(self._children, name, child)

    def __getattr__(self, name):
        # A layer's parameters are attributes: net[0].weight.
        if not name.startswith("_") and "_p" in self.__dict__:
            found = self.params.find(name)
            if found:
                return found
            if name in _MISSING:
                raise not_here(f"{type(self).__name__}.{name}", _MISSING[name])
        if name.startswith("_") and not name.startswith("__"):
            raise inside("Block", name, "the block's public functions")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def register_child(self, block, name=None):
        """Adds a child block."""
        self.add_child(name or str(len(self._children)), block)

    def register_forward_hook(self, hook):
        """hook(block, inputs, result) is called after each forward that is not compiled."""
        return _Hook(self._after, hook)

    def register_forward_pre_hook(self, hook):
        """hook(block, inputs) is called before each forward that is not compiled."""
        return _Hook(self._before, hook)

    @property
    def prefix(self):
        """The prefix of its parameters' names."""
        return self.name + "_" if self._prefix is None else self._prefix

    def name_scope(self):
        """Blocks made in the scope get this block's prefix before their own."""
        if "_scope" not in self.__dict__:
            object.__setattr__(self, "_scope", _Scope(self))
        return self._scope

    @property
    def params(self):
        """The block's own parameters; params.get makes one."""
        return ParameterDict(self, inside=False)

    def params_(self):
        """All parameters as the engine has them."""
        return _blocks.Block.params(self)

    def collect_params(self, select=None):
        """All parameters, including those of blocks inside."""
        children = self._children.values()
        for name, value in self.__dict__.items():
            if not name.startswith("_") and isinstance(value, (list, tuple, dict)) and _has_blocks(value, children):
                warnings.warn(f'"{type(self).__name__}.{name}" is an unregistered container with Blocks. Note that Blocks inside the list, '
                              "tuple or dict will not be registered automatically. Make sure to register them using register_child() or "
                              "switching to nn.Sequential/nn.HybridSequential instead.", stacklevel=2)  # fmt: skip
        return ParameterDict(self, select=select).with_others(self._borrowed())

    def _borrowed(self):
        """Parameters of other blocks that params= has given to this one or blocks inside, by name."""
        found = (p for b in _blocks_in(self) for p in b._own_parameters.values() if not p._standalone and p._block is not b)
        return {p.name: p for p in found}

    def _refuse_borrowed(self, method):
        for name in self._borrowed():
            raise not_here(f"{type(self).__name__}.{method} with {name}, which params= has given to it,", f"{method} of the block that has the parameter")

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False):
        """Gives the parameters their first values, on one context or several."""
        contexts = _contexts(ctx)
        devices = list(dict.fromkeys(c.device for c in contexts))
        gather = len(contexts) if len(contexts) > 1 else 0  # each context has a separate backward pass
        engines, own = _init.split(init)
        _blocks.Block.initialize(self, engines, devices=devices, dtype=self._cast_to, force=force_reinit, gather=gather)
        object.__setattr__(self, "_init_given", engines)
        self._set_contexts(contexts)
        parameters = ParameterDict(self).values()
        for p in parameters:
            p._begin(own)
        for p in self._borrowed().values():
            if not p._block._contexts:
                p._block.initialize(init, ctx)
        object.__setattr__(self, "_late", any(p.waits for p in parameters))

    def _finish(self, args):
        """Runs initialisers in Python once an input has determined the shapes."""
        object.__setattr__(self, "_late", False)
        with autograd.pause():
            self(*args)
        for p in self.collect_params().values():
            p._begin(None)

    def _set_contexts(self, contexts):
        object.__setattr__(self, "_contexts", contexts)
        for child in self._children.values():
            if isinstance(child, Block):
                child._set_contexts(contexts)
        for p in self._own_parameters.values():
            if p._standalone:
                p._block._contexts = contexts

    def forward(self, *args):
        """Computes the result; custom blocks define it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        if self._late:
            self._finish(args)
        for hook in self._before:
            hook(self, args)
        y = self._run(args, kwargs)
        for hook in self._after:
            hook(self, args, y)
        self._check_classes(y)
        return y

    def _check_classes(self, y):
        """Refuses results of which some are arrays of mx.np, and others of mx.nd."""
        if isinstance(y, (list, tuple)) and is_np_array() and len({t._scalars for t in tensors_in(y) if isinstance(t, NDArray)}) > 1:
            raise TypeError(f"{self.name}: results are arrays of mx.np and of mx.nd; convert them with as_np_ndarray or as_nd_ndarray")

    def _run(self, args, kwargs):
        # A forward in Python may take and return other objects than arrays, unless it is compiled.
        if self._in_python:
            given = list(tensors_in(args))
            if any(t.is_symbol for t in given):
                if isinstance(self, HybridBlock) and not all(t.is_symbol for t in given):
                    raise InvalidArgument(f"{self.name}: in HybridBlock, we do not support mixed NDArrays and Symbols types for the input")
                return self._of_symbols(given, args, kwargs)
            if not self._compiled:
                return self.forward(*args, **kwargs)
            form = len(args)
            if any(not isinstance(x, Tensor) for x in args):
                self._check_arrays(args)
                form = _form_of(args)
            if form != self._form:
                self._check_form(form)
        try:
            y = self._as_traced(_blocks.Block.__call__(self, *args, **kwargs))
        except (_core.StateError, _core.Unsupported) as error:
            _of_no_values(error, args)
            if not self._compiled or not self._in_python or not any(text in str(error) for text in _NEED_VALUES):
                raise
            return self._call_by_call(error, args, kwargs)
        if self._compiled:
            object.__setattr__(self, "_compiled", "ran")
            return y if isinstance(y, Tensor) else _lists(y)
        return y

    def _as_traced(self, y):
        """Results as arrays of the class that forward gave when it was traced."""
        if self._result_class is not None:
            for t in [y] if isinstance(y, Tensor) else tensors_in(y):
                t.__class__ = self._result_class  # _classified makes it a symbol's, if it is one
        return _classified(y)

    def _check_arrays(self, args):
        """A compiled block takes arrays, which may be nested."""
        leaves = []
        try:
            _nested.flatten(args, leaves)
        except TypeError as error:
            raise InvalidArgument(f"When hybridized, the input of HybridBlock {self.name} must be (nested) list of Symbol or NDArray: {error}") from None
        if not leaves:
            raise InvalidArgument(f"{self.name}: there must be one NDArray or one Symbol in the input")

    def _check_form(self, form):
        """A compiled block is called with None, and with lists, in the same places each time, as in MXNet."""
        if self._form is not None:
            raise ValueError(f"The argument structure of HybridBlock {self.name} does not match the cached version. Stored format = {self._form}, "
                             f"input format = {form}; hybridize() again for another one")  # fmt: skip
        object.__setattr__(self, "_form", form)

    def _call_by_call(self, error, args, kwargs):
        """Runs a block whose program needs values while it is made, as functions of NumPy do, without compiling it, from now on."""
        warnings.warn(f"{self.name} is not compiled, but runs call by call: {error}", stacklevel=4)
        self.hybridize(False)
        return self.forward(*args, **kwargs)

    def _of_symbols(self, given, args, kwargs):
        """Calls forward with symbols, or with arrays later, where the symbols have no shape and the block no parameters."""
        if all(t.shape is not None for t in given) or self.collect_params():
            return self._traced(given, args, kwargs)

        def call(*args, **kwargs):
            given = list(tensors_in(args))
            return self._traced(given, args, kwargs) if any(t.is_symbol for t in given) else self(*args, **kwargs)

        call.__name__ = type(self).__name__.lower()
        return _later.kept(call)(*args, **kwargs)

    def _traced(self, given, args, kwargs):
        """Calls forward with symbols, through the engine, which names operations after the block; keeps the results."""
        found = []
        self.__dict__["_tracing"] = (found, args, kwargs)
        try:
            wrap(lib.sl_forward_at(here(), self._p, ffi.new("sl_tensor *[]", [t._p for t in given]), len(given)), type(given[0]))
        except _core.StateError as error:
            _of_no_values(error, given)
            raise
        finally:
            self.__dict__.pop("_tracing", None)
        return found[0]

    def _forward_for_c(self, inputs):
        under_way = self.__dict__.pop("_tracing", None)
        if under_way is None:
            return super()._forward_for_c(inputs)
        found, args, kwargs = under_way
        found.append(self.forward(*args, **kwargs))
        return next(tensors_in(found), inputs[0])

    def _note_results(self, y):
        self._check_classes(y)
        first = next(tensors_in(y), None)
        object.__setattr__(self, "_result_class", getattr(type(first), "_array", None))

    def apply(self, fn):
        """Calls fn with every block inside, and this one."""
        for child in self._children.values():
            if isinstance(child, Block):
                child.apply(fn)
        fn(self)
        return self

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **options):
        """Compiles the hybrid blocks inside."""
        _only_hints(options)
        for child in self._children.values():
            if isinstance(child, Block):
                child.hybridize(active, static_alloc=static_alloc, static_shape=static_shape)

    def cast(self, dtype):
        """Converts all parameters to another data type of floats; inputs must have it."""
        name = str(numpy.dtype(dtype)) if str(dtype) != "bfloat16" else "bfloat16"
        if name not in ("float16", "float32", "float64", "bfloat16"):
            raise TypeError(f"cast: {name} is not a data type of parameters; these are float16, float32, float64")
        self._note_cast(name)
        if self._contexts:
            self._convert(name)

    def _note_cast(self, name):
        object.__setattr__(self, "_cast_to", name)
        for child in self._children.values():
            if isinstance(child, Block):
                child._note_cast(name)

    def _convert(self, name):
        """Gives the parameters their values in another data type."""
        found = list(self.collect_params().values())
        values = [p._dense(p._known_ctx()[0]).astype(name) if p._inner.is_initialized else None for p in found]
        devices = list(dict.fromkeys(c.device for c in self._contexts))
        gather = len(self._contexts) if len(self._contexts) > 1 else 0
        _blocks.Block.initialize(self, self._init_given, devices=devices, dtype=name, force=True, gather=gather)
        for p, value in zip(found, values):
            if value is not None:
                p._inner.set(value.astype(str(Tensor.dtype.fget(p._inner.data()))))
            p._asked = None
            p._attach()

    def save_parameters(self, filename, deduplicate=False):
        """Writes the parameters to a file."""
        self._refuse_borrowed("save_parameters")
        files.write(lambda path: _blocks.Block.save_params(self, path), filename)

    def save_params(self, filename):
        """The older form of a file: names without dots, those of collect_params() without the block's prefix."""
        if os.fspath(filename).endswith(".safetensors"):
            return self.save_parameters(filename)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_parameters(self, filename, ctx=None, allow_missing=False, ignore_extra=False, cast_dtype=False, dtype_source="current"):
        """Reads parameters from a file to the contexts."""
        _as_stored(cast_dtype, dtype_source)
        self._refuse_borrowed("load_parameters")
        if not self._contexts or ctx is not None and _contexts(ctx) != self._contexts:
            self.initialize(ctx=ctx, force_reinit=bool(self._contexts))
        lenient = allow_missing or ignore_extra
        old = lenient and _has_old_names(filename)
        try:
            if not old:
                files.read(lambda path: _blocks.Block.load_params(self, path, lenient=lenient), filename)
        except InvalidArgument:
            old = _has_old_names(filename)
            if not old:
                raise
        if old:
            self.collect_params().load(filename, ctx, allow_missing, ignore_extra, self.prefix)

    def load_params(self, filename, ctx=None, allow_missing=False, ignore_extra=False, **options):
        """load_parameters by its older name; with lenient or names, load_params of starling's blocks."""
        if options:
            _blocks.Block.load_params(self, filename, **options)
        else:
            self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def summary(self, *inputs):
        """Prints the layers."""
        if not inputs or not isinstance(inputs[0], Tensor):
            raise _core.wrong("summary: input", inputs[0] if inputs else None, "an array")
        print(_blocks.Block.summary(self, inputs[0].shape))

    def __reduce__(self):
        raise _NoCopy(f"copy and pickle cannot copy {type(self).__name__}: that is not in Starling; use save_parameters and load_parameters, and "
                      "make another one in the same way")  # fmt: skip

    def __repr__(self):
        inside = "\n".join(f"  ({n}): {indented(c)}" for n, c in self._children.items() if isinstance(c, Block))
        return f"{type(self).__name__}(\n{inside}\n)"


def fit(parameter, shape):
    """Sets a parameter's shape, which the first input determines."""
    check(lib.sl_param_fit_at(here(), parameter._inner._p, shape_of(shape)))


class HybridBlock(Block):
    """A block that can be compiled; a custom one has a hybrid_forward(self, F, x), where F is mx.nd or mx.sym."""

    def hybrid_forward(self, F, *args, **params):
        """Computes the result; custom blocks define it."""
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")

    def _fit(self, x):
        """Sets the shapes of parameters from an input; layers define it."""

    def forward(self, *args):
        given = list(tensors_in(args))
        first = given[0] if given else None
        if first is None:
            raise InvalidArgument(f"{self.name}: in HybridBlock, there must be one NDArray or one Symbol in the input")
        F = sym if first.is_symbol else nd
        params = {}
        if self._own_parameters:
            self._fit(first)
            params = {name: classify(self._value_of(p, first)) for name, p in self._own_parameters.items()}
        return self.hybrid_forward(F, *map(_classified, args), **params)

    @staticmethod
    def _value_of(parameter, x):
        """A parameter's values beside the input x."""
        try:
            return parameter.used_for(x)
        except _core.StateError as error:
            if "its shape (" not in str(error) and "the shape of parameter" not in str(error):
                raise
            raise not_here(f"{parameter.name} of shape {parameter.shape}, whose zeros operations determine,", "a shape without zeros") from error

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **options):
        """Runs the block as a compiled program from now on."""
        _only_hints(options)
        self._mark_compiled(active)
        _blocks.Block.hybridize(self, active, static_alloc=static_alloc and active)  # static_shape would refuse a last, smaller batch; MXNet's does not

    def add_child(self, name, child):
        self._is_hybrid(child)
        return super().add_child(name, child)

    def _replace_child(self, name, child):
        self._is_hybrid(child)
        super()._replace_child(name, child)

    def _is_hybrid(self, child):
        if not isinstance(child, HybridBlock):
            raise ValueError(
                f"Children of HybridBlock must also be HybridBlock, but {child!r} has type {type(child)}. "
                "If you are using Sequential, please try HybridSequential instead."
            )

    def _mark_compiled(self, active):
        object.__setattr__(self, "_compiled", bool(active))
        object.__setattr__(self, "_form", None)
        for child in self._children.values():
            if isinstance(child, HybridBlock):
                child._mark_compiled(active)

    def export(self, path, epoch=0, remove_amp_cast=True):
        """Writes PATH-symbol.json and PATH-0000.params; the block must have run once after hybridize()."""
        if self._compiled != "ran":
            raise RuntimeError(
                "Please first call block.hybridize() and then run forward with this block at least once before calling export."
            )
        _blocks.Block.export(self, path, epoch=epoch)

    def infer_shape(self, *args):
        """Sets the shapes of parameters from inputs, where a layer does that itself; else the first call does."""
        if args:
            self._fit(args[0])


__getattr__ = missing("mx.gluon.block")
