"""mx.gluon.rnn's cells: one step of sequences, and unroll for several."""
from ... import nd, sym
from ..._loops import has_symbols
from ...rnn.cells import gru_step, lstm_step
from ..block import Block, HybridBlock, fit
from .states import begin_state, new_states


def _functions(inputs):
    """The module of functions for these arrays or symbols."""
    return sym if has_symbols(inputs) else nd


def _steps(inputs, length, axis):
    """The steps of sequences as a list."""
    if isinstance(inputs, (list, tuple)):
        return list(inputs)
    parts = _functions(inputs).split(inputs, num_outputs=length, axis=axis, squeeze_axis=True)
    return list(parts) if isinstance(parts, (list, tuple)) else [parts]


def _first_states(cell, steps):
    """Zeros; of symbols, their number follows from the program's other shapes."""
    return begin_state(cell, 0, sym.zeros) if has_symbols(steps) else new_states(cell, steps[0], steps[0].shape[0])


class RecurrentCell(Block):
    """The base of cells: a custom cell has state_info and forward(self, x, states), which returns (output, new states)."""

    def state_info(self, batch_size=0):
        """The shapes of the states."""
        raise NotImplementedError(f"{type(self).__name__} has no state_info")

    _counter = -1

    def reset(self):
        """Counts the steps of symbols, whose names have their number, from 0 again."""
        object.__setattr__(self, "_counter", -1)
        for child in self._children.values():
            if isinstance(child, RecurrentCell):
                child.reset()

    def _of_symbols(self, given, args, kwargs):
        """Calls forward with symbols: weights are variables with the parameters' names."""
        return self._step_of_symbols(*args) if has_symbols(given) else super()._of_symbols(given, args, kwargs)

    def _step_of_symbols(self, *args):
        return self.forward(*args)

    def begin_state(self, batch_size=0, func=None, **options):
        """The initial states: zeros."""
        return begin_state(self, batch_size, func, **options)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """Runs `length` steps: (outputs, last states).  Outputs are a list, or one array if merge_outputs."""
        axis = layout.find("T")
        self.reset()
        steps, F = _steps(inputs, length, axis), _functions(inputs)
        states = _first_states(self, steps) if begin_state is None else begin_state
        outputs, each = [], []
        for x in steps[:length]:
            y, states = self(x, states)
            outputs.append(y)
            each.append(states)
        if valid_length is not None:
            states = [F.SequenceLast(F.stack(*s, axis=0), valid_length, True) for s in zip(*each)]
            merged = F.SequenceMask(F.stack(*outputs, axis=axis), valid_length, True, axis=axis)
            return (merged if merge_outputs is not False else _steps(merged, length, axis)), states
        return (F.stack(*outputs, axis=axis) if merge_outputs else outputs), states


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """The base of cells that can be compiled; a custom cell has hybrid_forward(self, F, x, states, …)."""

    def _variables(self):
        return {name: p.var() for name, p in self._own_parameters.items()}

    def _step_of_symbols(self, *args):
        return self.hybrid_forward(sym, *args, **self._variables())


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

    def _step_of_symbols(self, x, states):
        object.__setattr__(self, "_counter", self._counter + 1)
        name, w = f"{self.prefix}t{self._counter}_", self._variables()
        rows = self._gates * self._hidden
        i2h = sym.FullyConnected(x, w["i2h_weight"], w["i2h_bias"], num_hidden=rows, name=f"{name}i2h")
        h2h = sym.FullyConnected(states[0], w["h2h_weight"], w["h2h_bias"], num_hidden=rows, name=f"{name}h2h")
        found = self._after_products(i2h, h2h, states, name)
        return found[0], list(found)

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

    def _after_products(self, i2h, h2h, states, name):
        return (sym.Activation(i2h + h2h, act_type=self._activation, name=f"{name}out"),)


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

    def _after_products(self, i2h, h2h, states, name):
        return lstm_step(i2h + h2h, states[1], name, activation=self._activation, gate=self._gate)


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

    def _after_products(self, i2h, h2h, states, name):
        return (gru_step(i2h, h2h, states[0], name, activation=self._activation, gate=self._gate),)


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

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """Unrolls one cell after the other, because some have no single steps."""
        axis, cells = layout.find("T"), list(self._children.values())
        self.reset()
        steps = _steps(inputs, length, axis)[:length]
        states = _first_states(self, steps) if begin_state is None else begin_state
        ends, at = [], 0
        for i, cell in enumerate(cells):
            n = len(cell.state_info())
            last = i == len(cells) - 1
            steps, new = cell.unroll(length, steps, states[at : at + n], layout, merge_outputs if last else False, valid_length)
            ends += new
            at += n
        return steps, ends

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

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """Unrolls the cell, and adds the inputs."""
        axis = layout.find("T")
        self.reset()
        steps, F = _steps(inputs, length, axis)[:length], _functions(inputs)
        outputs, states = self.base_cell.unroll(length, steps, begin_state, layout, False, valid_length)
        rest = steps if valid_length is None else _steps(F.SequenceMask(F.stack(*steps, axis=axis), valid_length, True, axis=axis), length, axis)
        outputs = [y + x for y, x in zip(outputs, rest)]
        return (F.stack(*outputs, axis=axis) if merge_outputs or valid_length is not None and merge_outputs is None else outputs), states


ModifierCell = ResidualCell  # the base of cells around another one, in MXNet


class ZoneoutCell(HybridRecurrentCell):
    """A cell whose outputs and states keep, in training, the elements of the step before with some probability."""

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        super().__init__()
        if isinstance(base_cell, BidirectionalCell):
            raise TypeError("BidirectionalCell doesn't support zoneout since it doesn't support step. Please add ZoneoutCell to the cells underneath instead.")
        self.base_cell, self._keep_outputs, self._keep_states, self._prior = base_cell, zoneout_outputs, zoneout_states, None

    def state_info(self, batch_size=0):
        return self.base_cell.state_info(batch_size)

    def reset(self):
        """Forgets the output of the step before."""
        super().reset()
        object.__setattr__(self, "_prior", None)

    def hybridize(self, active=True, static_alloc=False, static_shape=False, **options):
        """Compiles the cell inside: a step needs the output of the step before, which a compiled one would not get."""
        self.base_cell.hybridize(active, static_alloc=static_alloc, static_shape=static_shape, **options)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """As of other cells, from the first step on."""
        self.reset()
        return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)

    def hybrid_forward(self, F, inputs, states):
        y, new = self.base_cell(inputs, states)

        def mixed(p, one, before):
            return F.where(F.Dropout(F.ones_like(one), p=p), one, before) if p else one

        before = F.zeros_like(y) if self._prior is None else self._prior
        y = mixed(self._keep_outputs, y, before)
        new = [mixed(self._keep_states, n, old) for n, old in zip(new, states)]
        object.__setattr__(self, "_prior", y)
        return y, new


class BidirectionalCell(HybridRecurrentCell):
    """Two cells, one from the first step on, one from the last; only unroll runs them."""

    def __init__(self, l_cell, r_cell, output_prefix="bi_", params=None):
        super().__init__(prefix="", params=params)
        self.l_cell, self.r_cell, self._output_prefix = l_cell, r_cell, output_prefix

    def __call__(self, inputs, states):
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def state_info(self, batch_size=0):
        return self.l_cell.state_info(batch_size) + self.r_cell.state_info(batch_size)

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None, valid_length=None):
        """Runs both cells; the outputs of a step are joined along the channels."""
        axis = layout.find("T")
        self.reset()
        steps, F = _steps(inputs, length, axis)[:length], _functions(inputs)
        states = _first_states(self, steps) if begin_state is None else begin_state
        first = len(self.l_cell.state_info())

        def turned(each):
            if valid_length is None:
                return list(reversed(each))
            back = F.SequenceReverse(F.stack(*each, axis=0), valid_length, True)
            return [back[i] for i in range(length)]

        forwards, ends = self.l_cell.unroll(length, steps, states[:first], layout, False, valid_length)
        backwards, others = self.r_cell.unroll(length, turned(steps), states[first:], layout, False, valid_length)
        outputs = [F.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}") for i, (a, b) in enumerate(zip(forwards, turned(backwards)))]
        if valid_length is not None:
            merged = F.SequenceMask(F.stack(*outputs, axis=axis), valid_length, True, axis=axis)
            outputs = merged if merge_outputs is not False else _steps(merged, length, axis)
            return outputs, [*ends, *others]
        return (F.stack(*outputs, axis=axis) if merge_outputs else outputs), [*ends, *others]
