"""Names that the generated modules import from the others."""
from ._core import NULL, UNSET, UNSET_INT, axes_of, bad_argument, check, choice, exact, ffi, here, lib, pair, raise_error, shape_of, text_of
from ._tensor import Device, Tensor, device_of, dtype_of, wrap

__all__ = [
    "NULL", "UNSET", "UNSET_INT", "Device", "Tensor", "add_methods", "axes_of", "bad_argument", "check", "choice", "device_of", "dtype_of", "exact", "ffi", "here", "lib",
    "numbers_of", "pair", "raise_error", "shape_of", "tensors_of", "text_of", "wrap",
]  # fmt: skip


def numbers_of(t, dtype):
    """A tensor of bools converted to this type; anything else unchanged."""
    return t.astype(dtype) if isinstance(t, Tensor) and lib.slpy_truths(t._p, NULL) else t


def tensors_of(tensors, name, count=None):
    """(array, length) of several tensors; NULL for those that are None, and for None.  count: the number required."""
    if tensors is None:
        return NULL, 0
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{name} is {'one tensor' if isinstance(tensors, Tensor) else type(tensors).__name__}, a list of tensors is needed")
    if count not in (None, len(tensors)):
        raise ValueError(f"{name} has {len(tensors)} tensors, {count} are needed")
    try:
        return ffi.new("sl_tensor *[]", [NULL if t is None else t._p for t in tensors]), len(tensors)
    except AttributeError:
        raise TypeError(f"{name}: a list of tensors is needed") from None


# Operations that are also methods of tensors, if they exist.
METHODS = """sum mean max min norm argmax prod var std cumsum clip exp log sqrt square abs relu sigmoid tanh softmax log_softmax
    flatten transpose dot broadcast_to gather one_hot any all masked_fill
    clone""".split()


def add_methods(operations):
    """Makes methods of the operations whose first argument is the tensor."""
    for name in METHODS:
        operation = operations.get("variance" if name == "var" else name)  # starling.var makes a symbol
        if operation and not hasattr(Tensor, name):
            setattr(Tensor, name, operation)
