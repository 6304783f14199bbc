"""The modules under their full names in MXNet, and the refusal of modules that are missing, in import statements, too."""
import importlib.abc
import sys

from .unsupported import NotImported, not_here


class _Refusing(importlib.abc.MetaPathFinder):
    """The last finder: a module of MXNet that nothing else has found is refused by name."""

    def __init__(self, package):
        self._package = package + "."

    def find_spec(self, name, path=None, target=None):
        """Raises the refusal of a name below the package; None for other names."""
        last = name.rpartition(".")[2]
        if name.startswith(self._package) and not last.startswith("__"):
            raise not_here("mx" + name[len(self._package) - 1 :], kind=NotImported)


def install(package, aliases):
    """Registers modules by (their name after the package's, the module); every module becomes a package, because Python says of
    names below other modules only that these are not packages."""
    for name, module in aliases:
        sys.modules[f"{package}.{name}"] = module
    for name, module in list(sys.modules.items()):
        if name.startswith(package + ".") and not hasattr(module, "__path__"):
            module.__path__ = []
    sys.meta_path.append(_Refusing(package))
