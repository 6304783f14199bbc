"""mx.name and mx.AttrScope: scopes of names, which change nothing here: the engine names operations and blocks itself."""
from ._attributes import AttrScope
from .unsupported import missing


class NameManager:
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
        return self

    def __exit__(self, *exception):
        pass


class Prefix(NameManager):
    """Names with something before them."""

    def __init__(self, prefix):
        super().__init__()
        self._prefix = prefix

    def get(self, name, hint):
        """The name with the prefix."""
        return self._prefix + super().get(name, hint)


__getattr__ = missing("mx.name")
