"""mx.gluon.rnn's cells: one step of sequences, and unroll for several."""
from ... import nd
from ..block import Block, HybridBlock, fit
from .states import begin_state, new_states


class RecurrentCell(Block):
    """The base of cells: a custom cell has state_info and forward(self, x, states), which returns (output, new states)."""

    def state_info(self, batch_size=0):
        """The shapes of the states."""
        raise NotImplementedError(f"{type(self).__name__} has no state_info")

    def reset(self):
        """No effect: cells count no steps."""

    def begin_state(self, batch_size=0, func=None, **options):
        """The initial states: zeros."""
        return begin_state(self, batch_size, func, **options)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """Runs `length` steps: (outputs, last states).  Outputs are a list, or one array if merge_outputs."""
        axis = layout.find("T")
        steps = list(inputs) if isinstance(inputs, (list, tuple)) else nd.split(inputs, num_outputs=length, axis=axis, squeeze_axis=True)
        steps = steps if isinstance(steps, (list, tuple)) else [steps]
        states = new_states(self, steps[0], steps[0].shape[0]) if begin_state is None else begin_state
        outputs, each = [], []
        for x in steps[:length]:
            y, states = self(x, states)
            outputs.append(y)
            each.append(states)
        if valid_length is not None:
            states = [nd.SequenceLast(nd.stack(*s, axis=0), valid_length, True) for s in zip(*each)]
            merged = nd.SequenceMask(nd.stack(*outputs, axis=axis), valid_length, True, axis=axis)
            return (merged if merge_outputs is not False else nd.split(merged, num_outputs=length, axis=axis, squeeze_axis=True)), states
        return (nd.stack(*outputs, axis=axis) if merge_outputs else outputs), states


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """The base of cells that can be compiled; a custom cell has hybrid_forward(self, F, x, states, …)."""


class _Cell(HybridRecurrentCell):
    """A cell with weights for its input and its state."""

    _gates, _count = 1, 1

    def __init__(self, hidden_size, i2h_weight_initializer=None, h2h_weight_initializer=None, i2h_bias_initializer="zeros",
                 h2h_bias_initializer="zeros", input_size=0, prefix=None, params=None):
        super().__init__(prefix=prefix, params=params)
        self._hidden, self._input = hidden_size, input_size
        rows = self._gates * hidden_size
        for name, shape, init in (("i2h_weight", (rows, input_size), i2h_weight_initializer), ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
                                  ("i2h_bias", (rows,), i2h_bias_initializer), ("h2h_bias", (rows,), h2h_bias_initializer)):  # fmt: skip
            setattr(self, name, self.params.get(name, shape=shape, init=init))

    def state_info(self, batch_size=0):
        return [{"shape": (batch_size, self._hidden), "__layout__": "NC"}] * self._count

    def _fit(self, x):
        if not self._input and x.shape:
            fit(self.i2h_weight, (self._gates * self._hidden, x.shape[-1]))

    def _products(self, F, x, state, i2h_weight, h2h_weight, i2h_bias, h2h_bias):
        rows = self._gates * self._hidden
        return F.FullyConnected(x, i2h_weight, i2h_bias, num_hidden=rows), F.FullyConnected(state, h2h_weight, h2h_bias, num_hidden=rows)

    def __repr__(self):
        rows, width = self.i2h_weight.shape
        return f"{type(self).__name__}({width or None} -> {rows})"


class RNNCell(_Cell):
    """A step with tanh or another activation."""

    def __init__(self, hidden_size, activation="tanh", **options):
        super().__init__(hidden_size, **options)
        self._activation = activation

    def __repr__(self):
        return f"{super().__repr__()[:-1]}, {self._activation})"

    def hybrid_forward(self, F, inputs, states, **params):
        i2h, h2h = self._products(F, inputs, states[0], **params)
        y = F.Activation(i2h + h2h, act_type=self._activation)
        return y, [y]


class LSTMCell(_Cell):
    """A step of long short-term memory: its states are the state and the cell."""

    _gates, _count = 4, 2

    def __init__(self, hidden_size, *initializers, activation="tanh", recurrent_activation="sigmoid", **options):
        super().__init__(hidden_size, *initializers, **options)
        self._activation, self._gate = activation, recurrent_activation

    def hybrid_forward(self, F, inputs, states, **params):
        i2h, h2h = self._products(F, inputs, states[0], **params)
        entry, forget, new, out = F.split(i2h + h2h, num_outputs=4, axis=1)
        entry, forget, out = (F.Activation(g, act_type=self._gate) for g in (entry, forget, out))
        cell = forget * states[1] + entry * F.Activation(new, act_type=self._activation)
        y = out * F.Activation(cell, act_type=self._activation)
        return y, [y, cell]


class GRUCell(_Cell):
    """A step with gated units."""

    _gates = 3

    def __init__(self, hidden_size, *initializers, activation="tanh", recurrent_activation="sigmoid", **options):
        super().__init__(hidden_size, *initializers, **options)
        self._activation, self._gate = activation, recurrent_activation

    def hybrid_forward(self, F, inputs, states, **params):
        i2h, h2h = self._products(F, inputs, states[0], **params)
        (reset, update, new), (reset_h, update_h, new_h) = (F.split(p, num_outputs=3, axis=1) for p in (i2h, h2h))
        reset = F.Activation(reset + reset_h, act_type=self._gate)
        update = F.Activation(update + update_h, act_type=self._gate)
        y = (1 - update) * F.Activation(new + reset * new_h, act_type=self._activation) + update * states[0]
        return y, [y]


class SequentialRNNCell(RecurrentCell):
    """A stack of cells."""

    def add(self, cell):
        """Appends a cell."""
        self.register_child(cell)

    def state_info(self, batch_size=0):
        return [info for cell in self._children.values() for info in cell.state_info(batch_size)]

    def forward(self, x, states):
        """The output of the last cell, and the states of all."""
        new, at = [], 0
        for cell in self._children.values():
            n = len(cell.state_info())
            x, ends = cell(x, states[at : at + n])
            new += ends
            at += n
        return x, new

    def __len__(self):
        return len(self._children)

    def __getitem__(self, i):
        return list(self._children.values())[i]


class HybridSequentialRNNCell(SequentialRNNCell, HybridRecurrentCell):
    """A stack of cells that can be compiled."""

    def hybrid_forward(self, F, x, states):
        """The same as forward."""
        return self.forward(x, states)


class DropoutCell(HybridRecurrentCell):
    """Dropout of the input; it has no states."""

    def __init__(self, rate, axes=(), prefix=None, params=None):
        super().__init__(prefix, params)
        self._rate, self._axes = rate, axes

    def state_info(self, batch_size=0):
        return []

    def hybrid_forward(self, F, inputs, states):
        return (F.Dropout(inputs, p=self._rate, axes=self._axes) if self._rate else inputs), states


class ResidualCell(HybridRecurrentCell):
    """The output of a cell with its input added."""

    def __init__(self, base_cell):
        super().__init__()
        self.base_cell = base_cell

    def state_info(self, batch_size=0):
        return self.base_cell.state_info(batch_size)

    def hybrid_forward(self, F, inputs, states):
        y, states = self.base_cell(inputs, states)
        return y + inputs, states
