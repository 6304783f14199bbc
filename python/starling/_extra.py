"""Functions of the library that return several tensors."""
from . import _core
from ._core import NULL, ffi, here, lib, pointer
from ._tensor import Tensor, wrap

__all__ = ["compared", "recurrent", "split", "topk"]

_CELLS = {name[len("SL_CELL_") :].lower(): getattr(lib, name) for name in dir(lib) if name.startswith("SL_CELL_")}


def _number(name, value):
    if not hasattr(value, "__index__"):
        raise _core.wrong(name, value, "int")
    return value.__index__()


def compared(result, dtype=None):
    """The result of a comparison in the data type given; as it is for None."""
    pointer("compared: result", result, Tensor)
    return result if dtype is None else result.astype(dtype)


def split(x, count, axis=0):
    """Splits x into `count` parts of the same length along an axis: a list."""
    n = _number("split: count", count)
    parts = ffi.new("sl_tensor *[]", max(n, 1))
    _core.check(lib.sl_split_at(here(), pointer("split: x", x, Tensor), _number("split: axis", axis), n, parts))
    return [wrap(parts[i], type(x)) for i in range(n)]


def topk(x, k, axis=-1):
    """The k largest elements along an axis, the largest first, and their places (int32): (values, indices).

    Gradients flow through the values.  Of equal elements the first one comes first.
    """
    indices = ffi.new("sl_tensor **")
    values = lib.sl_topk_at(here(), pointer("topk: x", x, Tensor), _number("topk: k", k), _number("topk: axis", axis), indices)
    return wrap(values, type(x)), wrap(indices[0], type(x))


def recurrent(kind, gates, weight, state=None, *, bias=None, cell=None, reverse=False, lengths=None):
    """A recurrent layer over all steps of sequences: the states after each step; for "lstm" (states, last cell).

    kind: "tanh", "relu", "lstm" or "gru", of G = 1, 1, 4 or 3 gates.  gates (steps, rows, G * units) is the
    contribution of the inputs with all biases: one linear of all steps.  weight (G * units, units) is the weight of the
    previous step's state; state (rows, units) is the first state, None: zeros.  bias (3 * units) is added to the contribution
    of the state ("gru"), cell (rows, units) is the first cell ("lstm").  reverse goes from the last step to the first.

    lengths, integers (rows), is the number of valid steps of each row: the states after these are 0, and reverse begins there.
    The result is then (states, last state), for "lstm" (states, last state, last cell).
    """
    number = _core.choice(_CELLS, kind, "recurrent: kind")
    last, cells = ffi.new("sl_tensor **"), ffi.new("sl_tensor **")

    def given(name, t):
        return NULL if t is None else pointer(f"recurrent: {name}", t, Tensor)

    lstm = number == lib.SL_CELL_LSTM
    # All fields: cffi does not clear omitted ones.
    options = (given("bias", bias), given("cell", cell), cells if lstm else NULL, bool(reverse), given("lengths", lengths),
               last if lengths is not None else NULL)  # fmt: skip
    states = lib.sl_recurrent_at(here(), number, given("gates", gates), given("weight", weight), given("state", state), options)
    found = [states] + [p[0] for p, wanted in ((last, lengths is not None), (cells, lstm)) if wanted]
    found = [wrap(t, type(gates)) for t in found]
    return found[0] if len(found) == 1 else tuple(found)
