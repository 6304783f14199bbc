"""MXNet's Gluon interface, as programs and tutorials for MXNet 1.9.1 use it, on the Starling engine:

    from starling import mx
    from starling.mx import autograd, gluon, init, nd, sym
    from starling.mx.gluon import loss as gloss, nn

What MXNet has and this does not raises NotImplementedError, which names it.
"""
from . import autograd, gluon, init, nd, random, sym
from .context import Context, cpu, current_context, gpu, num_gpus
from .missing import missing
from .ndarray import NDArray
from .symbol import Symbol

ndarray, symbol, initializer = nd, sym, init
__version__ = "1.9.1"  # the MXNet whose interface this is

__getattr__ = missing("mx")
