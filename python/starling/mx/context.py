"""Contexts: mx.cpu(i) is CPU team i, or of that name on another team if there are fewer; mx.gpu(i) a GPU."""
import threading

from .._core import wrong
from .._tensor import Device, device_count


class _Contexts(type):
    """The class of Context: default_ctx is its attribute, which changes."""

    @property
    def default_ctx(cls):
        """The context of new arrays."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx):
        cls._current.stack = [known(ctx)]


class Context(metaclass=_Contexts):
    """A device with MXNet's name; as a context manager, the device of new arrays."""

    _current = threading.local()
    devtype2str = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}  # MXNet's numbers
    devstr2type = {name: number for number, name in devtype2str.items()}

    def __init__(self, device_type, device_id=0):
        if isinstance(device_type, Context):
            device_type, device_id = device_type.device_type, device_type.device_id
        if device_type not in ("cpu", "gpu", "cpu_pinned", "cpu_shared"):
            raise ValueError(f"{device_type!r} is not a device type; these are cpu and gpu")
        self.device_type = "gpu" if device_type == "gpu" else "cpu"
        if not hasattr(device_id, "__index__") or device_id < 0:
            raise ValueError(f"{device_id!r} is not a device number")
        self.device_id = int(device_id)

    @property
    def device_typeid(self):
        """The number of the device's type in MXNet."""
        return self.devstr2type[self.device_type]

    @property
    def device(self):
        """The engine's device: every number is a CPU, as in MXNet, also where there are fewer teams of cores."""
        if self.device_type == "cpu" and self.device_id and self.device_id >= device_count("cpu"):
            return Device.named(self.device_id)
        return Device(self.device_type, self.device_id)

    def __eq__(self, other):
        return isinstance(other, Context) and (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self):
        return hash((self.device_type, self.device_id))

    def __repr__(self):
        return f"{self.device_type}({self.device_id})"

    def __enter__(self):
        stack = self._current.__dict__.setdefault("stack", [])
        stack.append(self)
        return self

    def __exit__(self, *exception):
        self._current.stack.pop()

    def empty_cache(self):
        """No effect: the engine keeps memory, within bounds."""


def known(ctx, name="ctx"):
    """A context that was given, or the current one."""
    if ctx is not None and not isinstance(ctx, Context):
        raise wrong(name, ctx, "a context such as mx.cpu()")
    return ctx or current_context()


def current_context():
    """The context of new arrays."""
    stack = getattr(Context._current, "stack", None)
    return stack[-1] if stack else Context("cpu", 0)


def cpu(device_id=0):
    """The CPU, or the team of cores of that number."""
    return Context("cpu", device_id)


def cpu_pinned(device_id=0):
    """The CPU: the engine manages memory for transfers."""
    return Context("cpu_pinned", device_id)


def gpu(device_id=0):
    """The GPU of that number."""
    return Context("gpu", device_id)


def num_gpus():
    """The number of GPUs."""
    return device_count("gpu")


def context_of(device):
    """The context of an engine's device."""
    return Context("gpu" if device.kind == "gpu" else "cpu", max(device.number, 0))
