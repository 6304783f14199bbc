"""Cells as the chapters of a book on deep learning have them, run under MXNet 1.9.1 and under Starling by gluon-check:
gluon-chapters.py mxnet|starling FILE.

Each function is a cell: it starts from values that NumPy makes and returns what it computed.  FILE gets the results, and of cells
that fail the exception.
"""
import sys

import numpy

import gluon_chapters  # noqa: F401 (fills CELLS)
from gluon_chapters.base import CELLS, source


def flat(value):
    """The numbers and words in a result."""
    if value is None:
        return []
    if hasattr(value, "asnumpy"):
        return [value.asnumpy()]
    if isinstance(value, (numpy.ndarray, bool, int, float, str, numpy.generic)):
        return [numpy.asarray(value)]
    return [a for v in value for a in flat(v)]


def main():
    results, only = {}, sys.argv[3:]
    for number, function in enumerate(CELLS):
        if only and function.__name__ not in only:
            continue
        source.seed(number)
        name = function.__name__.replace("_", " ")
        try:
            for i, a in enumerate(flat(function())):
                results["%s %d" % (name, i)] = a
        except Exception as error:
            if only:
                raise
            results["%s !" % name] = numpy.array("%s: %s" % (type(error).__name__, error))
    numpy.savez(sys.argv[2], **results)


main()
