"""mx.gluon.contrib: further layers."""
from ...unsupported import missing
from . import nn

__getattr__ = missing("mx.gluon.contrib")
