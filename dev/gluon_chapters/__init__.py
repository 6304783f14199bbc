"""The cells of gluon-chapters.py, in the order of the book's chapters."""
from . import arrays, perceptrons, images, sequences, training, numpy_arrays  # noqa: F401
