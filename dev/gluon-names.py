"""Networks as the tutorial has them, exported under MXNet 1.9.1 and under Starling by gluon-check: gluon-names.py mxnet|starling FILE.

FILE gets the names of the nodes and parameters in the files that they wrote, in their order.
"""
import json
import os
import sys
import tempfile

import numpy

if sys.argv[1] == "mxnet":
    from mxnet import nd
    from mxnet.gluon import nn
else:
    from starling.mx import nd
    from starling.mx.gluon import nn


def perceptron():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    return net, (1, 512)


def within_a_scope():
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(16, activation="sigmoid"), nn.Dense(2))
    return net, (1, 8)


def lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, kernel_size=5, activation="sigmoid"), nn.MaxPool2D(pool_size=2, strides=2), nn.Conv2D(16, kernel_size=5),
            nn.Activation("relu"), nn.AvgPool2D(2, 2), nn.Flatten(), nn.Dense(10), nn.Activation("tanh"))  # fmt: skip
    return net, (1, 1, 28, 28)


def normalised():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Conv2D(4, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Dense(3, use_bias=False))
    return net, (1, 3, 8, 8)


class HybridNet(nn.HybridBlock):
    def __init__(self, **kwargs):
        super(HybridNet, self).__init__(**kwargs)
        with self.name_scope():
            self.hidden = nn.Dense(10)
            self.output = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.output(F.relu(self.hidden(F.relu(x))))


class Residual(nn.HybridBlock):
    def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
        super(Residual, self).__init__(**kwargs)
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

    def hybrid_forward(self, F, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.conv3(x) if self.conv3 else x))


def residual():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, 1, 1), nn.BatchNorm(), nn.Activation("relu"), Residual(8), Residual(16, True, 2), nn.GlobalAvgPool2D(), nn.Dense(10))
    return net, (1, 3, 16, 16)


class Functions(nn.HybridBlock):
    def __init__(self, **kwargs):
        super(Functions, self).__init__(**kwargs)
        with self.name_scope():
            self.w = self.params.get("weight", shape=(4, 4))

    def hybrid_forward(self, F, x, w):
        return F.softmax(F.dot(F.tanh(x) * 2 + 1, w) / 3) - F.sigmoid(x) * F.tanh(x)


def functions():
    return Functions(), (2, 4)


results = {}
for make in (perceptron, within_a_scope, lenet, normalised, lambda: (HybridNet(), (1, 4)), residual, functions):
    net, shape = make()
    net.initialize()
    net.hybridize()
    net(nd.ones(shape))
    with tempfile.TemporaryDirectory() as folder:
        net.export(os.path.join(folder, "net"))
        with open(os.path.join(folder, "net-symbol.json")) as file:
            nodes = json.load(file)["nodes"]
        parameters = sorted(nd.load(os.path.join(folder, "net-0000.params")))
    name = "names: " + (type(net).__name__ if make.__name__ == "<lambda>" else make.__name__).replace("_", " ")
    results[name + " 0"] = numpy.array([n["name"] for n in nodes])
    results[name + " 1"] = numpy.array(parameters)
    results[name + " 2"] = numpy.array(list(net.collect_params().keys()))
numpy.savez(sys.argv[2], **results)
