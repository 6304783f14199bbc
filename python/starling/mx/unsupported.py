"""Names of MXNet that this package lacks: the exception, and replacements."""
import dis
import sys

_instead = {
    "mx.profiler": "STARPU_FXT_TRACE=1 and sl-trace",
}


class NotHere(NotImplementedError, AttributeError):
    """A name of MXNet that this package lacks."""


class NotImported(NotImplementedError, ImportError):
    """The same in an import statement, which hides an AttributeError."""


def not_here(name, instead=None, kind=NotHere):
    """The exception for a name."""
    instead = instead or _instead.get(name, "what starling itself has: help(starling)")
    return kind(f"{name} is not in Starling; use {instead}")


_IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def missing(module):
    """A module's __getattr__."""

    def look(name):
        if name.startswith("__"):
            raise AttributeError(name)
        caller = sys._getframe(1)
        imported = caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == _IMPORT_FROM
        raise not_here(f"{module}.{name}", kind=NotImported if imported else NotHere)

    return look


class Space(type):
    """The metaclass of classes with a module's functions: missing ones are refused by name."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise not_here(f"mx.np.{cls.__name__}.{name}")
