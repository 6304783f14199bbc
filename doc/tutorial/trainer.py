# %% [markdown]
# # Several devices, with Trainer
#
# `initialize(ctx=[...])` puts the parameters on several devices; `Trainer` adds up their gradients and updates them.  The
# network, here a narrow ResNet-18, does not change.
#
# The two devices are GPUs where there are two, else teams of CPU cores (`STARPU_NCPU=2`).

# %%
import time

import numpy as np
from starling import mx
from starling.mx import autograd, gluon, init, nd
from starling.mx.gluon import loss as gloss
from starling.mx.gluon import nn
from starling.mx.gluon import utils as gutils

ctx = [mx.gpu(0), mx.gpu(1)] if mx.num_gpus() >= 2 else [mx.cpu(0), mx.cpu(1)]


# %%
class Residual(nn.Block):
    def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides) if use_1x1conv else None
        self.bn1 = nn.BatchNorm()
        self.bn2 = nn.BatchNorm()

    def forward(self, X):
        Y = nd.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        if self.conv3:
            X = self.conv3(X)
        return nd.relu(Y + X)


def resnet18(num_classes, width=8):
    def stage(num_channels, num_residuals, first=False):
        blk = nn.Sequential()
        for i in range(num_residuals):
            if i == 0 and not first:
                blk.add(Residual(num_channels, use_1x1conv=True, strides=2))
            else:
                blk.add(Residual(num_channels))
        return blk

    net = nn.Sequential()
    net.add(nn.Conv2D(width, kernel_size=3, strides=1, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(stage(width, 2, first=True), stage(2 * width, 2), stage(4 * width, 2), stage(8 * width, 2))
    net.add(nn.GlobalAvgPool2D(), nn.Dense(num_classes))
    return net


# %%
net = resnet18(10)
net.initialize(init=init.Normal(sigma=0.01), ctx=ctx)
x = nd.random.uniform(shape=(4, 1, 28, 28))
parts = gutils.split_and_load(x, ctx)
print(net(parts[0]), net(parts[1]))

# %% [markdown]
# The parameters are on the contexts of `ctx` only: reading them on others is an error.

# %%
weight = net[0].params.get("weight")
try:
    weight.data(mx.gpu(7))
except RuntimeError as error:
    print(error)
print(weight.data(ctx[0])[0], weight.data(ctx[1])[0])


# %% [markdown]
# ## Training
#
# A loop submits the forward and backward passes of the parts; `step` does not wait either.  The loop keeps the losses and
# reads them at the end, so that it never waits.  The batch is so small that a second device may not gain time.


# %%
def batches(n, batch_size):
    rng = np.random.default_rng(0)
    for _ in range(n):
        labels = rng.integers(0, 10, batch_size)
        images = rng.random((batch_size, 1, 28, 28)) * 0.1 + np.eye(28)[labels * 2][:, None, :, None]
        yield nd.array(images), nd.array(labels)


def train(ctx, batch_size=16, lr=0.05, steps=8):
    net.initialize(init=init.Normal(sigma=0.1), ctx=ctx, force_reinit=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr})
    loss = gloss.SoftmaxCrossEntropyLoss()
    start, history = time.time(), []
    for X, y in batches(steps, batch_size):
        Xs, ys = gutils.split_and_load(X, ctx), gutils.split_and_load(y, ctx)
        with autograd.record():
            losses = [loss(net(X), y) for X, y in zip(Xs, ys)]
        for l in losses:
            l.backward()
        trainer.step(batch_size)
        history.append(losses)
    nd.waitall()
    means = [sum(l.sum().asscalar() for l in losses) / batch_size for losses in history]
    print(f"{len(ctx)} devices: {time.time() - start:.2f} s, loss {means[0]:.3f} at first, {means[-1]:.3f} at last")
    return means


for devices in (ctx[:1], ctx):
    means = train(devices)
    assert means[-1] < means[0]
