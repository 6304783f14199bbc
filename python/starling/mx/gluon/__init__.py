"""mx.gluon: blocks, losses, trainers, data."""
from ..missing import missing
from . import data, loss, nn, rnn, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .trainer import Trainer

__getattr__ = missing("mx.gluon")
