"""mx.np: NumPy's functions over arrays of the engine, as programs with npx.set_np() use them."""

import builtins

import numpy

from .. import _ops as ops
from .._core import NULL, InvalidArgument, lib
from .._tensor import Tensor
from . import nd as _f
from . import np_linalg as _np_linalg, np_random as _np_random
from . import random as _random
from ._mode import set_np
from ._np import as_array as _as_array
from ._signed import as_mxnet as _as_mxnet, into, signed as _signed
from .unsupported import Space, missing, not_here
from ._array import NDArray, apart, in_shape
from .context import known as _known
from .np_by_numpy import *  # noqa: F403
from .np_manipulation import *  # noqa: F403
from .np_manipulation import rows_first as _rows_first
from .np_math import *  # noqa: F403
from .np_math import promoted as _promoted
from ._program import Symbol, classify

set_printoptions = numpy.set_printoptions
e, pi, inf, nan, newaxis = numpy.e, numpy.pi, numpy.inf, numpy.nan, None
float16, float32, float64 = numpy.float16, numpy.float32, numpy.float64
uint8, int8, int32, int64, bool_, bool = numpy.uint8, numpy.int8, numpy.int32, numpy.int64, numpy.bool_, numpy.bool_
NaN = NAN = nan
Inf = inf


def _is_mask(key):
    return isinstance(key, (Tensor, numpy.ndarray)) and key.dtype == numpy.bool_


def _known_masks(key):
    """An index whose masks have values that are known: those of arrays are waited for."""
    if not isinstance(key, tuple):
        return _known_masks((key,))[0] if _is_mask(key) and key.ndim > 1 else key
    return tuple(k.numpy() if isinstance(k, Tensor) and not k.is_symbol and _is_mask(k) else k for k in key)


def _masked(a, mask):
    """The elements where a mask is true; waits for it, because it determines the shape."""
    mask = mask.numpy() if isinstance(mask, Tensor) else mask
    if mask.shape != a.shape[: mask.ndim]:
        raise IndexError(f"a mask of shape {mask.shape} does not fit the shape {a.shape}")
    chosen = numpy.flatnonzero(mask).astype("int32")
    return a.reshape((-1,) + a.shape[mask.ndim :])[chosen]


class ndarray(NDArray):
    """An array with NumPy's semantics: scalars have no axes, comparisons give bools."""

    __slots__ = ()
    _scalars = True
    T = Tensor.T

    def __getitem__(self, key):
        return NDArray.__getitem__(self, _known_masks(key)) if not _is_mask(key) else _masked(self, key)

    def __setitem__(self, key, value):
        NDArray.__setitem__(self, _known_masks(key), value)

    def __format__(self, spec):
        if spec and self.ndim:
            raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
        return format(self.asnumpy()[()], spec) if spec else str(self)

    @property
    def dtype(self):
        """The data type as NumPy's."""
        return Tensor.dtype.fget(self)

    def item(self, *index):
        """The value of an array with one element, or of the element there."""
        return Tensor.item(self[index] if index else self)

    @property
    def asscalar(self):
        """MXNet's arrays of np have item."""
        raise AttributeError("arrays of mx.np have no asscalar; use item")

    def as_nd_ndarray(self):
        """The same array for mx.nd."""
        return _as(self.copy(), NDArray)

    def as_np_ndarray(self):
        """The array itself."""
        return self

    def copy(self, order="C"):
        """A copy of the array."""
        _rows_first("ndarray.copy", order)
        return Tensor.copy(self)

    def as_in_ctx(self, ctx):
        """The array itself if it is on that context, else a copy."""
        return self.as_in_context(ctx)

    def astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
        """The values as another data type; without copy the array itself, if it is of that type."""
        if order != "K" or casting != "unsafe" or not subok:
            raise not_here("ndarray.astype with order, casting or subok", "order='K', casting='unsafe', subok=True")
        return NDArray.astype(self, dtype, copy)

    def reshape(self, *several, shape=(), order="C", reverse=False):
        """The same values in another shape; -1 is computed."""
        _rows_first("ndarray.reshape", order)
        wanted = shape or several
        if reverse:
            return apart(NDArray.reshape(self, wanted, reverse=True))
        return apart(in_shape(self, *(wanted if isinstance(wanted, (tuple, list)) else [wanted])))

    def transpose(self, *axes):
        """With the axes in another order, or in reverse."""
        return transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    def __repr__(self):
        if self.is_symbol:
            return NDArray.__repr__(self)
        text = repr(self.asnumpy())
        if self.dtype == numpy.float32:
            text = text.replace(", dtype=float32)", ")")
        return text if self.context.device_type == "cpu" else f"{text[:-1]}, ctx={self.context})"

    def __str__(self):
        if self.is_symbol:
            return NDArray.__repr__(self)
        place = "" if self.context.device_type == "cpu" else f" @{self.context}"
        return str(self.asnumpy()) + place

    __hash__ = NDArray.__hash__


def _operands(name, a, b):
    """The operands of an operator as in MXNet: of one type, floats for /, int64 for a bool beside a number."""
    if isinstance(b, (list, tuple, numpy.ndarray)):
        b = array(b, dtype=None if isinstance(b, (list, tuple)) else str(b.dtype), ctx=a.context)
    if not isinstance(b, Tensor):
        if name == "truediv":
            return a.astype("float32"), b
        return (a.astype("int64"), int(b)) if lib.slpy_truths(a._p, NULL) else (a, b)
    if name == "truediv" and lib.slpy_whole(a._p, b._p) == 3:
        return a.astype("float32"), b.astype("float32")
    a, b = _promoted(a, b)
    return (a.astype("int64"), b.astype("int64")) if lib.slpy_truths(a._p, NULL) and name not in ("add", "mul") else (a, b)


def _mixed(name, prefix=""):
    """An operator that takes arrays of two data types."""
    compute = getattr(NDArray, f"__{prefix}{name}__")

    def method(self, other):
        array_like = isinstance(other, (Tensor, list, tuple, numpy.ndarray))
        other_type = isinstance(other, Tensor) and lib.sl_tensor_dtype(self._p) != lib.sl_tensor_dtype(other._p)
        whole = lib.slpy_whole(self._p, NULL) if name == "truediv" else lib.slpy_truths(self._p, NULL)
        if whole or other_type or not isinstance(other, Tensor) and (array_like or not hasattr(other, "__float__")):
            if not array_like and not hasattr(other, "__float__"):
                return NotImplemented
            self, other = _operands(name, self, other)
            if lib.slpy_truths(self._p, NULL):  # two arrays of bools
                return ops.logical_or(self, other) if name == "add" else ops.logical_and(self, other)
        return compute(self, other)

    method.__name__ = f"__{prefix}{name}__"
    return method


def _in_place(name):
    compute = getattr(NDArray, f"__i{name}__")

    def method(self, other):
        if isinstance(other, Tensor) and lib.sl_tensor_dtype(self._p) != lib.sl_tensor_dtype(other._p):
            other = other.astype(self.dtype)
        return compute(self, other)

    return method


def _comparison(name):
    compare = getattr(NDArray, name)

    def method(self, other):
        if isinstance(other, Tensor) and lib.sl_tensor_dtype(self._p) != lib.sl_tensor_dtype(other._p):
            self, other = _promoted(self, other)
        elif lib.slpy_truths(self._p, NULL) and isinstance(other, (int, float)):
            other = bool(other)
        result = compare(self, other)
        return result if result is NotImplemented else result.astype("bool")

    return method


for _name in ("add", "sub", "mul", "truediv", "pow", "mod"):
    setattr(ndarray, f"__{_name}__", _mixed(_name))
    setattr(ndarray, f"__r{_name}__", _mixed(_name, "r"))
    setattr(ndarray, f"__i{_name}__", _in_place(_name))
for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(ndarray, _name, _comparison(_name))
ndarray.__neg__ = lambda a: NDArray.__neg__(a.astype("int64") if lib.slpy_truths(a._p, NULL) else a)


def _no_bits(a):
    if not lib.slpy_integers(a._p, NULL):
        raise TypeError(f"~ takes bools or whole numbers, not {Tensor.dtype.fget(a)}")
    return -1 - a


def _bits(name, of_bools):
    """&, | or ^: of bools what is true, of whole numbers their bits, which NumPy computes."""

    def method(a, b):
        kinds = [x.dtype.name if isinstance(x, (numpy.ndarray, numpy.generic)) else str(Tensor.dtype.fget(x)) if isinstance(x, Tensor) else type(x).__name__ for x in (a, b)]
        if builtins.all(kind == "bool" for kind in kinds):
            return of_bools(a, b)
        if not builtins.all("int" in kind or kind == "bool" for kind in kinds):
            raise TypeError(f"{name} takes bools or whole numbers, not {' and '.join(kinds)}")
        return array(getattr(numpy, name)(*(x.asnumpy() if isinstance(x, Tensor) else x for x in (a, b))))

    return method


ndarray.__and__ = ndarray.__rand__ = _bits("bitwise_and", lambda a, b: logical_and(a, b))
ndarray.__or__ = ndarray.__ror__ = _bits("bitwise_or", lambda a, b: logical_or(a, b))
ndarray.__xor__ = ndarray.__rxor__ = _bits("bitwise_xor", lambda a, b: logical_xor(a, b))
ndarray.__invert__ = lambda a: logical_not(a) if lib.slpy_truths(a._p, NULL) else _no_bits(a)


class _Symbol(Symbol, ndarray):
    __slots__ = ()
    __hash__ = NDArray.__hash__

    def __repr__(self):
        return f"<_Symbol {self.name}>"

    __str__ = __repr__


ndarray._array, ndarray._symbol = ndarray, _Symbol


def _as(t, kind):
    t.__class__ = kind
    return classify(t)


def _place(ctx, device):
    return ctx or device


# ---- new arrays


def array(object, dtype=None, ctx=None, device=None):
    """An array of the values: float32 unless dtype says otherwise, or NumPy's array has whole numbers or bools."""
    if dtype is None and isinstance(object, (numpy.ndarray, numpy.generic)) and str(object.dtype) in ("int64", "int32", "uint8", "bool"):
        dtype = str(object.dtype)
    return _as(_f.array(object, _place(ctx, device), dtype), ndarray)


def _maker(name, make):
    def call(shape, dtype=None, order="C", ctx=None, device=None):
        _rows_first(name, order)
        return _as(make(shape, dtype=dtype or "float32", device=_known(_place(ctx, device)).device), ndarray)

    call.__name__, call.__doc__ = name, make.__doc__
    return call


zeros, ones, empty = _maker("zeros", ops.zeros), _maker("ones", ops.ones), _maker("empty", ops.zeros)


def full(shape, fill_value, dtype=None, order="C", ctx=None, device=None, out=None):
    """An array of one value."""
    _rows_first("full", order)
    if not numpy.isscalar(fill_value) and fill_value is not None:
        values = _as_array(fill_value).astype(dtype or "float32")
        return into(broadcast_to(values, shape).as_in_ctx(_known(_place(ctx, device))), out)
    return into(_as(_f.full(shape, fill_value, _place(ctx, device), dtype or "float32"), ndarray), out)


def arange(start, stop=None, step=1, dtype=None, ctx=None, device=None):
    """Numbers from start (0 if only stop is given) to stop, step apart."""
    return _as(_f.arange(start, stop, 1 if step is None else step, ctx=_place(ctx, device), dtype=dtype or "float32"), ndarray)


def genfromtxt(*args, ctx=None, **kwargs):
    """The numbers in a file of text, as NumPy reads them, in its data type."""
    values = numpy.genfromtxt(*args, **kwargs)
    return array(values, str(values.dtype), ctx)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, ctx=None, device=None):
    """num numbers from start to stop; with retstep also their distance."""
    if axis != 0:
        raise not_here(f"np.linspace(axis={axis})", "axis 0")
    if not isinstance(num, (builtins.int, numpy.integer)) or num < 0:
        raise InvalidArgument(f"linspace: num is {num!r}, a whole number from 0 on is needed")
    numbers, step = numpy.linspace(start, stop, num, endpoint, retstep=True)
    if dtype is not None and numpy.dtype(dtype).kind in "iu":
        numbers = numpy.floor(numbers)  # as NumPy does
    made = array(numbers, dtype, ctx, device)
    return (made, float(step)) if retstep else made


def eye(N, M=None, k=0, dtype=None, ctx=None, device=None):
    """Ones on a diagonal."""
    if N < 0 or (M is not None and M < 0):
        raise InvalidArgument(f"eye: {N} rows and {M} columns; numbers from 0 on are needed")
    return array(numpy.eye(N, M, k), dtype, ctx, device)


def identity(n, dtype=None, ctx=None, device=None):
    """Ones on the diagonal."""
    return eye(n, dtype=dtype, ctx=ctx, device=device)


def zeros_like(a, dtype=None):
    """Zeros in the shape of an array."""
    return _f.zeros_like(a) if dtype is None else _f.zeros_like(a).astype(dtype)


def ones_like(a, dtype=None):
    """Ones in the shape of an array."""
    return _f.ones_like(a) if dtype is None else _f.ones_like(a).astype(dtype)


def empty_like(prototype, dtype=None, order="C", subok=False, shape=None):
    """An array in the shape of another one."""
    _rows_first("empty_like", order)
    if subok or shape is not None:
        raise not_here("np.empty_like with subok or shape", "np.empty")
    return zeros_like(prototype, dtype)


def full_like(a, fill_value, dtype=None):
    """One value in the shape of an array."""
    return ones_like(a, dtype) * fill_value


def _dot(a, b, out=None):
    return dot(a, b, out)


def _clip(a, min=None, max=None, out=None):
    """Elements between two bounds, of which one may be None."""
    return clip(a, min, max, out)


ndarray.dot = _dot
ndarray.ravel = ndarray.flatten = ravel


class linalg(metaclass=Space):
    """NumPy's linear algebra."""

    @staticmethod
    def norm(x, ord=None, axis=None, keepdims=False):
        """The root of the sum of squares; with ord=1 the sum of absolute values, of a matrix the largest of its columns'."""
        matrix = ord is not None and (x.ndim == 2 if axis is None else not isinstance(axis, builtins.int) and len(tuple(axis)) == 2)
        if ord is None or (matrix and ord == "fro"):
            return _f.norm(x, 2, axis, keepdims=keepdims)
        if axis is None and x.ndim > 2:
            raise InvalidArgument(f"norm: ord={ord} of an array of {x.ndim} axes")
        if not matrix:
            return _f.norm(x, ord, axis, keepdims=keepdims)
        if ord != 1 or axis is not None:
            raise not_here(f"norm(ord={ord}) of matrices", "ord=1 without axis, 'fro', or vectors")
        return max(sum(abs(x), axis=0, keepdims=keepdims), keepdims=keepdims)


def _size_of(size, out, *parameters):
    """The shape of random numbers: that of out, or of their parameters, if none is given."""
    shapes = [p.shape for p in parameters]
    size = size if size is not None else numpy.broadcast_shapes(*shapes) if out is None else out.shape
    size = (size,) if isinstance(size, int) else tuple(size)
    if numpy.broadcast_shapes(size, *shapes) != size:
        raise InvalidArgument(f"random numbers of shape {size} cannot have parameters of shapes {', '.join(map(str, shapes))}")
    return size


def _of_arrays(*parameters):
    """The parameters as arrays, if one is none of Python's numbers; otherwise nothing."""
    if builtins.all(isinstance(p, (bool, builtins.int, builtins.float)) for p in parameters):
        return ()
    return [p if isinstance(p, Tensor) else array(p) for p in parameters]


class random(metaclass=Space):
    """Random arrays by NumPy's names."""

    @staticmethod
    def seed(seed=None, ctx="all"):
        """Restarts random numbers with this seed."""
        _random.seed(numpy.random.SeedSequence().entropy % 2**32 if seed is None else seed, ctx)

    @staticmethod
    def normal(loc=0.0, scale=1.0, size=None, dtype=None, ctx=None, out=None, device=None):
        """Normal numbers with mean loc and standard deviation scale."""
        if given := _of_arrays(loc, scale):
            return into(random.normal(0.0, 1.0, _size_of(size, out, *given), dtype, ctx, None, device) * given[1] + given[0], out)
        return into(_as(_random.normal(loc, scale, _size_of(size, out), dtype, _place(ctx, device)), ndarray), out)

    @staticmethod
    def uniform(low=0.0, high=1.0, size=None, dtype=None, ctx=None, out=None, device=None):
        """Uniform numbers from low to high."""
        if given := _of_arrays(low, high):
            drawn = random.uniform(0.0, 1.0, _size_of(size, out, *given), dtype, ctx, None, device)
            return into(drawn * (given[1] - given[0]) + given[0], out)
        return into(_as(_random.uniform(low, high, _size_of(size, out), dtype, _place(ctx, device)), ndarray), out)

    @staticmethod
    def randn(*size, dtype=None, ctx=None):
        """Normal numbers in that shape."""
        return random.normal(0, 1, size, dtype, ctx)

    @staticmethod
    def rand(*size, dtype=None, ctx=None):
        """Uniform numbers from 0 to 1 in that shape."""
        return random.uniform(0, 1, size, dtype, ctx)

    @staticmethod
    def randint(low, high=None, size=None, dtype=None, ctx=None, out=None, device=None):
        """Random integers from low (0 if only one bound is given) to high, exclusive."""
        low, high = (0, low) if high is None else (low, high)
        dtype = "int64" if dtype in (None, "int", int) and out is None else dtype
        made = _random.randint(low, high, _size_of(size, out), dtype, _place(ctx, device))
        return into(_as(made, ndarray), out)

    @staticmethod
    def choice(a, size=None, replace=True, p=None, ctx=None, out=None):
        """Numbers below a, or elements of a, drawn at random."""
        n, device = a if isinstance(a, int) else a.shape[0], _known(ctx).device
        count = int(numpy.prod(() if size is None else size))
        if p is not None:
            if not replace:
                raise not_here("np.random.choice(p=…, replace=False)", "replace=True")
            drawn = ops.multinomial(_as_array(p), count)
        elif replace:
            drawn = ops.randint((count,), 0, n, dtype="int32", device=device)
        else:
            drawn = ops.permutation(n, device)[:count]
        drawn.__class__ = ndarray
        shape = (size,) if isinstance(size, int) else tuple(size or ())
        return into(drawn.reshape(shape).astype("int64") if isinstance(a, int) else a[drawn].reshape(shape), out)

    @staticmethod
    def permutation(x):
        """The numbers below x, or the rows of x, in another order."""
        order = ops.permutation(x if isinstance(x, int) else x.shape[0])
        order.__class__ = ndarray
        return order if isinstance(x, int) else x[order]

    @staticmethod
    def shuffle(x):
        """Puts the rows into another order, in place."""
        x[:] = random.permutation(x)

    @staticmethod
    def exponential(scale=1.0, size=None, ctx=None, out=None, device=None):
        """Exponentially distributed numbers with that mean."""
        given = _of_arrays(scale)
        _random.check_scale(scale)
        return into(ops.log(1 - random.uniform(0, 1, _size_of(size, out, *given), None, ctx, None, device)) * (-1 * scale), out)


for _module, _space in ((_np_linalg, linalg), (_np_random, random)):
    for _name in _module.__all__:
        setattr(_space, _name, staticmethod(getattr(_module, _name)))
for _name in ("prod", "cumsum", "any", "all", "sort", "argsort", "repeat", "diagonal", "round", "nonzero"):
    setattr(ndarray, _name, globals()[_name])
_as_mxnet("np", globals())
ndarray.clip = _clip
for _method in (sum, mean, max, min, var, std, argmax, argmin):
    setattr(ndarray, _method.__name__, _method)
for _space in (random, linalg):
    for _name in [n for n in vars(_space) if not n.startswith("_")]:
        setattr(_space, _name, staticmethod(_signed(f"np.{_space.__name__}.{_name}", getattr(_space, _name))))
__getattr__ = missing("mx.np")
