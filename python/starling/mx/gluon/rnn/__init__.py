"""mx.gluon.rnn: recurrent layers, and cells that make one step."""
from ..._signed import as_mxnet as _as_mxnet
from ...unsupported import missing
from .cells import DropoutCell, GRUCell, HybridRecurrentCell, HybridSequentialRNNCell, LSTMCell, RecurrentCell, ResidualCell, RNNCell, SequentialRNNCell
from .layers import GRU, LSTM, RNN

_as_mxnet("gluon.rnn", globals())
__getattr__ = missing("mx.gluon.rnn")
