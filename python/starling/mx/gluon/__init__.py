"""mx.gluon: blocks, losses, trainers, data."""
from .._signed import as_mxnet as _as_mxnet
from ..unsupported import missing
from . import block, contrib, data, loss, model_zoo, nn, rnn, utils
from .block import Block, HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .symbol_block import SymbolBlock
from .trainer import Trainer

block.SymbolBlock = SymbolBlock  # MXNet has it there, too

_as_mxnet("gluon", globals())
__getattr__ = missing("mx.gluon")
