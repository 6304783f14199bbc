#!/usr/bin/env python3
"""Makes tests/zoo.def with MXNet 1.9.1 (pip install mxnet==1.9.1 numpy==1.23.5): what the networks of Gluon's model zoo
say to an image, with parameters that are functions of their names and places, which tests/test_zoo.c computes, too.

    make-zoo.py NETWORK... >tests/zoo.def
"""
import sys

import mxnet as mx
import numpy as np
from mxnet.gluon.model_zoo import vision

CLASSES = 10
RANGES = {"bias": (-0.1, 0.1), "gamma": (0.8, 1.2), "beta": (-0.2, 0.2), "running_mean": (-0.2, 0.2),
          "running_var": (0.8, 1.2)}


def fnv1a(name):
    h = 2166136261
    for byte in name.encode():
        h = (h ^ byte) * 16777619 % 2**32
    return h


def values(name, shape, low, high):
    """Numbers that look random: the finaliser of MurmurHash3 of name and place."""
    h = np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(2654435761) ^ np.uint32(fnv1a(name))
    h ^= h >> 16
    h *= np.uint32(0x85ebca6b)
    h ^= h >> 13
    h *= np.uint32(0xc2b2ae35)
    h ^= h >> 16
    return (low + (high - low) * (h / 2.0**32)).astype(np.float32).reshape(shape)


def parameter(name, shape):
    low, high = RANGES.get(name.split(".")[-1], (0, 0))
    if name.endswith(".weight"):
        high = (6 / np.prod(shape[1:])) ** 0.5
        low = -high
    return values(name, shape, low, high)


def row(name):
    net = vision.get_model(name, classes=CLASSES)
    net.initialize()
    net.hybridize()
    size = 299 if name.startswith("inception") else 224
    x = mx.nd.array(values("data", (1, 3, size, size), -1, 1))
    net(x)
    params = net._collect_params_with_prefix()
    for path, p in params.items():
        if path.endswith("gamma") and p.grad_req == "null":
            continue  # it stays 1
        p.set_data(mx.nd.array(parameter(path, p.shape)))
    y = net(x).asnumpy()[0]
    total = sum(int(np.prod(p.shape)) for p in params.values())
    print(f'ZOO("{name}", {total}, ' + ", ".join(f"{v:.8e}" for v in y) + ")", flush=True)


print("/* Made by tests/data/make-zoo.py: network, elements of all parameters, scores. */")
for network in sys.argv[1:]:
    row(network)
