"""mx.gluon.model_zoo: networks for images by MXNet's names."""
from ...unsupported import missing
from . import vision

__getattr__ = missing("mx.gluon.model_zoo")
