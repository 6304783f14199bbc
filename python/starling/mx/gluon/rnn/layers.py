"""mx.gluon.rnn's layers: all steps of sequences at once, by the engine's recurrent layer."""
import warnings

from .... import _ops as ops
from ...._extra import recurrent
from ...unsupported import not_here
from ..block import HybridBlock, fit
from .states import begin_state, new_states


def _like(y, x):
    """y as an array of the class of x."""
    y.__class__ = type(x)
    return y


class _Recurrent(HybridBlock):
    """A stack of layers, in one direction or both; parameters have MXNet's names, shapes and order of gates."""

    _kind_of_cell, _gates, _count = "tanh", 1, 1

    def __init__(self, hidden_size, num_layers=1, layout="TNC", dropout=0, bidirectional=False, input_size=0,
                 i2h_weight_initializer=None, h2h_weight_initializer=None, i2h_bias_initializer="zeros", h2h_bias_initializer="zeros",
                 dtype="float32", projection_size=None, use_sequence_length=False, prefix=None, params=None, **others):
        if projection_size or any(v not in (None, False) for v in others.values()):
            raise not_here(f"{type(self).__name__} with projections or clipped states", "a layer without")
        if str(dtype) not in ("float32", "<class 'numpy.float32'>"):
            raise not_here(f"{type(self).__name__}(dtype={dtype!r})", "float32")
        if layout not in ("TNC", "NTC"):
            raise AssertionError(f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']")
        if dropout and num_layers == 1:
            warnings.warn(f"{type(self).__name__}(dropout={dropout}) is between layers, and there is one: it has no effect", stacklevel=3)
        super().__init__(prefix, params)
        self._hidden, self._layers, self._layout, self._input, self._dropout = hidden_size, num_layers, layout, input_size, dropout
        self._counted = use_sequence_length
        self._directions = ("l", "r") if bidirectional else ("l",)
        width = input_size
        for layer in range(num_layers):
            for d in self._directions:
                rows, begin = self._gates * hidden_size, f"{d}{layer}"
                for name, shape, init in (("i2h_weight", (rows, width), i2h_weight_initializer), ("h2h_weight", (rows, hidden_size), h2h_weight_initializer),
                                          ("i2h_bias", (rows,), i2h_bias_initializer), ("h2h_bias", (rows,), h2h_bias_initializer)):  # fmt: skip
                    setattr(self, f"{begin}_{name}", self.params.get(f"{begin}_{name}", shape=shape, init=init))
            width = hidden_size * len(self._directions)

    def state_info(self, batch_size=0):
        """The shapes of the states."""
        shape = (self._layers * len(self._directions), batch_size, self._hidden)
        return [{"shape": shape, "__layout__": "LNC", "dtype": "float32"}] * self._count

    def begin_state(self, batch_size=0, func=None, **options):
        """The initial states: zeros."""
        return begin_state(self, batch_size, func, **options)

    def _fit(self, x):
        for d in self._directions:
            if not self._input and x.shape:
                fit(getattr(self, f"{d}0_i2h_weight"), (self._gates * self._hidden, x.shape[-1]))

    def __call__(self, inputs, states=None, sequence_length=None, **options):
        """sequence_length, with use_sequence_length: the number of valid steps of each row."""
        if self._counted != (sequence_length is not None):
            raise ValueError(f"{self.name}: sequence_length and use_sequence_length belong together")
        skip = states is None
        if skip and not inputs.is_symbol:
            states = new_states(self, inputs, inputs.shape[self._layout.find("N")])
        elif not skip and not isinstance(states, (list, tuple)):
            states = [states]
        y = super().__call__(inputs, states, *([sequence_length] if self._counted else []), **options)
        return y[0] if skip else y

    def hybrid_forward(self, F, inputs, states, sequence_length=None, **params):
        """The states of the top layer after each step, and the last states of all layers."""
        x = self._turned(inputs)
        lengths = None if sequence_length is None else ops.cast(sequence_length, "int32")
        last = [[] for _ in range(self._count)]
        for layer in range(self._layers):
            given = [None if states is None else [s[layer * len(self._directions) + i] for s in states] for i in range(len(self._directions))]
            sides = [self._one_way(x, f"{d}{layer}", given[i], params, lengths) for i, d in enumerate(self._directions)]
            for _, ends in sides:
                for all_, end in zip(last, ends):
                    all_.append(end)
            x = sides[0][0] if len(sides) == 1 else _like(ops.concat([y for y, _ in sides], 2), x)
            if self._dropout and layer + 1 < self._layers:
                x = ops.dropout(x, self._dropout)
        ends = [_like(ops.stack(e, 0), x) for e in last]
        return self._turned(x), ends

    def _turned(self, x):
        return ops.transpose(x, (1, 0, 2)) if self._layout == "NTC" else x

    def _one_way(self, x, begin, states, params, lengths):
        """One direction of one layer: the states after each step, and the last states."""
        weight, back, bias, more = (params[f"{begin}_{name}"] for name in ("i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias"))
        gru = self._kind_of_cell == "gru"  # what its state gives is multiplied with its bias added
        gates = ops.linear(x, weight, bias if gru else bias + more, tw=True)
        reverse = begin[0] == "r"
        state, cell = (states or [None])[0], states[1] if states and self._count == 2 else None
        y = recurrent(self._kind_of_cell, gates, back, state, bias=more if gru else None, cell=cell, reverse=reverse, lengths=lengths)
        if lengths is not None:
            return y[0], list(y[1:])
        y, cells = y if self._count == 2 else (y, None)
        end = y[0] if reverse else y[-1]
        return y, [end] if cells is None else [end, cells]

    def __repr__(self):
        width = self.l0_i2h_weight.shape[1]
        text = f"{width or None} -> {self._hidden}, {self._layout}" + (f", num_layers={self._layers}" if self._layers != 1 else "") + (
            f", dropout={self._dropout}" if self._dropout else "") + (", bidirectional" if len(self._directions) == 2 else "")
        return f"{type(self).__name__}({text})"


class RNN(_Recurrent):
    """A recurrent layer with tanh or relu."""

    def __init__(self, hidden_size, num_layers=1, activation="relu", layout="TNC", **options):
        if activation not in ("relu", "tanh"):
            raise not_here(f"RNN(activation={activation!r})", "relu or tanh")
        super().__init__(hidden_size, num_layers, layout, **options)
        self._kind_of_cell = activation


class LSTM(_Recurrent):
    """A layer with long short-term memory: its states are the state and the cell."""

    _kind_of_cell, _gates, _count = "lstm", 4, 2


class GRU(_Recurrent):
    """A layer with gated units."""

    _kind_of_cell, _gates = "gru", 3
