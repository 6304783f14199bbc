"""MXNet's Gluon interface, as programs and tutorials for MXNet 1.9.1 use it, on the Starling engine:

    from starling import mx
    from starling.mx import autograd, gluon, init, nd, sym
    from starling.mx.gluon import loss as gloss, nn

or with NumPy's names, after npx.set_np():

    from starling.mx import autograd, gluon, init, np, npx

Names of MXNet that this package lacks raise NotImplementedError with the name.
"""
import sys

from . import ndarray as nd, symbol as sym  # before the modules that use them by these names

from . import autograd, base, context, contrib, engine, gluon, image, init, io, lr_scheduler, metric, name, np, npx, optimizer, random, recordio
from . import nd_image, test_utils, util
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, current_context, gpu, num_gpus
from .unsupported import missing
from ._array import NDArray
from .name import AttrScope
from .util import np_array, np_shape, is_np_array, is_np_shape, set_np_shape, use_np, use_np_array, use_np_shape
from ._program import Symbol

initializer, rnd, numpy, numpy_extension, img = init, random, np, npx, image
for _name, _module in (("numpy", np), ("numpy_extension", npx), ("nd", nd), ("sym", sym), ("initializer", init), ("rnd", random),
                       ("numpy.random", np.random), ("numpy.linalg", np.linalg),
                       ("np.random", np.random), ("np.linalg", np.linalg), ("contrib.text", contrib.text), ("contrib.text.vocab", contrib.text.vocab), ("img", image),
                       ("contrib.text.embedding", contrib.text.embedding), ("contrib.text.utils", contrib.text.utils)):  # fmt: skip
    sys.modules[f"{__name__}.{_name}"] = _module  # allows import starling.mx.numpy
for _module in (nd, sym):
    _module.np, _module.npx = np, npx
nd.image = npx.image = nd_image
__version__ = "1.9.1"  # the version of MXNet whose interface this is

__getattr__ = missing("mx")
