"""mx.gluon.loss: one loss for each sample."""
from ... import _ops as ops
from ..._core import pointer
from ..._tensor import Tensor
from ..missing import missing, not_here
from ..symbol import classify
from .block import HybridBlock


class Loss(HybridBlock):
    """The base of losses: weight times what _loss computes."""

    def __init__(self, weight=None, batch_axis=0, **_):
        super().__init__()
        if batch_axis != 0:
            raise not_here(f"{type(self).__name__}(batch_axis={batch_axis})", "batch_axis 0")
        object.__setattr__(self, "_weight", weight)

    def __repr__(self):
        return f"{type(self).__name__}(batch_axis=0, w={self._weight})"

    def __call__(self, pred, label, sample_weight=None):
        for name, value in (("pred", pred), ("label", label)):
            pointer(f"{type(self).__name__}: {name}", value, Tensor)
        y = self._loss(pred, label)
        if self._weight not in (None, 1.0):
            y = y * self._weight
        if sample_weight is not None:
            y = y * sample_weight
        return classify(y)

    forward = __call__


def _like(label, pred):
    if label.dtype != pred.dtype:
        label = label.astype(pred.dtype)
    return label if label.shape == pred.shape else label.reshape(pred.shape)


class L2Loss(Loss):
    """Half the square of the difference, the mean over a sample."""

    def __init__(self, weight=1.0, batch_axis=0, **_):
        super().__init__(weight, batch_axis)

    def _loss(self, pred, label):
        return ops.l2_loss(pred, _like(label, pred))


class L1Loss(Loss):
    """The absolute difference, the mean over a sample."""

    def _loss(self, pred, label):
        return ops.l1_loss(pred, _like(label, pred))


class HuberLoss(Loss):
    """Half the square where the difference is small, else its absolute value."""

    def __init__(self, rho=1, weight=None, batch_axis=0, **_):
        super().__init__(weight, batch_axis)
        object.__setattr__(self, "_rho", rho)

    def _loss(self, pred, label):
        return ops.huber_loss(pred, _like(label, pred), delta=self._rho)


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The cross-entropy of probabilities of one class, from their logits."""

    def __init__(self, from_sigmoid=False, weight=None, batch_axis=0, **_):
        super().__init__(weight, batch_axis)
        if from_sigmoid:
            raise not_here("SigmoidBinaryCrossEntropyLoss(from_sigmoid=True)", "logits")

    def _loss(self, pred, label):
        return ops.bce_logits_loss(pred, _like(label, pred))


class SoftmaxCrossEntropyLoss(Loss):
    """The cross-entropy of softmax and a class, or of softmax and probabilities."""

    def __init__(self, axis=-1, sparse_label=True, from_logits=False, weight=None, batch_axis=0, **_):
        super().__init__(weight, batch_axis)
        for name, value, only in (("axis", axis, (-1, 1)), ("from_logits", from_logits, (False,))):
            if value not in only:
                raise not_here(f"SoftmaxCrossEntropyLoss({name}={value})", f"{name}={only[0]}")
        object.__setattr__(self, "_sparse", sparse_label)

    def _loss(self, pred, label):
        if not self._sparse:
            return ops.sum(ops.log_softmax(pred, -1) * _like(label, pred), -1) * -1
        if "int" not in str(label.dtype):
            label = label.astype("int32")
        return ops.softmax_cross_entropy(pred, label.reshape(pred.shape[:-1]) if label.ndim == pred.ndim else label)


SoftmaxCELoss, SigmoidBCELoss = SoftmaxCrossEntropyLoss, SigmoidBinaryCrossEntropyLoss
__getattr__ = missing("mx.gluon.loss")
