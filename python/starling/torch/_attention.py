"""The table, continued: attention, softmax, losses of classes, and their gradients."""
import torch

from . import _heads
from ._table import FLOATS, LOWER, lower, need
from ._text import NUMBERS

aten = torch.ops.aten
LEAST = -3.4028234663852886e38  # float32's; a mask that says -inf goes below it

# ---- attention --------------------------------------------------------------------------------------------------------


def heads(q, k, v, dropout, causal, mask):
    """What attention of CPUs can be computed."""
    need(not dropout, "with dropout")
    need(q.shape[:-2] == k.shape[:-2] and (not causal or q.shape[-2] == k.shape[-2]), "of these shapes")
    need(mask is None or (mask.dtype == q.dtype == torch.float32 and not causal), "with a mask, of these types")


def scale_of(q, scale):
    """The factor of the scores."""
    return q.shape[-1] ** -0.5 if scale is None else scale


def scores(p, q, k, mask, scale):
    """(scores with a mask added, at least float32's least number; ones where they are above -inf)"""
    s = p.op("add", p.op("matmul", p.op("mul_scalar", q, value=scale), k, tb=True), mask)
    return p.op("maximum_scalar", s, value=LEAST), p.op("ge_scalar", s, value=LEAST)


@lower(aten._scaled_dot_product_flash_attention_for_cpu.default)
def _(p, q, k, v, dropout=0.0, causal=False, attn_mask=None, scale=None):
    heads(q, k, v, dropout, causal, attn_mask)
    scale = scale_of(q, scale)
    if attn_mask is None:
        return _heads.attention(p, q, k, v, causal=causal, scale=scale) or p.op("attention", q, k, v, n=2, causal=causal, scale=scale)
    s, seen = scores(p, q, k, attn_mask, scale)
    most = p.op("max", s, axes=[3], keepdims=True)
    e = p.op("mul", p.op("exp", p.op("sub", s, most)), seen)
    total = p.op("sum", e, axes=[3], keepdims=True)
    # A row of which nothing is seen is 0.
    weights = p.op("div", e, p.op("add", total, p.op("eq_scalar", total, value=0.0)))
    logs = p.op("reshape", p.op("add", most, p.op("log", total)), shape=list(q.shape[:-1]))
    return [p.op("matmul", weights, v), logs]


@lower(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def _(p, dy, q, k, v, y, logs, dropout, causal, attn_mask=None, scale=None):
    heads(q, k, v, dropout, causal, attn_mask)
    scale = scale_of(q, scale)
    if attn_mask is None:
        found = _heads.attention_grad(p, dy, q, k, v, y, logs, causal=causal, scale=scale)
        return found or p.op("attention_grad", dy, q, k, v, y, logs, n=3, causal=causal, scale=scale)
    s, seen = scores(p, q, k, attn_mask, scale)
    known = p.op("maximum_scalar", p.op("reshape", logs, shape=[*q.shape[:-1], 1]), value=LEAST)
    weights = p.op("mul", p.op("exp", p.op("sub", s, known)), seen)
    dot = p.op("sum", p.op("mul", dy, y), axes=[3], keepdims=True)
    ds = p.op("mul_scalar", p.op("mul", weights, p.op("sub", p.op("matmul", dy, v, tb=True), dot)), value=scale)
    return [p.op("matmul", ds, k), p.op("matmul", ds, q, ta=True), p.op("matmul", weights, dy, ta=True)]


# ---- softmax, losses --------------------------------------------------------------------------------------------------


def softened(name):
    """A softmax and its like along an axis."""

    def function(p, x, dim, half):
        need(not half and x.ndim, "to float32")
        return p.op(name, x, axis=dim % x.ndim)

    return function


def softened_grad(name):
    """Their gradients."""

    def function(p, dy, y, dim, dtype):
        need(dtype == y.dtype and y.ndim, "to another type")
        return p.op(name, dy, y, axis=dim % y.ndim)

    return function


LOWER[aten._softmax.default], LOWER[aten._log_softmax.default] = softened("softmax"), softened("log_softmax")
LOWER[aten._softmax_backward_data.default] = softened_grad("softmax_grad")
LOWER[aten._log_softmax_backward_data.default] = softened_grad("log_softmax_grad")


def chosen(p, logp, target, weight, ignore):
    """Rows with a one, or the label's weight, at the label; zeros for labels that are ignored."""
    need(logp.dtype in FLOATS, "of integers")
    need(logp.ndim in (1, 2) and target.dtype == torch.int64, "of these types")
    need(weight is None or weight.dtype == logp.dtype, "of several types")
    p.labels[target if target.source is None else target.source] = (logp.shape[-1], ignore)
    hot = p.op("one_hot", p.cast(target, torch.int32), depth=logp.shape[-1], dtype=NUMBERS[logp.dtype])
    if 0 <= ignore < logp.shape[-1]:
        ones = [p.op("fill", shape=[n], value=v, dtype=NUMBERS[logp.dtype]) for n, v in counted(ignore, logp.shape[-1])]
        hot = p.op("mul", hot, p.op("concat", *ones, axis=0) if len(ones) > 1 else ones[0])
    return hot if weight is None else p.op("mul", hot, weight)


def counted(ignore, classes):
    """(how many classes, whether they count), in their order."""
    return [(n, v) for n, v in ((ignore, 1.0), (1, 0.0), (classes - ignore - 1, 1.0)) if n]


@lower(aten.nll_loss_forward.default, any_type=True)
def _(p, logp, target, weight, mode, ignore):
    hot = chosen(p, logp, target, weight, ignore)
    # Chosen, not multiplied: an infinity that was not chosen has no effect.
    taken = p.op("take_if", hot, logp)
    taken = taken if weight is None else p.op("mul", taken, weight)
    loss = p.op("neg", p.op("sum", taken, **({"axes": [logp.ndim - 1]} if mode == 0 else {})))
    rows = p.op("sum", hot)
    return [p.op("div", loss, rows) if mode == 1 else loss, rows]


@lower(aten.nll_loss_backward.default, any_type=True)
def _(p, dy, logp, target, weight, mode, ignore, rows):
    hot = chosen(p, logp, target, weight, ignore)
    if mode == 0 and logp.ndim == 2:
        dy = p.op("reshape", dy, shape=[*dy.shape, 1])
    if mode == 1:  # no label counts: the loss is not a number, its gradient 0
        dy = p.op("div", dy, p.op("add", rows, p.op("eq_scalar", rows, value=0.0)))
    return p.op("mul", hot, p.op("neg", dy))
