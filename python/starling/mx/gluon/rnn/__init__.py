"""mx.gluon.rnn: recurrent layers, and cells that make one step."""
from ..._signed import as_mxnet as _as_mxnet
from ...unsupported import missing
from .cells import BidirectionalCell, DropoutCell, GRUCell, HybridRecurrentCell, HybridSequentialRNNCell, LSTMCell, ModifierCell, RecurrentCell
from .cells import ResidualCell, RNNCell, SequentialRNNCell, ZoneoutCell
from .layers import GRU, LSTM, RNN

_as_mxnet("gluon.rnn", globals())
__getattr__ = missing("mx.gluon.rnn")
