"""mx.gluon.contrib.estimator.Estimator: trains and evaluates a network, with handlers of events."""
import copy
import logging
import sys
import warnings

from .... import metric as _metric
from ....context import Context, cpu, gpu, num_gpus
from ....unsupported import missing
from ... import loss as _loss
from ...data import DataLoader
from ...trainer import Trainer
from . import event_handler as _events
from .batch_processor import BatchProcessor

__all__ = ["Estimator"]
_EVENTS = ("train_begin", "epoch_begin", "batch_begin", "batch_end", "epoch_end", "train_end")
_KINDS = (_events.TrainBegin, _events.EpochBegin, _events.BatchBegin, _events.BatchEnd, _events.EpochEnd, _events.TrainEnd)


def _a_loss(loss):
    if not isinstance(loss, _loss.Loss):
        raise ValueError(f"Estimator: loss must be a gluon.loss.Loss, not {loss!r}")
    return loss


def _contexts(context):
    """The contexts as a list: the one given, or a GPU if there is one."""
    if not context:
        return [gpu(0)] if num_gpus() else [cpu()]
    found = [context] if isinstance(context, Context) else context
    if not isinstance(found, list) or not all(isinstance(c, Context) for c in found):
        raise ValueError(f"Estimator: context must be a Context or a list of them, not {context!r}")
    for c in found:
        if c.device_type == "gpu" and c.device_id >= num_gpus():
            raise AssertionError(f"{c} is not available, there are {num_gpus()} GPUs")
    return found


def _metrics_of(handler):
    """The metrics that a handler refers to."""
    found = []
    for name in ("metrics", "monitor"):
        value = getattr(handler, name, None)
        found += value if isinstance(value, (list, tuple)) else [value] if value is not None else []
    return [m for m in found if isinstance(m, _metric.EvalMetric)]


def _check_known(handlers, known):
    """Handlers of one run refer to the same metrics."""
    for handler in handlers:
        for m in _metrics_of(handler):
            if not any(m is k for k in known):
                raise ValueError(f"{type(handler).__name__} has the metric {m}, which is none of the estimator's train_metrics and val_metrics")


class Estimator:
    """A network with loss, metrics and trainer; fit trains, evaluate validates.  Messages go to .logger."""

    def __init__(self, net, loss, train_metrics=None, val_metrics=None, initializer=None, trainer=None, context=None, val_net=None,
                 val_loss=None, batch_processor=None):
        self.net, self.loss = net, _a_loss(loss)
        self._name_metrics(list(_events.metrics_in(train_metrics)), list(_events.metrics_in(val_metrics)))
        self.val_loss = self.loss if val_loss is None else _a_loss(val_loss)
        self.val_net = net if val_net is None else val_net
        self.logger = logging.Logger(name="Estimator", level=logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = _contexts(context)
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = BatchProcessor() if batch_processor is None else batch_processor
        if not all(callable(getattr(self.batch_processor, name, None)) for name in ("fit_batch", "evaluate_batch")):
            raise ValueError("Estimator: batch_processor needs the methods fit_batch and evaluate_batch")

    def _name_metrics(self, train, validation):
        """Fills in metrics that were not given; all names tell training from validation."""
        if not train:
            train = [_metric.Accuracy()] if isinstance(self.loss, _loss.SoftmaxCrossEntropyLoss) else []
            train.append(_metric.Loss(self.loss.name.rstrip("0123456789")))
        for m in train:
            m.name = "training " + m.name
        validation = validation or [copy.deepcopy(m) for m in train]
        for m in validation:
            m.name = m.name.replace("training", "validation") if "training" in m.name else "validation " + m.name
        self._train_metrics, self._val_metrics = train, validation

    @property
    def train_metrics(self):
        """The metrics of training."""
        return self._train_metrics

    @property
    def val_metrics(self):
        """The metrics of validation."""
        return self._val_metrics

    def _initialize(self, initializer):
        if not self._is_initialized():
            self.net.initialize(init=initializer, ctx=self.context)
        elif initializer:
            warnings.warn("Estimator: the network has values already, initializer is not used; net.initialize(force_reinit=True) sets them anew", stacklevel=3)

    def _is_initialized(self):
        try:
            for p in self.net.collect_params().values():
                p.list_ctx()
        except RuntimeError:
            return False
        return True

    def _check_trainer(self, trainer):
        if trainer and not isinstance(trainer, Trainer):
            raise ValueError(f"Estimator: trainer must be a gluon.Trainer, not {trainer!r}")
        if not trainer:
            warnings.warn("Estimator: without a trainer, SGD with a learning rate of 0.001 is used", stacklevel=3)
            trainer = Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        return trainer

    def evaluate(self, val_data, batch_axis=0, event_handlers=None):
        """Computes the metrics of validation."""
        _check_loader(val_data)
        for m in self.val_metrics:
            m.reset()
        handlers = self._prepare_default_validation_handlers(event_handlers)
        events = dict(zip(_EVENTS, self._categorize_handlers(handlers)))
        for h in events["epoch_begin"]:
            h.epoch_begin(self)
        for batch in val_data:
            for h in events["batch_begin"]:
                h.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for h in events["batch_end"]:
                h.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for h in events["epoch_end"]:
            h.epoch_end(self)

    def fit(self, train_data, val_data=None, epochs=None, event_handlers=None, batches=None, batch_axis=0):
        """Trains for a number of epochs or of batches, until a handler stops it."""
        _check_loader(train_data)
        if bool(epochs) == bool(batches):
            raise ValueError("Estimator.fit needs either epochs or batches")
        self.max_epoch, self.max_batch, self.batch_axis = epochs, batches, batch_axis
        events = dict(zip(_EVENTS, self._categorize_handlers(self._prepare_default_handlers(val_data, event_handlers))))
        for h in events["train_begin"]:
            h.train_begin(self)
        while not self._epoch(train_data, events):
            pass
        for h in events["train_end"]:
            h.train_end(self)

    def _epoch(self, train_data, events):
        """Trains for an epoch; returns whether a handler stops training."""
        for h in events["epoch_begin"]:
            h.epoch_begin(self)
        for batch in train_data:
            for h in events["batch_begin"]:
                h.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.fit_batch(self, batch, self.batch_axis)
            if any([h.batch_end(self, batch=batch, pred=pred, label=label, loss=loss) for h in events["batch_end"]]):
                break
        return any([h.epoch_end(self) for h in events["epoch_end"]])

    def _prepare_default_handlers(self, val_data, event_handlers):
        given = _events.handlers_in(event_handlers)
        added = [_events.StoppingHandler(self.max_epoch, self.max_batch)]
        for kind, make in (
            (_events.GradientUpdateHandler, _events.GradientUpdateHandler),
            (_events.MetricHandler, lambda: _events.MetricHandler(self.train_metrics)),
            (_events.ValidationHandler, lambda: _events.ValidationHandler(val_data, self.evaluate) if val_data else None),
            (_events.LoggingHandler, lambda: _events.LoggingHandler(metrics=self.train_metrics)),
        ):
            if not any(isinstance(h, kind) for h in given):
                added.append(make())
        return self._together(given, [h for h in added if h is not None], self.train_metrics + self.val_metrics)

    def _prepare_default_validation_handlers(self, event_handlers):
        given = _events.handlers_in(event_handlers)
        kinds = (_events.MetricHandler, _events.LoggingHandler)
        added = [kind(metrics=self.val_metrics) for kind in kinds if not any(isinstance(h, kind) for h in given)]
        return self._together(given, added, self.val_metrics)

    @staticmethod
    def _together(given, added, known):
        """Handlers in the order of their calls."""
        if given and added:
            _check_known(given + added, known)
        return sorted(given + added, key=lambda h: getattr(h, "priority", 0))

    def _categorize_handlers(self, event_handlers):
        return tuple([h for h in event_handlers if isinstance(h, kind)] for kind in _KINDS)


def _check_loader(data):
    if not isinstance(data, DataLoader):
        raise ValueError(f"Estimator: data must be a gluon.data.DataLoader, not {data!r}")


__getattr__ = missing("mx.gluon.contrib.estimator.estimator")
