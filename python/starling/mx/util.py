"""mx.util: its functions that programs use."""
from ._mode import is_np_array, is_np_shape, reset_np, set_np
from .context import num_gpus as get_gpu_count
from .unsupported import missing

__getattr__ = missing("mx.util")
