"""mx.nd.contrib and mx.contrib: loops, boxes in images, and further functions."""
import numpy

from .. import _ops as ops
from .._core import InvalidArgument, StateError
from .._tensor import Tensor
from . import _loops, text
from ._host import constant, made
from ._program import classify
from .autograd import is_recording
from .ctc import CTCLoss, ctc_loss
from .detection import *  # noqa: F403
from .functions import stack
from .unsupported import missing, not_here


def SparseEmbedding(data, weight, input_dim=None, output_dim=None, dtype="float32", deterministic=False):
    """Embedding whose gradient is given as sparse rows."""
    from .layers import Embedding

    return Embedding(data, weight, input_dim, output_dim, dtype, sparse_grad=True)


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


# ---- loops


def foreach(body, data, init_states, name=None):
    """Calls body(row, states) for each row; returns the outputs stacked, and the last states."""
    if _loops.has_symbols(data, init_states):
        return _loops.foreach(body, data, init_states, name)
    several, states = isinstance(data, (list, tuple)), init_states
    rows, outputs, tuples = _list(data), [], False
    for i in range(rows[0].shape[0]):
        output, states = body([d[i] for d in rows] if several else data[i], states)
        tuples = isinstance(output, (list, tuple))
        outputs.append(_list(output))
    stacked = [stack(*parts, axis=0) for parts in zip(*outputs)]
    return (stacked if tuples else stacked[0]), states


def while_loop(cond, func, loop_vars, max_iterations=None, name=None):
    """Calls func(*loop_vars), which returns (output, new loop_vars), while cond(*loop_vars) holds: (outputs stacked, and filled up to
    max_iterations with zeros, the last loop_vars)."""
    if max_iterations is None:
        raise InvalidArgument("max_iterations should be specified")
    if _loops.has_symbols(loop_vars):
        return _loops.while_loop(cond, func, loop_vars, max_iterations, name)
    variables, outputs, single = _list(loop_vars), [], False
    while len(outputs) < max_iterations and is_true("while_loop", cond(*variables)):
        output, after = func(*variables)
        after = _list(after if after is not None else [])
        if len(after) != len(variables):
            raise InvalidArgument("The length of loop_vars should be consistent during the loop")
        single, variables = not isinstance(output, (list, tuple)), after
        outputs.append(_list(output if output is not None else []))
    stacked = [padded(parts, max_iterations) for parts in zip(*outputs)]
    return (stacked[0] if single and stacked else stacked), variables if isinstance(loop_vars, (list, tuple)) else variables[0]


def padded(rows, count):
    """The rows in one array, and zeros up to the count."""
    rows = stack(*rows, axis=0)
    if rows.shape[0] == count:
        return rows
    from .functions import concat, zeros

    return concat(rows, zeros((count - rows.shape[0], *rows.shape[1:]), dtype=str(numpy.dtype(rows.dtype))), dim=0)


def cond(pred, then_func, else_func, name=None):
    """The result of one of two functions; waits for the condition."""
    if _loops.has_symbols(pred):
        return _loops.cond(pred, then_func, else_func, name)
    return then_func() if is_true("cond", pred) else else_func()


def is_true(function, condition):
    """Whether a condition is true; symbols have no values."""
    if isinstance(condition, Tensor) and condition.is_symbol:
        raise StateError(f"{function}: a condition inside a block has no values: they exist only when the block runs; it cannot be compiled")
    return bool(condition.asscalar()) if isinstance(condition, Tensor) else bool(condition)


# ---- element by element


def isfinite(data):
    """1 where an element is a number, neither infinite nor NaN, else 0."""
    return classify(ops.isfinite(data))


def isnan(data):
    """1 where an element is NaN, else 0."""
    return data != data


def isinf(data):
    """1 where an element is infinite, else 0."""
    return classify(ops.eq_scalar(ops.abs(data), float("inf")), data)


def quadratic(data, a=0.0, b=0.0, c=0.0):
    """a·x² + b·x + c."""
    return data * data * a + data * b + c


def div_sqrt_dim(data):
    """Elements divided by the root of the length of the last axis."""
    return data / float(numpy.sqrt(data.shape[-1]))


def _straight(name, doc):
    def call(data):
        from . import elementwise
        from .functions import BlockGrad, sign

        value = (elementwise.round if name == "round" else sign)(data)
        return data + BlockGrad(value - data) if is_recording() else value

    call.__name__, call.__doc__ = f"{name}_ste", doc
    return call


round_ste = _straight("round", "Rounded numbers, with the gradient of the numbers themselves.")
sign_ste = _straight("sign", "Signs, with the gradient of the numbers themselves.")


def gradientmultiplier(data, scalar=1.0, is_int=True):
    """The array itself; its gradient is multiplied by scalar."""
    from .functions import BlockGrad

    return BlockGrad(data * (1 - scalar)) + data * scalar


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=True):
    """1 if all elements are nearly equal, else 0; waits for them."""
    return constant(lambda x, y: numpy.asarray([numpy.allclose(x, y, rtol, atol, equal_nan)], "uint8"), a, b)


# ---- indices


def arange_like(data, start=0.0, step=1.0, repeat=1, ctx=None, axis=None):
    """Numbers from start, step apart, in the shape of an array or with the length of an axis."""
    count = data.size if axis is None else data.shape[axis]
    numbers = numpy.repeat(start + step * numpy.arange(-(-count // repeat)), repeat)[:count].astype(numpy.float32)
    return made(numbers.reshape(data.shape) if axis is None else numbers, data, "float32")


def index_array(data, axes=None):
    """The indices of each element, on a new last axis."""
    axes = range(data.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    found = numpy.stack(numpy.meshgrid(*map(numpy.arange, data.shape), indexing="ij"), -1)
    return made(found[..., [a % data.ndim for a in axes]].astype("int64"), data, "int64")


def index_copy(old_tensor, index_vector, new_tensor):
    """The array with other rows at the indices."""
    places = index_vector.numpy().astype("int32")
    mask = numpy.zeros((old_tensor.shape[0],) + (1,) * (old_tensor.ndim - 1), numpy.float32)
    mask[places] = 1
    kept = old_tensor * made(1 - mask, old_tensor)
    return classify(ops.index_add(kept, made(places, old_tensor, "int32"), new_tensor), old_tensor)


def getnnz(data, axis=None):
    """The number of elements that are not 0."""
    return constant(lambda x: numpy.asarray(numpy.count_nonzero(x, axis), "int64"), data)


# ---- images


def _matrix(rows, like):
    return made(rows.astype(numpy.float32), like, "float32")


def _by_matrices(data, rows, columns):
    """Images with matrices applied to their heights and widths."""
    across = ops.matmul(data, _matrix(columns.T, data))
    n, c, height, width = across.shape
    turned = ops.transpose(across, [0, 1, 3, 2])
    down = ops.matmul(turned, _matrix(rows.T, data))
    return classify(ops.transpose(down, [0, 1, 3, 2]), data)


def AdaptiveAvgPooling2D(data, output_size=()):
    """The means of the parts of images, output_size of them."""
    size = (output_size,) * 2 if isinstance(output_size, int) else tuple(output_size or (1, 1))
    size = size * 2 if len(size) == 1 else size

    def means(length, count):
        rows = numpy.zeros((count, length))
        for i in range(count):
            begin, end = i * length // count, -(-(i + 1) * length // count)
            rows[i, begin:end] = 1 / (end - begin)
        return rows

    return _by_matrices(data, means(data.shape[2], size[0]), means(data.shape[3], size[1]))


def BilinearResize2D(data, like=None, height=1, width=1, scale_height=None, scale_width=None, mode="size", align_corners=True):
    """Images in another size."""
    if mode not in ("size", "like"):
        raise not_here(f"BilinearResize2D(mode={mode!r})", "size, like, or scales")
    old = data.shape[2:]
    wanted = like.shape[2:] if like is not None else (height, width)
    if scale_height is not None:
        wanted = int(scale_height * old[0]), int(scale_width * old[1])

    def weights(length, count):
        step = ((length - 1) / (count - 1) if count > 1 else 0) if align_corners else length / count
        at = numpy.arange(count) * step if align_corners else numpy.maximum((numpy.arange(count) + 0.5) * step - 0.5, 0)
        low = numpy.minimum(at.astype(int), length - 1)
        rows = numpy.zeros((count, length))
        numpy.add.at(rows, (numpy.arange(count), low), 1 - (at - low))
        numpy.add.at(rows, (numpy.arange(count), numpy.minimum(low + 1, length - 1)), at - low)
        return rows

    return _by_matrices(data, *(weights(a, b) for a, b in zip(old, wanted)))


# ---- attention over interleaved projections


def _heads(x, parts, heads):
    """The parts of projections (length, n, heads·parts·size), each (n·heads, length, size)."""
    length, n, width = x.shape
    x = x.reshape((length, n, heads, parts, width // heads // parts))
    split = [x[:, :, :, i] for i in range(parts)]
    return [ops.transpose(p, [1, 2, 0, 3]).reshape((n * heads, length, -1)) for p in split]


def _scores(queries, keys):
    return classify(ops.matmul(queries / float(numpy.sqrt(queries.shape[-1])), ops.transpose(keys, [0, 2, 1])), queries)


def _weighted(attention, values, heads):
    y = ops.matmul(attention, values)
    n, length, size = y.shape
    return classify(ops.transpose(y.reshape((n // heads, heads, length, size)), [2, 0, 1, 3]).reshape((length, n // heads, heads * size)), attention)


def interleaved_matmul_selfatt_qk(queries_keys_values, heads):
    """The scores of self-attention, from projections to queries, keys and values in turn."""
    queries, keys, _ = _heads(queries_keys_values, 3, heads)
    return _scores(queries, keys)


def interleaved_matmul_selfatt_valatt(queries_keys_values, attention, heads):
    """The values of self-attention, weighted."""
    return _weighted(attention, _heads(queries_keys_values, 3, heads)[2], heads)


def interleaved_matmul_encdec_qk(queries, keys_values, heads):
    """The scores of attention to another sequence, from projections to keys and values in turn."""
    return _scores(_heads(queries, 1, heads)[0], _heads(keys_values, 2, heads)[0])


def interleaved_matmul_encdec_valatt(keys_values, attention, heads):
    """The values of attention to another sequence, weighted."""
    return _weighted(attention, _heads(keys_values, 2, heads)[1], heads)


__getattr__ = missing("mx.contrib")
