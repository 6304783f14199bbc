"""mx.sym: the functions of mx.nd for symbols."""
from .. import _engine
from .._tensor import Tensor as _Tensor
from . import _attributes, _automatic, _later, _types, contrib, linalg, random
from .elementwise import *  # noqa: F403
from .elementwise import broadcast_hypot as _hypotenuse
from .functions import *  # noqa: F403
from .layers import *  # noqa: F403
from .ctc import CTCLoss, ctc_loss
from .detection import ROIPooling
from .outputs import *  # noqa: F403
from .fused_rnn import RNN
from .special import erfinv, gamma, gammaln
from .linalg import gemm2 as linalg_gemm2, syrk as linalg_syrk
from .unsupported import missing
from .manipulation import *  # noqa: F403
from ._signed import as_mxnet as _as_mxnet, signature as _signature
from ._storage import STYPE_NUMBERS, cast_storage
from .operator import custom_of_symbols
from ._mode import is_np_shape
from ._program import Group, Symbol, _stypes_of_variables, load, load_json


def var(name, shape=None, dtype=None, stype=None, attr=None, lr_mult=None, wd_mult=None, init=None, **attributes):
    """A symbol of that name; a length of 0 is unknown, as in MXNet without NumPy's shapes, and makes the shape unknown.

    lr_mult, wd_mult and init are for mx.mod.Module; further options have the form __name__="text".
    """
    if unknown := [k for k in attributes if not (k.startswith("__") and k.endswith("__"))]:
        raise TypeError(f"sym.var() got an unexpected keyword argument {unknown[0]!r}; further attributes have the form __name__")
    attributes.update(lr_mult=lr_mult, wd_mult=wd_mult)
    if dtype is not None:
        attributes["__dtype__"] = _types.attribute(dtype)
    if stype:
        attributes["__storage_type__"] = str(STYPE_NUMBERS[stype])
    _attributes.initialisers[name] = init
    _stypes_of_variables[name] = stype or "default"
    shape = (shape,) if isinstance(shape, int) else shape
    if shape is not None and (-1 if is_np_shape() else 0) in shape:
        attributes["__shape__"], shape = str(tuple(shape)), None
    symbol = _engine.var(name, shape, dtype)
    symbol.__class__ = Symbol
    return _attributes.keep(symbol, _attributes.given(attr, attributes))


def _hypot(left, right):
    """The root of left² + right², of symbols or of one and a number."""
    return _hypotenuse(left, right) if isinstance(left, _Tensor) else _hypotenuse(right, left)


Variable = var
_as_mxnet("sym", globals())
for _name, _function in list(globals().items()):
    if callable(_function) and not isinstance(_function, type) and not _name.startswith("_") and _name not in ("var", "load", "load_json", "missing"):
        globals()[_name] = _automatic.with_data(_later.kept(_function, _name), var)
pow = power  # noqa: F405
hypot = _later.kept(_hypot, "hypot")
Softmax = SoftmaxOutput  # noqa: F405, MXNet's older name
Custom = custom_of_symbols
contrib, linalg, random = _later.Kept(contrib), _later.Kept(linalg), _later.Kept(random, Symbol)
for _name in "zeros ones full arange eye linspace".split():
    globals()[_name] = _later.source(globals()[_name].__wrapped__, Symbol, _signature(f"sym.{_name}").names if _signature(f"sym.{_name}") else ())
_automatic.install(globals(), var)
__getattr__ = missing("mx.sym")
