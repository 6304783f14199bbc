"""Parameters as Gluon names them."""
import re

from ... import _blocks
from ..._tensor import Tensor
from ..context import current_context
from ..init import named
from ..missing import missing
from ..ndarray import NDArray


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
        if not self._block._contexts:
            raise RuntimeError(f"Parameter '{self.name}' has not been initialized; call initialize()")
        return list(self._block._contexts)

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
        device = self._on(ctx)
        t = self._inner.data(device)
        t.__class__ = NDArray
        return t

    def list_data(self):
        """The values on all contexts."""
        return [self.data(c) for c in self.list_ctx()]

    def grad(self, ctx=None):
        """The gradient on a context."""
        return self.data(ctx).grad

    def list_grad(self):
        """The gradients on all contexts."""
        return [self.grad(c) for c in self.list_ctx()]

    def set_data(self, data):
        """Replaces the values on all contexts."""
        self._inner.set(data)

    def __repr__(self):
        return f"Parameter {self.name} (shape={self.shape}, dtype=float32)"


class ParameterDict:
    """The parameters of a block, by name."""

    def __init__(self, block, inside=True):
        self._block, self._inside = block, inside

    def _all(self):
        found = [Parameter(p, self._block) for p in self._block.params_()]
        if not self._inside:
            own = self._block.name + "_"
            found = [p for p in found if p.name.startswith(own)]
        return {p.name: p for p in found}

    def get(self, name, shape=None, init=None, dtype=None, allow_deferred_init=True, grad_req="write", **_):
        """A parameter of the block itself, by the last part of its name; made if shape is given and it is not there."""
        full = f"{self._block.name}_{name}"
        found = self._all().get(full)
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

    def matching(self, pattern):
        """Those whose names match a regular expression, as a dictionary."""
        return {n: p for n, p in self.items() if re.match(pattern, n)}

    def initialize(self, init=None, ctx=None, force_reinit=False, **_):
        """Gives the block's parameters their first values."""
        self._block.initialize(init, ctx, force_reinit=force_reinit)

    def reset_ctx(self, ctx):
        """Moves the parameters to other contexts."""
        values = {n: p.data(p.list_ctx()[0]).asnumpy() for n, p in self.items()}
        self._block.initialize(ctx=ctx, force_reinit=True)
        for n, p in self.items():
            p.set_data(values[n])

    def zero_grad(self):
        """Nothing: the backward pass writes gradients anew."""

    def save(self, filename, strip_prefix=""):
        """Writes the parameters to a file."""
        self._block.save_parameters(filename)

    def __repr__(self):
        return f"{self._block.name}_ (\n" + "".join(f"  {p!r}\n" for p in self.values()) + ")"


__getattr__ = missing("mx.gluon.parameter")
