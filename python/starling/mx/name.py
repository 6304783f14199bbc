"""mx.name and mx.AttrScope: the names of symbols whose calls give none, by a number for each kind, and scopes of such names."""
from ._attributes import AttrScope, Scoped
from .unsupported import missing


class NameManager(metaclass=Scoped):
    """Names by a number for each kind."""

    def __init__(self):
        self._counter = {}

    def get(self, name, hint):
        """The name itself, or hint and a number."""
        if name:
            return name
        self._counter[hint] = self._counter.get(hint, -1) + 1
        return f"{hint}{self._counter[hint]}"

    def __enter__(self):
        self._before = NameManager.current
        NameManager.current = self
        return self

    def __exit__(self, *exception):
        NameManager.current = self._before


class Prefix(NameManager):
    """Names with something before them."""

    def __init__(self, prefix):
        super().__init__()
        self._prefix = prefix

    def get(self, name, hint):
        """The name with the prefix."""
        return self._prefix + super().get(name, hint)


def current():
    """The manager of names of this thread."""
    return NameManager.current


__getattr__ = missing("mx.name")
