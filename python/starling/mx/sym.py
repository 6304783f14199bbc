"""mx.sym: the same functions, of symbols."""
from .. import _engine
from .functions import *  # noqa: F403
from .missing import missing
from .symbol import Symbol


def var(name, shape=None, dtype=None, **_):
    """A symbol of that name."""
    symbol = _engine.var(name, shape, dtype)
    symbol.__class__ = Symbol
    return symbol


Variable = var
__getattr__ = missing("mx.sym")
