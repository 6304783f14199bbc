"""mx.nd.contrib and mx.contrib: loops."""
from .functions import stack
from .unsupported import missing


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def foreach(body, data, init_states):
    """Calls body(row, states) for each row; returns the outputs stacked, and the last states."""
    several, states = isinstance(data, (list, tuple)), init_states
    rows, outputs, tuples = _list(data), [], False
    for i in range(rows[0].shape[0]):
        output, states = body([d[i] for d in rows] if several else data[i], states)
        tuples = isinstance(output, (list, tuple))
        outputs.append(_list(output))
    stacked = [stack(*parts, axis=0) for parts in zip(*outputs)]
    return (stacked if tuples else stacked[0]), states


def cond(pred, then_func, else_func):
    """The result of one of two functions; waits for the condition."""
    return then_func() if bool(pred.asscalar()) else else_func()


__getattr__ = missing("mx.contrib")
