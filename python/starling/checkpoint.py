"""Checkpoints: everything that a run needs to continue as if it had never stopped, in one file (doc/checkpoints.md).

    run = {"trainer": trainer, "loader": loader, "metrics": [loss, accuracy]}
    checkpoint.save("run.safetensors", **run, epoch=epoch, step=step)
    ...
    at = checkpoint.load("run.safetensors", **run)
    for epoch in range(at["epoch"], epochs): ...

The parts that can be named are net (without it, the trainer's network), trainer, loader (of a data set), metrics, tensors (a
dictionary of others by name), and epoch, step, note.  Random numbers are always part of it.
"""
from . import _core
from ._blocks import Block
from ._core import NULL, check, ffi, here, lib, pointer, raise_error, text_of, wrong
from ._tensor import Tensor, wait_interruptibly
from ._training import Metric, Trainer
from .data import Loader

__all__ = ["Job", "begin", "load", "note", "save"]


class _Parts:
    """The C structure of the saved parts, and the objects that it points to."""

    def __init__(self, net=None, trainer=None, loader=None, metrics=(), tensors=None, epoch=0, step=0, note=None, keep=0):
        if isinstance(metrics, Metric):
            metrics = [metrics]
        tensors = dict(tensors or {})
        self.epoch, self.step = ffi.new("int64_t *", epoch), ffi.new("int64_t *", step)
        self._names = [ffi.new("char[]", name.encode()) for name in tensors]
        self._held = {
            "metrics": ffi.new("sl_metric *[]", [pointer("metrics", m, Metric) for m in metrics]),
            "names": ffi.new("char *[]", self._names),
            "tensors": ffi.new("sl_tensor *[]", [pointer(f"tensors[{n!r}]", t, Tensor) for n, t in tensors.items()]),
            "note": NULL if note is None else ffi.new("char[]", text_of(note, "note")),
        }
        self._owners = (net, trainer, loader, metrics, tensors)
        self.c = _core.options(
            "sl_checkpoint_opts",
            net=NULL if net is None else pointer("net", net, Block),
            trainer=NULL if trainer is None else pointer("trainer", trainer, Trainer),
            loader=NULL if loader is None else _loader(loader),
            nmetrics=len(metrics), ntensors=len(tensors), epoch=self.epoch, step=self.step, keep=keep, **self._held,
        )  # fmt: skip


def _loader(loader):
    if not isinstance(loader, Loader):
        raise wrong("loader", loader, "Loader")
    if not loader._p:
        raise _core.InvalidArgument("a loader of arrays has no position that a checkpoint keeps; give it starling.data.arrays(x, y)")
    return loader._p


def save(path, *, keep=0, **parts):
    """Writes a checkpoint; it is on the disk when the call returns.  With keep=n, path is a folder that keeps the newest n."""
    made = _Parts(keep=keep, **parts)
    wait_interruptibly()
    check(lib.sl_checkpoint_save_at(here(), text_of(path, "path"), made.c))


class Job(_core.Owner):
    """A checkpoint that is being written while the run continues; begin makes it."""

    def __init__(self, p, made):
        self._p, self._made = p, made
        if not p:
            raise_error()

    @property
    def written(self):
        """Whether it is on the disk, or has failed, so that end() does not wait."""
        with _core.sharing:  # not while another thread ends it
            p = self.__dict__.get("_p")
            return p is None or bool(lib.sl_checkpoint_written(p))

    def end(self):
        """Waits until it is written; raises the error if it could not be."""
        with _core.sharing:
            p = self.__dict__.pop("_p", None)
        if p is not None:
            check(lib.sl_checkpoint_end_at(here(), p))

    def __del__(self, end=lib.sl_checkpoint_end_at, clear=lib.sl_error_clear):
        p = self.__dict__.pop("_p", None)
        if p and end(NULL, p):
            clear()


def begin(path, *, keep=0, **parts):
    """Starts to write a checkpoint of the run's current state, and returns a Job at once: call its end()."""
    made = _Parts(keep=keep, **parts)
    return Job(lib.sl_checkpoint_begin_at(here(), text_of(path, "path"), made.c), made)


def load(path, *, net=None, trainer=None, loader=None, metrics=(), tensors=None):
    """Restores these parts from a checkpoint, or from the newest undamaged one of a folder.

    Returns a dictionary of epoch, step, note and path.  If a part does not match the checkpoint, the error lists the
    differences, and nothing has changed.
    """
    made = _Parts(net=net, trainer=trainer, loader=loader, metrics=metrics, tensors=tensors)
    opened = lib.sl_checkpoint_open_at(here(), text_of(path, "path"))
    if not opened:
        raise_error()
    try:
        check(lib.sl_checkpoint_restore_at(here(), opened, made.c))
        if loader is not None:
            loader._go_on()
        return {"epoch": made.epoch[0], "step": made.step[0], "note": _text(lib.sl_checkpoint_note(opened)), "path": _text(lib.sl_checkpoint_path(opened))}
    finally:
        lib.sl_checkpoint_close(opened)


def note(path):
    """The note of a checkpoint, or of the newest undamaged one of a folder; None without one."""
    opened = lib.sl_checkpoint_open_at(here(), text_of(path, "path"))
    if not opened:
        raise_error()
    try:
        return _text(lib.sl_checkpoint_note(opened))
    finally:
        lib.sl_checkpoint_close(opened)


def _text(p):
    return ffi.string(p).decode() if p else None
