"""mx.rnn's cells: a step of sequences, of symbols; unroll makes several.  Operations have MXNet's names."""
from .. import init as _init, sym
from .._program import Symbol

_ACTIVATIONS = ("relu", "sigmoid", "softrelu", "tanh", "softsign")


class RNNParams:
    """Variables by their names after a prefix, made once: cells with the same RNNParams share them."""

    def __init__(self, prefix=""):
        self._prefix, self._params = prefix, {}

    def get(self, name, **options):
        """The variable prefix + name."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = sym.Variable(name, **options)
        return self._params[name]


def sequence(length, inputs, layout, merge, layout_of_inputs=None):
    """(sequences as a list of steps, or as one symbol if merge; neither if it is None; the axis of steps)."""
    axis = layout.find("T")
    axis_of_inputs = axis if layout_of_inputs is None else layout_of_inputs.find("T")
    if isinstance(inputs, Symbol):
        if merge is False:
            steps = sym.split(inputs, axis=axis_of_inputs, num_outputs=length, squeeze_axis=True)
            inputs = [steps] if isinstance(steps, Symbol) else list(steps)
    else:
        if length is not None and len(inputs) != length:
            raise ValueError(f"unroll: {len(inputs)} steps are given, length is {length}")
        if merge is True:
            inputs = sym.concat(*(sym.expand_dims(x, axis=axis) for x in inputs), dim=axis)
            axis_of_inputs = axis
    if isinstance(inputs, Symbol) and axis != axis_of_inputs:
        inputs = sym.swapaxes(inputs, dim1=axis, dim2=axis_of_inputs)
    return inputs, axis


class BaseRNNCell:
    """The base of cells: a custom cell has state_info, and __call__(inputs, states), which returns (output, new states)."""

    _gate_names = ()

    def __init__(self, prefix="", params=None):
        self._own_params, self._prefix, self._params, self._modified = params is None, prefix, RNNParams(prefix) if params is None else params, False
        self.reset()

    def reset(self):
        """Counts steps from 0 again."""
        self._init_counter = self._counter = -1

    def _step(self):
        """The names of the next step's operations begin with this."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    @property
    def params(self):
        """The cell's variables."""
        self._own_params = False
        return self._params

    @property
    def state_info(self):
        """Shapes and layouts of the states; 0 is the number of sequences."""
        raise NotImplementedError(f"{type(self).__name__} has no state_info")

    @property
    def state_shape(self):
        """The shapes of the states."""
        return [info["shape"] for info in self.state_info]

    def __call__(self, inputs, states):
        """(the output of a step, the new states)."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def begin_state(self, func=None, **options):
        """The initial states, by func for each: zeros, whose number of sequences follows from the program's other shapes."""
        if self._modified:
            raise ValueError("begin_state: the cell belongs to another one; call begin_state of that")
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append((func or sym.zeros)(name=f"{self._prefix}begin_state_{self._init_counter}", **{**_without_layout(info, func), **options}))
        return states

    def unpack_weights(self, args):
        """Parameters with a weight for each gate, of parameters with one for all gates."""
        args, gates, rows = dict(args), self._gate_names, getattr(self, "_num_hidden", 0)
        for group in ("i2h", "h2h") if gates else ():
            for end in ("weight", "bias"):
                whole = args.pop(f"{self._prefix}{group}_{end}")
                for j, gate in enumerate(gates):
                    args[f"{self._prefix}{group}{gate}_{end}"] = whole[j * rows : (j + 1) * rows].copy()
        return args

    def pack_weights(self, args):
        """The reverse of unpack_weights."""
        from .. import nd

        args, gates = dict(args), self._gate_names
        for group in ("i2h", "h2h") if gates else ():
            for end in ("weight", "bias"):
                args[f"{self._prefix}{group}_{end}"] = nd.concat(*(args.pop(f"{self._prefix}{group}{gate}_{end}") for gate in gates), dim=0)
        return args

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """(the outputs of `length` steps, the last states)."""
        self.reset()
        inputs, _ = sequence(length, inputs, layout, False)
        states, outputs = self.begin_state() if begin_state is None else begin_state, []
        for x in inputs:
            y, states = self(x, states)
            outputs.append(y)
        return sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs, activation, **options):
        """An activation by its name, or a function of symbols."""
        return sym.Activation(inputs, act_type=activation, **options) if isinstance(activation, str) else activation(inputs, **options)


def _without_layout(info, func):
    return {k: v for k, v in info.items() if k != "__layout__" or func is sym.Variable}


class _Cell(BaseRNNCell):
    """A cell with weights for its input and its state."""

    def __init__(self, num_hidden, prefix, params, bias_init=None):
        super().__init__(prefix, params)
        self._num_hidden = num_hidden
        self._iW, self._hW = self.params.get("i2h_weight"), self.params.get("h2h_weight")
        self._iB, self._hB = self.params.get("i2h_bias", **({} if bias_init is None else {"init": bias_init})), self.params.get("h2h_bias")

    _states = 1

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}] * self._states

    def _products(self, inputs, state, name):
        rows = self._num_hidden * len(self._gate_names)
        i2h = sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=rows, name=f"{name}i2h")
        return i2h, sym.FullyConnected(state, self._hW, self._hB, num_hidden=rows, name=f"{name}h2h")


class RNNCell(_Cell):
    """A step with tanh or another activation."""

    _gate_names = ("",)

    def __init__(self, num_hidden, activation="tanh", prefix="rnn_", params=None):
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs, states):
        name = self._step()
        i2h, h2h = self._products(inputs, states[0], name)
        y = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return y, [y]


def lstm_step(products, cell, name, act=lambda x, kind, name: sym.Activation(x, act_type=kind, name=name), activation="tanh", gate="sigmoid"):
    """(the state, the cell) of a step of long short-term memory, by the sum of the products."""
    parts = list(sym.split(products, num_outputs=4, axis=1, name=f"{name}slice"))
    entry, forget = act(parts[0], gate, f"{name}i"), act(parts[1], gate, f"{name}f")
    new, out = act(parts[2], activation, f"{name}c"), act(parts[3], gate, f"{name}o")
    after = sym.elemwise_add(forget * cell, entry * new, name=f"{name}state")
    return sym.elemwise_mul(out, act(after, activation, f"{name}act"), name=f"{name}out"), after


def gru_step(i2h, h2h, state, name, act=lambda x, kind, name: sym.Activation(x, act_type=kind, name=name), activation="tanh", gate="sigmoid"):
    """The state after a step of gated units."""
    reset, update, new = list(sym.split(i2h, num_outputs=3, axis=1, name=f"{name}i2h_slice"))
    reset_h, update_h, new_h = list(sym.split(h2h, num_outputs=3, axis=1, name=f"{name}h2h_slice"))
    reset, update = act(reset + reset_h, gate, f"{name}r_act"), act(update + update_h, gate, f"{name}z_act")
    new = act(new + reset * new_h, activation, f"{name}h_act")
    return sym.elemwise_add((1.0 - update) * new, update * state, name=f"{name}out")


class LSTMCell(_Cell):
    """A step of long short-term memory: its states are the state and the cell."""

    _gate_names, _states = ("_i", "_f", "_c", "_o"), 2

    def __init__(self, num_hidden, prefix="lstm_", params=None, forget_bias=1.0):
        super().__init__(num_hidden, prefix, params, _init.LSTMBias(forget_bias=forget_bias))

    def __call__(self, inputs, states):
        name = self._step()
        i2h, h2h = self._products(inputs, states[0], name)
        y, cell = lstm_step(i2h + h2h, states[1], name)
        return y, [y, cell]


class GRUCell(_Cell):
    """A step with gated units."""

    _gate_names = ("_r", "_z", "_o")

    def __init__(self, num_hidden, prefix="gru_", params=None):
        super().__init__(num_hidden, prefix, params)

    def __call__(self, inputs, states):
        name = self._step()
        y = gru_step(*self._products(inputs, states[0], name), states[0], name)
        return y, [y]


# ---- cells of cells


class _Several(BaseRNNCell):
    """The base of cells of cells: their parameters and states are those of all."""

    def _with(self, cell):
        """Takes the parameters of a cell."""
        if not self._own_params:
            cell._own_params and cell.params._params.update(self._params._params)
        self._params._params.update(cell.params._params)
        cell._modified = True
        return cell

    @property
    def state_info(self):
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, **options):
        """The initial states of all cells."""
        if self._modified:
            raise ValueError("begin_state: the cell belongs to another one; call begin_state of that")
        found = []
        for cell in self._cells:
            cell._modified = False
            found += cell.begin_state(**options)
            cell._modified = True
        return found

    def reset(self):
        super().reset()
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    def unpack_weights(self, args):
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return args

    def pack_weights(self, args):
        for cell in self._cells:
            args = cell.pack_weights(args)
        return args


class SequentialRNNCell(_Several):
    """A stack of cells."""

    def __init__(self, params=None):
        super().__init__("", params)
        self._cells = []

    def add(self, cell):
        """Appends a cell."""
        self._cells.append(self._with(cell))

    def __call__(self, inputs, states):
        self._counter += 1
        after, at = [], 0
        for cell in self._cells:
            if isinstance(cell, BidirectionalCell):
                raise NotImplementedError("BidirectionalCell has no single steps; use unroll")
            n = len(cell.state_info)
            inputs, new = cell(inputs, states[at : at + n])
            after += new
            at += n
        return inputs, after

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """Unrolls one cell after the other, because some have no single steps."""
        self.reset()
        states, ends, at = self.begin_state() if begin_state is None else begin_state, [], 0
        for i, cell in enumerate(self._cells):
            n = len(cell.state_info)
            merge = merge_outputs if i == len(self._cells) - 1 else None
            inputs, new = cell.unroll(length, inputs, states[at : at + n], layout, merge)
            ends += new
            at += n
        return inputs, ends


class BidirectionalCell(_Several):
    """Two cells, one from the first step on, one from the last; only unroll runs them."""

    def __init__(self, l_cell, r_cell, params=None, output_prefix="bi_"):
        super().__init__("", params)
        self._cells, self._output_prefix = [self._with(l_cell), self._with(r_cell)], output_prefix

    def __call__(self, inputs, states):
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """Runs both cells; the outputs of a step are joined along the channels."""
        self.reset()
        steps, _ = sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        left, right = self._cells
        n = len(left.state_info)
        forwards, ends = left.unroll(length, steps, states[:n], layout, False)
        backwards, others = right.unroll(length, list(reversed(steps)), states[n:], layout, False)
        outputs = [sym.concat(a, b, dim=1, name=f"{self._output_prefix}t{i}") for i, (a, b) in enumerate(zip(forwards, reversed(backwards)))]
        return sequence(length, outputs, layout, merge_outputs)[0], [*ends, *others]


class DropoutCell(BaseRNNCell):
    """Dropout of the input; it has no states."""

    def __init__(self, dropout, prefix="dropout_", params=None):
        super().__init__(prefix, params)
        self.dropout = dropout

    @property
    def state_info(self):
        return []

    def __call__(self, inputs, states):
        return (sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """Drops elements of all steps at once, if they are one symbol."""
        self.reset()
        inputs, _ = sequence(length, inputs, layout, merge_outputs)
        return self(inputs, []) if isinstance(inputs, Symbol) else super().unroll(length, inputs, begin_state or [], layout, merge_outputs)


class ModifierCell(_Several):
    """The base of cells around another one."""

    def __init__(self, base_cell):
        super().__init__("", None)
        self.base_cell, base_cell._modified = base_cell, True
        self._cells = [base_cell]

    @property
    def params(self):
        """The inner cell's variables."""
        self._own_params = False
        return self.base_cell.params


class ZoneoutCell(ModifierCell):
    """A cell whose outputs and states keep, in training, the elements of the step before with some probability."""

    def __init__(self, base_cell, zoneout_outputs=0.0, zoneout_states=0.0):
        if isinstance(base_cell, BidirectionalCell) or any(isinstance(c, BidirectionalCell) for c in getattr(base_cell, "_cells", ())):
            raise TypeError("BidirectionalCell doesn't support zoneout since it doesn't support step. Please add ZoneoutCell to the cells underneath instead.")
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states, self._prior = zoneout_outputs, zoneout_states, None

    def reset(self):
        super().reset()
        self._prior = None

    def __call__(self, inputs, states):
        y, after = self.base_cell(inputs, states)

        def mixed(p, new, old):
            return sym.where(sym.Dropout(sym.ones_like(new), p=p), new, old) if p else new

        before = sym.zeros_like(y) if self._prior is None else self._prior
        self._prior = y = mixed(self.zoneout_outputs, y, before)
        return y, [mixed(self.zoneout_states, new, old) for new, old in zip(after, states)]


class ResidualCell(ModifierCell):
    """The output of a cell with its input added."""

    def __call__(self, inputs, states):
        y, states = self.base_cell(inputs, states)
        return sym.elemwise_add(y, inputs, name=f"{y.name}_plus_residual"), states

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """Unrolls the cell, and adds the inputs."""
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        steps, _ = sequence(length, inputs, layout, False)
        outputs, ends = self.base_cell.unroll(length, steps, states, layout, False)
        outputs = [sym.elemwise_add(y, x, name=f"{y.name}_plus_residual") for y, x in zip(outputs, steps)]
        return sequence(length, outputs, layout, merge_outputs)[0], ends
