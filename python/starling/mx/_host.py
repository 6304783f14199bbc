"""Functions that NumPy computes on the host, with gradients that NumPy computes, too."""
import numpy

from .._custom import Function
from .._tensor import Tensor, array


def made(values, like, dtype=None):
    """The values as an array of the class and on the device of another one, in its data type unless dtype says otherwise."""
    values = numpy.asarray(values, order="C")
    dtype = str(dtype or (Tensor.dtype.fget(like) if values.dtype.kind == "f" else values.dtype))
    made_ = array(values.astype(dtype), dtype, like.device, like._array)
    return made_ if values.ndim or like._scalars else made_.reshape((1,))


class _Host(Function):
    def __init__(self, compute, gradient):
        super().__init__()
        self._compute, self._gradient = compute, gradient

    def forward(self, *inputs):
        self._inputs, given = inputs, [x.numpy() for x in inputs]
        results = self._compute(*given)
        self._single = not isinstance(results, tuple)
        results = (results,) if self._single else results
        self._values = given, results
        arrays = [made(y, inputs[0]) for y in results]
        return arrays[0] if self._single else arrays

    def backward(self, *output_grads):
        given, results = self._values
        dys = [dy.numpy().reshape(numpy.shape(y)) for dy, y in zip(output_grads, results)]
        grads = self._gradient(given, results[0] if self._single else results, *dys)
        grads = grads if isinstance(grads, tuple) else (grads,)
        return [None if g is None else made(numpy.asarray(g).reshape(x.shape), x, Tensor.dtype.fget(x)) for g, x in zip(grads, self._inputs)]


def on_host(compute, gradient, *inputs):
    """compute(*values) of arrays, recorded with gradient(values, results, *gradients of the results); None is no gradient."""
    return _Host(compute, gradient)(*inputs)


def constant(compute, *inputs):
    """compute(*values) of arrays, without a gradient."""
    results = compute(*(x.numpy() for x in inputs))
    if isinstance(results, tuple):
        return [made(y, inputs[0]) for y in results]
    return made(results, inputs[0])
