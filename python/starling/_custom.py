"""Functions with a custom backward pass."""
from . import _core
from ._blocks import _Callback
from ._core import NULL, check, ffi, here, lib
from ._tensor import Tensor, borrow
from .autograd import pause

_recorded: dict = {}  # the tape's data of each call: (handle, function, classes of the results), by the handle's address


def _list(value, of):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    for v in values:
        if not isinstance(v, Tensor):
            raise TypeError(f"{of} returned {type(v).__name__}, tensors are needed")
    return values


@ffi.def_extern()
def slpy_forget(context):
    _recorded.pop(int(ffi.cast("uintptr_t", context)), None)


@ffi.def_extern(error=lib.SL_EINVAL)
def slpy_backward(context, douts, nout, dins, nin):
    done = lib.SL_EINVAL
    with _Callback():
        function, kinds = ffi.from_handle(context)
        name = f"{type(function).__name__}.backward"
        given = function.backward(*(borrow(douts[i], kinds[i]) for i in range(nout)))
        given = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(given) != nin:
            raise ValueError(f"{name} returned {len(given)} gradients, forward had {nin} inputs")
        _list([g for g in given if g is not None], name)
        _core.callbacks.result = given  # they live until C has its own references
        for i, g in enumerate(given):
            dins[i] = NULL if g is None else g._p
        done = lib.SL_OK
    return done


class Function:
    """A function with a custom gradient.  Each object is called once; forward and backward get and return tensors:

        class Sigmoid(starling.Function):
            def forward(self, x):
                y = 1 / (1 + (-x).exp())
                self.save_for_backward(y)
                return y

            def backward(self, dy):
                y, = self.saved_tensors
                return dy * y * (1 - y)

        with starling.record():
            y = Sigmoid()(x)

    forward is not recorded.  backward gets the gradient with respect to each result, and returns one for each input, or None.
    The call of backward() raises its exceptions.  It cannot call backward() itself, nor be part of a compiled block.  There are
    second derivatives (create_graph=True) if the class says `differentiable = True`: backward keeps to operations on dy and on
    inputs then; a saved result is a constant for them.
    """

    differentiable = False

    def __init__(self):
        self.saved_tensors = ()

    def save_for_backward(self, *tensors):
        """Keeps tensors for backward, as saved_tensors."""
        self.saved_tensors = tensors

    def forward(self, *inputs):
        """Computes the results."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def backward(self, *output_grads):
        """Computes the gradients with respect to the inputs from those with respect to the results."""
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    def __call__(self, *inputs):
        name = type(self).__name__
        if self.__dict__.get("_used"):
            raise _core.StateError(f"{name}: an object of a Function is called once; make another one")
        self._used = True
        for i, x in enumerate(inputs):
            _core.pointer(f"{name}: input {i}", x, Tensor)
        if any(x.is_symbol for x in inputs):
            raise _core.Unsupported(f"{name} defines its own gradient, which cannot be compiled; do not hybridize this block")
        recording = lib.sl_is_recording()
        with pause(train_mode=lib.sl_is_training()):
            results = self.forward(*inputs)
        if not recording:
            return results
        # New tensors are recorded: what forward gave, and perhaps saved, must not keep this call alive, nor be an input.
        listed = [y.detach() for y in _list(results, f"{name}.forward")]
        self._record(inputs, listed)
        return tuple(listed) if isinstance(results, (list, tuple)) else listed[0]

    def _record(self, inputs, results):
        handle = ffi.new_handle((self, [type(y) for y in results]))
        _recorded[int(ffi.cast("uintptr_t", handle))] = handle
        of = [ffi.new("sl_tensor *[]", [t._p for t in tensors]) for tensors in (inputs, results)]
        check(lib.sl_custom_gradient_at(here(), of[0], len(inputs), of[1], len(results), (lib.slpy_backward, handle, lib.slpy_forget, bool(self.differentiable))))
