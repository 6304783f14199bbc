"""mx.gluon.loss: one loss for each sample."""
from ... import _ops as ops
from ..._core import pointer
from ..._tensor import Tensor
from ..missing import missing, not_here
from .._program import classify
from .block import HybridBlock


class Loss(HybridBlock):
    """The base of losses: weight times what _loss computes; one of your own may have hybrid_forward instead."""

    def __init__(self, weight=None, batch_axis=0, prefix=None, params=None):
        super().__init__(prefix, params)
        if batch_axis != 0:
            raise not_here(f"{type(self).__name__}(batch_axis={batch_axis})", "batch_axis 0")
        object.__setattr__(self, "_weight", weight)
        object.__setattr__(self, "_batch_axis", batch_axis)

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis=0, w={self._weight})"

    def __call__(self, pred, label, *more):
        for name, value in (("pred", pred), ("label", label)):
            pointer(f"{type(self).__name__}: {name}", value, Tensor)
        return super().__call__(pred, label, *more)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        y = self._loss(pred, label)
        if self._weight not in (None, 1.0):
            y = y * self._weight
        if sample_weight is not None:
            if sample_weight.ndim > y.ndim:
                sample_weight = sample_weight.reshape(y.shape)
            y = y * sample_weight
        return classify(y)

    def _loss(self, pred, label):
        raise NotImplementedError(f"{type(self).__name__} has no hybrid_forward")


def _like(label, pred):
    if label.dtype != pred.dtype:
        label = label.astype(pred.dtype)
    return label if label.shape == pred.shape else label.reshape(pred.shape)


def _each(loss):
    """The mean over each sample."""
    return ops.mean(loss, list(range(1, loss.ndim))) if loss.ndim > 1 else loss


class L2Loss(Loss):
    """Half the square of the difference, the mean over a sample."""

    def __init__(self, weight=1.0, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)

    def _loss(self, pred, label):
        return ops.l2_loss(pred, _like(label, pred))


class L1Loss(Loss):
    """The absolute difference, the mean over a sample."""

    def _loss(self, pred, label):
        return ops.l1_loss(pred, _like(label, pred))


class HuberLoss(Loss):
    """Half the square (over rho) where the difference is small, else its absolute value."""

    def __init__(self, rho=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_rho", rho)

    def _loss(self, pred, label):
        return ops.huber_loss(pred, _like(label, pred), delta=self._rho) / self._rho


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The cross-entropy of probabilities of one class, from their logits or themselves."""

    def __init__(self, from_sigmoid=False, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_from_sigmoid", from_sigmoid)

    def _loss(self, pred, label):
        label = _like(label, pred)
        if not self._from_sigmoid:
            return ops.bce_logits_loss(pred, label)
        eps = 1e-12
        return _each((ops.log(pred + eps) * label + ops.log(1.0 - pred + eps) * (1.0 - label)) * -1)


class SoftmaxCrossEntropyLoss(Loss):
    """The cross-entropy of softmax and a class, or of softmax and probabilities; the mean over the places of a sample.

    With more than two axes, sample_weight may weigh each place: (N, T, 1) for pred (N, T, classes).
    """

    def __init__(self, axis=-1, sparse_label=True, from_logits=False, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        for name, value in (("_axis", axis), ("_sparse", sparse_label), ("_from_logits", from_logits)):
            object.__setattr__(self, name, value)

    def hybrid_forward(self, F, pred, label, sample_weight=None):
        """The loss of each sample."""
        if sample_weight is None or not sample_weight.ndim == pred.ndim > 2:
            return super().hybrid_forward(F, pred, label, sample_weight)
        axis = self._axis % pred.ndim
        y = _each(self._places(pred, label) * sample_weight.reshape([n for i, n in enumerate(sample_weight.shape) if i != axis]))
        return classify(y if self._weight in (None, 1.0) else y * self._weight)

    def _loss(self, pred, label):
        return _each(self._places(pred, label))

    def _places(self, pred, label):
        axis = self._axis % pred.ndim
        if not self._sparse:
            logs = pred if self._from_logits else ops.log_softmax(pred, axis)
            return ops.sum(logs * _like(label, pred), axis) * -1
        if axis != pred.ndim - 1:
            pred = ops.transpose(pred, [i for i in range(pred.ndim) if i != axis] + [axis])
        if "int32" not in str(label.dtype):
            label = label.astype("int32")
        label = label.reshape(pred.shape[:-1])
        if not self._from_logits:
            if pred.ndim == 2:
                return ops.softmax_cross_entropy(pred, label)
            rows = ops.softmax_cross_entropy(pred.reshape((-1, pred.shape[-1])), label.reshape((-1,)))
            return rows.reshape(label.shape)
        return ops.take_along(pred, label.reshape((*label.shape, 1)), -1).reshape(label.shape) * -1


class KLDivLoss(Loss):
    """How far probabilities are from the labels', from logarithms or logits."""

    def __init__(self, from_logits=True, axis=-1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_from_logits", from_logits)
        object.__setattr__(self, "_axis", axis)

    def _loss(self, pred, label):
        logs = pred if self._from_logits else ops.log_softmax(pred, self._axis)
        return ops.sum(label * (ops.log(label + 1e-12) - logs), list(range(1, pred.ndim)))


class HingeLoss(Loss):
    """max(0, margin - pred·label), labels are 1 and -1."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def _loss(self, pred, label):
        return _each(self._of(ops.relu(self._margin - pred * _like(label, pred))))

    def _of(self, distance):
        return distance


class SquaredHingeLoss(HingeLoss):
    """The square of max(0, margin - pred·label)."""

    def _of(self, distance):
        return ops.square(distance)


class LogisticLoss(Loss):
    """log(1 + exp(-pred·label)), labels are 1 and -1, or 1 and 0 ("binary")."""

    def __init__(self, weight=None, batch_axis=0, label_format="signed", **common):
        super().__init__(weight, batch_axis, **common)
        if label_format not in ("signed", "binary"):
            raise ValueError(f"label_format can only be signed or binary, received {label_format}.")
        object.__setattr__(self, "_signed", label_format == "signed")

    def _loss(self, pred, label):
        label = _like(label, pred)
        return ops.bce_logits_loss(pred, (label + 1.0) / 2.0 if self._signed else label)


class TripletLoss(Loss):
    """max(0, |pred - positive|² - |pred - negative|² + margin)."""

    def __init__(self, margin=1, weight=None, batch_axis=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def hybrid_forward(self, F, pred, positive, negative, sample_weight=None):
        distance = ops.square(pred - _like(positive, pred)) - ops.square(pred - _like(negative, pred))
        loss = ops.relu(ops.sum(distance, list(range(1, pred.ndim))) + self._margin)
        loss = loss if self._weight in (None, 1.0) else loss * self._weight
        return classify(loss if sample_weight is None else loss * sample_weight)


class PoissonNLLLoss(Loss):
    """The negative logarithm of a Poisson distribution's probability, as one number."""

    def __init__(self, weight=None, from_logits=True, batch_axis=0, compute_full=False, **common):
        super().__init__(weight, batch_axis, **common)
        if compute_full:
            raise not_here("PoissonNLLLoss(compute_full=True)", "without Stirling's term")
        object.__setattr__(self, "_from_logits", from_logits)

    def hybrid_forward(self, F, pred, target, sample_weight=None, epsilon=1e-8):
        target = _like(target, pred)
        loss = ops.exp(pred) - target * pred if self._from_logits else pred - target * ops.log(pred + epsilon)
        loss = loss if self._weight in (None, 1.0) else loss * self._weight
        return F.mean(classify(loss if sample_weight is None else loss * sample_weight))


class CosineEmbeddingLoss(Loss):
    """1 - the cosine of the angle where the label is 1, max(0, the cosine - margin) where it is -1."""

    def __init__(self, weight=None, batch_axis=0, margin=0, **common):
        super().__init__(weight, batch_axis, **common)
        object.__setattr__(self, "_margin", margin)

    def hybrid_forward(self, F, input1, input2, label, sample_weight=None):
        cosine = ops.cosine_similarity(input1, _like(input2, input1), -1)
        cosine = cosine.reshape((-1, 1))
        label = label.reshape((-1, 1))
        loss = ops.where(label == 1, 1.0 - cosine, ops.relu(cosine - self._margin))
        loss = loss if self._weight in (None, 1.0) else loss * self._weight
        return classify(loss if sample_weight is None else loss * sample_weight)


SoftmaxCELoss, SigmoidBCELoss = SoftmaxCrossEntropyLoss, SigmoidBinaryCrossEntropyLoss
__getattr__ = missing("mx.gluon.loss")
