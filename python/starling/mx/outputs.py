"""Functions at the end of programs of symbols, whose gradient is that of a loss, whatever the result's gradient is."""
from .._custom import Function
from .unsupported import not_here

__all__ = ["LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "MakeLoss", "SVMOutput", "SoftmaxOutput", "make_loss"]


class _Output(Function):
    """A result, and the gradient of the first input from (inputs, the result)."""

    def __init__(self, compute, gradient):
        super().__init__()
        self._compute, self._gradient = compute, gradient

    def forward(self, *inputs):
        y = self._compute(*inputs)
        self._given = inputs, y
        return y

    def backward(self, dy):
        inputs, y = self._given
        g = self._gradient(dy, y, *inputs[1:])
        return [g.reshape(inputs[0].shape), *(None for _ in inputs[1:])]


def _regression(name, compute, difference):
    def output(data, label, grad_scale=1.0):
        def gradient(_, y, wanted):
            return difference(y, wanted.reshape(y.shape)) * (grad_scale / (wanted.size / wanted.shape[0]))

        return _Output(lambda x, _: compute(x), gradient)(data, label)

    output.__name__ = name
    output.__doc__ = f"{name} of MXNet: the result of data, and the gradient of a loss beside label."
    return output


def _copied(x):
    return x.copy()


LinearRegressionOutput = _regression("LinearRegressionOutput", _copied, lambda y, t: y - t)
LogisticRegressionOutput = _regression("LogisticRegressionOutput", lambda x: x.sigmoid(), lambda y, t: y - t)
MAERegressionOutput = _regression("MAERegressionOutput", _copied, lambda y, t: (y - t).sign())


def make_loss(data):
    """The data itself, with a gradient of 1 for each element."""
    return _Output(_copied, lambda dy, y: y.ones_like())(data)


def MakeLoss(data, grad_scale=1.0, valid_thresh=0.0, normalization="null"):
    """The data itself, with a gradient of grad_scale, divided by the number of samples, or of elements above valid_thresh."""
    def gradient(_, y):
        count = {"null": 1, "batch": y.shape[0]}.get(normalization)
        return y.ones_like() * grad_scale / ((y > valid_thresh).sum().maximum(1) if count is None else count)

    return _Output(_copied, gradient)(data)


def SVMOutput(data, label, margin=1.0, regularization_coefficient=1.0, use_linear=False):
    """The data itself, with the gradient of a hinge loss, squared unless use_linear."""
    def gradient(_, y, wanted):
        side = wanted.one_hot(y.shape[1], on_value=1, off_value=-1).astype(y.dtype)  # 1 for the label's class
        inside = (margin - y * side).maximum(0)
        return -side * regularization_coefficient * (inside > 0 if use_linear else 2 * inside)

    return _Output(lambda x, _: x.copy(), gradient)(data, label)


def SoftmaxOutput(data, label, grad_scale=1.0, ignore_label=-1.0, multi_output=False, use_ignore=False, preserve_shape=False, normalization="null",
                  out_grad=False, smooth_alpha=0.0):
    """Softmax, with the gradient of cross-entropy beside label, classes or probabilities."""
    if normalization not in ("null", "batch", "valid"):
        raise ValueError(f"SoftmaxOutput: normalization is {normalization!r}; these are null, batch and valid")
    if multi_output and label.shape == data.shape and use_ignore:
        raise not_here("SoftmaxOutput(use_ignore=True) of probabilities", "labels that are classes")
    axis = 1 if multi_output else -1

    def compute(x, _):
        return x.softmax(axis=axis) if multi_output or preserve_shape or x.ndim <= 2 else x.reshape((x.shape[0], -1)).softmax(axis=-1).reshape(x.shape)

    def gradient(dy, y, wanted):
        shape = y.shape
        if not multi_output and not preserve_shape:
            y = y.reshape((shape[0], -1))
        if wanted.shape == shape:
            return (y - wanted.reshape(y.shape)) * grad_scale
        k, places = y.shape[axis], [n for i, n in enumerate(y.shape) if i != axis % y.ndim]
        wanted = wanted.reshape(tuple(places))
        chosen = wanted.one_hot(k, on_value=1 - smooth_alpha, off_value=smooth_alpha / max(k - 1, 1)).astype(y.dtype)
        g = y - (chosen.transpose((0, y.ndim - 1, *range(1, y.ndim - 1))) if multi_output else chosen)
        valid = wanted != ignore_label if use_ignore else wanted.ones_like()
        g = g * valid.astype(g.dtype).expand_dims(axis)
        count = {"null": 1, "batch": shape[0], "valid": valid.sum().maximum(1)}[normalization]
        g = g * grad_scale / count
        if multi_output and normalization != "valid":
            g = g / (wanted.size / shape[0])
        return g * dy.reshape(g.shape) if out_grad else g

    return _Output(compute, gradient)(data, label)
