"""What an Estimator does with a mini-batch; a class of one's own may replace it."""
from .... import autograd
from ....unsupported import missing
from ...utils import split_and_load

__all__ = ["BatchProcessor"]


class BatchProcessor:
    """Computes predictions and losses of a batch, split over the estimator's contexts; both methods return lists
    (data, labels, predictions, losses)."""

    def _get_data_and_label(self, batch, ctx, batch_axis=0):
        return tuple(split_and_load(part, ctx_list=ctx, batch_axis=batch_axis) for part in batch[:2])

    def evaluate_batch(self, estimator, val_batch, batch_axis=0):
        """Predictions and losses for validation."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(x) for x in data]
        return data, label, pred, [estimator.val_loss(p, y) for p, y in zip(pred, label)]

    def fit_batch(self, estimator, train_batch, batch_axis=0):
        """Predictions and losses for training, with gradients."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(x) for x in data]
            loss = [estimator.loss(p, y) for p, y in zip(pred, label)]
        for each in loss:
            each.backward()
        return data, label, pred, loss


__getattr__ = missing("mx.gluon.contrib.estimator.batch_processor")
