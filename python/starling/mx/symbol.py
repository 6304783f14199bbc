"""mx.sym: the functions of mx.nd for symbols."""
from .. import _engine
from . import contrib, linalg, random
from .elementwise import *  # noqa: F403
from .functions import *  # noqa: F403
from .layers import *  # noqa: F403
from .ctc import CTCLoss, ctc_loss
from .detection import ROIPooling
from .special import erfinv, gamma, gammaln
from .linalg import gemm2 as linalg_gemm2, syrk as linalg_syrk
from .unsupported import missing
from .manipulation import *  # noqa: F403
from ._signed import as_mxnet as _as_mxnet
from ._program import Group, Symbol, load, load_json


def var(name, shape=None, dtype=None):
    """A symbol of that name."""
    symbol = _engine.var(name, shape, dtype)
    symbol.__class__ = Symbol
    return symbol


Variable = var
_as_mxnet("sym", globals())
__getattr__ = missing("mx.sym")
