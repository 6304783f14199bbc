"""mx.nd: functions of arrays."""
from .. import _tensor
from .._core import text_of
from . import random
from .functions import *  # noqa: F403
from .missing import missing
from .ndarray import NDArray


def waitall():
    """Waits until everything is computed; raises the first error."""
    _tensor.wait_all()


__getattr__ = missing("mx.nd")
