"""NDArray: a tensor with MXNet's methods."""
import weakref

import numpy

from .. import _ops as ops
from .._core import NULL, DTypeError, ShapeError, ffi, here, lib, shape_of, wrong
from .._tensor import Tensor, array, dtype_of, dtypes, wrap
from . import _whole
from .context import Context, context_of
from ._insides import inside, refuse_all
from .unsupported import not_here


_names = {number: name for name, number in dtypes.items()}


def mx_shape(shape, old, reverse=False):
    """The lengths of MXNet's reshape codes: 0 keeps one, -1 is computed, -2 keeps the rest, -3 joins two, -4 splits one into
    the two that follow."""
    shape, old = _lengths(shape), list(old or ())
    if reverse:
        return mx_shape(shape[::-1], old[::-1])[::-1]
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


def _lengths(shape):
    """The lengths of a shape that was given as one argument or several."""
    if len(shape) == 1 and hasattr(shape[0], "__iter__"):
        (shape,) = shape
    return [int(d) for d in shape]


def in_shape(t, *shape):
    """The same values in a shape without codes: 0 is a length, -1 is computed."""
    shape, old = _lengths(shape), t.shape
    if -1 in shape and old is not None and 0 in old:
        if 0 in shape:
            raise ShapeError(f"reshape: any length fits -1 in {tuple(shape)} for an array without elements")
        shape[shape.index(-1)] = 0
    return wrap(lib.sl_reshape_at(here(), t._p, shape_of(tuple(shape))), type(t))


def reshaped(t, shape, reverse=False):
    """The same values in the shape of MXNet's reshape codes; of an array without elements, 0 may be a length."""
    wanted = mx_shape(shape, t.shape, reverse)
    if t.shape and 0 in t.shape and 0 not in wanted and 0 in (literal := _lengths(shape)):
        wanted = literal
    return in_shape(t, *wanted)


def apart(t):
    """A copy of an array in another shape, as MXNet's functions give it: a change of one does not change the other.  Recorded
    operations need no copy, because a change makes a new array."""
    return t if lib.sl_is_symbol(t._p) or lib.sl_is_recording() else wrap(lib.sl_clone_at(here(), t._p), type(t))


def _itself(t):
    return t


def _without_ones(t, key, value):
    """A value for a part of an array, without surplus first axes of length 1, as in MXNet."""
    if isinstance(key, slice) or any(isinstance(k, Tensor) for k in (key if isinstance(key, tuple) else (key,))):
        part = t.ndim
    else:
        part = numpy.broadcast_to(numpy.int8(0), t.shape)[key].ndim
    value = value if isinstance(value, Tensor) else numpy.asarray(value)
    extra = value.ndim - part
    return value.reshape(value.shape[extra:]) if extra > 0 and value.shape[:extra] == (1,) * extra else value


def _made_again(values, dtype, context, kind):
    return array(values, dtype, context.device, kind)


def indices_of(key):
    """Indices as in MXNet: arrays of floats become integers."""
    if isinstance(key, tuple):
        return tuple(indices_of(k) for k in key)
    if isinstance(key, range):
        return list(key)
    return key.astype("int32") if isinstance(key, NDArray) and not key.is_symbol and "float" in str(key.dtype) else key


_sparse_gradients: dict = {}  # by the id of an array whose gradient is sparse: (a weak reference to it, the storage type)


def _kept_stype(t, stype):
    """Notes the storage type of an array's gradient."""
    key = id(t)
    if stype != "default":
        _sparse_gradients[key] = weakref.ref(t, lambda _: _sparse_gradients.pop(key, None)), stype
    elif _sparse_gradients:
        _sparse_gradients.pop(key, None)


def _as_asked(t, grad):
    """A gradient in the storage type that attach_grad has asked for."""
    from ._sparse import labelled

    return labelled(grad, _sparse_gradients.get(id(t), (None, "default"))[1], live=True)


class NDArray(Tensor):
    """MXNet's array, on the engine."""

    __slots__ = ()
    _truths = False  # as in MXNet, comparisons give 1 and 0 of the array's type
    _scalars = False  # whether an array can be without axes

    def __getitem__(self, key):
        part = Tensor.__getitem__(self, indices_of(key))
        return part if part.is_symbol or part.ndim or part._scalars else part.reshape((1,))

    def __setitem__(self, key, value):
        key = indices_of(key)
        if numpy.ndim(value) if not isinstance(value, Tensor) else value.ndim:
            value = _without_ones(self, key, value)
        Tensor.__setitem__(self, key, value)

    def __reduce__(self):
        """How copy and pickle make another array with these values, without gradient or history."""
        if self.is_symbol:
            raise TypeError("copy and pickle cannot copy a symbol; use tojson and sym.load_json")
        name = str(Tensor.dtype.fget(self))
        return _made_again, ((self.astype("float32") if name == "bfloat16" else self).asnumpy(), name, self.context, self._array)

    def __setstate__(self, state):
        raise not_here("NDArray.__setstate__", "copy, pickle, nd.save and nd.load")

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
        if not self.is_symbol and not self.size:
            return False
        if self.size != 1:
            raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")
        return Tensor.__bool__(self)

    def asnumpy(self):
        """Waits for the values and returns a copy as a NumPy array."""
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
        """Waits for the value of an array with one element and returns it."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self.numpy().reshape(-1)[0]

    def wait_to_read(self):
        """Waits until the values are computed."""
        self.wait()

    wait_to_write = wait_to_read

    def copyto(self, other):
        """A copy on a context, or into another array, which is returned."""
        if isinstance(other, Context):
            return wrap(lib.sl_copy_to_at(here(), self._p, other.device._c), type(self))
        if not isinstance(other, Tensor):
            raise wrong("copyto: other", other, "a context or an array")
        other[:] = self
        return other

    def as_in_context(self, context):
        """The array itself if it is on that context, else a copy."""
        if not isinstance(context, Context):
            raise wrong("as_in_context: context", context, "a context such as mx.cpu()")
        return self if self.context == context or self.device == context.device else self.copyto(context)

    as_in_ctx = as_in_context

    def astype(self, dtype, copy=True):
        """The values as another data type; without copy the array itself, if it is of that type."""
        number = dtype_of("float32" if dtype is None else dtype)
        if not copy and number == lib.sl_tensor_dtype(self._p):
            return self
        return classify(_whole.cast(self, _names[number]))

    def reshape(self, *several, shape=(), reverse=False):
        """The same values in another shape; 0 keeps a length, -1 is computed; with reverse, from the last axis on."""
        return reshaped(self, shape or several, reverse)

    def attach_grad(self, grad_req="write", stype=None):
        """Attaches a gradient to this array."""
        if stype not in (None, "default", "csr", "row_sparse"):
            raise ValueError(f"attach_grad: {stype!r} is not a storage type; these are default, row_sparse and csr")
        _kept_stype(self, stype or "default")
        if not self.is_symbol and "float" not in str(Tensor.dtype.fget(self)):
            raise not_here(f"a gradient of an array of {Tensor.dtype.fget(self)}", "an array of floats")
        return Tensor.attach_grad(self, grad_req)

    @property
    def grad(self):
        """The gradient with respect to this array, after attach_grad: a constant in recorded operations, as in MXNet."""
        grad = Tensor.grad.__get__(self)
        if grad is not None:
            lib.sl_grad_as_constant(grad._p)
        return grad if grad is None or not _sparse_gradients else _as_asked(self, grad)

    def backward(self, out_grad=None, retain_graph=False, train_mode=True):
        """Computes the gradients of this array with respect to all arrays with a gradient attached."""
        from .autograd import differentiate

        differentiate(self, out_grad, retain_graph)

    def expand_dims(self, axis, inplace=False):
        """With one more axis, of length 1; inplace: the same memory."""
        shape = list(self.shape)
        shape.insert(axis_of("expand_dims", axis, len(shape) + 1), 1)
        return (_itself if inplace else apart)(in_shape(self, *shape))

    def squeeze(self, axis=None, inplace=False):
        """Without axes of length 1; inplace: the same memory."""
        if not self.ndim and axis in (0, -1, (0,), (-1,)):
            return apart(self)  # as NumPy does
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        gone = {axis_of("squeeze", a, self.ndim) for a in axes if axis is not None or self.shape[a] == 1}
        if wrong := [a for a in gone if self.shape[a] != 1]:
            raise ShapeError(f"squeeze: axis {wrong[0]} of {self.shape} has more than one element")
        return (_itself if inplace else apart)(in_shape(self, *(d for i, d in enumerate(self.shape) if i not in gone)))

    @property
    def T(self):
        """With the axes in reverse order; an array of one axis itself."""
        return self if self.ndim < 2 else Tensor.T.fget(self)

    def slice_axis(self, axis, begin, end):
        """Part of an axis."""
        axis = axis_of("slice_axis", axis, self.ndim)
        size = self.shape[axis]
        for bound in (begin, end):
            if bound is not None and not -size <= bound <= size:
                raise ShapeError(f"slice_axis: {bound} is outside of axis {axis}, which has {size} elements")
        return self[(slice(None),) * axis + (slice(begin, end),)]

    def tostype(self, stype):
        """The values as an array of another storage type."""
        if stype == "default" or self.is_symbol:
            return self
        from . import sparse

        return sparse.cast_storage(self, stype)

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
        from . import nd, sym

        function = vars(sym if self.is_symbol else nd).get(name)
        if name.startswith("_") or not callable(function):
            if name.startswith("__"):
                raise AttributeError(name)
            if name.startswith("_") and not self.is_symbol:
                raise inside("NDArray", name, "the public functions of arrays")
            raise not_here(f"{'Symbol' if self.is_symbol else 'NDArray'}.{name}", "a function of mx.nd")
        return lambda *args, **kwargs: function(self, *args, **kwargs)


# ---- operators: those of integers are MXNet's


def axis_of(function, axis, ndim):
    """The number of an axis from 0; it must exist."""
    if not -ndim <= axis < ndim:
        raise ShapeError(f"{function}: there is no axis {axis}, there are {ndim}")
    return axis % ndim


def classify(t, like=None):
    """Gives an array its class, array or symbol: with a symbol among its arguments a result is a symbol."""
    like = t if like is None else like
    t.__class__ = like._symbol if lib.sl_is_symbol(t._p) else like._array
    return t


def remainder_of_floats(a, b, swap=False):
    """a - floor(a / b)·b in float64, which holds quotients of float32; 0 if b is 0, as in MXNet."""
    a, b = (b, a) if swap else (a, b)
    t = a if isinstance(a, Tensor) else b
    if isinstance(a, Tensor) and isinstance(b, Tensor) and Tensor.dtype.fget(a) != Tensor.dtype.fget(b):
        return ops.sub(a, b)  # an error that names the types
    first, second = (ops.cast(x, "float64") if isinstance(x, Tensor) else ops.full((), x, dtype="float64", device=t.device) for x in (a, b))
    times = ops.floor(ops.div(first, second))
    rest = ops.where(ops.eq_scalar(times, 0), first, ops.sub(first, ops.mul(times, second)))
    turned = ops.mul(ops.lt_scalar(ops.mul(ops.sign(first), ops.sign(second)), 0), ops.eq_scalar(ops.abs(second), float("inf")))
    rest = ops.where(ops.mul(turned, ops.isfinite(first)), second, rest)  # an infinite divisor of the other sign
    return ops.cast(ops.masked_fill(rest, ops.eq_scalar(second, 0), 0), str(Tensor.dtype.fget(t)))


def _numbers(a, b):
    """The other operand of an array: an array, a number, or a NumPy array or list converted to an array."""
    if isinstance(b, (numpy.ndarray, list, tuple)) and numpy.ndim(b):
        values, kind = numpy.asarray(b), Tensor.dtype.fget(a)
        with numpy.errstate(all="ignore"):
            whole = values.astype(kind)
        if (whole != values).any():
            raise DTypeError(f"an array of {kind} cannot hold the values beside it; convert it with astype")
        return array(whole, dtype=str(kind), device=a.device, like=a._array)
    return b


def _operator(name):
    engine = {"truediv": "div"}.get(name, name)
    plain, back, in_place_of_floats = (getattr(Tensor, f"__{prefix}{name}__") for prefix in ("", "r", "i"))

    def compute(a, b, swap):
        if lib.slpy_integers(a._p, NULL):
            b = _numbers(a, b)
            same = isinstance(b, Tensor) and lib.sl_tensor_dtype(a._p) == lib.sl_tensor_dtype(b._p)
            if same or not isinstance(b, Tensor) and hasattr(b, "__float__"):
                return classify(_whole.arithmetic(engine, a, b, swap), a)
        if engine == "mod":  # by 0 it is 0, as in MXNet
            return classify(remainder_of_floats(a, b, swap), a) if isinstance(b, Tensor) or hasattr(b, "__float__") else NotImplemented
        return (back if swap else plain)(a, b)

    def forward(a, b):
        return compute(a, b, False)

    def backward(a, b):
        return compute(a, b, True)

    def in_place(a, b):
        if engine in ("mod", "pow") or lib.slpy_integers(a._p, NULL):
            a[:] = compute(a, b, False)
            return a
        return in_place_of_floats(a, b)

    for method, prefix in ((forward, ""), (backward, "r"), (in_place, "i")):
        method.__name__ = f"__{prefix}{name}__"
        setattr(NDArray, method.__name__, method)


for _name in ("add", "sub", "mul", "truediv", "pow", "mod"):
    _operator(_name)


def _negative(a):
    if lib.slpy_integers(a._p, NULL):
        return classify(_whole.arithmetic("sub", a, 0, True))  # the smallest number is its own negative
    return Tensor.__neg__(a)


def _absolute(a):
    if lib.slpy_integers(a._p, NULL):
        return classify(_whole.absolute(a), a)
    return Tensor.__abs__(a)


NDArray.__neg__, NDArray.__abs__ = _negative, _absolute


def _comparison(name):
    plain = getattr(Tensor, name)

    def method(a, b):
        if isinstance(b, (float, numpy.floating)) and lib.slpy_integers(a._p, NULL):
            b = _whole.number_as(b, lib.sl_tensor_dtype(a._p))  # as in MXNet, numbers beside integers become integers
        return plain(a, b)

    method.__name__ = name
    setattr(NDArray, name, method)


def _absent(name):
    def look(self):
        raise AttributeError(f"'NDArray' object has no attribute {name!r}")  # NumPy computes it from the values

    setattr(NDArray, name, property(look))


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    _comparison(_name)
NDArray.__hash__ = Tensor.__hash__
refuse_all("NDArray", NDArray, "the public functions of arrays")
for _name in ("all", "any", "var", "std"):
    _absent(_name)
