#!/usr/bin/env python3
"""Makes the files of this folder with MXNet 1.9.1 (pip install mxnet==1.9.1 numpy==1.23.5): three networks of Gluon,
narrow so that they stay small, each with an input and what MXNet says to it.

    make-mxnet.py FOLDER
"""
import os
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def mlp():
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(24, activation="relu"), nn.Dense(16, activation="relu"), nn.Dense(2))
    return net, (3, 32)


def lenet():
    net = nn.HybridSequential(prefix="lenet_")
    with net.name_scope():
        net.add(nn.Conv2D(channels=4, kernel_size=5, padding=2, activation="sigmoid"),
                nn.AvgPool2D(pool_size=2, strides=2),
                nn.Conv2D(channels=6, kernel_size=5, activation="sigmoid"),
                nn.AvgPool2D(pool_size=2, strides=2),
                nn.Dense(30, activation="sigmoid"), nn.Dense(20, activation="sigmoid"), nn.Dense(10))
    return net, (2, 1, 28, 28)


class Residual(nn.HybridBlock):
    def __init__(self, channels, use_1x1conv=False, strides=1, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.conv1 = nn.Conv2D(channels, kernel_size=3, padding=1, strides=strides)
            self.conv2 = nn.Conv2D(channels, kernel_size=3, padding=1)
            self.conv3 = nn.Conv2D(channels, kernel_size=1, strides=strides) if use_1x1conv else None
            self.bn1 = nn.BatchNorm()
            self.bn2 = nn.BatchNorm()

    def hybrid_forward(self, F, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.conv3:
            x = self.conv3(x)
        return F.relu(y + x)


def resnet18(width=2, classes=10):
    """The tutorial's ResNet-18; there, width is 64."""
    net = nn.HybridSequential(prefix="resnet18_")
    with net.name_scope():
        net.add(nn.Conv2D(width, kernel_size=3, strides=1, padding=1), nn.BatchNorm(), nn.Activation("relu"))
        for stage in range(4):
            block = nn.HybridSequential(prefix="stage%d_" % stage)
            with block.name_scope():
                for i in range(2):
                    first = i == 0 and stage > 0
                    block.add(Residual(width << stage, use_1x1conv=first, strides=2 if first else 1))
            net.add(block)
        net.add(nn.GlobalAvgPool2D(), nn.Dense(classes))
    return net, (2, 3, 16, 16)


class Mixed(nn.HybridBlock):
    """Operators that the others lack, in all their spellings."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.conv = nn.Conv2D(6, kernel_size=(3, 2), strides=(2, 1), padding=(1, 0), groups=3, dilation=(1, 2),
                                  use_bias=False)
            self.norm = nn.LayerNorm()
            self.bn = nn.BatchNorm(scale=False, epsilon=1e-3)
            self.prelu = nn.LeakyReLU(0.1)
            self.gelu = nn.GELU()
            self.drop = nn.Dropout(0.3)
            self.dense = nn.Dense(5, flatten=False, use_bias=False, activation="tanh")
            self.words = nn.Embedding(9, 5)

    def hybrid_forward(self, F, x):
        y = self.bn(self.conv(x))
        a = F.Pooling(y, kernel=(3, 3), stride=(2, 2), pool_type="max", pooling_convention="full")
        b = F.Pooling(y, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="avg", count_include_pad=False,
                      pooling_convention="full")
        b = F.slice_axis(F.slice_axis(b, axis=2, begin=0, end=2), axis=3, begin=0, end=-1)
        a = F.slice_axis(F.slice_axis(a, axis=2, begin=0, end=2), axis=3, begin=0, end=None)
        a = F.slice(a, begin=(None, None, 0, 0), end=(None, None, 2, 2))
        b = F.slice(b, begin=(None, None, 0, 0), end=(None, None, 2, 2))
        c = F.concat(self.prelu(a), F.clip(b, -0.4, 0.4), dim=1)
        c = self.norm(F.transpose(F.reshape(c, (0, -1, 4)), axes=(0, 2, 1)))
        c = self.drop(self.gelu(self.dense(c)))
        s = F.softmax(c, axis=-1) + F.log_softmax(c, axis=1) * 0.25
        w = self.words(F.argmax(s, axis=2))
        z = F.broadcast_mul(s, F.expand_dims(F.mean(w, axis=(1,)), axis=1)) - F.square(s) / 3
        z = F.maximum(z, F.minimum(s, 0.1)) ** 2 + F.exp(-F.abs(z)) + F.log(1 + F.sqrt(F.abs(w)))
        z = F.Activation(z, act_type="softrelu") + (2 - F.sum(z, axis=(1, 2), keepdims=True).broadcast_like(z))
        return F.Flatten(F.swapaxes(F.elemwise_add(z, w), 1, 2))


def mixed():
    return Mixed(prefix="mixed_"), (2, 3, 9, 8)


def settle(net, shape):
    """Random parameters and running statistics that are not the trivial ones."""
    net.initialize(mx.init.Xavier(magnitude=2.5), ctx=mx.cpu())
    with autograd.record():
        for _ in range(3):
            net(nd.random.normal(shape=shape))
    for name, p in net.collect_params().items():
        if name.endswith(("bias", "beta", "gamma")) and p.grad_req != "null":
            p.set_data(p.data() + nd.random.uniform(-0.3, 0.3, shape=p.shape))


def export(folder, name, net, shape):
    settle(net, shape)
    x = nd.random.normal(shape=shape)
    net.hybridize()
    y = net(x)
    net.export(os.path.join(folder, name))
    np.save(os.path.join(folder, name + "-x.npy"), x.asnumpy())
    np.save(os.path.join(folder, name + "-y.npy"), y.asnumpy())


def module(folder):
    """An MLP as MXNet's older interface writes it: with a softmax that has a label."""
    data = mx.sym.var("data")
    h = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=6, name="fc1"), act_type="tanh", name="tanh1")
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(h, num_hidden=4, name="fc2"), name="softmax")
    net = mx.mod.Module(out)
    net.bind(data_shapes=[("data", (3, 5))], label_shapes=[("softmax_label", (3,))])
    net.init_params(mx.init.Xavier())
    x = nd.random.normal(shape=(3, 5))
    net.forward(mx.io.DataBatch([x]), is_train=False)
    net.save_checkpoint(os.path.join(folder, "module"), 0)
    np.save(os.path.join(folder, "module-x.npy"), x.asnumpy())
    np.save(os.path.join(folder, "module-y.npy"), net.get_outputs()[0].asnumpy())


def main():
    folder = sys.argv[1]
    mx.random.seed(7)
    for make in mlp, lenet, resnet18, mixed:
        export(folder, make.__name__, *make())
    module(folder)
    nd.save(os.path.join(folder, "types.params"),
            {"f32": nd.array([1.5, -2]), "f64": nd.array([1 / 3], dtype="float64"),
             "i32": nd.array([[1, -2], [3, 4]], dtype="int32"), "u8": nd.array([0, 255], dtype="uint8"),
             "f16": nd.array([0.5, 65504, 6e-8], dtype="float16"), "i64": nd.array([-5, 7], dtype="int64"),
             "i8": nd.array([-128], dtype="int8")})


if __name__ == "__main__":
    main()
