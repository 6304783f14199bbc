"""Parameters as Gluon names them."""
import re

from ... import _core
from .._mode import array_class
from ..base import MXNetError
from ..context import context_of, current_context
from ..init import named
from ..missing import missing, not_here


class DeferredInitializationError(MXNetError):
    """A parameter has no values before the first input tells its shape."""


class Parameter:
    """A parameter on the contexts that its block was initialised on."""

    def __init__(self, inner, block):
        self._inner, self._block = inner, block

    @property
    def name(self):
        """With the name of its block: dense0_weight."""
        return self._inner.name

    @property
    def shape(self):
        """The lengths of the axes; 0 where one is not known yet."""
        return tuple(max(d, 0) for d in self._inner.shape)

    def list_ctx(self):
        """The contexts it is on."""
        if self._block._contexts:
            return list(self._block._contexts)
        try:
            return [context_of(self._inner.data().device)]  # the block inside was initialised by itself
        except _core.StateError:
            raise RuntimeError(
                f"Parameter '{self.name}' has not been initialized. Call initialize() of its block or of the network around it."
            ) from None

    def _on(self, ctx):
        known = self.list_ctx()
        if ctx is None:
            ctx = known[0] if len(known) == 1 else current_context()
        if ctx not in known and ctx.device not in [c.device for c in known]:
            raise RuntimeError(
                f"Parameter '{self.name}' was not initialized on context {ctx}. It was only initialized on {known}."
            )
        return ctx.device

    def data(self, ctx=None):
        """The values on a context: the array itself."""
        return self._values(lambda device: self._inner.data(device), ctx)

    def _values(self, get, ctx):
        device = self._on(ctx)
        try:
            t = get(device)
        except _core.StateError:
            if min(self.shape, default=1) > 0:
                raise
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. Actual initialization "
                "happens during the first forward pass. Please pass one batch of data through the network before accessing Parameters."
            ) from None
        t.__class__ = array_class()
        return t

    def list_data(self):
        """The values on all contexts."""
        return [self.data(c) for c in self.list_ctx()]

    def grad(self, ctx=None):
        """The gradient on a context: there is one for all contexts, their sum."""
        one = len(self.list_ctx()) == 1
        return self._values(lambda device: self._inner.grad() if one else self._inner.grad().to(device), ctx)

    def list_grad(self):
        """The gradients on all contexts."""
        return [self.grad(c) for c in self.list_ctx()]

    def set_data(self, data):
        """Replaces the values on all contexts."""
        self._inner.set(data)

    @property
    def dtype(self):
        """The data type."""
        return self.data(self.list_ctx()[0]).dtype

    def initialize(self, init=None, ctx=None, **_):
        """Parameters are initialised with their block."""
        raise not_here("Parameter.initialize", "initialize of its block")

    def __repr__(self):
        return f"Parameter {self.name} (shape={self.shape}, dtype=float32)"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise not_here(f"Parameter.{name}", "data, grad, set_data")


class ParameterDict:
    """The parameters of a block, by name."""

    def __init__(self, block, inside=True, select=None):
        self._block, self._inside, self._select = block, inside, select

    def _all(self):
        found = [Parameter(p, self._block) for p in self._block.params_()]
        if not self._inside:
            own = self._block.name + "_"
            found = [p for p in found if p.name.startswith(own)]
        return {p.name: p for p in found if not self._select or re.match(self._select, p.name)}

    def find(self, name):
        """The parameter of the block itself of that last name; None if there is none."""
        return self._all().get(f"{self._block.name}_{name}")

    def get(self, name, shape=None, init=None, dtype=None, allow_deferred_init=True, grad_req="write", **_):
        """A parameter of the block itself, by the last part of its name; made if shape is given and it is not there."""
        found = self.find(name)
        if found:
            return found
        if shape is None:
            raise KeyError(f"{self._block.name} has no parameter {name!r}")
        dims = [shape] if isinstance(shape, int) else [d or -1 for d in shape]
        inner = self._block.param(name, dims, init=named(init), dtype=dtype, grad=grad_req != "null")
        made = Parameter(inner, self._block)
        self._block._own_parameters[name] = made
        return made

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

    def initialize(self, init=None, ctx=None, force_reinit=False, **_):
        """Gives the block's parameters their first values."""
        self._block.initialize(init, ctx, force_reinit=force_reinit)

    def reset_ctx(self, ctx):
        """Moves the parameters to other contexts."""
        values = {n: p.data(p.list_ctx()[0]).asnumpy() for n, p in self.items()}
        self._block.initialize(ctx=ctx, force_reinit=True)
        for n, p in self.items():
            p.set_data(values[n])

    def setattr(self, name, value):
        """Attributes of parameters are what they are here."""
        raise not_here(f"ParameterDict.setattr({name!r})", "what the layers take when they are made")

    def zero_grad(self):
        """Nothing: the backward pass writes gradients anew."""

    def save(self, filename, strip_prefix=""):
        """Writes the parameters to a file."""
        self._block.save_parameters(filename)

    def __repr__(self):
        inside = "\n".join(f"  {p!r}" for p in self.values())
        return f"{self._block.name}_ (\n{inside}\n)"


__getattr__ = missing("mx.gluon.parameter")
