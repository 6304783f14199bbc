"""mx.model: programs of symbols with parameters in files."""
from . import nd
from .module import BatchEndParam
from .symbol import load as _load_symbol
from .unsupported import missing

__all__ = ["BatchEndParam", "load_checkpoint", "load_params", "save_checkpoint"]


def split_params(fname):
    """(parameters, running statistics) in a file, by name."""
    found = {"arg": {}, "aux": {}}
    for name, array in nd.load(fname).items():
        kind, _, rest = name.partition(":")
        if kind in found:
            found[kind][rest] = array
    return found["arg"], found["aux"]


def save_checkpoint(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast=True):
    """Writes PREFIX-symbol.json, unless symbol is None, and PREFIX-EPOCH.params."""
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json")
    nd.save(f"{prefix}-{epoch:04d}.params", {**{f"arg:{n}": a for n, a in arg_params.items()}, **{f"aux:{n}": a for n, a in aux_params.items()}})


def load_params(prefix, epoch):
    """(parameters, running statistics) from PREFIX-EPOCH.params."""
    return split_params(f"{prefix}-{epoch:04d}.params")


def load_checkpoint(prefix, epoch):
    """(the program, parameters, running statistics) from the files of save_checkpoint."""
    return (_load_symbol(f"{prefix}-symbol.json"), *load_params(prefix, epoch))


__getattr__ = missing("mx.model")
