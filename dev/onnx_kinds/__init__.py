"""Models of one operator each, for dev/onnx-fuzz: KINDS has functions that draw one."""
from . import elements, layers, places, rarer
from .model import Model

KINDS = elements.KINDS + places.KINDS + layers.KINDS + rarer.KINDS
__all__ = ["KINDS", "Model"]
