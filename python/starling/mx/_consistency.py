"""check_consistency of mx.test_utils: the same program on several contexts, in several data types, or programs that should compute the same."""
import numpy

from . import nd

_TOLERANCES = {"float16": 1e-1, "float32": 1e-3, "float64": 1e-5, "uint8": 0, "int32": 0, "int64": 0}


def _bound(symbol, options, grad_req):
    given = dict(options)
    context, types = given.pop("ctx"), given.pop("type_dict", None)
    return symbol.simple_bind(context, grad_req=grad_req, type_dict=types, **given)


def _name_of(array):
    return numpy.dtype(array.dtype).name


def _fill(runs, params, states, scale, uniform):
    """The same numbers in all programs."""
    params = dict(params or {})
    for name, array in runs[0].arg_dict.items():
        if name not in params:
            drawn = numpy.random.uniform(-0.92, 0.92, array.shape) if uniform else numpy.random.normal(size=array.shape, scale=scale)
            params[name] = drawn.astype("float64")
    states = {n: (states or {}).get(n, 0) for n in runs[0].aux_dict}
    for run in runs:
        for own, values in ((run.arg_dict, params), (run.aux_dict, states)):
            for name, array in own.items():
                value = values[name]
                array[:] = nd.array(value, dtype=_name_of(array)) if numpy.ndim(value) else value


def _compare(what, got, wanted, tolerances, equal_nan):
    tolerance = max(tolerances.get(_name_of(a), 1e-3) for a in (got, wanted))
    numpy.testing.assert_allclose(got.asnumpy().astype("float64"), wanted.asnumpy().astype("float64"), rtol=tolerance, atol=tolerance,
                                  equal_nan=equal_nan, err_msg=what)  # fmt: skip


def check_consistency(sym, ctx_list, scale=1.0, grad_req="write", arg_params=None, aux_params=None, rtol=None, atol=None, raise_on_err=True,
                      ground_truth=None, equal_nan=False, use_uniform=False, rand_type=numpy.float64):  # fmt: skip
    """Compares results and gradients with those of the most exact data type; returns the latter as NumPy arrays by name."""
    if len(ctx_list) < 2:
        raise ValueError("check_consistency: ctx_list has fewer than two entries")
    symbols = sym if isinstance(sym, list) else [sym] * len(ctx_list)
    runs = [_bound(s, options, grad_req) for s, options in zip(symbols, ctx_list)]
    tolerances = {**_TOLERANCES, **(rtol if isinstance(rtol, dict) else {})}
    if rtol is not None and not isinstance(rtol, dict):
        tolerances = dict.fromkeys(_TOLERANCES, rtol)
    _fill(runs, arg_params, aux_params, scale, use_uniform)
    for run in runs:
        run.forward(is_train=grad_req != "null")
        if grad_req != "null":
            run.backward(run.outputs)
    truth = min(runs, key=lambda run: tolerances.get(_name_of(run.outputs[0]), 1e-3))
    names = truth._heads[0].list_outputs() if len(truth.outputs) == 1 else [str(i) for i in range(len(truth.outputs))]
    for run in runs:
        try:
            for name, got, wanted in zip(names, run.outputs, truth.outputs):
                _compare(name, got, wanted, tolerances, equal_nan)
            for name, wanted in truth.grad_dict.items() if grad_req != "null" else ():
                _compare(f"gradient of {name}", run.grad_dict[name], wanted, tolerances, equal_nan)
        except AssertionError:
            if raise_on_err:
                raise
    return {n: a.asnumpy() for n, a in [*zip(names, truth.outputs), *truth.grad_dict.items()]}
