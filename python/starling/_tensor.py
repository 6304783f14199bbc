"""Tensors: Python's operators, indexing, exchange with NumPy and other libraries."""
from typing import TYPE_CHECKING

import numpy

from . import _core
from ._core import NULL, check, ffi, here, lib, raise_error, shape_from, shape_of
from ._values import fit, whole

_new = object.__new__
_gc, _release = ffi.gc, lib.sl_release  # a tensor's pointer has the reference: it may outlive the Python object

# ---- data types and devices -------------------------------------------------------------------------------------------

#: Data types by their names, as the library numbers them.
dtypes = {}
for _number in range(lib.SL_DTYPE_DEFAULT + 1, lib.SL_DTYPE_COUNT):
    dtypes[ffi.string(lib.sl_dtype_name(_number)).decode()] = _number
_dtype_names = {number: name for name, number in dtypes.items()}
_numpy = {name: numpy.dtype(name) for name in dtypes if name in numpy.sctypeDict}
_FOREIGN = ("bfloat16",)  # NumPy has no type for it
_SELDOM = ("int8", "int16", "uint16", "uint32", "uint64", "int64")  # NumPy's arrays of these become int32, unless a call names the type


def dtype_of(value):
    """The library's number of a data type given by name, NumPy type or Python type; None is the default."""
    if value is None:
        return 0
    if isinstance(value, str) and value in dtypes:
        return dtypes[value]
    try:
        return dtypes[numpy.dtype(value).name]
    except KeyError:  # one of NumPy's
        raise _core.DTypeError(f"arrays of {numpy.dtype(value)} are not available: {numpy.dtype(value)} is not in Starling; use one of {', '.join(dtypes)}") from None
    except TypeError:
        raise _core.DTypeError(f"{value!r} is not a data type of tensors; these are: {', '.join(dtypes)}") from None


class Device:
    """A device that runs operations: "auto", "cpu", "cpu:0", "gpu:1" …; Device("gpu", 1) and Device("gpu:1") are the same."""

    __slots__ = ("kind", "index")

    def __init__(self, kind, index=None):
        if not isinstance(kind, str):
            raise _core.wrong("device", kind, "a name such as 'cpu' or 'gpu:0'")
        if index is None and ":" in kind:
            kind, _, index = kind.partition(":")
        if kind not in ("auto", "cpu", "gpu"):
            raise _core.DeviceError(f"{kind!r} is not a device; devices are auto, cpu:N and gpu:N")
        self.kind, self.index = kind, -1 if index is None else int(index)

    @classmethod
    def named(cls, number):
        """CPU device `number`, which runs on that team modulo the number of teams."""
        return cls("cpu", lib.sl_cpu_named(number).index)

    @property
    def number(self):
        """The number in the name; -1: the name has none."""
        return lib.sl_device_number(self._c)

    @property
    def _c(self):
        return ({"auto": lib.SL_DEVICE_AUTO, "cpu": lib.SL_DEVICE_CPU, "gpu": lib.SL_DEVICE_GPU}[self.kind], self.index)

    def __str__(self):
        return self.kind if self.index < 0 or self.kind == "auto" else f"{self.kind}:{self.number}"

    def __repr__(self):
        return f"device({str(self)!r})"

    def __eq__(self, other):
        if isinstance(other, str):
            other = Device(other)
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


_kinds = {lib.SL_DEVICE_AUTO: "auto", lib.SL_DEVICE_CPU: "cpu", lib.SL_DEVICE_GPU: "gpu"}


def device_of(value):
    """The C structure of a device; None is the default device."""
    if value is None:
        return (0, 0)
    c = getattr(value, "_c", None)
    return Device(value)._c if c is None else c


def device_count(kind="gpu"):
    """The number of devices of a kind, "cpu" (teams of cores) or "gpu"; starts the engine."""
    if not lib.sl_is_initialized():
        check(lib.sl_init_at(here(), NULL))
    return lib.sl_device_count(Device(kind)._c[0])


# ---- tensors ----------------------------------------------------------------------------------------------------------


_callbacks_under_way: list = []  # one entry for each, in any thread: nearly always empty


class Callback:
    """Surrounds Python code that C has called: keeps the depth of callbacks in this thread, and hands what is raised to failed()."""

    def __enter__(self):
        _callbacks_under_way.append(self)
        _core.callbacks.depth = getattr(_core.callbacks, "depth", 0) + 1

    def __exit__(self, kind, error, traceback):
        _callbacks_under_way.remove(self)
        _core.callbacks.depth -= 1
        if error is not None:
            self.failed(error)
        return True


def wrap(p, kind):
    """The Python object of a new tensor; raises the error if it is NULL."""
    if not p:
        raise_error()
    if _callbacks_under_way and getattr(_core.callbacks, "depth", 0):
        lib.sl_retain(p)  # the scope around the callback has the other reference
    t = _new(kind)
    t._p = _gc(p, _release)
    return t


def borrow(p, kind):
    """The Python object of a tensor that another object owns."""
    t = _new(kind)
    t._p = _gc(lib.sl_retain(p), _release)
    return t


if TYPE_CHECKING:  # set further down, and by the module of operations
    from ._methods import Methods as _Methods
else:
    _Methods = object


class Tensor(_Methods):
    """An array whose values are computed asynchronously; see starling.array, zeros, from_numpy to make one."""

    __slots__ = ("_p", "_part", "_stored", "__weakref__")  # _stored: of sparse arrays, which starling.mx has
    _truths = True  # comparisons give bools
    __array_priority__ = 1000  # NumPy's operators leave mixed expressions to ours
    __del__ = _core.nothing  # for explicit calls; the pointer frees the values

    def __init__(self, *args, **kwargs):
        raise TypeError("tensors are made by functions: starling.array(values), starling.zeros(shape), …")

    # Known without waiting

    @property
    def shape(self):
        """The lengths of the axes; None for a symbol whose shape is not known."""
        return shape_from(lib.sl_tensor_shape(self._p))

    @property
    def ndim(self):
        """The number of axes."""
        return lib.sl_tensor_shape(self._p).ndim

    @property
    def size(self):
        """The number of elements."""
        return lib.sl_tensor_size(self._p)

    @property
    def nbytes(self):
        """The size of the values in bytes."""
        return lib.sl_tensor_bytes(self._p)

    @property
    def dtype(self):
        """The data type: NumPy's, or its name if NumPy has no such type."""
        name = _dtype_names[lib.sl_tensor_dtype(self._p)]
        return _numpy.get(name, name)

    @property
    def device(self):
        """The device that runs operations on the tensor."""
        d = lib.sl_tensor_device(self._p)
        return Device(_kinds.get(d.kind, "auto"), d.index if d.index >= 0 else None)

    @property
    def is_symbol(self):
        """Whether the tensor is a symbol without values: in a forward that is being traced, or from starling.var."""
        return bool(lib.sl_is_symbol(self._p))

    # Values

    def wait(self):
        """Waits until the values are computed; raises the error that spoilt them.  Ctrl-C ends the wait at once."""
        wait_interruptibly(self._p)
        check(lib.sl_wait_at(here(), self._p))

    def numpy(self, copy=False):
        """Waits for the values and returns them as a NumPy array: the tensor's memory itself, read-only, if possible.

        It is a copy with GPUs, for parameters, for tensors that were written again, and with copy=True.  bfloat16, which NumPy
        lacks, is copied as float32.  Operations in place on the tensor change an array in its memory once they are computed.
        """
        name = _dtype_names[lib.sl_tensor_dtype(self._p)]
        if name not in _numpy:
            return self.detach().astype("float32").numpy(copy)
        shape = self.shape
        if not copy and shape is not None:
            wait_interruptibly(self._p)
            held = wrap(lib.sl_detach_at(here(), self._p), Tensor)  # keeps this memory longer than the tensor
            p = lib.sl_values_at(here(), self._p)
            if p:
                seen = ffi.gc(ffi.cast("char *", p), lambda _, end=lib.sl_values_end: end(held._p))
                values = numpy.frombuffer(ffi.buffer(seen, self.nbytes), _numpy[name]).reshape(shape)
                values.flags.writeable = False
                return values
            if lib.sl_error():
                raise_error()
        values = numpy.empty(() if shape is None else shape, _numpy[name])
        wait_interruptibly(self._p)
        check(lib.sl_read_at(here(), self._p, ffi.from_buffer(values) if values.size else NULL, values.nbytes))
        return values

    def __array__(self, dtype=None, copy=None):
        values = self.numpy(bool(copy))
        right = dtype is None or values.dtype == dtype
        if copy is False and (values.flags.owndata or not right):
            raise ValueError("there can only be a copy of these values; ask for it with copy=None or copy=True")
        return values if right else values.astype(dtype)

    def item(self):
        """Waits for the value of a tensor with one element and returns it."""
        wait_interruptibly(self._p)
        value = lib.sl_item_at(here(), self._p)
        if value != value and lib.sl_error():
            raise_error()
        name = _dtype_names[lib.sl_tensor_dtype(self._p)]
        if "float" in name:
            return value
        if abs(value) >= 2**53:  # C returns a double, which does not hold all digits of an int64
            return int(self.numpy(copy=True).reshape(()))
        return bool(value) if name == "bool" else int(value)

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __reduce__(self):
        """How copy and pickle make another tensor with these values, without gradient or history."""
        exact = self.numpy() if self.dtype in _numpy.values() else self.astype("float32").numpy()
        return array, (numpy.array(exact), str(self.dtype), str(self.device), type(self))

    def tolist(self):
        """The values as nested lists."""
        return self.numpy().tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __index__(self):
        if "int" not in _dtype_names[lib.sl_tensor_dtype(self._p)]:
            raise TypeError(f"only a tensor of integers is an index, not {self.dtype}")
        if self.size != 1:
            raise TypeError(f"a tensor of shape {self.shape} is no index: it has not one element")
        return int(self.item())

    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of a tensor of shape {self.shape} is ambiguous")
        return bool(self.item())

    def __repr__(self):
        if self.is_symbol:
            name = ffi.string(lib.sl_symbol_name(self._p)).decode()
            return f"<symbol {name} {_dtype_names[lib.sl_tensor_dtype(self._p)]} {self.shape}>"
        wait_interruptibly(self._p)
        from ._files import captured

        return captured(lambda file: lib.sl_fprint_at(here(), file, self._p)).rstrip("\n")

    def __len__(self):
        if not self.ndim:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def __iter__(self):
        n = len(self)  # at once: a scalar is nothing to iterate over
        return (self[i] for i in range(n))

    # Other libraries

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """The values for another library, through DLPack: a copy in main memory, from any device."""
        if dl_device not in (None, (1, 0)):
            raise BufferError(f"tensors are handed out in main memory, device (1, 0), not on {dl_device}")
        if _dtype_names[lib.sl_tensor_dtype(self._p)] in _FOREIGN:
            raise BufferError("NumPy, which packs the values, has no bfloat16; use astype('float32')")
        if copy is False:
            raise BufferError("tensors are handed out as copies: the engine may move and overwrite their memory")
        return self.numpy(copy=True).__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)  # main memory: where the copy will be

    # Gradients

    def attach_grad(self, req="write"):
        """Attaches a gradient to this tensor, which backward() overwrites ("write") or adds to ("add")."""
        kinds = {"write": lib.SL_GRAD_WRITE, "add": lib.SL_GRAD_ADD, "null": lib.SL_GRAD_NONE, "none": lib.SL_GRAD_NONE}
        with _core.sharing:
            check(lib.sl_attach_grad_at(here(), self._p, (_core.choice(kinds, req, "req"),)))
        return self

    @property
    def grad(self):
        """The gradient with respect to this tensor, after attach_grad; None if none is attached."""
        with _core.sharing:
            p = lib.sl_grad_at(here(), self._p)
            if p:
                return borrow(p, type(self))
        lib.sl_error_clear()
        return None

    def backward(self, head_grad=None, retain_graph=False, create_graph=False):
        """Computes the gradients of this tensor with respect to all tensors with a gradient attached; see autograd.backward."""
        from .autograd import backward

        backward(self, None if head_grad is None else [head_grad], retain_graph, create_graph=create_graph)

    # On other devices, in other types and shapes

    def to(self, where):
        """The same values on another device, or in another data type."""
        if isinstance(where, Device) or (isinstance(where, str) and where not in dtypes):
            return wrap(lib.sl_copy_to_at(here(), self._p, device_of(where)), type(self))
        return wrap(lib.sl_cast_at(here(), self._p, dtype_of(where)), type(self))

    def astype(self, dtype):
        """The values as another data type."""
        return wrap(lib.sl_cast_at(here(), self._p, dtype_of(dtype)), type(self))

    def reshape(self, *shape):
        """The same values in another shape; one length may be -1."""
        if len(shape) == 1 and not isinstance(shape[0], int):
            (shape,) = shape
        return wrap(lib.sl_reshape_at(here(), self._p, shape_of(shape)), type(self))

    def copy(self):
        """A new tensor with the same values."""
        return wrap(lib.sl_clone_at(here(), self._p), type(self))

    def detach(self):
        """The same values without a history."""
        return wrap(lib.sl_detach_at(here(), self._p), type(self))

    @property
    def T(self):
        """With the axes in reverse order."""
        return wrap(lib.sl_transpose_at(here(), self._p, (NULL, 0, False)), type(self))

    # Indexing

    def __getitem__(self, key):
        from ._indexing import get

        return get(self, key)

    def __setitem__(self, key, value):
        from ._indexing import set_

        set_(self, key, value)

    __hash__ = object.__hash__


# ---- making them ------------------------------------------------------------------------------------------------------


def array(values, dtype=None, device=None, like=Tensor):
    """A tensor with a copy of the values: numbers, nested lists, NumPy arrays, tensors.

    Floats become float32, integers int32, truth values bool, unless dtype names another type or a NumPy array has a type
    that most operations take; NumPy's default int64 becomes int32, and so do int8, int16, uint16, uint32 and uint64.  Values out of the range of the
    data type are refused (DTypeError), and so is NaN among integers.
    """
    if isinstance(values, Tensor):
        copy = values.to(device) if device is not None else values.copy()
        return copy if dtype is None else copy.astype(dtype)
    given = isinstance(values, (numpy.ndarray, numpy.generic))
    if isinstance(values, numpy.ma.MaskedArray) and numpy.ma.is_masked(values):
        raise _core.DTypeError("a masked array: tensors have no elements without a value")
    values = whole(values, numpy.asarray(values))
    if dtype is None and (not given or values.dtype.name not in _numpy or values.dtype.name in _SELDOM):
        if values.dtype.kind not in "fiub":
            raise _core.DTypeError(f"values of type {values.dtype} cannot be in a tensor")
        dtype = "float64" if values.dtype.itemsize > 8 else "float32" if values.dtype.kind == "f" else "bool" if values.dtype.kind == "b" and like._truths else "int32"
        if dtype == "int32" and values.itemsize >= 4 and values.size and not -(2**31) <= values.min() <= values.max() < 2**31:
            raise _core.DTypeError("numbers that int32 cannot hold; array(values, dtype='int64') keeps them")
    name = _dtype_names[dtype_of(dtype)] if dtype is not None else values.dtype.name
    if like._truths:
        values = fit(values, name)
    if name in _FOREIGN:
        return array(values, "float32", device, like).astype(name)
    values = numpy.ascontiguousarray(values, dtype=_numpy[name]).reshape(values.shape)  # also in the machine's byte order
    data = ffi.from_buffer(values) if values.size else NULL
    return wrap(lib.sl_from_at(here(), data, shape_of(values.shape), (dtypes[name], device_of(device))), like)


# ---- waiting ----------------------------------------------------------------------------------------------------------

_POLL = 0.05  # seconds that C waits before Python checks for signals


def wait_interruptibly(p=NULL):
    """Waits for a tensor, or for all calls; Ctrl-C raises KeyboardInterrupt at once."""
    while not lib.sl_poll_at(here(), p, _POLL):
        pass  # between two bytecodes Python runs its signal handlers


def wait_all():
    """Waits until all earlier calls are computed; raises the first error."""
    wait_interruptibly()
    check(lib.sl_wait_all_at(here()))
