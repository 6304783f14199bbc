"""NDArray: a tensor with MXNet's methods."""
import numpy

from .. import _ops as ops
from .._core import ffi, here, lib, shape_of, wrong
from .._tensor import Tensor, borrow, dtype_of, wrap
from .context import Context, context_of
from .missing import not_here


def mx_shape(shape, old):
    """The lengths that MXNet's reshape means: 0 keeps one, -1 is computed, -2 keeps the rest, -3 joins two, -4 cuts one into
    the two that follow."""
    if len(shape) == 1 and hasattr(shape[0], "__iter__"):
        (shape,) = shape
    shape, old = [int(d) for d in shape], list(old or ())
    if not old or min(shape, default=0) >= -1 and 0 not in shape:
        return tuple(shape)
    result, at = [], 0
    while shape:
        d = shape.pop(0)
        if d == -2:
            result += old[at:]
            at = len(old)
        elif d == -3:
            result.append(old[at] * old[at + 1])
            at += 2
        elif d == -4:
            first, second = shape.pop(0), shape.pop(0)
            result += [old[at] // second if first == -1 else first, old[at] // first if second == -1 else second]
            at += 1
        else:
            result.append(old[at] if d == 0 and at < len(old) else d)
            at += 1
    return tuple(result)


def _remainder(a, b):
    from . import nd

    return nd.modulo(a, b)


def indices_of(key):
    """Indices as in MXNet: its arrays of floats are whole numbers here."""
    if isinstance(key, tuple):
        return tuple(indices_of(k) for k in key)
    return key.astype("int32") if isinstance(key, NDArray) and not key.is_symbol and "float" in str(key.dtype) else key


class NDArray(Tensor):
    """An array of MXNet, on the engine."""

    __slots__ = ()
    _truths = False  # as in MXNet, comparisons give 1 and 0 of the array's type
    _scalars = False  # whether an array can be without axes

    def __getitem__(self, key):
        part = Tensor.__getitem__(self, indices_of(key))
        return part if part.ndim or part._scalars or part.is_symbol else part.reshape((1,))

    def __setitem__(self, key, value):
        Tensor.__setitem__(self, indices_of(key), value)

    def __mod__(self, other):
        return _remainder(self, other)

    def __rmod__(self, other):
        return _remainder(other, self)

    def __imod__(self, other):
        self[:] = _remainder(self, other)
        return self

    def __ipow__(self, other):
        self[:] = self**other
        return self

    @property
    def context(self):
        """The device."""
        return context_of(self.device)

    ctx = context

    @property
    def dtype(self):
        """The data type as NumPy's class."""
        found = Tensor.dtype.fget(self)
        return found.type if isinstance(found, numpy.dtype) else found

    @property
    def stype(self):
        """Arrays are dense."""
        return "default"

    def __bool__(self):
        if self.size != 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return Tensor.__bool__(self)

    def asnumpy(self):
        """The values as a NumPy array of their own, waited for."""
        return self.numpy(copy=True)

    def as_nd_ndarray(self):
        """The array itself."""
        return self

    def as_np_ndarray(self):
        """A copy for mx.np."""
        from .np import ndarray

        copy = self.copy()
        copy.__class__ = ndarray
        return copy

    def asscalar(self):
        """The value of an array with one element, waited for."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self.numpy().reshape(-1)[0]

    def wait_to_read(self):
        """Waits until the values are there."""
        self.wait()

    wait_to_write = wait_to_read

    def copyto(self, other):
        """A copy on a context, or over another array, which is returned."""
        if isinstance(other, Context):
            return wrap(lib.sl_copy_to_at(here(), self._p, other.device._c), type(self))
        if not isinstance(other, Tensor):
            raise wrong("copyto: other", other, "a context or an array")
        other[:] = self
        return other

    def as_in_context(self, context):
        """The array itself if it is there, else a copy."""
        if not isinstance(context, Context):
            raise wrong("as_in_context: context", context, "a context such as mx.cpu()")
        return self if self.context == context or self.device == context.device else self.copyto(context)

    as_in_ctx = as_in_context

    def astype(self, dtype, copy=True):
        """The values as another data type."""
        return wrap(lib.sl_cast_at(here(), self._p, dtype_of(dtype)), type(self))

    def reshape(self, *shape, **options):
        """The same values in another shape; 0 keeps a length, -1 is computed."""
        shape = options.pop("shape", None) or shape
        return wrap(lib.sl_reshape_at(here(), self._p, shape_of(mx_shape(shape, self.shape))), type(self))

    def attach_grad(self, grad_req="write", stype=None):
        """Attaches a gradient to this array."""
        return Tensor.attach_grad(self, grad_req)

    @property
    def grad(self):
        """The gradient for this array, after attach_grad: a constant in recorded operations, as in MXNet."""
        grad = Tensor.grad.__get__(self)
        if grad is not None:
            lib.sl_grad_as_constant(grad._p)
        return grad

    def backward(self, out_grad=None, retain_graph=False, train_mode=True):
        """Computes the gradients of this array by all that asked for one."""
        Tensor.backward(self, out_grad, retain_graph)

    def expand_dims(self, axis):
        """With one more axis, of length 1."""
        shape = list(self.shape)
        shape.insert(axis if axis >= 0 else axis + len(shape) + 1, 1)
        return self.reshape(tuple(shape))

    def squeeze(self, axis=None):
        """Without axes of length 1."""
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        gone = {a % self.ndim for a in axes if self.shape[a] == 1}
        return self.reshape(tuple(d for i, d in enumerate(self.shape) if i not in gone))

    def slice_axis(self, axis, begin, end):
        """Part of an axis."""
        return self[(slice(None),) * (axis % self.ndim) + (slice(begin, end),)]

    def tostype(self, stype):
        """The array itself: arrays are dense."""
        if stype != "default":
            raise not_here(f"NDArray.tostype({stype!r})", "dense arrays")
        return self

    def slice_assign(self, rhs, begin, end, step=None):
        """Puts values into a part."""
        step = step or (None,) * len(begin)
        self[tuple(map(slice, begin, end, step))] = rhs
        return self

    def __repr__(self):
        if self.is_symbol:
            return f"<Symbol {ffi.string(lib.sl_symbol_name(self._p)).decode()}>"
        return f"\n{self.asnumpy()}\n<{type(self).__name__} {'x'.join(map(str, self.shape))} @{self.context}>"

    __str__ = __repr__

    def __getattr__(self, name):
        # Functions of arrays are methods, too.
        from . import nd

        function = nd.__dict__.get(name)
        if name.startswith("_") or not callable(function):
            if name.startswith("_"):
                raise AttributeError(name)
            raise not_here(f"NDArray.{name}", "a function of mx.nd")
        return lambda *args, **kwargs: function(self, *args, **kwargs)
