"""mx.init: initialisers by MXNet's names."""
from .. import init as _init
from .missing import missing, not_here


def Normal(sigma=0.01):
    """Normal numbers with standard deviation sigma."""
    return _init.normal(sigma)


def Uniform(scale=0.07):
    """Uniform numbers between -scale and scale."""
    return _init.uniform(scale)


def Constant(value):
    """Every element is value."""
    return _init.constant(value)


def Zero():
    """Every element is 0."""
    return _init.zeros()


def One():
    """Every element is 1."""
    return _init.ones()


def Xavier(rnd_type="uniform", factor_type="avg", magnitude=3):
    """Glorot and Bengio's."""
    return _init.xavier(magnitude, fan=factor_type, gaussian=rnd_type == "gaussian")


def MSRAPrelu(factor_type="avg", slope=0.25):
    """He's, for parametric ReLUs: normal numbers with deviation sqrt(2 / (1 + slope²) / fan)."""
    return _init.xavier(2.0 / (1 + slope**2), fan=factor_type, gaussian=True)


_names = {"normal": Normal, "uniform": Uniform, "zeros": Zero, "zero": Zero, "ones": One, "one": One, "xavier": Xavier}


def named(value):
    """An initialiser given by its name or itself; None is the layer's own."""
    if isinstance(value, str):
        if value not in _names:
            raise not_here(f"initializer {value!r}", ", ".join(sorted(_names)))
        return _names[value]()
    return value


__getattr__ = missing("mx.init")
