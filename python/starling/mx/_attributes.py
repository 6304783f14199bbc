"""Attributes of symbols: texts by their names, from attr=, from options such as lr_mult, and from mx.AttrScope around the call."""
import ast
import threading
import weakref

from .unsupported import not_here

HIDDEN = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")  # in MXNet also as __lr_mult__, …
_of: dict = {}  # by the id of a symbol: (a weak reference to it, its attributes)
initialisers: dict = {}  # by a variable's name: the initialiser that it was made with, or None; the latest program's
_scopes = threading.local()


class Scoped(type):
    """The class of scopes: current is its attribute, the scope of this thread."""

    @property
    def current(cls):
        """The innermost scope of this thread."""
        found = _scopes.__dict__.get(cls.__name__)
        if found is None:
            found = _scopes.__dict__[cls.__name__] = cls()
        return found

    @current.setter
    def current(cls, scope):
        _scopes.__dict__[cls.__name__] = scope

    def __setattr__(cls, name, value):
        if not hasattr(cls, name):
            raise not_here(f"{cls.__name__}.{name}", "what help() lists")
        super().__setattr__(name, value)


class AttrScope(metaclass=Scoped):
    """Symbols that are made inside have these attributes.  They have no effect on where operations run: contexts determine that."""

    def __init__(self, **attributes):
        if not all(isinstance(value, str) for value in attributes.values()):
            raise ValueError("Attributes need to be string")
        self._attr = attributes

    def get(self, attributes):
        """These attributes with the given ones."""
        return {**self._attr, **(attributes or {})}

    def __enter__(self):
        self._before = AttrScope.current
        self._attr = {**self._before._attr, **self._attr}
        AttrScope.current = self
        return self

    def __exit__(self, *exception):
        AttrScope.current = self._before


def given(attr, options=None):
    """The attributes of a symbol that is made now."""
    if attr is not None and not all(isinstance(v, str) for v in attr.values()):
        raise ValueError("Attributes need to be string")
    found = {**AttrScope.current._attr, **(attr or {}), **{k: str(v) for k, v in (options or {}).items() if v is not None}}
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


def partial_shape(symbol):
    """The shape that a variable was made with, if lengths of it are unknown; else None."""
    text = of(symbol).get("__shape__")
    return text and ast.literal_eval(text)
