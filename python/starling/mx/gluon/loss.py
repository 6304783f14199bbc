"""mx.gluon.loss: one loss for each sample."""
import math

from ... import _ops as ops
from ..._core import ShapeError, pointer
from ..._tensor import Tensor
from .._signed import as_mxnet as _as_mxnet
from ..functions import numbers_of, ones_like
from ..unsupported import missing
from .._program import classify
from .block import HybridBlock


class Loss(HybridBlock):
    """The base of losses; a custom loss has a hybrid_forward(self, F, pred, label, sample_weight=None).

    The losses here compute _elements(pred, label), times weight and sample_weight, which has the same number of axes; the mean
    over all axes but batch_axis is the loss of a sample.  Without sample_weight, _samples may compute this directly.
    """

    def __init__(self, weight, batch_axis, prefix=None, params=None):
        super().__init__(prefix, params)
        if weight is not None and not isinstance(weight, (int, float)):
            raise AssertionError("weight must be a number")
        object.__setattr__(self, "_weight", weight)
        object.__setattr__(self, "_batch_axis", batch_axis)

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def __call__(self, pred, label, *more, **options):
        for name, value in (("pred", pred), ("label", label)):
            pointer(f"{type(self).__name__}: {name}", value, Tensor)
        return super().__call__(pred, label, *more, **options)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        if sample_weight is None and self._batch_axis == 0:
            return classify(self._times(self._samples(pred, label)))
        return classify(self._means(self._weighted(self._elements(pred, label), sample_weight)))

    def _times(self, loss):
        return loss if self._weight in (None, 1.0) else loss * self._weight

    def _weighted(self, loss, sample_weight):
        if sample_weight is not None:
            if sample_weight.ndim != loss.ndim:
                raise ShapeError(f"{type(self).__name__}: all pairs of a sample_weight of shape {sample_weight.shape} and losses of shape {loss.shape} "
                                 "is not in Starling; use a sample_weight with the losses' number of axes")  # fmt: skip
            loss = loss * _like_type(sample_weight, loss)
        return self._times(loss)

    def _means(self, loss):
        axes = [i for i in range(loss.ndim) if i != self._batch_axis % loss.ndim]
        return ops.mean(loss, axes) if axes else loss

    def _samples(self, pred, label):
        return self._means(self._elements(pred, label))

    def _elements(self, pred, label):
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")


def _like_type(x, like):
    return x if x.dtype == like.dtype else x.astype(like.dtype)


def _like(label, pred):
    label = _like_type(label, pred)
    return label if label.shape == pred.shape else label.reshape(pred.shape)


class L2Loss(Loss):
    """The mean over a sample of half the squared difference."""

    def __init__(self, weight=1.0, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)

    def _samples(self, pred, label):
        return ops.l2_loss(pred, _like(label, pred))

    def _elements(self, pred, label):
        return ops.square(_like(label, pred) - pred) * 0.5


class L1Loss(Loss):
    """The mean over a sample of the absolute difference."""

    def __init__(self, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)

    def _samples(self, pred, label):
        return ops.l1_loss(pred, _like(label, pred))

    def _elements(self, pred, label):
        return ops.abs(_like(label, pred) - pred)


class HuberLoss(Loss):
    """Half the square (over rho) where the difference is small, else its absolute value."""

    def __init__(self, rho=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_rho", rho)

    def _elements(self, pred, label):
        far = ops.abs(_like(label, pred) - pred)
        return ops.where(far > self._rho, far - 0.5 * self._rho, ops.square(far) * (0.5 / self._rho))


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The binary cross-entropy, from logits or probabilities; pos_weight is the weight of labels of 1."""

    def __init__(self, from_sigmoid=False, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_from_sigmoid", from_sigmoid)

    def hybrid_forward(self, F, pred, label, sample_weight=None, pos_weight=None):
        if pos_weight is None:
            return super().hybrid_forward(F, pred, label, sample_weight)
        return classify(self._means(self._weighted(self._elements(pred, label, pos_weight), sample_weight)))

    def _samples(self, pred, label):
        return self._means(self._elements(pred, label)) if self._from_sigmoid else ops.bce_logits_loss(pred, _like(label, pred))

    def _elements(self, pred, label, pos_weight=None):
        label = _like(label, pred)
        if self._from_sigmoid:
            ones = ops.log(pred + 1e-12) * label
            return ((ones if pos_weight is None else ones * pos_weight) + ops.log(1.0 - pred + 1e-12) * (1.0 - label)) * -1
        rest = ops.softplus(-abs(pred))
        if pos_weight is None:
            return ops.relu(pred) - pred * label + rest
        return pred - pred * label + ((pos_weight - 1) * label + 1) * (rest + ops.relu(-pred))


class SoftmaxCrossEntropyLoss(Loss):
    """The cross-entropy of softmax with a class, or with probabilities; the mean over the positions of a sample.

    sample_weight has a weight for each position: (N, 1) for pred (N, classes), (N, T, 1) for (N, T, classes).
    """

    def __init__(self, axis=-1, sparse_label=True, from_logits=False, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        for name, value in (("_axis", axis), ("_sparse", sparse_label), ("_from_logits", from_logits)):
            object.__setattr__(self, name, value)

    def _elements(self, pred, label):
        return self._places(pred, label).expand_dims(self._axis % pred.ndim)

    def _samples(self, pred, label):
        if self._axis % pred.ndim == 0:
            return self._means(self._elements(pred, label))
        places = self._places(pred, label)
        return ops.mean(places, list(range(1, places.ndim))) if places.ndim > 1 else places

    def _places(self, pred, label):
        axis = self._axis % pred.ndim
        if not self._sparse:
            logs = pred if self._from_logits else ops.log_softmax(pred, axis)
            return ops.sum(logs * _like(label, pred), axis) * -1
        if axis != pred.ndim - 1:
            pred = ops.transpose(pred, [i for i in range(pred.ndim) if i != axis] + [axis])
        label = numbers_of(label)  # does not wrap around
        label = label.reshape(pred.shape[:-1])
        if not self._from_logits:
            if pred.ndim == 2:
                return ops.softmax_cross_entropy(pred, label)
            rows = ops.softmax_cross_entropy(pred.reshape((-1, pred.shape[-1])), label.reshape((-1,)))
            return rows.reshape(label.shape)
        return ops.take_along(pred, label.reshape((*label.shape, 1)), -1).reshape(label.shape) * -1


class KLDivLoss(Loss):
    """The Kullback-Leibler divergence of the labels' probabilities from those of logarithms or logits."""

    def __init__(self, from_logits=True, axis=-1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_from_logits", from_logits)
        object.__setattr__(self, "_axis", axis)

    def _elements(self, pred, label):
        logs = pred if self._from_logits else ops.log_softmax(pred, self._axis)
        return label * (ops.log(label + 1e-12) - logs)

    def _means(self, loss):
        axes = [i for i in range(loss.ndim) if i != self._batch_axis % loss.ndim]
        return ops.sum(loss, axes) if axes else loss  # MXNet's are sums


class HingeLoss(Loss):
    """max(0, margin - pred·label), labels are 1 and -1."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def _elements(self, pred, label):
        return ops.relu(self._margin - pred * _like(label, pred))


class SquaredHingeLoss(HingeLoss):
    """The square of max(0, margin - pred·label)."""

    def _elements(self, pred, label):
        return ops.square(super()._elements(pred, label))


class LogisticLoss(Loss):
    """log(1 + exp(-pred·label)), labels are 1 and -1, or 1 and 0 ("binary")."""

    def __init__(self, weight=None, batch_axis=0, label_format="signed", **common):
        super().__init__(weight, batch_axis, **common)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, received {label_format}.")
        object.__setattr__(self, "_signed", label_format == "signed")

    def _elements(self, pred, label):
        label = _like(label, pred)
        label = (label + 1.0) / 2.0 if self._signed else label
        return ops.relu(pred) - pred * label + ops.softplus(-abs(pred))


class TripletLoss(Loss):
    """max(0, |pred - positive|² - |pred - negative|² + margin)."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def hybrid_forward(self, F, pred, positive, negative, sample_weight=None):
        distance = ops.square(pred - _like(positive, pred)) - ops.square(pred - _like(negative, pred))
        axes = [i for i in range(pred.ndim) if i != self._batch_axis % pred.ndim]
        return classify(self._weighted(ops.relu((ops.sum(distance, axes) if axes else distance) + self._margin), sample_weight))


class PoissonNLLLoss(Loss):
    """The negative logarithm of a Poisson distribution's probability, as one number."""

    def __init__(self, weight=None, from_logits=True, batch_axis=0, compute_full=False, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_from_logits", from_logits)
        object.__setattr__(self, "_compute_full", compute_full)

    def hybrid_forward(self, F, pred, target, sample_weight=None, epsilon=1e-8):
        target = _like(target, pred)
        loss = ops.exp(pred) - target * pred if self._from_logits else pred - target * ops.log(pred + epsilon)
        if self._compute_full:  # Stirling's approximation of the factorial
            large = target > 1
            n = ops.where(large, target, ones_like(target))
            loss = loss + (n * ops.log(n) - n + ops.log(n * (2 * math.pi)) * 0.5) * large
        return F.mean(classify(self._weighted(loss, sample_weight)))


class CosineEmbeddingLoss(Loss):
    """1 - the cosine of the angle where the label is 1, max(0, the cosine - margin) where it is -1."""

    def __init__(self, weight=None, batch_axis=0, margin=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def hybrid_forward(self, F, input1, input2, label, sample_weight=None):
        cosine = ops.cosine_similarity(input1, _like(input2, input1), -1)
        cosine = cosine.reshape((-1, 1))
        label = _like(label.reshape((-1, 1)), cosine)
        loss = ops.where(label == 1, 1.0 - cosine, ops.relu(cosine - self._margin)) + (label - label)  # NaN stays NaN
        return classify(self._weighted(loss, sample_weight))


class CTCLoss(Loss):
    """The loss of connectionist temporal classification; the last class is the blank, and labels are padded with -1."""

    def __init__(self, layout="NTC", label_layout="NT", weight=None, **common):
        if layout not in ("NTC", "TNC") or label_layout not in ("NT", "TN"):
            raise AssertionError(f"Only 'NTC' and 'TNC' layouts for pred are supported, got {layout}; 'NT' and 'TN' for label, got {label_layout}")
        super().__init__(weight, label_layout.find("N"), **common)
        object.__setattr__(self, "_layouts", (layout, label_layout))

    def hybrid_forward(self, F, pred, label, pred_lengths=None, label_lengths=None, sample_weight=None):
        """The loss of each sample."""
        pred = pred.swapaxes(0, 1) if self._layouts[0] == "NTC" else pred
        label = label.swapaxes(0, 1) if self._batch_axis == 1 else label
        loss = F.CTCLoss(pred, label, pred_lengths, label_lengths, use_data_lengths=pred_lengths is not None,
                         use_label_lengths=label_lengths is not None, blank_label="last")  # fmt: skip
        return classify(self._weighted(loss, sample_weight))


class SDMLLoss(Loss):
    """The smoothed deep metric loss: batches of pairs, whose other members are the negatives."""

    def __init__(self, smoothing_parameter=0.3, weight=1.0, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_smoothing", smoothing_parameter)

    def hybrid_forward(self, F, x1, x2):
        """The loss of each sample."""
        n = x1.shape[0]
        apart = x1.expand_dims(1) - x2.expand_dims(0)
        logs = ops.log_softmax(ops.sum(ops.square(apart), 2) * -1, 1)
        on, off = 1 - self._smoothing, self._smoothing / (n - 1)
        labels = ops.add_scalar(ops.mul_scalar(F.one_hot(F.arange(n), n), on - off), off)
        return classify(self._weighted(ops.sum(labels * (ops.log(labels + 1e-12) - logs), 1), None))


SoftmaxCELoss, SigmoidBCELoss = SoftmaxCrossEntropyLoss, SigmoidBinaryCrossEntropyLoss
_as_mxnet("gluon.loss", globals())
__getattr__ = missing("mx.gluon.loss")
