"""mx.autograd: recording and gradients."""
from .. import autograd as _autograd
from ..autograd import backward, is_recording, is_training, pause, predict_mode, record, train_mode
from .missing import missing

__all__ = ["backward", "is_recording", "is_training", "pause", "predict_mode", "record", "train_mode"]
__getattr__ = missing("mx.autograd")
