"""The function RNN of mx.nd and mx.sym: recurrent layers whose weights and biases are one array."""
from .unsupported import not_here

__all__ = ["RNN"]
_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def count(inputs, size, layers, mode, bidirectional):
    """The number of elements of all weights and biases."""
    directions = 1 + bool(bidirectional)
    widths = [inputs] + [size * directions] * (layers - 1)
    return sum(_GATES[mode] * size * (width + size + 2) * directions for width in widths)


def _parts(parameters, inputs, size, layers, mode, directions):
    """By layer and direction: the weights for inputs and states, and their biases.  All weights come before all biases."""
    rows, at, found = _GATES[mode] * size, 0, []
    for layer in range(layers):
        width = inputs if layer == 0 else size * directions
        for _ in range(directions):
            weights = []
            for n in (width, size):
                weights.append(parameters[at : at + rows * n].reshape((rows, n)))
                at += rows * n
            found.append(weights)
    for each in found:
        for _ in range(2):
            each.append(parameters[at : at + rows])
            at += rows
    return found


def _step(mode, size, i2h, h, c, w, b):
    """The state, and the cell of an LSTM, after a step."""
    from . import nd

    h2h = nd.FullyConnected(h, w, b, num_hidden=w.shape[0])
    if mode == "lstm":
        entry, forget, new, out = nd.split(i2h + h2h, num_outputs=4, axis=1)
        c = forget.sigmoid() * c + entry.sigmoid() * new.tanh()
        return out.sigmoid() * c.tanh(), c
    if mode == "gru":
        (r, z, n), (r2, z2, n2) = (nd.split(x, num_outputs=3, axis=1) for x in (i2h, h2h))
        z = (z + z2).sigmoid()
        return (1 - z) * (n + (r + r2).sigmoid() * n2).tanh() + z * h, c
    y = i2h + h2h
    return y.tanh() if mode == "rnn_tanh" else y.relu(), c


def _pass(x, weights, h, c, mode, size, turned):
    """(the outputs of a layer in one direction, its last state and cell)."""
    from . import nd

    w, u, b, v = weights
    products = nd.FullyConnected(x, w, b, num_hidden=w.shape[0], flatten=False)
    steps, outputs = range(x.shape[0]), []
    for t in reversed(steps) if turned else steps:
        h, c = _step(mode, size, products[t], h, c, u, v)
        outputs.append(h)
    return nd.stack(*(reversed(outputs) if turned else outputs), axis=0), h, c


def RNN(data, parameters, state, state_cell=None, sequence_length=None, state_size=None, num_layers=None, bidirectional=False, mode=None, p=0.0,
        state_outputs=False, projection_size=None, lstm_state_clip_min=None, lstm_state_clip_max=None, lstm_state_clip_nan=False,
        use_sequence_length=False):
    """Recurrent layers over data (steps, batch, channels); with state_outputs, the last states, too."""
    from . import nd

    if mode not in _GATES:
        raise ValueError(f"RNN: mode is {mode!r}; these are {', '.join(_GATES)}")
    if projection_size or lstm_state_clip_min is not None or lstm_state_clip_max is not None or use_sequence_length:
        raise not_here("RNN with projections, clipped states or lengths of sequences", "gluon.rnn's layers, or a layer without these")
    directions = 1 + bool(bidirectional)
    if parameters.size != (wanted := count(data.shape[2], state_size, num_layers, mode, bidirectional)):
        raise ValueError(f"RNN: parameters has {parameters.size} elements; these layers have {wanted}")
    parts = _parts(parameters, data.shape[2], state_size, num_layers, mode, directions)
    x, hs, cs = data, [], []
    for layer in range(num_layers):
        outputs = []
        for d in range(directions):
            i = layer * directions + d
            y, h, c = _pass(x, parts[i], state[i], state_cell[i] if mode == "lstm" else None, mode, state_size, d == 1)
            outputs.append(y)
            hs.append(h)
            cs.append(c)
        x = nd.concat(*outputs, dim=2) if directions == 2 else outputs[0]
        if p and layer + 1 < num_layers:
            x = nd.Dropout(x, p=p)
    if not state_outputs:
        return x
    return [x, nd.stack(*hs, axis=0)] + ([nd.stack(*cs, axis=0)] if mode == "lstm" else [])
