# %% [markdown]
# # Several devices, from scratch
#
# Each device has a copy of the parameters and takes a part of the batch.  Its gradients are those of its part; their sum is the
# gradient of the batch.  With the same sum everywhere, all copies make the same step.  This program writes each of these parts:
# the network, copies of parameters, the sum over devices, the split of a batch, and a training step.
#
# The two devices are GPUs where there are two, else teams of CPU cores (`STARPU_NCPU=2`).

# %%
import numpy as np
from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx.gluon import loss as gloss

ctx = [mx.gpu(0), mx.gpu(1)] if mx.num_gpus() >= 2 else [mx.cpu(0), mx.cpu(1)]

# %% [markdown]
# ## LeNet
#
# The parameters are arrays, the network is a function of them.

# %%
scale = 0.1
params = [
    nd.random.normal(scale=scale, shape=(8, 1, 3, 3)), nd.zeros(shape=8),
    nd.random.normal(scale=scale, shape=(16, 8, 5, 5)), nd.zeros(shape=16),
    nd.random.normal(scale=scale, shape=(256, 32)), nd.zeros(shape=32),
    nd.random.normal(scale=scale, shape=(32, 10)), nd.zeros(shape=10),
]  # fmt: skip


def lenet(X, params):
    h = nd.Convolution(data=X, weight=params[0], bias=params[1], kernel=(3, 3), num_filter=8)
    h = nd.Pooling(data=nd.relu(h), pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h = nd.Convolution(data=h, weight=params[2], bias=params[3], kernel=(5, 5), num_filter=16)
    h = nd.Pooling(data=nd.relu(h), pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h = nd.relu(nd.dot(nd.flatten(h), params[4]) + params[5])
    return nd.dot(h, params[6]) + params[7]


loss = gloss.SoftmaxCrossEntropyLoss()

# %% [markdown]
# ## Copies of the parameters
#
# Each copy on a device has its own gradient.


# %%
def get_params(params, ctx):
    copies = [p.copyto(ctx) for p in params]
    for p in copies:
        p.attach_grad()
    return copies


copies = get_params(params, ctx[0])
print("bias:", copies[1], "its gradient:", copies[1].grad)

# %% [markdown]
# ## Sums over devices
#
# Everything goes to the first device, and the sum from there to all others.


# %%
def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].context)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


data = [nd.ones((1, 2), ctx=c) * (i + 1) for i, c in enumerate(ctx)]
print("before:", data)
allreduce(data)
print("after:", data)
assert all((d.asnumpy() == 3).all() for d in data)


# %% [markdown]
# ## Parts of a batch
#
# Our function, for batches that can be split equally, and Gluon's.


# %%
def split_and_load(data, ctx):
    n = data.shape[0] // len(ctx)
    return [data[i * n : (i + 1) * n].as_in_context(c) for i, c in enumerate(ctx)]


batch = nd.arange(24).reshape((6, 4))
print(split_and_load(batch, ctx))
for ours, theirs in zip(split_and_load(batch, ctx), gluon.utils.split_and_load(batch, ctx)):
    assert (ours.asnumpy() == theirs.asnumpy()).all()


# %% [markdown]
# ## A step
#
# The two backward passes do not depend on each other, so they run at the same time.  Only reading the loss waits.


# %%
def sgd(params, lr, batch_size):
    for param in params:
        param[:] = param - lr * param.grad / batch_size


def train_batch(X, y, params, ctx, lr):
    Xs, ys = split_and_load(X, ctx), split_and_load(y, ctx)
    with autograd.record():
        losses = [loss(lenet(X, W), y) for X, y, W in zip(Xs, ys, params)]
    for l in losses:
        l.backward()
    for i in range(len(params[0])):
        allreduce([p[i].grad for p in params])
    for p in params:
        sgd(p, lr, X.shape[0])
    return sum(l.sum().asscalar() for l in losses) / X.shape[0]


# %% [markdown]
# ## Training
#
# The task is made up: each image has a bright row, and its place is the label.  One device and two start from the same parameters
# and see the same images, so their losses agree up to rounding.

# %%
rng = np.random.default_rng(0)
labels = rng.integers(0, 10, 64)
images = rng.random((64, 1, 28, 28)) * 0.1 + np.eye(28)[labels * 2][:, None, :, None]
X, y = nd.array(images), nd.array(labels)


def train(ctx, steps=30):
    copies = [get_params(params, c) for c in ctx]
    return [train_batch(X, y, copies, ctx, lr=0.2) for _ in range(steps)], copies


one, _ = train(ctx[:1])
two, copies = train(ctx)
print(f"loss: {one[0]:.4f} at first, {one[-1]:.4f} on one device, {two[-1]:.4f} on two")
assert two[-1] < one[0] and abs(one[0] - two[0]) < 1e-4
for a, b in zip(*copies):
    assert (a.asnumpy() == b.asnumpy()).all()
