"""mx.gluon.contrib.estimator: training loops made of handlers of events."""
from ....unsupported import missing
from . import batch_processor, event_handler
from . import estimator
from .batch_processor import BatchProcessor
from .estimator import Estimator
from .event_handler import (BatchBegin, BatchEnd, CheckpointHandler, EarlyStoppingHandler, EpochBegin, EpochEnd, GradientUpdateHandler,
                            LoggingHandler, MetricHandler, StoppingHandler, TrainBegin, TrainEnd, ValidationHandler)  # fmt: skip

__all__ = ["BatchProcessor", "Estimator", *event_handler.__all__]
__getattr__ = missing("mx.gluon.contrib.estimator")
