"""Parameters with Gluon's names."""
import re
import weakref

import numpy

from ... import _blocks, _core
from ..._core import NULL, check, ffi, lib, shape_of
from ..._tensor import Tensor, borrow, dtype_of
from .._mode import array_class
from .._insides import inside
from .._sparse import chosen_rows, dense_of, labelled
from ..base import MXNetError
from ..context import Context, context_of, current_context
from ..autograd import pause
from .. import init as _init
from ..unsupported import missing, not_here


class DeferredInitializationError(MXNetError):
    """A parameter has no values before the first input determines its shape."""


class _Host(_blocks.Block):
    """The block of a parameter that was made without one."""

    _contexts = ()

    def params_(self):
        """All parameters as the engine has them."""
        return self.params()


_living = weakref.WeakValueDictionary()  # parameters by the addresses of the engine's parameters


def parameter_of(inner, block, **given):
    """The parameter's object: always the same one."""
    key = int(ffi.cast("uintptr_t", inner._p))
    found = _living.get(key)
    if found is None:
        found = _living[key] = Parameter._over(inner, block, **given)
        block.__dict__.setdefault("_kept", {})[key] = found
    return found


def _check_storage(stype, grad_stype):
    """Values and gradients may be given as sparse rows; inside they are dense."""
    for name, value in (("stype", stype), ("grad_stype", grad_stype)):
        if value not in ("default", "row_sparse", "csr"):
            raise AssertionError(f"invalid {name} for parameter: {value!r} is not default, row_sparse or csr")
    if "csr" in (stype, grad_stype):
        raise not_here(f"a parameter with stype={stype!r}, grad_stype={grad_stype!r}", "one of row_sparse")


def _check_type(dtype, trained):
    """Parameters with gradients are floats."""
    if trained and dtype is not None and str(dtype) != "bfloat16" and numpy.dtype(dtype).kind in "iub":
        raise not_here(f"a gradient of a parameter of {numpy.dtype(dtype)}", "grad_req='null'")


class Parameter:
    """A parameter on the contexts that its block was initialised on; gluon.Parameter(name, shape=…) makes one without a block."""

    def __init__(self, name="weight", grad_req="write", shape=None, dtype=numpy.float32, lr_mult=1.0, wd_mult=1.0, init=None,
                 allow_deferred_init=False, differentiable=True, stype="default", grad_stype="default"):
        _check_storage(stype, grad_stype)
        _check_type(dtype, grad_req != "null" and differentiable)
        if shape is None:
            raise not_here("Parameter(shape=None)", "a shape, with 0 for lengths that are not known")
        host = _Host()
        dims = [shape] if isinstance(shape, int) else [d or -1 for d in shape]
        engines, own = _init.split(init)
        inner = host.param(re.sub(r"\W", "_", name), dims, init=engines, dtype=dtype, grad=grad_req != "null" and differentiable)
        self._fill(inner, host, name, own)
        self._standalone, self._grad_req, self.lr_mult, self.wd_mult = True, grad_req, lr_mult, wd_mult
        self.stype, self.grad_stype = stype, grad_stype
        _living[int(ffi.cast("uintptr_t", inner._p))] = self

    @classmethod
    def _over(cls, inner, block, init=None):
        p = cls.__new__(cls)
        p._fill(inner, block, None, init)
        return p

    def _fill(self, inner, block, name, own):
        self._inner, self._block, self._name, self._own = inner, block, name, own
        self._given = own  # the initialiser of its layer, which goes before that of a network
        self._class = None  # that of its arrays, once it has been initialised
        self._asked = None  # the tensor to which Python attached a gradient, and its grad_req
        self._standalone, self._grad_req, self.lr_mult, self.wd_mult = False, None, 1.0, 1.0
        self.stype = self.grad_stype = "default"  # the storage types that values and gradients are given in
        self._trainer = None

    # ---- what it is

    @property
    def name(self):
        """The name, which begins with its block's: dense0_weight."""
        return self._name or self._inner.name

    @property
    def shape(self):
        """The lengths of the axes; 0 for one that is not known yet."""
        return tuple(max(d, 0) for d in self._inner.shape)

    @shape.setter
    def shape(self, shape):
        check(lib.sl_param_fit_at(_core.here(), self._inner._p, shape_of([d if d > 0 else -1 for d in shape])))

    @property
    def dtype(self):
        """The data type."""
        try:
            return self._dense(self._known_ctx()[0]).dtype
        except RuntimeError:
            return numpy.float32

    @property
    def grad_req(self):
        """The effect of backward passes on its gradient: "write", "add", or "null" for no gradient."""
        if self._grad_req is None:
            self._grad_req = "write" if self._trained() else "null"
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req):
        if req not in ("write", "add", "null"):
            raise ValueError(f"grad_req must be one of 'write', 'add', or 'null', but got {req!r}")
        self._grad_req = req
        self._attach()

    def _trained(self):
        p = lib.sl_param_grad_at(_core.here(), self._inner._p)
        if p:
            return True
        lib.sl_error_clear()
        return "running_" not in self.name

    def _attach(self):
        """Applies grad_req in the engine, once the parameter has values."""
        if self._grad_req is None:
            return
        try:
            t = self._inner.data()
        except _core.StateError:
            return
        if self._grad_req == "null":
            if t.grad is not None:
                t.attach_grad("null")
                self._asked = (t._p, "null")
            return
        if self._asked != (t._p, self._grad_req) and (self._grad_req == "add" or self._asked or t.grad is None):
            t.attach_grad(self._grad_req)
            self._asked = (t._p, self._grad_req)

    # ---- values

    def _begin(self, own):
        """Called when its block is initialised; own is an initialiser in Python."""
        self._class = array_class()
        if self._given is not None:
            self._own = self._given
        elif own is not None and self._own is None and (self._name or self.name.endswith("weight")):
            self._own = own
        self._settle()

    def _settle(self):
        """Runs Python's part once there are values: its initialiser, its grad_req."""
        if self._own is None and self._grad_req in (None, "write"):
            return
        try:
            t = self._inner.data()
        except _core.StateError:
            return
        t.__class__ = array_class()
        own, self._own = self._own, None
        if own is not None:
            with pause():  # the first forward may be recorded
                own(_init.InitDesc(self.name), t)
        self._attach()

    @property
    def waits(self):
        """Whether Python's initialiser has to wait for its shape."""
        return self._own is not None

    def list_ctx(self):
        """The contexts of the parameter; RuntimeError if it has not been initialised."""
        try:
            self._inner.data()
        except _core.StateError as error:
            if "is not initialised" in str(error):
                self._refuse()
        return self._known_ctx()

    def _refuse(self):
        raise RuntimeError(f"Parameter '{self.name}' has not been initialized. Call initialize() of its block or of the network around it.") from None

    def _known_ctx(self):
        if self._block._contexts:
            return list(self._block._contexts)
        try:
            return [context_of(self._inner.data().device)]  # the block inside was initialised by itself
        except _core.StateError:
            self._refuse()

    def _on(self, ctx):
        known = self._known_ctx()
        if ctx is None:
            ctx = known[0] if len(known) == 1 else current_context()
        if not isinstance(ctx, Context):
            raise _core.wrong("ctx", ctx, "a context such as mx.cpu()")
        if ctx not in known:
            raise RuntimeError(f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized on {known}.")
        return ctx.device

    def data(self, ctx=None):
        """The values on a context: the array itself."""
        if self.stype != "default":
            raise RuntimeError(f"Cannot return a copy of Parameter '{self.name}' via data() because its storage type is {self.stype}. Please "
                               "use row_sparse_data() instead.")  # fmt: skip
        return self._dense(ctx)

    def _dense(self, ctx=None):
        return self._values(lambda device: self._inner.data(device), ctx)

    def row_sparse_data(self, row_id):
        """The rows with these numbers, on the context of row_id, of a parameter with stype="row_sparse": gradients flow to these rows."""
        return self._rows(row_id, row_id.context, "row_sparse_data")

    def list_row_sparse_data(self, row_id):
        """The rows with these numbers on all contexts."""
        return [self._rows(row_id, c, "list_row_sparse_data") for c in self._known_ctx()]

    def _rows(self, row_id, ctx, method):
        if self.stype != "row_sparse":
            raise RuntimeError(f"Cannot return a copy of Parameter {self.name} via {method}() because its storage type is {self.stype}. Please "
                               "use data() instead.")  # fmt: skip
        if self._trainer is None:
            raise RuntimeError(f"Cannot get row_sparse data for Parameter '{self.name}' when no Trainer is created with it.")
        return chosen_rows(self._dense(ctx), row_id, ctx)

    def _set_trainer(self, trainer):
        if self.stype != "default" and None not in (self._trainer, trainer) and trainer is not self._trainer:
            raise RuntimeError(f"Failed to set the trainer for Parameter '{self.name}' because it was already set. More than one trainers for "
                               f"a {self.stype} Parameter is not supported.")  # fmt: skip
        self._trainer = trainer

    @property
    def _data(self):
        """The values on all contexts, in their storage type."""
        return [labelled(self._dense(c), self.stype, live=True, context=c) for c in self._known_ctx()]

    def used_for(self, x):
        """The values on the context of the input x; their symbol if x is one."""
        self._settle()
        return self._inner.on(x)

    def _values(self, get, ctx):
        device = self._on(ctx)
        self._settle()
        try:
            t = get(device)
        except _core.StateError:
            if min(self.shape, default=1) > 0:
                raise
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. Actual initialization "
                "happens during the first forward pass. Please pass one batch of data through the network before accessing Parameters."
            ) from None
        t.__class__ = self._class or array_class()
        return t

    def list_data(self):
        """The values on all contexts."""
        return [self.data(c) for c in self._known_ctx()]

    def grad(self, ctx=None):
        """The gradient on a context: all contexts share one, the sum."""
        if self.grad_req == "null":
            raise RuntimeError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")
        one = len(self._known_ctx()) == 1

        def get(device):
            g = self._inner.grad()
            lib.sl_grad_as_constant(g._p)
            return g if one else g.to(device)

        found = self._values(get, ctx)
        return found if self.grad_stype == "default" else labelled(found, self.grad_stype, live=True)

    def list_grad(self):
        """The gradients on all contexts."""
        return [self.grad(c) for c in self._known_ctx()]

    def zero_grad(self):
        """Makes the gradient zero."""
        if self.grad_req != "null":
            with _core.sharing:
                g = lib.sl_param_grad_at(_core.here(), self._inner._p)
                g = borrow(g, array_class()) if g else lib.sl_error_clear()
            if g is not None:
                g[:] = 0

    def set_data(self, data):
        """Replaces the values on all contexts."""
        self._inner.set(data)

    def initialize(self, init=None, ctx=None, default_init=None, force_reinit=False):
        """Initialises the parameter, or initialises it again with force_reinit."""
        if not self._standalone:
            try:
                values = self._dense(self._known_ctx()[0])
            except RuntimeError:
                raise not_here("Parameter.initialize before that of its block", "initialize of its block first") from None
            if force_reinit:
                _init.fill(init or default_init or _init.Uniform(), self.name, values)
            return
        self._block._contexts = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx or current_context()]
        engines, own = _init.split(init or default_init)
        devices = list(dict.fromkeys(c.device for c in self._block._contexts))
        several = len(self._block._contexts) > 1  # each context has a separate backward pass
        self._block.initialize(engines, devices=devices, force=force_reinit, gather=len(self._block._contexts) if several else 0)
        self._begin(own)

    def reset_ctx(self, ctx):
        """Moves it to other contexts; its block calls this."""
        wanted = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx]
        if [c.device for c in wanted] == [c.device for c in self._known_ctx()]:
            return
        if not self._standalone:
            raise not_here("Parameter.reset_ctx", "reset_ctx of collect_params() of the network")
        values = self._dense(self._known_ctx()[0]).asnumpy()
        self.initialize(ctx=wanted, force_reinit=True)
        self._inner.set(_blocks.array(values))

    def cast(self, dtype):
        """float32 only: parameters have the data type they were made with."""
        if dtype_of(dtype) != dtype_of(self.dtype):
            raise not_here(f"Parameter.cast({dtype!r})", "starling.autocast")

    def var(self):
        """A symbol of its name."""
        from .. import sym

        return sym.var(self.name, shape=self.shape or None, stype=self.stype, init=self._given)

    def __deepcopy__(self, _):
        """A parameter outside of blocks, with a copy of the values if there are any."""
        copy = Parameter(self.name, self.grad_req, self.shape, lr_mult=self.lr_mult, wd_mult=self.wd_mult, stype=self.stype, grad_stype=self.grad_stype)
        if self._block._contexts and min(self.shape, default=1) > 0:
            copy.initialize(ctx=self.list_ctx())
            copy.set_data(self._dense(self.list_ctx()[0]))
        return copy

    def __repr__(self):
        return f"Parameter {self.name} (shape={self.shape}, dtype=float32)"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise inside("Parameter", name, "data, grad, set_data")
        raise not_here(f"Parameter.{name}", "data, grad, set_data")


class Constant(Parameter):
    """A parameter that is not trained."""

    def __init__(self, name, value):
        value = value if isinstance(value, Tensor) else _blocks.array(value, "float32")
        super().__init__(name, "null", value.shape, init=_init.Constant(value))
        self._constant = value

    def _settle(self):
        if not self._block._contexts:
            return
        super()._settle()

    def __repr__(self):
        return f"Constant {self.name} (shape={self.shape}, dtype=float32)"


class ParameterDict:
    """The parameters of a block, by name; without a block, parameters made with get."""

    def __init__(self, prefix="", shared=None, inside=True, select=None):
        if shared is not None:
            raise not_here("ParameterDict(shared=…)", "update, or the same layers in both blocks")
        block, self._prefix, self._made = (None, prefix, {}) if isinstance(prefix, str) else (prefix, "", {})
        self._block, self._inside, self._select = block, inside, select

    @property
    def prefix(self):
        """The prefix of names."""
        return self._prefix if self._block is None else self._block.prefix

    def with_others(self, others):
        """The same with parameters of other blocks."""
        self._others = dict(others)
        return self

    _others: dict = {}

    def _all(self):
        return {**self._of_block(), **{n: p for n, p in self._others.items() if not self._select or re.match(self._select, n)}}

    def _of_block(self):
        if self._block is None:
            return self._made
        found = [parameter_of(p, self._block) for p in self._block.params_()]
        if not self._inside:
            begin, chosen = self._block.prefix, list(self._block._own_parameters.values())
            found = [p for p in found if p in chosen or p.name.startswith(begin) and self._own(p.name[len(begin) :]) == p._inner._p]
        named = {p.name: p for p in found}
        if len(named) < len(found):
            name = next(p.name for p in found if named[p.name] is not p)
            raise ValueError(f"{self._block.name} has different parameters with the name {name!r}: blocks inside have the same prefix")
        return {n: p for n, p in named.items() if not self._select or re.match(self._select, n)}

    def find(self, name):
        """The block's own parameter with that last part of the name; None if there is none."""
        p = self._own(name)
        return parameter_of(_blocks.Parameter(p, self._block, self._block._arrays_are), self._block) if p else self._all().get(self._block.prefix + name)

    def _own(self, name):
        """The engine's own parameter of the block with that name; NULL if there is none."""
        if not name or "." in name:
            return NULL
        p = lib.sl_block_find_at(_core.here(), self._block._p, name.encode())
        if not p:
            lib.sl_error_clear()
        return p

    def get(self, name, shape=None, init=None, dtype=None, allow_deferred_init=True, grad_req="write", lr_mult=1.0, wd_mult=1.0,
            differentiable=True, stype="default", grad_stype="default"):
        """A parameter of the block itself, by the last part of its name; created if shape is given and it does not exist."""
        _check_storage(stype, grad_stype)
        grad_req = grad_req if differentiable else "null"
        _check_type(dtype, grad_req != "null")
        if self._block is None:
            if self._prefix + name not in self._made:
                self._made[self._prefix + name] = Parameter(self._prefix + name, grad_req, shape, dtype or "float32", lr_mult, wd_mult, init,
                                                            stype=stype, grad_stype=grad_stype)  # fmt: skip
            return self._made[self._prefix + name]
        found = self.find(name)
        if found:
            return found
        if self._block._shared and self._block._shared[1] + name in (lent := ParameterDict(self._block._shared[0])):
            return lent[self._block._shared[1] + name]
        if shape is None:
            raise KeyError(f"{self._block.name} has no parameter {name!r}")
        dims = [shape] if isinstance(shape, int) else [d or -1 for d in shape]
        engines, own = _init.split(init)
        inner = self._block.param(name, dims, init=engines, dtype=dtype, grad=grad_req != "null")
        made = parameter_of(inner, self._block, init=own)
        made._grad_req, made.lr_mult, made.wd_mult, made.stype, made.grad_stype = grad_req, lr_mult, wd_mult, stype, grad_stype
        return made

    def get_constant(self, name, value=None):
        """A parameter that is not trained."""
        made = self.get(name, _blocks.array(value, "float32").shape, _init.Constant(value), grad_req="null")
        return made

    def update(self, other, select=None):
        """Adds the parameters of another dictionary."""
        if self._block is not None:
            raise not_here("ParameterDict.update of a block's", "a ParameterDict of its own")
        self._made.update({n: p for n, p in other.items() if not select or re.match(select, n)})

    def __getitem__(self, name):
        return self._all()[name]

    def __iter__(self):
        return iter(self._all())

    def __len__(self):
        return len(self._all())

    def __contains__(self, name):
        return name in self._all()

    def keys(self):
        """The names."""
        return self._all().keys()

    def values(self):
        """The parameters."""
        return self._all().values()

    def items(self):
        """Names and parameters."""
        return self._all().items()

    def list_ctx(self):
        """The contexts that parameters are on."""
        return list(dict.fromkeys(c for p in self.values() for c in p.list_ctx()))

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False):
        """Gives the parameters their first values."""
        if self._block is not None:
            return self._block.initialize(init, ctx, force_reinit=force_reinit)
        for p in self.values():
            p.initialize(None, ctx, init, force_reinit)

    def reset_ctx(self, ctx):
        """Moves the parameters to other contexts."""
        if self._block is None:
            for p in self.values():
                p.reset_ctx(ctx)
            return
        values = {n: p._dense(p._known_ctx()[0]).asnumpy() for n, p in self.items()}
        self._block.initialize(ctx=ctx, force_reinit=True)
        for n, p in self.items():
            p.set_data(_blocks.array(values[n]))

    def setattr(self, name, value):
        """Sets an attribute of all parameters: grad_req, lr_mult, wd_mult."""
        if name not in ("grad_req", "lr_mult", "wd_mult"):
            raise not_here(f"ParameterDict.setattr({name!r})", "grad_req, lr_mult, wd_mult")
        for p in self.values():
            if name != "grad_req" or p.grad_req != "null":
                setattr(p, name, value)

    def zero_grad(self):
        """Makes all gradients zero."""
        for p in self.values():
            p.zero_grad()

    def save(self, filename, strip_prefix=""):
        """Writes the parameters to a file."""
        from .. import nd

        nd.save(filename, {n.removeprefix(strip_prefix): p._data[0] for n, p in self.items()})

    def load(self, filename, ctx=None, allow_missing=False, ignore_extra=False, restore_prefix="", cast_dtype=False, dtype_source="current"):
        """Reads the parameters from a file."""
        if cast_dtype or dtype_source != "current":
            raise not_here("ParameterDict.load with cast_dtype or dtype_source", "parameters of the file's data type")
        from .. import nd

        values = {restore_prefix + n.removeprefix("arg:").removeprefix("aux:"): v for n, v in nd.load(filename).items()}
        missing_ = [n for n in self if n not in values]
        extra = [n for n in values if n not in self]
        if missing_ and not allow_missing or extra and not ignore_extra:
            raise OSError(f"{filename}: " + (f"{missing_[0]} is missing" if missing_ and not allow_missing else f"{extra[0]} is not in this ParameterDict"))
        if any(not p._block._contexts for p in self.values()):
            self.initialize(ctx=ctx)
        for n, p in self.items():
            if n in values:
                p.set_data(dense_of(values[n]))

    def load_dict(self, *_, **__):
        """Not supported."""
        raise not_here("ParameterDict.load_dict", "set_data of each parameter")

    def __deepcopy__(self, memo):
        """A dictionary of parameters of its own, with copies of the values."""
        copy = ParameterDict()
        copy._made = {name: p.__deepcopy__(memo) for name, p in self.items()}
        return copy

    def __repr__(self):
        inside = "\n".join(f"  {p!r}" for p in self.values())
        return f"{self.prefix} (\n{inside}\n)"


__getattr__ = missing("mx.gluon.parameter")
