"""mx.test_utils: what tests of programs use: comparisons, random arrays, finite differences."""
import contextlib
import functools
import os
import platform
import random as rnd  # noqa: F401, MXNet's module has these names, and tests use them
import sys  # noqa: F401
import time  # noqa: F401

import numpy

import starling.mx as mx  # MXNet's module has this name, too

from .._tensor import Tensor
from . import autograd, init, nd, sparse
from ._consistency import check_consistency
from ._draws import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator
from .context import Context, current_context, num_gpus
from .gluon.utils import download
from .unsupported import missing, not_here
from .util import is_np_shape, use_np

array = nd.array
np = numpy  # MXNet's module has these names, and tests use them
_EXACT = dict.fromkeys("bool int8 uint8 int32 uint32 int64 uint64".split(), 0)
_RTOL = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-5, **_EXACT}
_ATOL = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-20, **_EXACT}
_EPS = {"float16": 2.0**-6, "float32": 2.0**-9, "float64": 2.0**-14}
_rng = numpy.random.RandomState(1234)


def list_gpus():
    """The numbers of the GPUs."""
    return range(num_gpus())


def default_context():
    """The current context."""
    return current_context()


def set_default_context(ctx):
    """Makes this context the current one."""
    Context._current.__dict__["stack"] = [ctx]


def default_dtype():
    """float32."""
    return numpy.float32


def default_numeric_eps():
    """The usual steps of finite differences, by data types."""
    return _by_types(_EPS)


def default_rtols():
    """The usual relative tolerances, by data types."""
    return _by_types(_RTOL)


def default_atols():
    """The usual absolute tolerances, by data types."""
    return _by_types(_ATOL)


def _by_types(table):
    return {numpy.dtype(name): number for name, number in table.items()}


def effective_dtype(dat):
    """The data type that an operation has computed in."""
    return numpy.dtype(dat.dtype)


def is_cd_run():
    """Whether this is a run of MXNet's builders."""
    return False


def is_aarch64_run():
    """Whether the processor is an ARM of 64 bits."""
    return platform.machine() == "aarch64"


def has_tvm_ops():
    """Whether there are operations of TVM."""
    return False


def is_op_runnable():
    """Whether operations can run here."""
    return True


# ---- comparisons


def _values(a):
    return a.asnumpy() if isinstance(a, Tensor) else numpy.asarray(a)


def _tolerance(given, table, arrays):
    if given is not None:
        return given
    return max(table.get(str(numpy.asarray(a).dtype), 1e-5 if table is _RTOL else 1e-20) for a in arrays)


def get_rtol(rtol=None):
    """The relative tolerance."""
    return 1e-5 if rtol is None else rtol


def get_atol(atol=None):
    """The absolute tolerance."""
    return 1e-20 if atol is None else atol


def get_etol(etol=None):
    """The share of elements that may differ."""
    return 0 if etol is None else etol


def same(a, b):
    """Whether two NumPy arrays are equal."""
    return numpy.array_equal(_values(a), _values(b))


def same_array(array1, array2):
    """Whether two arrays have the same memory: a change of one changes the other."""
    array1[:] += 1
    changed = same(array1, array2)
    array1[:] -= 1
    return changed and same(array1, array2)


def almost_equal(a, b, rtol=None, atol=None, equal_nan=False, use_broadcast=True):
    """Whether arrays are nearly equal."""
    a, b = _values(a), _values(b)
    if not use_broadcast and a.shape != b.shape:
        return False
    return numpy.allclose(a, b, _tolerance(rtol, _RTOL, (a, b)), _tolerance(atol, _ATOL, (a, b)), equal_nan)


def find_max_violation(a, b, rtol=None, atol=None):
    """(the place of the largest difference, how many times the tolerance it is)."""
    a, b = numpy.broadcast_arrays(_values(a), _values(b))
    over = numpy.abs(a - b) / (get_atol(atol) + get_rtol(rtol) * numpy.abs(b) + 1e-300)
    place = numpy.unravel_index(numpy.argmax(over), over.shape)
    return place, over[place]


def locationError(a, b, index, names):
    """A text that says where arrays differ."""
    return f"Location of maximum error: {index}, {names[0]}={_values(a)[index]!r}, {names[1]}={_values(b)[index]!r}"


def assert_almost_equal(a, b, rtol=None, atol=None, names=("a", "b"), equal_nan=False, use_broadcast=True, mismatches=(10, 10)):
    """AssertionError where arrays are not nearly equal."""
    x, y = _values(a), _values(b)
    if not use_broadcast and x.shape != y.shape:
        raise AssertionError(f"{names[0]} has the shape {x.shape}, {names[1]} {y.shape}")
    rtol, atol = _tolerance(rtol, _RTOL, (x, y)), _tolerance(atol, _ATOL, (x, y))
    if numpy.allclose(x, y, rtol, atol, equal_nan):
        return
    place, times = find_max_violation(x.astype("float64"), y.astype("float64"), rtol, atol)
    raise AssertionError(f"Error {times} exceeds tolerance rtol={rtol:e}, atol={atol:e}. {locationError(*numpy.broadcast_arrays(x, y), place, names)}")


def almost_equal_ignore_nan(a, b, rtol=None, atol=None):
    """Whether arrays are nearly equal where neither is NaN."""
    a, b = _values(a).copy(), _values(b).copy()
    neither = ~(numpy.isnan(a) | numpy.isnan(b))
    return almost_equal(a[neither], b[neither], rtol, atol)


def assert_almost_equal_ignore_nan(a, b, rtol=None, atol=None, names=("a", "b")):
    """AssertionError where arrays are not nearly equal, and neither is NaN."""
    a, b = _values(a), _values(b)
    neither = ~(numpy.isnan(a) | numpy.isnan(b))
    assert_almost_equal(a[neither], b[neither], rtol, atol, names)


def assert_almost_equal_with_err(a, b, rtol=None, atol=None, etol=None, names=("a", "b"), equal_nan=False, mismatches=(10, 10)):
    """AssertionError if more than a share of the elements is not nearly equal."""
    x, y = _values(a), _values(b)
    off = ~numpy.isclose(x, y, _tolerance(rtol, _RTOL, (x, y)), _tolerance(atol, _ATOL, (x, y)), equal_nan)
    if off.mean() > get_etol(etol):
        raise AssertionError(f"{off.mean():.2%} of {names[0]} and {names[1]} differ, more than {get_etol(etol):.2%}")


def assert_allclose(a, b, rtol=1e-07, atol=0, equal_nan=True):
    """AssertionError where arrays are not nearly equal."""
    numpy.testing.assert_allclose(_values(a), _values(b), rtol, atol, equal_nan)


def assert_exception(f, exception_type, *args, **kwargs):
    """AssertionError if a call does not raise this exception."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError("Did not raise exception " + exception_type.__name__)


def compare_ndarray_tuple(t1, t2, rtol=None, atol=None):
    """AssertionError where arrays, or nested tuples of them, are not nearly equal."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, (tuple, list)):
        for a, b in zip(t1, t2):
            compare_ndarray_tuple(a, b, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def compare_optimizer(opt1, opt2, shapes, dtype, w_stype="default", g_stype="default", rtol=1e-4, atol=1e-5, compare_states=True,
                      ntensors=1):  # fmt: skip
    """AssertionError where a step of two optimisers gives other weights, or other states."""
    shapes = list(shapes) if isinstance(shapes, list) else [shapes]
    first, grads = ([rand_ndarray(s, stype, density, dtype) for s in shapes] for stype, density in ((w_stype, 1), (g_stype, None)))
    second, states = [w.copy() for w in first], ([], [])
    for found, optimizer, weights, dense in ((states[0], opt1, first, True), (states[1], opt2, second, False)):
        if dense:  # the first is the reference
            weights[:] = [w.tostype("default") for w in weights]
        found += [optimizer.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
        given = [g.tostype("default").copy() if dense else g.copy() for g in grads]
        if ntensors > 1 and not dense:
            optimizer.update_multi_precision(list(range(ntensors)), weights, given, found)
            continue
        for i, each in enumerate(zip(weights, given, found)):
            optimizer.update_multi_precision(i, *each)
    for a, b, one, other in zip(first, second, *states):
        if compare_states:
            compare_ndarray_tuple(one, other, rtol, atol)
        assert_almost_equal(a, b, rtol=rtol, atol=atol)


# ---- random and other arrays


def random_arrays(*shapes):
    """Normal numbers in these shapes, in NumPy's arrays."""
    arrays = [numpy.array(numpy.random.randn(), default_dtype()) if not s else numpy.random.randn(*s).astype(default_dtype()) for s in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes, low=0.0, high=1.0, dtype=numpy.float32):
    """Uniform numbers in these shapes, in NumPy's arrays."""
    return [numpy.random.uniform(low, high, shape).astype(dtype) for shape in shapes]


def random_sample(population, k):
    """k elements of a list, in their order."""
    chosen = numpy.random.choice(len(population), k, replace=False)
    return [population[i] for i in chosen]


def rand_shape_2d(dim0=10, dim1=10, allow_zero_size=False):
    """A random shape of two axes."""
    return rand_shape_nd(2, (dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0=10, dim1=10, dim2=10, allow_zero_size=False):
    """A random shape of three axes."""
    return rand_shape_nd(3, (dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim, dim=10, allow_zero_size=False):
    """A random shape."""
    low, high = 0 if allow_zero_size else 1, numpy.broadcast_to(dim, (num_dim,))
    return tuple(int(numpy.random.randint(low, n + 1)) for n in high)


def rand_coord_2d(x_low, x_high, y_low, y_high):
    """A random place."""
    return int(numpy.random.randint(x_low, x_high)), int(numpy.random.randint(y_low, y_high))


def rand_ndarray(shape, stype="default", density=None, dtype=None, modifier_func=None, shuffle_csr_indices=False, distribution=None, ctx=None):
    """An array of uniform numbers from -1 to 1; a sparse one of numbers from 0 to 1."""
    if stype != "default":
        return rand_sparse_ndarray(shape, stype, density, dtype, distribution, modifier_func=modifier_func, ctx=ctx)[0]
    values = numpy.random.uniform(-1, 1, shape)
    if modifier_func is not None:
        values = numpy.vectorize(modifier_func)(values)
    made = nd.array(values, ctx, dtype or default_dtype())
    return made.as_np_ndarray().reshape(()).as_nd_ndarray() if shape == () and is_np_shape() else made


def _rising(rows, columns, count):
    """Which elements are stored: one in each row, then twice as many in each row, as far as count reaches."""
    stored = numpy.zeros((rows, columns), bool)
    stored[:, 0] = numpy.arange(rows) < count
    left = count - rows
    for row in range(rows):
        more = min(columns - 1, 2 ** (row + 1) - 1, max(left, 0))
        stored[row, 1 : 1 + more], left = True, left - more
    return stored


def _stored(shape, stype, density, distribution, indices):
    """Which elements (csr), or rows, are stored."""
    if stype == "csr":
        if distribution == "powerlaw":
            return _rising(*shape, int(shape[0] * shape[1] * density))
        return numpy.random.uniform(size=shape) < density
    if indices is not None:
        return numpy.isin(numpy.arange(shape[0]), numpy.asarray(indices))
    return numpy.random.uniform(size=shape[0]) < density


def rand_sparse_ndarray(shape, stype, density=None, dtype=None, distribution=None, data_init=None, rsp_indices=None, modifier_func=None,
                        shuffle_csr_indices=False, ctx=None):  # fmt: skip
    """(an array of numbers from 0 to 1 of which a share is stored, (what is stored, and where))."""
    if stype not in ("csr", "row_sparse"):
        raise ValueError(f"unknown storage type: {stype}")
    density = numpy.random.uniform() if density is None else density
    stored = _stored(shape, stype, density, distribution, rsp_indices)
    count, rest = int(stored.sum()), (() if stype == "csr" else tuple(shape[1:]))
    values = numpy.random.uniform(size=(count, *rest)) if data_init is None else numpy.full((count, *rest), data_init)
    values = assign_each(values, modifier_func if count else None).astype(dtype or default_dtype())
    places = numpy.nonzero(stored)
    if stype == "csr":
        made = sparse.csr_matrix((values, places[1], numpy.searchsorted(places[0], numpy.arange(shape[0] + 1))), shape, ctx)
        return made, (made.indptr, made.indices, made.data)
    return sparse.row_sparse_array((values, places[0]), shape, ctx, values.dtype), (values, places[0])


def create_sparse_array(shape, stype, data_init=None, rsp_indices=None, dtype=None, modifier_func=None, density=0.5, shuffle_csr_indices=False):
    """A sparse array; rsp_indices are the rows that are stored."""
    return rand_sparse_ndarray(shape, stype, density, dtype, data_init=data_init, rsp_indices=rsp_indices, modifier_func=modifier_func)[0]


def create_sparse_array_zd(shape, stype, density, data_init=None, rsp_indices=None, dtype=None, modifier_func=None, shuffle_csr_indices=False):
    """The same, without rows but those of rsp_indices."""
    return create_sparse_array(shape, stype, data_init, rsp_indices, dtype, modifier_func, density if stype == "csr" else 0.0)


def create_2d_tensor(rows, columns, dtype=numpy.int64):
    """Rows of their numbers."""
    return nd.array(numpy.broadcast_to(numpy.arange(rows)[:, None], (rows, columns)), dtype=dtype)


def create_vector(size, dtype=numpy.int64):
    """The numbers below size."""
    return nd.array(numpy.arange(size), dtype=dtype)


def assign_each(the_input, function):
    """A function of each element."""
    return the_input if function is None else numpy.vectorize(function)(the_input)


def assign_each2(input1, input2, function):
    """A function of the elements of two arrays."""
    return numpy.array(input1) if function is None else numpy.vectorize(function)(input1, input2)


def new_sym_matrix_with_real_eigvals_2d(n):
    """A symmetric matrix."""
    q, _ = numpy.linalg.qr(numpy.random.uniform(-1, 1, (n, n)))
    return q.T @ numpy.diag(numpy.random.uniform(-1, 1, n)) @ q


def new_sym_matrix_with_real_eigvals_nd(shape):
    """Symmetric matrices."""
    count = int(numpy.prod(shape[:-2]))
    return numpy.array([new_sym_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(count)]).reshape(shape)


def new_matrix_with_real_eigvals_2d(n):
    """A matrix with real eigenvalues."""
    shape = (n, n)
    q = numpy.ones(shape)
    while numpy.linalg.cond(q) > 3:
        q = numpy.random.uniform(-1, 1, shape) + numpy.eye(n) * n
    return numpy.linalg.inv(q) @ numpy.diag(numpy.random.uniform(-1, 1, n)) @ q


def new_matrix_with_real_eigvals_nd(shape):
    """Matrices with real eigenvalues."""
    count = int(numpy.prod(shape[:-2]))
    return numpy.array([new_matrix_with_real_eigvals_2d(shape[-1]) for _ in range(count)]).reshape(shape)


def np_reduce(dat, axis, keepdims, numpy_reduce_func):
    """A reduction of NumPy's along several axes."""
    axis = list(range(dat.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    result = dat
    for i in sorted((a % dat.ndim for a in axis), reverse=True):
        result = numpy_reduce_func(result, axis=i)
    return result.reshape([1 if i in [a % dat.ndim for a in axis] else n for i, n in enumerate(dat.shape)]) if keepdims else result


def collapse_sum_like(a, shape):
    """The sum along the axes that broadcasting has lengthened."""
    extra = len(a.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and a.shape[i + extra] != 1)
    return numpy.sum(a, axis=axes).reshape(shape) if axes else a.reshape(shape)


# ---- symbols


def _named(location, sym, ctx, dtype=numpy.float32):
    """The arguments of a symbol by their names; those that are NumPy's arrays of that data type."""
    names = sym.list_arguments()
    given = dict(zip(names, location)) if isinstance(location, (list, tuple)) else dict(location)
    if set(given) != set(names):
        raise ValueError(f"Symbol arguments and keys of the given location do not match. symbol args: {names}, location: {sorted(given)}")
    return {k: v if isinstance(v, Tensor) else nd.array(v, ctx, getattr(v, "dtype", None) if dtype == "asnumpy" else dtype) for k, v in given.items()}


def _arrays(values, ctx):
    """Auxiliary states as arrays, by name or in order."""
    def one(v):
        return v if isinstance(v, Tensor) else nd.array(v, ctx)

    return {k: one(v) for k, v in values.items()} if isinstance(values, dict) else [one(v) for v in values]


def simple_forward(sym, ctx=None, is_train=False, **inputs):
    """The results of a symbol, as NumPy's arrays."""
    executor = sym.bind(ctx or default_context(), args=_named({k: numpy.asarray(v) for k, v in inputs.items()}, sym, ctx))
    outputs = [y.asnumpy() for y in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def check_symbolic_forward(sym, location, expected, rtol=1e-4, atol=None, aux_states=None, ctx=None, equal_nan=False, dtype=numpy.float32):
    """AssertionError where a symbol's results are not those expected; returns them."""
    ctx = ctx or default_context()
    executor = sym.bind(ctx, args=_named(location, sym, ctx, dtype), aux_states=aux_states and _arrays(aux_states, ctx))
    outputs = executor.forward(is_train=False)
    wanted = [expected[name] for name in sym.list_outputs()] if isinstance(expected, dict) else expected
    for name, y, want in zip(sym.list_outputs(), outputs, wanted):
        assert_almost_equal(want, y, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan)
    return outputs


def check_symbolic_backward(sym, location, out_grads, expected, rtol=1e-5, atol=None, aux_states=None, grad_req="write", ctx=None, grad_stypes=None,
                            equal_nan=False, dtype=numpy.float32):
    """AssertionError where a symbol's gradients are not those expected; returns them."""
    ctx = ctx or default_context()
    args = _named(location, sym, ctx, dtype)
    wanted = dict(zip(sym.list_arguments(), expected)) if isinstance(expected, (list, tuple)) else dict(expected)
    before = {k: nd.array(numpy.random.normal(size=v.shape), ctx, args[k].dtype).tostype((grad_stypes or {}).get(k) or "default") for k, v in wanted.items()}
    grads = {k: v.copy() for k, v in before.items()}
    reqs = {k: grad_req if isinstance(grad_req, str) else grad_req.get(k, "null") for k in wanted} if not isinstance(grad_req, (list, tuple)) else dict(
        zip(sym.list_arguments(), grad_req))
    executor = sym.bind(ctx, args=args, args_grad=grads, grad_req={**{k: "null" for k in args}, **reqs},
                        aux_states=aux_states and _arrays(aux_states, ctx))  # fmt: skip
    outputs = executor.forward(is_train=True)
    given = [out_grads[k] for k in sym.list_outputs()] if isinstance(out_grads, dict) else out_grads
    heads = None if given is None else [g if isinstance(g, Tensor) else nd.array(g, ctx, y.dtype) for g, y in zip(given, outputs)]
    executor.backward(heads)
    for name, want in wanted.items():
        want = {"write": lambda w: w, "add": lambda w: _values(w) + before[name].asnumpy(), "null": lambda w: before[name]}[reqs[name]](want)
        assert_almost_equal(want, grads[name], rtol, atol, (f"EXPECTED_{name}", f"BACKWARD_{name}"), equal_nan)
    return grads


def numeric_grad(function, location, eps=1e-4):
    """The gradients of a function of NumPy's arrays, a number, by finite differences."""
    found = {}
    for name, values in location.items():
        grad = numpy.zeros(values.shape)
        for i in numpy.ndindex(values.shape):
            old = values[i]
            values[i] = old + eps / 2
            high = function(location)
            values[i] = old - eps / 2
            low = function(location)
            values[i], grad[i] = old, (high - low) / eps
        found[name] = grad
    return found


def check_numeric_gradient(sym, location, aux_states=None, numeric_eps=None, rtol=None, atol=None, grad_nodes=None, use_forward_train=True, ctx=None,
                           grad_stype_dict=None, dtype=numpy.float32):
    """AssertionError where a symbol's gradients differ from finite differences."""
    ctx, eps = ctx or default_context(), numeric_eps or _EPS.get(numpy.dtype(dtype).name, _EPS["float16"])
    args = _named(location, sym, ctx, dtype)
    nodes = list(args) if grad_nodes is None else [k for k in grad_nodes if not isinstance(grad_nodes, dict) or grad_nodes[k] != "null"]
    aux_states = aux_states and _arrays(aux_states, ctx)
    shape = sym.bind(ctx, args=args, aux_states=aux_states).forward(is_train=use_forward_train)[0].shape
    weights = _rng.rand(*shape) + 0.1
    values = {k: v.asnumpy().astype("float64" if numpy.dtype(v.dtype).kind == "f" else v.dtype) for k, v in args.items()}

    probe = sym.bind(ctx, args={k: v.copy() for k, v in args.items()}, aux_states=aux_states)

    def total(at):
        for k in nodes:
            probe.arg_dict[k][slice(None) if at[k].ndim else ()] = at[k].astype(args[k].dtype)
        return float((probe.forward(is_train=use_forward_train)[0].asnumpy().astype("float64") * weights).sum())

    grads = {k: nd.zeros(args[k].shape, ctx, args[k].dtype) for k in nodes}
    executor = sym.bind(ctx, args=args, args_grad=grads, grad_req={k: "write" if k in nodes else "null" for k in args},
                        aux_states=aux_states)  # fmt: skip
    executor.forward(is_train=True)
    executor.backward([nd.array(weights, ctx, dtype)])
    numbers = numeric_grad(lambda chosen: total({**values, **chosen}), {k: values[k] for k in nodes}, eps)
    for name in nodes:
        assert_almost_equal(numbers[name].astype(grads[name].dtype), grads[name], rtol, atol, (f"NUMERICAL_{name}", f"BACKWARD_{name}"))


# ---- networks


def _results(net, inputs, train):
    """(the result, the gradients of the inputs in training)."""
    for x in inputs:
        x.attach_grad()
    if not train:
        return net(*inputs).asnumpy(), []
    with autograd.record():
        y = net(*inputs)
    y.backward()
    return y.asnumpy(), [x.grad.asnumpy() for x in inputs]


class _Values(init.Initializer):
    """Values by the names of parameters."""

    def __init__(self, values):
        super().__init__()
        self._values = values

    def __call__(self, desc, arr):
        arr[slice(None) if arr.ndim else ()] = self._values[str(desc)]


def check_gluon_hybridize_consistency(net_builder, data_l, numpy_func=None, test_grad=True, rtol=1e-4, atol=1e-4):
    """AssertionError where a block computes something else after hybridize(), in training, or than a function of NumPy's."""
    weights, first, grads = None, None, None
    for hybrid in (False, True):
        for train in (False, True)[: 1 + test_grad]:
            net = net_builder(prefix="net_")
            net.initialize(*([] if weights is None else [_Values(weights)]))
            if hybrid:
                net.hybridize()
            inputs = [x.copy() for x in data_l]
            y, found = _results(net, inputs, train)
            if weights is None:
                weights = {name: p.data().asnumpy() for name, p in net.collect_params().items()}
            first, grads = y if first is None else first, found if train and grads is None else grads
            assert_almost_equal(y, first, rtol, atol)
            for a, b in zip(found, grads or ()):
                assert_almost_equal(a, b, rtol, atol)
    if numpy_func is not None:
        assert_almost_equal(first, numpy_func(*(x.asnumpy() for x in data_l)), rtol, atol)


# ---- surroundings


@contextlib.contextmanager
def environment(*args):
    """Environment variables inside: (name, value), or a dictionary; None removes one."""
    wanted = args[0] if len(args) == 1 else {args[0]: args[1]}
    before = {name: os.environ.get(name) for name in wanted}

    def put(values):
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(value)

    put(wanted)
    try:
        yield
    finally:
        put(before)


@contextlib.contextmanager
def discard_stderr():
    """Without what is written to the standard error output inside."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def retry(n):
    """A test that may fail n - 1 times."""

    def around(test):
        @functools.wraps(test)
        def call(*args, **kwargs):
            for i in range(n):
                try:
                    return test(*args, **kwargs)
                except AssertionError:
                    if i == n - 1:
                        raise

        return call

    return around


__getattr__ = missing("mx.test_utils")
