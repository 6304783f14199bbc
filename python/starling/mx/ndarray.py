"""mx.nd: functions of arrays."""
from .. import _tensor
from . import contrib, linalg, random
from .arrays import from_dlpack, from_numpy, load, load_frombuffer, save, to_dlpack_for_read, to_dlpack_for_write
from .elementwise import *  # noqa: F403
from .functions import *  # noqa: F403
from .layers import *  # noqa: F403
from .ctc import CTCLoss, ctc_loss
from .detection import ROIPooling
from .outputs import *  # noqa: F403
from .fused_rnn import RNN
from .special import erfinv, gamma, gammaln
from .unsupported import missing
from .manipulation import *  # noqa: F403
from ._array import NDArray, reshaped
from .operator import Custom as _custom
from ._later import method as _method_of_symbols
from ._program import Symbol as _Symbol
from ._signed import as_mxnet as _as_mxnet
from ._storage import cast_storage
from .random import multinomial as sample_multinomial, normal, random_exponential, random_gamma, random_negative_binomial, random_normal
from .random import random_poisson, random_randint, random_uniform, sample_exponential, sample_gamma, sample_normal, sample_poisson, sample_uniform
from .random import shuffle, uniform


for _name in """det extractdiag extracttrian gelqf gemm gemm2 inverse makediag maketrian potrf potri slogdet sumlogdiag syrk trmm trsm""".split():
    globals()[f"linalg_{_name}"] = getattr(linalg, _name)


def waitall():
    """Waits until everything is computed; raises the first error."""
    _tensor.wait_all()


for _space, _names in (("nd", globals()), ("nd.random", vars(random)), ("nd.linalg", vars(linalg)), ("nd.contrib", vars(contrib))):
    _as_mxnet(_space, _names)
from .updates import *  # noqa: E402, F403, with MXNet's parameters already, and other ways for sparse arrays

Custom = _custom  # with the options of the registered operation
Softmax = SoftmaxOutput  # noqa: F405, MXNet's older name
# Methods that the engine's tensors have with another meaning.
for _name in """exp log sqrt square abs relu sigmoid tanh sum mean max min norm argmax prod cumsum softmax log_softmax clip flatten
        transpose broadcast_to one_hot dot take""".split():
    setattr(NDArray, _name, globals()[_name])
    if _name not in vars(_Symbol):
        setattr(_Symbol, _name, _method_of_symbols(_Symbol, _name))
NDArray.flatten = lambda self, inplace=False: reshaped(self, (0, -1)) if inplace else flatten(self)  # noqa: F405

__getattr__ = missing("mx.nd")
