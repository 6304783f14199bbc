"""mx.rnn: recurrent cells of symbols, sentences in buckets, and checkpoints of programs with such cells."""
from ..unsupported import missing
from . import io
from .cells import BaseRNNCell, BidirectionalCell, DropoutCell, GRUCell, LSTMCell, ModifierCell, ResidualCell, RNNCell, RNNParams
from .cells import SequentialRNNCell, ZoneoutCell
from .convolution import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .files import do_rnn_checkpoint, load_rnn_checkpoint, save_rnn_checkpoint
from .fused import FusedRNNCell
from .io import BucketSentenceIter, encode_sentences

__getattr__ = missing("mx.rnn")
