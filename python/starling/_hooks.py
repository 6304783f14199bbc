"""Functions that are called after a forward pass of a block."""
import weakref

from . import _core
from ._core import NULL, check, ffi, here, lib
from ._tensor import Callback, borrow


class Hook:
    """A registered function; remove() removes it."""

    def __init__(self, hooks, function):
        self._hooks, self._function = hooks, function

    def remove(self):
        """Does not call the function any more."""
        hooks = self._hooks
        if self in hooks.list:
            hooks.list.remove(self)
            hooks.settle()


class _Call(Callback):
    """A hook, which cannot fail in C: the call of the network raises its exception."""

    def failed(self, error):
        _core.callbacks.failure = _core.callbacks.hooked = error


def recover():
    """After a forward pass that gave a result though Python code failed in it: raises what a hook raised."""
    _core.callbacks.failure = None  # the library has recovered: it fell back to imperative calls
    error = _core.callbacks.__dict__.pop("hooked", None)
    if error is not None:
        raise error


class _Hooks:
    """All hooks of a block, in their order, behind the one function that C calls."""

    def __init__(self, block):
        self.list, self._block_p, self._c = [], block._p, None
        of = weakref.ref(block)

        @ffi.callback("void(*)(sl_block *, sl_tensor *const *, int, sl_tensor *const *, int, void *)")
        def call(c_block, inputs, nin, outputs, nout, context):
            with _Call():
                block = of()
                if block is None:
                    return
                given = tuple(borrow(inputs[i], block._arrays_are) for i in range(nin))
                results = [borrow(outputs[i], block._arrays_are) for i in range(nout)]
                for hook in list(self.list):
                    hook._function(block, given, results[0] if nout == 1 else tuple(results))

        self._call = call

    def settle(self):
        """Tells C whether there is a function to call."""
        wanted = self._call if self.list else None
        if wanted is not self._c:
            check(lib.sl_block_hook_at(here(), self._block_p, NULL if wanted is None else wanted, NULL))
            self._c = wanted


def register(block, function):
    """Adds a function to the hooks of a block."""
    if not callable(function):
        raise _core.wrong("hook", function, "a function of the block, its inputs and its results")
    hooks = block.__dict__.get("_hooks")
    if hooks is None:
        hooks = _Hooks(block)
        object.__setattr__(block, "_hooks", hooks)
    hook = Hook(hooks, function)
    hooks.list.append(hook)
    hooks.settle()
    return hook
