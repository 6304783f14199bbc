"""mx.npx: what networks and devices need beside NumPy's functions."""
from . import functions as _f
from ._mode import is_np_array, is_np_shape, reset_np, set_np
from .context import Context, cpu, current_context, gpu, num_gpus
from .functions import batch_dot, log_softmax, one_hot, relu, reshape_like, sigmoid, softmax
from .missing import missing
from .nd import waitall
from .random import seed

current_device, Device = current_context, Context
convolution, pooling, fully_connected = _f.Convolution, _f.Pooling, _f.FullyConnected
batch_norm, dropout, embedding, activation = _f.BatchNorm, _f.Dropout, _f.Embedding, _f.Activation
leaky_relu, batch_flatten, stop_gradient = _f.LeakyReLU, _f.flatten, _f.BlockGrad

__getattr__ = missing("mx.npx")
