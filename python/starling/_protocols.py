"""NumPy's functions of tensors: those that the engine has under the same name are operations, all others are NumPy's.

Operations give tensors, are asynchronous and recorded; NumPy's functions wait, and give NumPy arrays.
"""
import numpy

from . import _ops
from ._creation import maximum, minimum, where
from ._tensor import Tensor

_OPERATORS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow", "matmul": "matmul", "floor_divide": "floordiv", "remainder": "mod", "divmod": "divmod", "less": "lt",
    "less_equal": "le", "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "bitwise_and": "and",
    "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
# Functions of floats with NumPy's results.  (Functions that differ in corner cases, such as rounding, are left out.)
_OF_ONE = {name: name for name in "exp log sqrt square sin cos tan sinh cosh tanh log1p expm1 reciprocal sign floor ceil".split()}
_OF_ONE |= {"negative": "neg", "absolute": "abs", **{f"arc{name}": f"a{name}" for name in "sin cos tan sinh cosh tanh".split()}}
_OF_TWO = {"maximum": maximum, "minimum": minimum}

_operators = {getattr(numpy, name): operator for name, operator in _OPERATORS.items()}
_of_one = {getattr(numpy, theirs): getattr(_ops, name) for theirs, name in _OF_ONE.items()}
_of_two = {getattr(numpy, name): function for name, function in _OF_TWO.items()}


def _array(x):
    """Nested arguments with NumPy arrays instead of tensors."""
    if isinstance(x, Tensor):
        return numpy.asarray(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map(_array, x)) if type(x) in (list, tuple) else x
    return {key: _array(value) for key, value in x.items()} if type(x) is dict else x


def _is_float(*tensors):
    return all(isinstance(t, Tensor) and t._truths and "float" in str(t.dtype) for t in tensors)


def _operation(ufunc, inputs):
    """The result of the engine's operation; None if it has none."""
    if ufunc in _operators:
        name, (a, b) = _operators[ufunc], inputs
        if isinstance(a, Tensor):
            return getattr(a, f"__{name}__")(b)
        return getattr(b, f"__{_TURNED.get(name, 'r' + name)}__")(a)
    if ufunc in _of_one and _is_float(*inputs):
        return _of_one[ufunc](*inputs)
    if ufunc in _of_two and any(isinstance(t, Tensor) and t._truths for t in inputs):
        return _of_two[ufunc](*inputs)
    return None


def _no_output(out):
    if any(isinstance(t, Tensor) for t in (out if isinstance(out, tuple) else (out,))):
        raise TypeError("NumPy's functions cannot write to a tensor: out is one")


def array_ufunc(self, ufunc, method, *inputs, **options):
    """numpy.exp(t), array + t, and so on: see the module."""
    if method == "__call__" and not options:
        found = _operation(ufunc, inputs)
        if found is not None:
            return found
    _no_output(options.get("out"))
    return getattr(ufunc, method)(*_array(inputs), **_array(options))


def _reduced(name):
    operation = getattr(_ops, name)

    def function(a, axis=None, *, keepdims=False):
        return operation(a, axis, keepdims=bool(keepdims)) if _is_float(a) and a.size else NotImplemented

    return function


def _concatenate(arrays, axis=0):
    one = isinstance(arrays, (list, tuple)) and len({str(getattr(a, "dtype", None)) for a in arrays}) == 1
    return _ops.concat(list(arrays), axis) if one and all(isinstance(a, Tensor) and a._truths for a in arrays) and axis is not None else NotImplemented


def _where(condition, x, y):
    return where(condition, x, y)


def _transpose(a, axes=None):
    return _ops.transpose(a, axes)


_functions = {numpy.shape: lambda a: a.shape, numpy.ndim: lambda a: a.ndim, numpy.concatenate: _concatenate, numpy.where: _where, numpy.transpose: _transpose}
for _name, _c in (("sum", "sum"), ("mean", "mean"), ("max", "max"), ("amax", "max"), ("min", "min"), ("amin", "min")):
    _functions[getattr(numpy, _name)] = _reduced(_c)


def array_function(self, function, types, args, kwargs):
    """numpy.mean(t), numpy.concatenate([t, u]), and so on: see the module."""
    if self._truths and function in _functions:
        try:
            found = _functions[function](*args, **kwargs)
        except TypeError:  # options that NumPy alone has
            found = NotImplemented
        if found is not NotImplemented:
            return found
    _no_output(kwargs.get("out"))
    return function(*_array(args), **_array(kwargs))


setattr(Tensor, "__array_ufunc__", array_ufunc)
setattr(Tensor, "__array_function__", array_function)
