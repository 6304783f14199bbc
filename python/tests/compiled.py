"""A function of tensors, eager and compiled, for tests: both give the same."""
import numpy as np
import starling as sl


class Net(sl.Block):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def both(function, *x, refused=()):
    """The eager result, which the compiled one equals; None if the eager call raises one of `refused`."""
    try:
        eager = function(*x)
    except refused:
        return None
    net = Net(function)
    net.hybridize()
    compiled = net(*x)
    first, second = (np.asarray(y.tolist()) for y in (eager, compiled))
    assert eager.dtype == compiled.dtype and np.array_equal(first, second, equal_nan=first.dtype.kind == "f"), (function, first, second)
    return eager
