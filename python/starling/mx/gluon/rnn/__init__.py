"""mx.gluon.rnn: recurrent layers, and cells that make one step."""
from ...missing import missing
from .cells import DropoutCell, GRUCell, HybridRecurrentCell, HybridSequentialRNNCell, LSTMCell, RecurrentCell, ResidualCell, RNNCell, SequentialRNNCell
from .layers import GRU, LSTM, RNN

__getattr__ = missing("mx.gluon.rnn")
