"""mx.rnn's cells whose products are convolutions: their inputs and states are images."""
import functools

from .. import sym
from .cells import BaseRNNCell, gru_step, lstm_step


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


class BaseConvRNNCell(BaseRNNCell):
    """The base: input_shape is that of a step, with the number of sequences first."""

    _states = 1

    def __init__(self, input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate, i2h_weight_initializer,
                 h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation, prefix="", params=None, conv_layout="NCHW"):  # fmt: skip
        super().__init__(prefix, params)
        kernel, dilate = _pair(h2h_kernel), _pair(h2h_dilate)
        if any(k % 2 == 0 for k in kernel):
            raise ValueError(f"h2h_kernel is {kernel}; its lengths must be odd")
        self._input, self._num_hidden, self._activation, self._layout = tuple(input_shape), num_hidden, activation, conv_layout
        self._h2h = {"kernel": kernel, "dilate": dilate, "pad": tuple(d * (k - 1) // 2 for k, d in zip(kernel, dilate)), "stride": (1, 1)}
        self._i2h = {"kernel": _pair(i2h_kernel), "dilate": _pair(i2h_dilate), "pad": _pair(i2h_pad), "stride": _pair(i2h_stride)}
        for name, init in (("i2h_weight", i2h_weight_initializer), ("h2h_weight", h2h_weight_initializer), ("i2h_bias", i2h_bias_initializer),
                           ("h2h_bias", h2h_bias_initializer)):  # fmt: skip
            self.params.get(name, init=init)
        (_, (self._state_shape,), _) = self._convolution(sym.Variable("data"), "i2h", "", 1).infer_shape(data=self._input)

    def _convolution(self, x, group, name, gates):
        weights = {w: self.params.get(f"{group}_{w}") for w in ("weight", "bias")}
        return sym.Convolution(x, **weights, num_filter=self._num_hidden * gates, layout=self._layout, name=f"{name}{group}", **getattr(self, f"_{group}"))

    @property
    def state_info(self):
        return [{"shape": (0, self._num_hidden, *self._state_shape[2:]), "__layout__": self._layout}] * self._states

    def _products(self, inputs, state, name):
        gates = len(self._gate_names)
        return self._convolution(inputs, "i2h", name, gates), self._convolution(state, "h2h", name, gates)

    def _act(self, x, kind, name):
        return self._get_activation(x, kind, name=name)


def _cell(kind, gates, states, default):
    """A cell's class by its step."""

    def init(self, input_shape, num_hidden, h2h_kernel=(3, 3), h2h_dilate=(1, 1), i2h_kernel=(3, 3), i2h_stride=(1, 1), i2h_pad=(1, 1),
             i2h_dilate=(1, 1), i2h_weight_initializer=None, h2h_weight_initializer=None, i2h_bias_initializer="zeros", h2h_bias_initializer="zeros",
             activation=functools.partial(sym.LeakyReLU, act_type="leaky", slope=0.2), prefix=default, params=None, conv_layout="NCHW"):  # fmt: skip
        BaseConvRNNCell.__init__(self, input_shape, num_hidden, h2h_kernel, h2h_dilate, i2h_kernel, i2h_stride, i2h_pad, i2h_dilate,
                                 i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, activation, prefix,
                                 params, conv_layout)  # fmt: skip

    def step(self, inputs, states):
        name = self._step()
        i2h, h2h = self._products(inputs, states[0], name)
        found = kind(self, i2h, h2h, states, name)
        return found[0], list(found)

    return {"_gate_names": gates, "_states": states, "__init__": init, "__call__": step}


ConvRNNCell = type("ConvRNNCell", (BaseConvRNNCell,), {
    "__doc__": "A step with an activation.",
    **_cell(lambda cell, i2h, h2h, states, name: (cell._act(i2h + h2h, cell._activation, f"{name}out"),), ("",), 1, "ConvRNN_")})  # fmt: skip
ConvLSTMCell = type("ConvLSTMCell", (BaseConvRNNCell,), {
    "__doc__": "A step of long short-term memory.",
    **_cell(lambda cell, i2h, h2h, states, name: lstm_step(i2h + h2h, states[1], name, cell._act, cell._activation),
            ("_i", "_f", "_c", "_o"), 2, "ConvLSTM_")})  # fmt: skip
ConvGRUCell = type("ConvGRUCell", (BaseConvRNNCell,), {
    "__doc__": "A step with gated units.",
    **_cell(lambda cell, i2h, h2h, states, name: (gru_step(i2h, h2h, states[0], name, cell._act, cell._activation),),
            ("_r", "_z", "_o"), 1, "ConvGRU_")})  # fmt: skip
