"""FusedRNNCell: layers of cells by one operation, whose parameters are one array."""
from .. import init as _init, sym
from ..fused_rnn import count
from .cells import BaseRNNCell, BidirectionalCell, DropoutCell, GRUCell, LSTMCell, RNNCell, SequentialRNNCell, sequence

_GATES = {"rnn_relu": ("",), "rnn_tanh": ("",), "lstm": LSTMCell._gate_names, "gru": GRUCell._gate_names}


class FusedRNNCell(BaseRNNCell):
    """All layers, in one direction or both, by sym.RNN."""

    def __init__(self, num_hidden, num_layers=1, mode="lstm", bidirectional=False, dropout=0.0, get_next_state=False, forget_bias=1.0, prefix=None,
                 params=None):  # fmt: skip
        if mode not in _GATES:
            raise ValueError(f"FusedRNNCell: mode is {mode!r}; these are {', '.join(_GATES)}")
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden, self._num_layers, self._mode, self._bidirectional = num_hidden, num_layers, mode, bidirectional
        self._dropout, self._get_next_state, self._directions = dropout, get_next_state, "lr" if bidirectional else "l"
        self._parameter = self.params.get("parameters", init=_init.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias))
        self._forget_bias = forget_bias

    @property
    def state_info(self):
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"}] * (1 + (self._mode == "lstm"))

    def _places(self, inputs):
        """(name, first element, shape) of the weights of all gates, layers and directions, in their order."""
        return list(places(self._prefix, inputs, self._num_hidden, self._num_layers, self._mode, self._directions))

    def unpack_weights(self, args):
        """Parameters with a weight for each gate and layer, of the one array."""
        args = dict(args)
        whole = args.pop(f"{self._prefix}parameters")
        for name, at, shape in self._places(inputs_of(whole.size, self._num_hidden, self._num_layers, self._mode, self._bidirectional)):
            size = shape[0] * (shape[1] if len(shape) == 2 else 1)
            args[name] = whole[at : at + size].reshape(shape).copy()
        return args

    def pack_weights(self, args):
        """The reverse of unpack_weights."""
        from .. import nd

        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{_GATES[self._mode][0]}_weight"]
        args[f"{self._prefix}parameters"] = nd.concat(*(args.pop(name).reshape((-1,)) for name, _, _ in self._places(first.shape[1])), dim=0)
        return args

    def __call__(self, inputs, states):
        raise NotImplementedError("FusedRNNCell cannot be stepped. Please use unroll")

    def unroll(self, length, inputs, begin_state=None, layout="NTC", merge_outputs=None):
        """The outputs of all steps, and the last states if get_next_state was given."""
        self.reset()
        inputs, axis = sequence(length, inputs, layout, True)
        if axis == 1:
            inputs = sym.swapaxes(inputs, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        cell = {"state_cell": states[1]} if self._mode == "lstm" else {}
        found = sym.RNN(inputs, self._parameter, states[0], **cell, state_size=self._num_hidden, num_layers=self._num_layers, mode=self._mode,
                        bidirectional=self._bidirectional, p=self._dropout, state_outputs=self._get_next_state, name=f"{self._prefix}rnn")  # fmt: skip
        outputs, ends = (found[0], list(found[1:])) if self._get_next_state else (found, [])
        if axis == 1:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return sequence(length, outputs, layout, merge_outputs)[0], ends

    def unfuse(self):
        """A stack of cells that computes the same."""
        stack = SequentialRNNCell()
        kind = {
            "rnn_relu": lambda prefix: RNNCell(self._num_hidden, activation="relu", prefix=prefix),
            "rnn_tanh": lambda prefix: RNNCell(self._num_hidden, activation="tanh", prefix=prefix),
            "lstm": lambda prefix: LSTMCell(self._num_hidden, prefix=prefix, forget_bias=self._forget_bias),
            "gru": lambda prefix: GRUCell(self._num_hidden, prefix=prefix),
        }[self._mode]
        for i in range(self._num_layers):
            sides = [kind(f"{self._prefix}{d}{i}_") for d in self._directions]
            stack.add(BidirectionalCell(*sides, output_prefix=f"{self._prefix}bi_l{i}_") if self._bidirectional else sides[0])
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack


def inputs_of(size, hidden, layers, mode, bidirectional):
    """The width of the input, by the number of elements of the array."""
    fixed = count(0, hidden, layers, mode, bidirectional)
    return (size - fixed) // (count(1, hidden, layers, mode, bidirectional) - fixed)


def places(prefix, inputs, hidden, layers, mode, directions):
    """(name, first element, shape) of the weights of all gates, layers and directions in the array: biases come after all weights."""
    at = 0
    for end in ("weight", "bias"):
        for layer in range(layers):
            width = inputs if layer == 0 else hidden * len(directions)
            for d in directions:
                for group, columns in (("i2h", width), ("h2h", hidden)):
                    for gate in _GATES[mode]:
                        shape = (hidden, columns) if end == "weight" else (hidden,)
                        yield f"{prefix}{d}{layer}_{group}{gate}_{end}", at, shape
                        at += hidden * (columns if end == "weight" else 1)
