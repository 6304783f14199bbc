"""mx.metric: running means of the quality of predictions.  Reading a metric waits for its values."""
import math

import numpy as _np

from ._signed import as_mxnet as _as_mxnet
from .unsupported import missing, not_here

_classes = {}


def _known_as(*names):
    def enter(kind):
        for name in (kind.__name__.lower(), *names):
            _classes[name] = kind
        kind._counts_globally = True
        return kind

    return enter


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _values(a):
    """On the host."""
    return a.asnumpy() if hasattr(a, "asnumpy") else _np.asarray(a)


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Raises ValueError if the numbers of labels and predictions differ."""
    if wrap:
        labels, preds = _list(labels), _list(preds)
    counts = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if counts[0] != counts[1]:
        raise ValueError(f"Shape of labels {counts[0]} does not match shape of predictions {counts[1]}")
    return labels, preds


class EvalMetric:
    """The base of metrics: a sum and a count, whose quotient is the mean; since reset_local, and since reset (global)."""

    _counts_globally = False  # custom metrics may use sum_metric and num_inst only

    def __init__(self, name, output_names=None, label_names=None, has_global_stats=None, **kwargs):
        self.name, self.output_names, self.label_names = str(name), output_names, label_names
        self._has_global_stats, self._kwargs = self._counts_globally if has_global_stats is None else has_global_stats, kwargs
        self.reset()

    def reset(self):
        """Forgets all values."""
        self.global_num_inst, self.global_sum_metric = 0, 0.0
        self.reset_local()

    def reset_local(self):
        """Resets the values of get; those of get_global continue."""
        self.num_inst, self.sum_metric = 0, 0.0

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
        self.global_sum_metric += float(total)
        self.num_inst += int(n)
        self.global_num_inst += int(n)

    def _final(self, mean):
        return mean

    def get(self):
        """(name, mean); NaN without values."""
        return self.name, self._final(self.sum_metric / self.num_inst) if self.num_inst else float("nan")

    def get_global(self):
        """(name, mean of all since reset)."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self._final(self.global_sum_metric / self.global_num_inst) if self.global_num_inst else float("nan")

    def get_name_value(self):
        """[(name, mean), …]."""
        name, value = self.get()
        return list(zip(_list(name), _list(value)))

    def get_global_name_value(self):
        """[(name, mean of all since reset), …]."""
        name, value = self.get_global()
        return list(zip(_list(name), _list(value)))

    def get_config(self):
        """The name and the arguments."""
        names = {"metric": type(self).__name__, "name": self.name, "output_names": self.output_names, "label_names": self.label_names}
        return {**self._kwargs, **names}

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"


def register(klass, name=None):
    """Registers a custom metric by its name in lower case."""
    _classes[(name or klass.__name__).lower()] = klass
    return klass


def alias(*aliases):
    """Registers a custom metric by further names."""

    def enter(klass):
        for name in aliases:
            _classes[name.lower()] = klass
        return klass

    return enter


@_known_as("acc")
class Accuracy(EvalMetric):
    """The share of correct predictions: classes, or scores that are largest for the class."""

    def __init__(self, axis=1, name="accuracy", output_names=None, label_names=None):
        self.axis = axis
        super().__init__(name, output_names, label_names, axis=axis)

    def _add(self, label, pred):
        if pred.shape != label.shape:
            pred = pred.argmax(self.axis)
        label, pred = label.astype("int64").ravel(), pred.astype("int64").ravel()
        check_label_shapes(label, pred, shape=True)
        self._count((label == pred).sum(), len(label))


@_known_as("top_k_accuracy", "top_k_acc")
class TopKAccuracy(EvalMetric):
    """The share of labels that are among the k largest scores."""

    def __init__(self, top_k=1, name="top_k_accuracy", output_names=None, label_names=None):
        if top_k <= 1:
            raise AssertionError("Please use Accuracy if top_k is no more than 1")
        self.top_k = top_k
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k)

    def _add(self, label, pred):
        check_label_shapes(label, pred)
        if self.top_k > pred.shape[1]:
            raise ValueError(f"TopKAccuracy: top_k is {self.top_k} of {pred.shape[1]} classes")
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

    def __init__(self, name="mae", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def _of(self, difference):
        return _np.abs(difference).mean()


@_known_as()
class MSE(_Differences):
    """The mean squared difference."""

    def __init__(self, name="mse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def _of(self, difference):
        return (difference**2).mean()


@_known_as()
class RMSE(_Differences):
    """The root of the mean squared difference."""

    def __init__(self, name="rmse", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def _of(self, difference):
        return math.sqrt((difference**2).mean())


@_known_as("ce", "cross-entropy")
class CrossEntropy(EvalMetric):
    """The mean of -log(probability of the class)."""

    def __init__(self, eps=1e-12, name="cross-entropy", output_names=None, label_names=None):
        self.eps = eps
        super().__init__(name, output_names, label_names, eps=eps)

    def _add(self, label, pred):
        label = label.ravel().astype("int64")
        check_label_shapes(label, pred)
        self._count(-_np.log(pred[_np.arange(len(label)), label] + self.eps).sum(), len(label))


@_known_as("nll_loss")
class NegativeLogLikelihood(CrossEntropy):
    """The same as CrossEntropy."""

    def __init__(self, eps=1e-12, name="nll-loss", output_names=None, label_names=None):
        super().__init__(eps, name, output_names, label_names)


@_known_as()
class Perplexity(EvalMetric):
    """exp of the mean of -log(probability of the class)."""

    def __init__(self, ignore_label=None, axis=-1, name="perplexity", output_names=None, label_names=None):
        self.ignore_label, self.axis = ignore_label, axis
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis)

    def _add(self, label, pred):
        label = label.astype("int64").ravel()
        probability = _np.moveaxis(pred, self.axis, -1).reshape(len(label), -1)[_np.arange(len(label)), label]
        counted = _np.ones(len(label), bool) if self.ignore_label is None else label != self.ignore_label
        self._count(-_np.log(_np.maximum(1e-10, probability[counted])).sum(), counted.sum())

    def _final(self, mean):
        return math.exp(mean)


class _OfTwoClasses(EvalMetric):
    """A score of two classes: over all samples ("micro"), or as a mean over updates ("macro")."""

    def __init__(self, name, output_names=None, label_names=None, average="macro"):
        self.average = average
        super().__init__(name, output_names, label_names)

    def reset(self):
        """Forgets all values."""
        self._global_hits = _np.zeros(4)
        super().reset()

    def reset_local(self):
        """Resets the values of get; those of get_global continue."""
        super().reset_local()
        self._hits = _np.zeros(4)  # true and false positives, false and true negatives

    def update(self, labels, preds):
        """Adds predictions and their labels: arrays, or lists of them."""
        labels, preds = check_label_shapes(labels, preds, wrap=True)
        hits = sum((self._of(_values(label), _values(pred)) for label, pred in zip(labels, preds)), _np.zeros(4))
        if self.average == "macro":
            self._count(self._score(hits), 1)
            return
        self._hits += hits
        self._global_hits += hits
        self.num_inst, self.global_num_inst = int(self._hits.sum()), int(self._global_hits.sum())
        self.sum_metric = self._score(self._hits) * self.num_inst
        self.global_sum_metric = self._score(self._global_hits) * self.global_num_inst

    def _of(self, label, pred):
        check_label_shapes(label, pred)
        label, pred = label.ravel().astype("int64"), pred.argmax(1).ravel()
        if len(_np.unique(label)) > 2:
            raise ValueError(f"{type(self).__name__} currently only supports binary classification.")
        right, wrong = label == 1, label != 1
        return _np.array([((pred == 1) & right).sum(), ((pred == 1) & wrong).sum(), ((pred != 1) & right).sum(), ((pred != 1) & wrong).sum()])


@_known_as()
class F1(_OfTwoClasses):
    """The F1 score of two classes."""

    def __init__(self, name="f1", output_names=None, label_names=None, average="macro"):
        super().__init__(name, output_names, label_names, average)

    def _score(self, hits):
        return 2 * hits[0] / (2 * hits[0] + hits[1] + hits[2]) if hits[0] else 0.0


@_known_as()
class MCC(_OfTwoClasses):
    """Matthews' correlation of two classes."""

    def __init__(self, name="mcc", output_names=None, label_names=None, average="macro"):
        super().__init__(name, output_names, label_names, average)

    def _score(self, hits):
        tp, fp, fn, tn = hits
        terms = [n for n in (tp + fp, tp + fn, tn + fp, tn + fn) if n]
        return (tp * tn - fp * fn) / math.sqrt(math.prod(terms)) if hits.sum() else 0.0


@_known_as("pearsonr")
class PearsonCorrelation(EvalMetric):
    """Pearson's correlation: of all samples ("micro"), or as a mean over updates ("macro")."""

    def __init__(self, name="pearsonr", output_names=None, label_names=None, average="macro"):
        self.average = average
        super().__init__(name, output_names, label_names)

    def reset(self):
        """Forgets all values."""
        self._labels, self._preds = [], []
        super().reset()

    def _add(self, label, pred):
        check_label_shapes(label, pred, shape=True)
        label, pred = label.ravel().astype("float64"), pred.ravel().astype("float64")
        if self.average == "micro":
            self._labels.append(label)
            self._preds.append(pred)
        self._count(0 if self.average == "micro" else _np.corrcoef(pred, label)[0, 1], 1)

    def get(self):
        """(name, correlation); NaN without values."""
        if self.average != "micro" or not self._labels:
            return super().get()
        return self.name, float(_np.corrcoef(_np.concatenate(self._preds), _np.concatenate(self._labels))[0, 1])


@_known_as()
class PCC(EvalMetric):
    """The correlation of several classes: Matthews' for two."""

    def __init__(self, name="pcc", output_names=None, label_names=None, has_global_stats=True):
        super().__init__(name, output_names, label_names, has_global_stats)

    def reset(self):
        """Forgets all values."""
        self._all = _np.zeros((2, 2))
        super().reset()

    def reset_local(self):
        """Resets the values of get; those of get_global continue."""
        super().reset_local()
        self._since = _np.zeros((2, 2))

    def update(self, labels, preds):
        """Adds predictions and their labels: arrays, or lists of them."""
        super().update(labels, preds)
        self.num_inst += 1
        self.global_num_inst += 1

    def _add(self, label, pred):
        label = label.astype("int64").ravel()
        pred = (pred.argmax(1) if pred.shape != label.shape else pred).astype("int64").ravel()
        k = int(max(label.max(), pred.max(), len(self._all) - 1)) + 1
        counts = _np.zeros((k, k))
        _np.add.at(counts, (pred, label), 1)
        self._all, self._since = (counts + _np.pad(old, (0, k - len(old))) for old in (self._all, self._since))

    @staticmethod
    def _correlation(counts):
        n, x, y = counts.sum(), counts.sum(1), counts.sum(0)
        spread = (x * (n - x)).sum() * (y * (n - y)).sum()
        return float((counts.diagonal() * n - x * y).sum() / spread**0.5) if spread else float("nan")

    def get(self):
        """(name, correlation); NaN without values."""
        return self.name, self._correlation(self._since) if self.num_inst else float("nan")

    def get_global(self):
        """(name, correlation of all since reset)."""
        return self.name, self._correlation(self._all) if self.global_num_inst else float("nan")


@_known_as()
class Loss(EvalMetric):
    """The mean of the predictions, which are losses."""

    def __init__(self, name="loss", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)

    def update(self, _, preds):
        """Adds losses."""
        for pred in map(_values, _list(preds)):
            self._count(pred.sum(), pred.size)


@_known_as()
class Torch(Loss):
    """The same as Loss."""

    def __init__(self, name="torch", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)


@_known_as()
class Caffe(Loss):
    """The same as Loss."""

    def __init__(self, name="caffe", output_names=None, label_names=None):
        super().__init__(name, output_names, label_names)


@_known_as("composite")
class CompositeEvalMetric(EvalMetric):
    """Several metrics."""

    def __init__(self, metrics=None, name="composite", output_names=None, label_names=None):
        self.metrics = [create(m) for m in metrics or ()]
        super().__init__(name, output_names, label_names)

    def add(self, metric):
        """One more."""
        self.metrics.append(create(metric))

    def get_metric(self, index):
        """The one of that number."""
        return self.metrics[index]

    def reset(self):
        """Forgets all values."""
        for metric in self.metrics:
            metric.reset()

    def reset_local(self):
        """Resets the values of get; those of get_global continue."""
        for metric in self.metrics:
            metric.reset_local()

    def update(self, labels, preds):
        """Adds to all."""
        for metric in self.metrics:
            metric.update(labels, preds)

    def update_dict(self, labels, preds):
        """Adds predictions and labels, given by name, to all."""
        labels = {n: v for n, v in labels.items() if n in self.label_names} if self.label_names is not None else labels
        preds = {n: v for n, v in preds.items() if n in self.output_names} if self.output_names is not None else preds
        for metric in self.metrics:
            metric.update_dict(labels, preds)

    def _of_all(self, pairs):
        return [n for name, _ in pairs for n in _list(name)], [v for _, value in pairs for v in _list(value)]

    def get(self):
        """(names, means)."""
        return self._of_all([metric.get() for metric in self.metrics])

    def get_global(self):
        """(names, means of all since reset)."""
        return self._of_all([metric.get_global() for metric in self.metrics])

    def get_config(self):
        """The names and arguments of all."""
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


@_known_as()
class CustomMetric(EvalMetric):
    """A metric by a function of labels and predictions, NumPy arrays, that returns a number, or a sum and a count."""

    def __init__(self, feval, name=None, allow_extra_outputs=False, output_names=None, label_names=None):
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs
        own = getattr(feval, "__name__", "function")
        super().__init__(name or (f"custom({own})" if "<" in own else own), output_names, label_names)

    def update(self, labels, preds):
        """Adds predictions and their labels: arrays, or lists of them."""
        if not self._allow_extra_outputs:
            return super().update(labels, preds)
        for label, pred in zip(_list(labels), _list(preds)):
            self._add(_values(label), _values(pred))

    def _add(self, label, pred):
        result = self._feval(label, pred)
        self._count(*(result if isinstance(result, tuple) else (result, 1)))

    def get_config(self):
        """Not supported: a function cannot be described."""
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(numpy_feval, name=None, allow_extra_outputs=False):
    """A metric of a function of NumPy arrays."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)


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


_as_mxnet("metric", globals())
__getattr__ = missing("mx.metric")
