"""mx.gluon.contrib: further layers, and the Estimator."""
from ...unsupported import missing
from . import estimator, nn

__getattr__ = missing("mx.gluon.contrib")
