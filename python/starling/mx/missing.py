"""What MXNet has and this package does not."""

_instead = {
    "mx.mod": "gluon.Trainer with autograd",
    "mx.module": "gluon.Trainer with autograd",
    "mx.kv": "gluon.Trainer, which adds gradients over devices by itself",
    "mx.profiler": "STARPU_FXT_TRACE=1 and sl-trace",
    "mx.io": "gluon.data.DataLoader",
    "mx.image": "NumPy and Pillow before gluon.data.DataLoader",
}


class NotHere(NotImplementedError, AttributeError):
    """A name of MXNet that this package lacks."""


def not_here(name, instead=None):
    """The exception for a name."""
    instead = instead or _instead.get(name, "what starling itself has: help(starling)")
    return NotHere(f"{name} is not in Starling; use {instead}")


def missing(module):
    """A module's __getattr__."""

    def look(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_here(f"{module}.{name}")

    return look
