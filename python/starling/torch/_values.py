"""Values of eager tensors, and views of them.

The engine's tensors are never written here: a change in place makes a new one and puts it into the box that all views of the
same memory share.  So tasks that still read the old values need no guard, and a view is a way to compute it: reading it applies
an operation to the newest values, writing it makes new values for what it is a view of.
"""
import math

import torch

from .._core import ffi, lib
from ._memory import _shape
from ._text import DTYPES, HERE, NUMBERS, checked_status, raise_error


def checked(p):
    """A new reference of the engine, given up with the Python object."""
    if not p:
        raise_error()
    return ffi.gc(p, lib.sl_release)


def upload(t, device):
    """The values of a tensor in main memory, copied to a device."""
    if t.dtype not in DTYPES:
        raise TypeError(f"Starling's devices have no tensors of {t.dtype}")
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    data = ffi.cast("void *", t.data_ptr())
    return checked(lib.sl_from_at(HERE, data, _shape(t.shape), (NUMBERS[t.dtype], device)))


def download(p, shape, dtype):
    """Values in main memory; waits for them."""
    t = torch.empty(shape, dtype=dtype)
    checked_status(lib.sl_read_at(HERE, p, ffi.cast("void *", t.data_ptr()), t.nbytes))
    return t


def moved(p, device):
    """A copy on a device, which waits for nothing."""
    return checked(lib.sl_copy_to_at(HERE, p, device))


def reshaped(p, shape):
    """The same elements in another shape."""
    return checked(lib.sl_reshape_at(HERE, p, _shape(shape)))


def filled(shape, dtype, value, device):
    """A tensor of one number."""
    return checked(lib.sl_full_at(HERE, _shape(shape), value, (NUMBERS[dtype], device)))


class Box:
    """The memory that views share.

    p: the newest values.  late: makes them when they are read first (None: there are some).  host: the same values as a tensor
    in main memory, where they are known: those of tensors without elements, and of labels, so that checking them waits for nothing.
    Tensors of types that the engine lacks, such as complex ones, have nothing but this.
    """

    __slots__ = ("p", "late", "host", "version")

    def __init__(self, p=None, late=None, host=None):
        self.p, self.late, self.host, self.version = p, late, host, 0

    def value(self):
        if self.p is None:
            if self.late is None:
                raise NotImplementedError("a tensor without elements has no values on a device")
            self.p, self.late = self.late(), None
        return self.p

    def write(self, p):
        self.p, self.late, self.host = p, None, None
        self.version += 1


class Ref:
    """All values of a box, or a view of another reference: its operation and arguments.  of None: the values of the box."""

    __slots__ = ("box", "shape", "dtype", "of", "func", "args", "kept")

    def __init__(self, box, shape, dtype, of=None, func=None, args=()):
        self.box, self.shape, self.dtype, self.of, self.func, self.args, self.kept = box, tuple(shape), dtype, of, func, args, None

    def value(self):
        """The engine's tensor of the newest values."""
        if self.of is None:
            return self.box.value()
        if self.kept is None or self.kept[0] != self.box.version:
            source = self.of.value()
            p = reshaped(source, self.shape) if self.func is None else apply(self.func, self.of, source, self.args)
            self.kept = self.box.version, p
        return self.kept[1]

    def host(self):
        """The values of a type that the engine lacks: main memory that is shared with the box."""
        if self.of is None:
            return self.box.host
        source = self.of.host()
        return source.reshape(self.shape) if self.func is None else self.func(source, *self.args)

    def write(self, p):
        """Puts new values in the place of these."""
        if self.of is None:
            self.box.write(p)
        elif self.func is None:
            self.of.write(reshaped(p, self.of.shape))
        else:
            self.of.write(INVERSE.get(self.func, _through_memory)(self, p))

    @property
    def root(self):
        """All values of the box."""
        return self if self.of is None else self.of.root

    @property
    def transposed(self):
        """What this is the transpose of, if it is one of a matrix."""
        return self.of if self.func is not None and self.func in TURNS and len(self.shape) == 2 else None


def apply(func, of, source, args):
    """A view's values."""
    from ._eager import compute_one

    return compute_one(func, Given(of, source), args)


class Given:
    """A value that is an argument of an operation, where no PyTorch tensor is."""

    def __init__(self, ref, p):
        self.shape, self.dtype, self.p = ref.shape, ref.dtype, p


aten = torch.ops.aten
TURNS = {aten.permute.default, aten.transpose.int, aten.t.default}


def order_of(func, args, n):
    """The axes of a permutation."""
    if func is aten.permute.default:
        return [k % n for k in args[0]]
    order = list(range(n))
    a, b = (args[0] % n, args[1] % n) if func is aten.transpose.int else (0, n - 1)
    order[a], order[b] = b, a
    return order


def _turned_back(ref, p):
    order = order_of(ref.func, ref.args, len(ref.shape))
    back = [order.index(k) for k in range(len(order))]
    return apply(aten.permute.default, ref, p, (back,))


def _pasted(scatter):
    """Puts values into what the view was taken of."""

    def function(ref, p):
        from ._eager import compute_one

        if math.prod(ref.shape) == math.prod(ref.of.shape) and scatter is aten.slice_scatter.default and ref.shape == ref.of.shape:
            return p
        return compute_one(scatter, Given(ref.of, ref.of.value()), (Given(ref, p), *ref.args))

    return function


def _through_memory(ref, p):
    """Puts values into what other views were taken of, in main memory."""
    whole = download(ref.of.value(), ref.of.shape, ref.of.dtype)
    ref.func(whole, *ref.args).copy_(download(p, ref.shape, ref.dtype))
    return upload(whole, lib.sl_tensor_device(p))


INVERSE = {
    **dict.fromkeys(TURNS, _turned_back), aten.slice.Tensor: _pasted(aten.slice_scatter.default),
    aten.select.int: _pasted(aten.select_scatter.default),
}  # fmt: skip
