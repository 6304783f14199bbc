"""Functions of mx.np that NumPy computes after waiting for the values: MXNet also leaves these to NumPy, or the shapes of
their results depend on values."""
import numpy

from .._tensor import Tensor
from ._np import named
from ._signed import into
from .autograd import is_recording
from .unsupported import not_here

__all__ = ["allclose", "array_equal", "may_share_memory", "shares_memory"]


def _enter(name, function, doc):
    globals()[name] = named(function, name, doc)
    __all__.append(name)


# Their results are whole numbers or truth values, through which no gradient flows.
_WHOLE = frozenset("argwhere bincount count_nonzero digitize flatnonzero isin lexsort nanargmax nanargmin nonzero searchsorted tri unravel_index".split())


def _by_numpy(name):
    function = getattr(numpy, name)

    def call(*args, **kwargs):
        if is_recording() and name not in _WHOLE:
            raise not_here(f"the gradient of np.{name}", "autograd.pause around it")
        args += tuple(kwargs.pop(n) for n in ("x1", "x2") if n in kwargs)  # NumPy's have no names
        out = kwargs.pop("out", None)
        result = function(*map(_host, args), **{k: _host(v) for k, v in kwargs.items()})
        if out is not None:
            return into(_from_host(result), out)
        return tuple(map(_from_host, result)) if isinstance(result, tuple) else _from_host(result)

    _enter(name, call, f"NumPy's {name}, over values that are waited for; it has no gradient.")


def _host(x):
    if isinstance(x, Tensor):
        return x.numpy()
    return type(x)(map(_host, x)) if isinstance(x, (list, tuple)) else x


def _from_host(x):
    from .np import array

    if not isinstance(x, (numpy.ndarray, numpy.generic)):
        return x
    return array(x, dtype="float32" if x.dtype == numpy.float64 else str(x.dtype))


for _name in """arctan2 argwhere bincount corrcoef count_nonzero cov delete digitize ediff1d extract
        flatnonzero histogram indices insert interp intersect1d isin kron lexsort logspace median nan_to_num nanargmax
        nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar nonzero percentile polyval ptp quantile searchsorted setdiff1d
        trapz tri union1d unique unravel_index vander""".split():
    if hasattr(numpy, _name):
        _by_numpy(_name)


def _window(name):
    function = getattr(numpy, name)

    def call(M, dtype=None, ctx=None):
        from .np import array

        return array(function(M), dtype or "float32", ctx)

    _enter(name, call, f"NumPy's {name} window of M points.")


for _name in ("hanning", "hamming", "blackman"):
    _window(_name)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are nearly equal; waits for them."""
    return numpy.allclose(_host(a), _host(b), rtol, atol, equal_nan)


def may_share_memory(a, b, max_work=None):
    """Whether two arrays are the same one; of others it is not known: rows of an array are in its memory, other parts are copies."""
    if a is b or not a.size or not b.size:
        return a is b and bool(a.size)
    raise not_here("np.shares_memory of two arrays", "copy, which gives an array by itself")


shares_memory = may_share_memory
__all__.append("shares_memory")


def array_equal(a, b):
    """Whether two arrays are equal; waits for them."""
    return a.shape == b.shape and numpy.bool_((a.asnumpy() == b.asnumpy()).all())
