"""mx.base: the error class that programs for MXNet catch."""
from .._core import Error as MXNetError

__all__ = ["MXNetError"]
