"""Attributes of symbols: texts by their names, from attr=, from options such as lr_mult, and from mx.AttrScope around the call."""
import threading
import weakref

HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")  # in MXNet also as __lr_mult__, …
_of: dict = {}  # by the id of a symbol: (a weak reference to it, its attributes)
initialisers: dict = {}  # by a variable's name: the initialiser that it was made with, or None; the latest program's
_scopes = threading.local()


class AttrScope:
    """Symbols that are made inside have these attributes.  They have no effect on where operations run: contexts determine that."""

    def __init__(self, **attributes):
        if not all(isinstance(value, str) for value in attributes.values()):
            raise ValueError("Attributes need to be string")
        self._attributes = attributes

    def get(self, attributes):
        """These attributes with the given ones."""
        return {**self._attributes, **(attributes or {})}

    def __enter__(self):
        stack = _scopes.__dict__.setdefault("stack", [])
        self._before = {**(stack[-1] if stack else {})}
        stack.append({**self._before, **self._attributes})
        return self

    def __exit__(self, *exception):
        _scopes.stack.pop()


def given(attr, options=None):
    """The attributes of a symbol that is made now."""
    if attr is not None and not all(isinstance(v, str) for v in attr.values()):
        raise ValueError("Attributes need to be string")
    stack = getattr(_scopes, "stack", None)
    found = {**(stack[-1] if stack else {}), **(attr or {}), **{k: str(v) for k, v in (options or {}).items() if v is not None}}
    found.update({f"__{k}__": found[k] for k in HIDDEN if k in found})
    return found


def keep(symbol, attributes):
    """Notes the attributes of a symbol."""
    if attributes:
        key = id(symbol)
        _of[key] = weakref.ref(symbol, lambda _: _of.pop(key, None)), attributes
    return symbol


def of(symbol):
    """The attributes of a symbol."""
    return dict(_of.get(id(symbol), (None, {}))[1])
