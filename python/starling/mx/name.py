"""mx.name and mx.AttrScope: scopes of names, which change nothing here: the engine names operations and blocks itself."""
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


class AttrScope:
    """Attributes of symbols, without effect: contexts determine the devices of operations."""

    def __init__(self, **attributes):
        if not all(isinstance(value, str) for value in attributes.values()):
            raise ValueError("Attributes need to be string")
        self._attributes = attributes

    def get(self, attributes):
        """These attributes with the given ones."""
        return {**self._attributes, **(attributes or {})}

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass


__getattr__ = missing("mx.name")
