"""CTCLoss: the loss of connectionist temporal classification, which NumPy computes on the host."""
import numpy

from .._core import InvalidArgument
from ._host import on_host

_NONE = -1e30  # the logarithm of 0, without its NaNs


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - numpy.log(numpy.exp(x).sum(-1, keepdims=True))


def _shifted(rows, n, fill=_NONE):
    """Rows moved by n places, to the right if n is positive."""
    moved = numpy.full_like(rows, fill)
    if n > 0:
        moved[n:] = rows[:-n] if n < len(rows) else rows[:0]
    return moved


def _paths(logs, path, jumps):
    """alpha[t, s]: the logarithm of the probability of all beginnings that are at symbol s of the path at time t."""
    alpha = numpy.full((len(logs), len(path)), _NONE)
    alpha[0, :2] = logs[0, path[:2]]
    for t in range(1, len(logs)):
        a = alpha[t - 1]
        around = numpy.logaddexp(a, _shifted(a, 1))
        around = numpy.where(jumps, numpy.logaddexp(around, _shifted(a, 2)), around)
        alpha[t] = around + logs[t, path]
    return alpha


def _sample(logs, label, blank):
    """(loss, gradient with respect to the logits) of one sample; logs: (times, classes), label: its classes."""
    path = numpy.full(2 * len(label) + 1, blank)
    path[1::2] = label
    jumps = numpy.zeros(len(path), bool)
    jumps[2:] = (path[2:] != blank) & (path[2:] != path[:-2])
    alpha = _paths(logs, path, jumps)
    back = numpy.zeros(len(path), bool)
    back[2:] = (path[::-1][2:] != blank) & (path[::-1][2:] != path[::-1][:-2])
    beta = _paths(logs[::-1], path[::-1], back)[::-1, ::-1]
    total = numpy.logaddexp(alpha[-1, -1], alpha[-1, -2]) if len(path) > 1 else alpha[-1, -1]
    if total < _NONE / 2:
        return numpy.inf, numpy.zeros_like(logs)
    shares = numpy.exp(alpha + beta - logs[:, path] - total)
    gradient = numpy.exp(logs)
    for s, c in enumerate(path):
        gradient[:, c] -= shares[:, s]
    return -total, gradient


def _lengths(given, labels, blank_first):
    """The lengths of labels that are padded: with 0 if class 0 is the blank, else with -1."""
    if given is not None:
        return given.astype(int)
    padding = 0 if blank_first else -1
    ends = [numpy.flatnonzero(row == padding) for row in labels]
    return [int(e[0]) if e.size else labels.shape[1] for e in ends]


def CTCLoss(data, label, data_lengths=None, label_lengths=None, use_data_lengths=False, use_label_lengths=False, blank_label="first"):
    """The losses of samples: data (times, n, classes) before softmax, label (n, length) padded with 0 (blank_label="first": class 0 is
    the blank) or -1 ("last": the last class is)."""
    if blank_label not in ("first", "last"):
        raise InvalidArgument(f"CTCLoss: blank_label is {blank_label!r}; these are first and last")
    if use_data_lengths and data_lengths is None or use_label_lengths and label_lengths is None:
        raise InvalidArgument("CTCLoss: use_data_lengths needs data_lengths, use_label_lengths needs label_lengths")
    gradients, first = [], blank_label == "first"

    def compute(values, labels, *lengths):
        lengths = list(lengths)
        times = lengths.pop(0).astype(int) if use_data_lengths else [len(values)] * values.shape[1]
        counts = _lengths(lengths.pop(0) if use_label_lengths else None, labels, first)
        logs, blank = _log_softmax(values.astype(numpy.float64)), 0 if first else values.shape[2] - 1
        losses, grads = numpy.zeros(values.shape[1]), numpy.zeros(values.shape)
        for i, (time, count) in enumerate(zip(times, counts)):
            losses[i], grads[:time, i] = _sample(logs[:time, i], labels[i, :count].astype(int), blank)
        gradients.append(grads)
        return losses

    def gradient(given, _, dy):
        return (gradients[-1] * dy.reshape((1, -1, 1)), *[None] * (len(given) - 1))

    more = [lengths for used, lengths in ((use_data_lengths, data_lengths), (use_label_lengths, label_lengths)) if used]
    return on_host(compute, gradient, data, label, *more)


ctc_loss = CTCLoss
