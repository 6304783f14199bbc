"""mx.metric: running means of the quality of predictions.  Reading a metric waits for its values."""
import math

import numpy as _np

from .missing import missing, not_here

_classes = {}


def _known_as(*names):
    def enter(kind):
        for name in (kind.__name__.lower(), *names):
            _classes[name] = kind
        return kind

    return enter


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _values(a):
    return a.asnumpy() if hasattr(a, "asnumpy") else _np.asarray(a)


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Raises ValueError where labels and predictions are not as many."""
    if wrap:
        labels, preds = _list(labels), _list(preds)
    counts = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if counts[0] != counts[1]:
        raise ValueError(f"Shape of labels {counts[0]} does not match shape of predictions {counts[1]}")
    return labels, preds


class EvalMetric:
    """The base of metrics: a sum and a number, whose quotient is the mean."""

    _name = "metric"

    def __init__(self, name=None, output_names=None, label_names=None, **options):
        self.name, self.output_names, self.label_names = name or self._name, output_names, label_names
        for option in options:
            raise TypeError(f"{type(self).__name__} has no option {option!r}")
        self.reset()

    def reset(self):
        """Begins anew."""
        self.num_inst, self.sum_metric = 0, 0.0

    reset_local = reset

    def update(self, labels, preds):
        """Adds predictions and their labels: arrays, or lists of them."""
        labels, preds = check_label_shapes(labels, preds, wrap=True)
        for label, pred in zip(labels, preds):
            self._add(_values(label), _values(pred))

    def update_dict(self, label, pred):
        """Adds predictions and labels, given by name."""
        self.update([label[n] for n in self.label_names or label], [pred[n] for n in self.output_names or pred])

    def _count(self, total, n):
        self.sum_metric += float(total)
        self.num_inst += int(n)

    def _final(self, mean):
        return mean

    def get(self):
        """(name, mean); NaN after nothing."""
        return self.name, self._final(self.sum_metric / self.num_inst) if self.num_inst else float("nan")

    def get_name_value(self):
        """[(name, mean), …]."""
        name, value = self.get()
        return list(zip(_list(name), _list(value)))

    get_global, get_global_name_value = get, get_name_value

    def get_config(self):
        """The name and the arguments."""
        return {"metric": type(self).__name__, "name": self.name, "output_names": self.output_names, "label_names": self.label_names}

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"


@_known_as("acc")
class Accuracy(EvalMetric):
    """The share of predictions that are right: classes, or scores whose largest is at the class."""

    _name = "accuracy"

    def __init__(self, axis=1, name=None, **options):
        self.axis = axis
        super().__init__(name, **options)

    def _add(self, label, pred):
        if pred.shape != label.shape:
            pred = pred.argmax(self.axis)
        label, pred = label.astype("int64").ravel(), pred.astype("int64").ravel()
        check_label_shapes(label, pred, shape=True)
        self._count((label == pred).sum(), len(label))


@_known_as("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels that are among the k largest scores."""

    def __init__(self, top_k=1, name="top_k_accuracy", **options):
        if top_k <= 1:
            raise ValueError("Please use Accuracy if top_k is no more than 1")
        self.top_k = top_k
        super().__init__(f"{name}_{top_k}", **options)

    def _add(self, label, pred):
        best = _np.argsort(pred, axis=1)[:, -self.top_k :]
        self._count((best == label.astype("int64").reshape(-1, 1)).sum(), len(label))


class _Differences(EvalMetric):
    """Means over batches of a function of the differences."""

    def _add(self, label, pred):
        label, pred = (a.reshape(-1, 1) if a.ndim == 1 else a for a in (label, pred))
        self._count(self._of(label - pred), 1)


@_known_as()
class MAE(_Differences):
    """The mean absolute difference."""

    _name = "mae"

    def _of(self, difference):
        return _np.abs(difference).mean()


@_known_as()
class MSE(_Differences):
    """The mean squared difference."""

    _name = "mse"

    def _of(self, difference):
        return (difference**2).mean()


@_known_as()
class RMSE(_Differences):
    """The root of the mean squared difference."""

    _name = "rmse"

    def _of(self, difference):
        return math.sqrt((difference**2).mean())


@_known_as("ce", "cross-entropy")
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the class)."""

    _name = "cross-entropy"

    def __init__(self, eps=1e-12, name=None, **options):
        self.eps = eps
        super().__init__(name, **options)

    def _add(self, label, pred):
        label = label.ravel().astype("int64")
        self._count(-_np.log(pred[_np.arange(len(label)), label] + self.eps).sum(), len(label))


@_known_as("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same as CrossEntropy."""

    _name = "nll-loss"


@_known_as()
class Perplexity(EvalMetric):
    """exp of the mean of -log(probability of the class)."""

    _name = "perplexity"

    def __init__(self, ignore_label=None, axis=-1, name=None, **options):
        self.ignore_label, self.axis = ignore_label, axis
        super().__init__(name, **options)

    def _add(self, label, pred):
        label = label.astype("int64").ravel()
        probability = _np.moveaxis(pred, self.axis, -1).reshape(len(label), -1)[_np.arange(len(label)), label]
        counted = _np.ones(len(label), bool) if self.ignore_label is None else label != self.ignore_label
        self._count(-_np.log(_np.maximum(1e-10, probability[counted])).sum(), counted.sum())

    def _final(self, mean):
        return math.exp(mean)


@_known_as()
class F1(EvalMetric):
    """The F1 score of two classes, over all samples ("micro") or as a mean over batches ("macro")."""

    _name = "f1"

    def __init__(self, name=None, average="macro", **options):
        self.average = average
        super().__init__(name, **options)

    def reset(self):
        """Begins anew."""
        super().reset()
        self._hits = _np.zeros(3)  # true positives, false positives, false negatives

    def _score(self, hits):
        return 2 * hits[0] / (2 * hits[0] + hits[1] + hits[2]) if hits[0] else 0.0

    def _add(self, label, pred):
        label, pred = label.ravel().astype("int64"), pred.argmax(1).ravel() if pred.ndim > 1 else pred.astype("int64")
        if len(_np.unique(label)) > 2:
            raise ValueError("F1 currently only supports binary classification.")
        hits = _np.array([((pred == 1) & (label == 1)).sum(), ((pred == 1) & (label == 0)).sum(), ((pred == 0) & (label == 1)).sum()])
        self._hits += hits
        if self.average == "macro":
            self._count(self._score(hits), 1)
        else:
            self.num_inst += len(label)
            self.sum_metric = self._score(self._hits) * self.num_inst


@_known_as()
class Loss(EvalMetric):
    """The mean of the predictions, which are losses."""

    _name = "loss"

    def update(self, _, preds):
        """Adds losses."""
        for pred in map(_values, _list(preds)):
            self._count(pred.sum(), pred.size)


@_known_as("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics."""

    _name = "composite"

    def __init__(self, metrics=None, name=None, **options):
        self.metrics = [create(m) for m in metrics or ()]
        super().__init__(name, **options)

    def add(self, metric):
        """One more."""
        self.metrics.append(create(metric))

    def get_metric(self, index):
        """The one of that number."""
        return self.metrics[index]

    def reset(self):
        """Begins anew."""
        for metric in self.metrics:
            metric.reset()

    def update(self, labels, preds):
        """Adds to all."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def get(self):
        """(names, means)."""
        pairs = [metric.get() for metric in self.metrics]
        return [name for name, _ in pairs], [value for _, value in pairs]


class CustomMetric(EvalMetric):
    """What a function of labels and predictions, NumPy arrays, says: a number, or a sum and how many it is of."""

    def __init__(self, feval, name=None, allow_extra_outputs=False, **options):
        self._feval = feval
        super().__init__(name or f"custom({getattr(feval, '__name__', 'function')})", **options)

    def _add(self, label, pred):
        result = self._feval(label, pred)
        self._count(*(result if isinstance(result, tuple) else (result, 1)))


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """A metric of a function of NumPy arrays."""
    return CustomMetric(numpy_feval, name or numpy_feval.__name__, allow_extra_outputs)


def create(metric, *args, **kwargs):
    """A metric by its name, of a function, of several, or itself."""
    if isinstance(metric, EvalMetric):
        return metric
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, (list, tuple)):
        return CompositeEvalMetric([create(m, *args, **kwargs) for m in metric])
    if str(metric).lower() not in _classes:
        raise not_here(f"metric {metric!r}", ", ".join(sorted(_classes)))
    return _classes[metric.lower()](*args, **kwargs)


__getattr__ = missing("mx.metric")
