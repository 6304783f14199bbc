"""Copies of networks, by copy.deepcopy and pickle: the structure, Python's attributes, and the parameters' values.

A layer in C is made again with the arguments that made it; a block written in Python gets its attributes, without a call of its
__init__.
"""
from . import _core
from ._core import here, lib

# Attributes that belong to this object alone, or are made again.
_OWN = {"_p", "_children", "_parents", "_made", "_made_params", "_inputs", "_results", "_last", "_hybrid", "_freezes", "_recomputed", "_traced_results", "_hooks"}


class _OwnParameter:
    """Stands for a parameter of the block itself, among its attributes."""

    def __init__(self, name):
        self.name = name


def _local_name(block, param):
    """The parameter's name within the block; None if it is another block's."""
    name, before = param.name, block.name + "_"
    return name[len(before) :] if name.startswith(before) else None


def _values(block):
    """The values of the block's own parameters that have values."""
    found = {}
    for param in block.params():
        name = _local_name(block, param)
        if name is not None and param.is_initialized:
            found[name] = param.data().detach()
    return found


def _again_layer(kind, args, options):
    return kind(*args, **options)


def _again_sequential(kind):
    block = kind.__new__(kind)
    block._own(lib.sl_sequential_at(here(), _core.NULL, 0))
    return block


def _again_in_python(kind):
    from ._blocks import Block

    block = kind.__new__(kind)
    Block.__init__(block)
    return block


def reduce(block, Parameter, Sequential):
    """The data from which copy and pickle make another such block; None if that is impossible."""
    kind, own = type(block), block.__dict__
    attributes = {}
    for name, value in own.items():
        if name not in _OWN:
            local = _local_name(block, value) if isinstance(value, Parameter) else None
            attributes[name] = value if local is None else _OwnParameter(local)
    state = {
        "params": own.get("_made_params", {}), "children": [] if kind._is_layer() else list(block._children.items()), "attributes": attributes,
        "values": _values(block), "hybrid": block._hybrid, "freezes": own.get("_freezes", []), "recomputed": own.get("_recomputed", False),
    }  # fmt: skip
    if kind._is_layer():
        return _again_layer, (kind, *own["_made"]), state
    if isinstance(block, Sequential):
        return _again_sequential, (kind,), state
    return (_again_in_python, (kind,), state) if "_made_params" in own else None


def restore(block, state):
    """Gives a new block the data of reduce."""
    for name, (shape, options) in state["params"].items():
        block.param(name, shape, **options)
    for name, child in state["children"]:
        block.add_child(name, child)
    for name, value in state["attributes"].items():
        object.__setattr__(block, name, block.find(value.name) if isinstance(value, _OwnParameter) else value)
    other = [values.dtype for values in state["values"].values() if values.dtype != "float32"]
    if other:
        block.initialize(dtype=other[0])
    for name, values in state["values"].items():
        block.find(name).set(values)
    for pattern, frozen in state["freezes"]:
        (block.freeze if frozen else block.unfreeze)(pattern)
    if state["recomputed"]:
        block.recompute()
    if state["hybrid"] is not None:
        block.hybridize(**state["hybrid"])
