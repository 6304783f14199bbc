"""MXNet's Gluon interface, as programs and tutorials for MXNet 1.9.1 use it, on the Starling engine:

    from starling import mx
    from starling.mx import autograd, gluon, init, nd, sym
    from starling.mx.gluon import loss as gloss, nn

or with NumPy's names, after npx.set_np():

    from starling.mx import autograd, gluon, init, np, npx

Names of MXNet that this package lacks raise NotImplementedError with the name.
"""
from . import ndarray as nd, symbol as sym  # before the modules that use them by these names

from . import autograd, base, context, contrib, engine, gluon, image, init, io, lr_scheduler, metric, name, np, npx, optimizer, random, recordio
from . import contrib_autograd, kvstore, model, module, nd_image, nd_ndarray, operator, rnn, runtime, sparse, test_utils, util
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from .unsupported import missing
from ._later import Kept as _Kept
from ._internal import of_arrays as _of_arrays, of_symbols as _of_symbols
from ._modules import install as _install
from ._array import NDArray
from .name import AttrScope
from .util import np_array, np_shape, is_np_array, is_np_shape, set_np_shape, use_np, use_np_array, use_np_shape
from ._program import Symbol
from . import _protocols  # noqa: F401  which gives arrays NumPy's protocols

kv = kvstore
initializer, rnd, numpy, numpy_extension, img, attribute, mod = init, random, np, npx, image, name, module
nd.sparse, nd.ndarray, contrib.autograd = sparse, nd_ndarray, contrib_autograd
sym.sparse, sym._internal, nd._internal = _of_symbols(sparse), _of_symbols(_of_arrays(nd)), _of_arrays(nd)
contrib.nd, contrib.ndarray, contrib.sym, contrib.symbol = contrib, contrib, sym.contrib, sym.contrib
gluon.data.dataset, gluon.data.dataloader, gluon.data.vision.datasets = gluon.data._datasets, gluon.data, gluon.data.vision
_install(__name__, [
    ("numpy", np), ("numpy_extension", npx), ("nd", nd), ("sym", sym), ("initializer", init), ("rnd", random), ("img", image), ("attribute", name),
    ("kv", kvstore), ("mod", module), ("module.module", module), ("rnn.rnn_cell", rnn.cells), ("rnn.rnn", rnn.files),
    *((f"{np_}.{part}", getattr(np, part)) for np_ in ("numpy", "np") for part in ("random", "linalg")),
    *((f"{nd_}.{part}", getattr(nd, part)) for nd_ in ("nd", "ndarray") for part in ("random", "linalg", "contrib", "sparse")),
    ("nd.ndarray", nd_ndarray), ("ndarray.ndarray", nd_ndarray), ("sym.symbol", sym), ("symbol.symbol", sym), ("numpy.multiarray", np),
    *((f"contrib.{part}", getattr(contrib, part)) for part in ("nd", "ndarray", "sym", "symbol")),
    ("contrib.text", contrib.text), ("contrib.autograd", contrib_autograd),
    *((f"contrib.text.{part}", getattr(contrib.text, part)) for part in ("vocab", "embedding", "utils")),
    ("gluon.data.dataset", gluon.data._datasets), ("gluon.data.dataloader", gluon.data), ("gluon.data.vision.datasets", gluon.data.vision),
    ("gluon.nn.basic_layers", gluon.nn), ("gluon.nn.conv_layers", gluon.nn), ("gluon.rnn.rnn_cell", gluon.rnn), ("gluon.rnn.rnn_layer", gluon.rnn),
])  # fmt: skip
nd.np, nd.npx, sym.np, sym.npx = np, npx, _Kept(np), _Kept(npx)
nd.image = npx.image = nd_image
__version__ = "1.9.1"  # the version of MXNet whose interface this is

__getattr__ = missing("mx")
