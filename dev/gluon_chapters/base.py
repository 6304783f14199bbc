"""What the cells of gluon-chapters.py start from: the names of MXNet, or of Starling, and the list of cells."""
import json
import math
import os
import sys
import tempfile
import time

import numpy

if sys.argv[1] == "mxnet":
    import mxnet as mx
    from mxnet import autograd, gluon, init, lr_scheduler, nd, np, npx
    from mxnet.gluon import data as gdata
    from mxnet.gluon import loss as gloss
    from mxnet.gluon import nn
    from mxnet.gluon import utils as gutils
else:
    from starling import mx
    from starling.mx import autograd, gluon, init, lr_scheduler, nd, np, npx
    from starling.mx.gluon import data as gdata
    from starling.mx.gluon import loss as gloss
    from starling.mx.gluon import nn
    from starling.mx.gluon import utils as gutils

CELLS = []
source = numpy.random.RandomState(0)


def cell(function):
    CELLS.append(function)
    return function


def random(*shape, scale=1.0):
    return nd.array(source.standard_normal(shape) * scale)


def classes(n, most):
    return nd.array(source.randint(0, most, n))


def equal_weights(net, *inputs):
    """Gives the parameters values that depend on their order and shapes alone."""
    net(*inputs)
    values = numpy.random.RandomState(1)
    for p in net.collect_params().values():
        if "running" not in p.name:
            p.set_data(nd.array(values.standard_normal(p.shape) * 0.2))
