"""Handlers of an Estimator's events; those with the lowest priority come first."""
import math
import os
import re
import shutil
import tempfile
import time
import warnings

from .... import metric as _metric
from ....unsupported import missing

__all__ = ["TrainBegin", "TrainEnd", "EpochBegin", "EpochEnd", "BatchBegin", "BatchEnd", "StoppingHandler", "MetricHandler",
           "ValidationHandler", "LoggingHandler", "CheckpointHandler", "EarlyStoppingHandler", "GradientUpdateHandler"]  # fmt: skip


def metrics_in(metrics):
    """A list of metrics from one, several or None."""
    if isinstance(metrics, _metric.CompositeEvalMetric):
        return [m for part in metrics.metrics for m in metrics_in(part)]
    found = [metrics] if isinstance(metrics, _metric.EvalMetric) else metrics or []
    if not isinstance(found, (list, tuple)) or not all(isinstance(m, _metric.EvalMetric) for m in found):
        raise ValueError(f"metrics must be an EvalMetric or a list of them, not {metrics!r}")
    return found


class EventHandler:
    """The base of handlers."""


def handlers_in(handlers):
    """A list of handlers from one, several or None."""
    found = [handlers] if isinstance(handlers, EventHandler) else list(handlers or [])
    if not all(isinstance(h, EventHandler) for h in found):
        raise ValueError(f"event_handlers must be an EventHandler or a list of them, not {handlers!r}")
    return found


class TrainBegin(EventHandler):
    """Called before training."""

    def train_begin(self, estimator, *args, **kwargs):
        """Before the first epoch."""


class TrainEnd(EventHandler):
    """Called after training."""

    def train_end(self, estimator, *args, **kwargs):
        """After the last epoch."""


class EpochBegin(EventHandler):
    """Called before each epoch."""

    def epoch_begin(self, estimator, *args, **kwargs):
        """Before an epoch."""


class EpochEnd(EventHandler):
    """Called after each epoch."""

    def epoch_end(self, estimator, *args, **kwargs):
        """After an epoch; True stops training."""
        return False


class BatchBegin(EventHandler):
    """Called before each batch."""

    def batch_begin(self, estimator, *args, **kwargs):
        """Before a batch."""


class BatchEnd(EventHandler):
    """Called after each batch."""

    def batch_end(self, estimator, *args, **kwargs):
        """After a batch; True stops training."""
        return False


class _Counting(TrainBegin, BatchEnd, EpochEnd):
    """Counts epochs and batches since training began."""

    current_batch = current_epoch = 0

    def train_begin(self, estimator, *args, **kwargs):
        self.current_batch = self.current_epoch = 0

    def batch_end(self, estimator, *args, **kwargs):
        self.current_batch += 1

    def epoch_end(self, estimator, *args, **kwargs):
        self.current_epoch += 1


class StoppingHandler(_Counting):
    """Stops after the estimator's number of epochs or batches."""

    def __init__(self, max_epoch=None, max_batch=None):
        self.max_epoch, self.max_batch, self.stop_training = max_epoch, max_batch, False

    def train_begin(self, estimator, *args, **kwargs):
        super().train_begin(estimator)
        self.max_epoch, self.max_batch = estimator.max_epoch, estimator.max_batch

    def batch_end(self, estimator, *args, **kwargs):
        super().batch_end(estimator)
        self.stop_training |= self.current_batch == self.max_batch
        return self.stop_training

    def epoch_end(self, estimator, *args, **kwargs):
        super().epoch_end(estimator)
        self.stop_training |= self.current_epoch == self.max_epoch
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Updates metrics after each batch, and starts them anew with each epoch."""

    def __init__(self, metrics, priority=-1000):
        self.metrics, self.priority = metrics_in(metrics), priority

    def epoch_begin(self, estimator, *args, **kwargs):
        for m in self.metrics:
            m.reset()

    def batch_end(self, estimator, *args, **kwargs):
        for m in self.metrics:
            if isinstance(m, _metric.Loss):
                m.update(0, kwargs["loss"])
            else:
                m.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(_Counting):
    """Calls eval_fn(val_data=…, batch_axis=…, event_handlers=…) every so many epochs or batches."""

    def __init__(self, val_data, eval_fn, epoch_period=1, batch_period=None, priority=-1000, event_handlers=None):
        self.val_data, self.eval_fn, self.event_handlers = val_data, eval_fn, event_handlers
        self.epoch_period, self.batch_period, self.priority = epoch_period, batch_period, priority

    def _evaluate(self, estimator, count, period):
        if period and count % period == 0:
            self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)

    def batch_end(self, estimator, *args, **kwargs):
        super().batch_end(estimator)
        self._evaluate(estimator, self.current_batch, self.batch_period)

    def epoch_end(self, estimator, *args, **kwargs):
        super().epoch_end(estimator)
        self._evaluate(estimator, self.current_epoch, self.epoch_period)


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs metrics at the end of each epoch, or every log_interval batches, too."""

    def __init__(self, log_interval="epoch", metrics=None, priority=math.inf):
        if not isinstance(log_interval, int) and log_interval != "epoch":
            raise ValueError(f"log_interval must be an integer or 'epoch', not {log_interval!r}")
        self.metrics, self.log_interval, self.priority = metrics_in(metrics), log_interval, priority
        self._start()

    def _start(self):
        self.batch_index = self.current_epoch = self.processed_samples = self.log_interval_time = 0

    def _values(self, text):
        """The text followed by the metrics' values."""
        return (text + "".join(f"{name}: {value:.4f}, " for name, value in (m.get() for m in self.metrics))).rstrip(", ")

    def train_begin(self, estimator, *args, **kwargs):
        self.train_start = time.time()
        estimator.logger.info("Training begin: using optimizer %s with current learning rate %.4f ",
                              type(estimator.trainer.optimizer).__name__, estimator.trainer.learning_rate)  # fmt: skip
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)
        self._start()

    def train_end(self, estimator, *args, **kwargs):
        text = f"Train finished using total {int(time.time() - self.train_start)}s with {self.current_epoch} epochs. "
        estimator.logger.info(self._values(text))

    def batch_begin(self, estimator, *args, **kwargs):
        self.batch_start = time.time()

    def batch_end(self, estimator, *args, **kwargs):
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                text = f"[Epoch {self.current_epoch}][Batch {self.batch_index}][Samples {self.processed_samples}] "
                estimator.logger.info(self._values(f"{text}time/interval: {self.log_interval_time:.3f}s "))
                self.log_interval_time = 0
        self.batch_index += 1

    def epoch_begin(self, estimator, *args, **kwargs):
        self.epoch_start = time.time()
        if any("training" in m.name for m in self.metrics):
            estimator.logger.info("[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, estimator.trainer.learning_rate)
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator, *args, **kwargs):
        estimator.logger.info(self._values(f"[Epoch {self.current_epoch}] Finished in {time.time() - self.epoch_start:.3f}s, "))
        self.current_epoch += 1
        self.batch_index = 0


def _grows(monitor, mode):
    """Whether a greater value of the metric is better."""
    if mode not in ("auto", "min", "max"):
        warnings.warn(f"mode {mode!r} is unknown; auto is used, which is max for accuracy and F1, and min for others", RuntimeWarning, stacklevel=3)
        mode = "auto"
    if mode != "auto":
        return mode == "max"
    name = monitor.get()[0].lower()
    better = "acc" in name or "f1" in name
    warnings.warn(f"{'greater' if better else 'less'} values of {name} are taken to be better; set mode='min' or mode='max' to say it", stacklevel=3)
    return better


class _Best:
    """The best value of a metric so far."""

    def __init__(self, monitor, mode):
        self.monitor, self.grows = monitor, _grows(monitor, mode)

    def first(self):
        """A value that is worse than all."""
        return -math.inf if self.grows else math.inf

    def value(self):
        """The metric's value, or None with a warning if it has none."""
        name, value = self.monitor.get()
        if math.isnan(value):
            warnings.warn(f"{name} is not updated: it must be one of estimator.train_metrics or estimator.val_metrics", RuntimeWarning, stacklevel=3)
            return None
        return value

    def better(self, value, best, by=0):
        """Whether a value is better than another one, by so much."""
        return value - by > best if self.grows else value + by < best


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops if a metric has not become better for more than patience epochs."""

    def __init__(self, monitor, min_delta=0, patience=0, mode="auto", baseline=None):
        if not isinstance(monitor, _metric.EvalMetric):
            raise ValueError(f"EarlyStoppingHandler: monitor must be a metric of the estimator, not {monitor!r}")
        if isinstance(monitor, _metric.CompositeEvalMetric):
            raise ValueError("EarlyStoppingHandler: monitor must be a single metric, not a CompositeEvalMetric")
        self.monitor, self.baseline, self.patience, self.min_delta = monitor, baseline, patience, min_delta
        self._best = _Best(monitor, mode)
        self._start()

    def _start(self):
        self.wait = self.stopped_epoch = self.current_epoch = 0
        self.stop_training = False
        self.best = self._best.first() if self.baseline is None else self.baseline

    def train_begin(self, estimator, *args, **kwargs):
        self._start()

    def epoch_end(self, estimator, *args, **kwargs):
        value = self._best.value()
        if value is not None and self._best.better(value, self.best, self.min_delta):
            self.best, self.wait = value, 0
        elif value is not None:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch, self.stop_training = self.current_epoch, True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator, *args, **kwargs):
        if self.stopped_epoch > 0:
            estimator.logger.info("[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving", self.stopped_epoch, self.monitor.get()[0])


class GradientUpdateHandler(BatchEnd):
    """Updates the parameters after each batch."""

    def __init__(self, priority=-2000):
        self.priority = priority

    def batch_end(self, estimator, *args, **kwargs):
        loss = kwargs["loss"]
        estimator.trainer.step(sum(each.shape[0] for each in (loss if isinstance(loss, list) else [loss])))


class CheckpointHandler(_Counting):
    """Saves parameters and the trainer's states, every so many epochs or batches, as PREFIX-epochNbatchM.params and .states; the
    program of a hybrid network after the first batch, as PREFIX-symbol.json; with save_best those with the best value of monitor,
    as PREFIX-best.  With resume_from_checkpoint training continues from the last ones."""

    def __init__(self, model_dir, model_prefix="model", monitor=None, verbose=0, save_best=False, mode="auto", epoch_period=1,
                 batch_period=None, max_checkpoints=5, resume_from_checkpoint=False):
        if save_best and not isinstance(monitor, _metric.EvalMetric):
            raise ValueError(f"CheckpointHandler: save_best needs a metric of the estimator as monitor, not {monitor!r}")
        os.makedirs(model_dir, exist_ok=True)
        self.model_dir, self.model_prefix, self.monitor, self.verbose, self.save_best = model_dir, model_prefix, monitor, verbose, save_best
        self.epoch_period, self.batch_period, self.max_checkpoints = epoch_period, batch_period, max_checkpoints
        self.resume_from_checkpoint, self.saved_checkpoints = resume_from_checkpoint, []
        self.trained_epoch = self.trained_batch = -1
        self._best = _Best(monitor, mode) if save_best else None

    def train_begin(self, estimator, *args, **kwargs):
        super().train_begin(estimator)
        if self.save_best:
            self.best = self._best.first()
        if self.resume_from_checkpoint:
            by_batch = bool(estimator.max_batch)
            if by_batch != bool(self.batch_period) or by_batch == bool(self.epoch_period):
                raise AssertionError("CheckpointHandler: resume_from_checkpoint needs epoch_period where fit counts epochs, batch_period where it "
                                     "counts batches, and None for the other one")  # fmt: skip
            self._resume(estimator)

    def batch_end(self, estimator, *args, **kwargs):
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save(estimator)
        super().batch_end(estimator)

    def epoch_end(self, estimator, *args, **kwargs):
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save(estimator)
        super().epoch_end(estimator)

    def _log(self, estimator, text, *values):
        if self.verbose > 0:
            estimator.logger.info("[Epoch %d] CheckpointHandler: " + text, self.current_epoch, *values)

    def _save(self, estimator):
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:  # numbers continue; at the end of an epoch its last batch is counted already
            epoch, batch = epoch + self.trained_epoch + 1, batch + self.trained_batch + (0 if estimator.max_epoch else 1)
        prefix = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._write(estimator, prefix)
        self.saved_checkpoints.append(prefix)
        while len(self.saved_checkpoints) > self.max_checkpoints:
            self._remove(self.saved_checkpoints.pop(0))
        self._log(estimator, "trained total %d batches, saving model at %s with prefix: %s", self.current_batch + 1, self.model_dir, prefix)
        if self.save_best:
            self._save_best(estimator)

    def _save_best(self, estimator):
        value = self._best.value()
        if value is None:
            return
        name = self.monitor.get()[0]
        if not self._best.better(value, self.best):
            self._log(estimator, "%s did not improve from %0.5f, skipping updating best model", name, self.best)
            return
        self._write(estimator, self.model_prefix + "-best")
        self._log(estimator, "%s improved from %0.5f to %0.5f, updating best model at %s", name, self.best, value, self.model_dir)
        self.best = value

    def _path(self, name):
        return os.path.join(self.model_dir, name)

    def _write(self, estimator, prefix):
        estimator.net.save_parameters(self._path(prefix + ".params"))
        estimator.trainer.save_states(self._path(prefix + ".states"))

    def _remove(self, prefix):
        for end in (".params", ".states"):
            if os.path.exists(self._path(prefix + end)):
                os.remove(self._path(prefix + end))

    def _save_symbol(self, estimator):
        to = self._path(self.model_prefix + "-symbol.json")
        if getattr(estimator.net, "_compiled", False) != "ran" or not hasattr(estimator.net, "export"):
            estimator.logger.info("%s is not written: the network is no HybridBlock that was hybridized before", to)
            return
        with tempfile.TemporaryDirectory() as folder:
            estimator.net.export(os.path.join(folder, "net"))
            shutil.move(os.path.join(folder, "net-symbol.json"), to)

    def _saved(self):
        """((epoch, batch), prefix) of the checkpoints in the folder, in order."""
        pattern = re.compile(re.escape(self.model_prefix) + r"-epoch(\d+)batch(\d+)\.params$")
        found = [pattern.match(name) for name in os.listdir(self.model_dir)]
        return sorted(((int(m[1]), int(m[2])), m[0][: -len(".params")]) for m in found if m)

    def _resume(self, estimator):
        saved, left = self._saved(), "max_batch" if estimator.max_batch else "max_epoch"
        unit, asked = left[4:], getattr(estimator, left)
        if not saved:
            self.trained_epoch = self.trained_batch = -1
            estimator.logger.info("CheckpointHandler: no checkpoint is there; training begins anew, for %d %ss", asked, unit)
            return
        self.saved_checkpoints = [prefix for _, prefix in saved]
        (self.trained_epoch, self.trained_batch), prefix = saved[-1]
        done = self.trained_batch if left == "max_batch" else self.trained_epoch
        if done >= asked - 1:
            raise ValueError(f"CheckpointHandler: {prefix} is the last {unit} of {asked} already; resume_from_checkpoint=False starts anew")
        setattr(estimator, left, asked - done - 1)
        if not os.path.exists(self._path(prefix + ".states")):
            raise AssertionError(f"CheckpointHandler: there is no file {self._path(prefix + '.states')}")
        estimator.net.load_parameters(self._path(prefix + ".params"), ctx=estimator.context)
        estimator.trainer.load_states(self._path(prefix + ".states"))
        estimator.logger.warning("CheckpointHandler: training continues after epoch %d, batch %d, for %d %ss",
                                 self.trained_epoch, self.trained_batch, getattr(estimator, left), unit)  # fmt: skip


__getattr__ = missing("mx.gluon.contrib.estimator.event_handler")
