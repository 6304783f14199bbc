# %% [markdown]
# # Several devices, from scratch, in PyTorch
#
# A PyTorch program names a device and moves tensors to it; then its operations run there.  `starling.torch.device(i)` is such a
# device: a GPU where there are GPUs, else a team of CPU cores.  Nothing else in this program is Starling's.
#
# Start it with `STARPU_NCPU=2`, to have two teams.

# %%
import time

import torch
from torch import nn
from torch.nn import functional as F

import starling.torch

n = min(2, starling.torch.device_count())
devices = [starling.torch.device(i) for i in range(n)]
print(devices)

# %% [markdown]
# ## The network
#
# LeNet as functions of its parameters, so that each device can have a set of them.


# %%
def first_parameters(seed=0):
    g = torch.Generator().manual_seed(seed)
    shapes = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
    return [torch.randn(s, generator=g) * 0.05 if len(s) > 1 else torch.zeros(s) for s in shapes]


def lenet(X, params):
    y = F.relu(F.conv2d(X, params[0], params[1]))
    y = F.avg_pool2d(y, kernel_size=(2, 2), stride=(2, 2))
    y = F.relu(F.conv2d(y, params[2], params[3]))
    y = F.avg_pool2d(y, kernel_size=(2, 2), stride=(2, 2))
    y = F.relu(torch.mm(y.reshape(y.shape[0], -1), params[4]) + params[5])
    return torch.mm(y, params[6]) + params[7]


loss = nn.CrossEntropyLoss(reduction="none")

# %% [markdown]
# ## Between devices
#
# Copies of the parameters on a device; the sum of tensors that lie on several devices, put into all of them; a batch cut into
# parts.


# %%
def on_device(params, device):
    copies = [p.clone().to(device) for p in params]
    for p in copies:
        p.requires_grad_()
    return copies


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].to(data[0].device)
    for i in range(1, len(data)):
        data[i][:] = data[0].to(data[i].device)


data = [torch.full((1, 2), float(i + 1), device=d) for i, d in enumerate(devices)]
print("before:", *data, sep="\n")
allreduce(data)
print("after:", *data, sep="\n")
assert all(t.tolist() == [[n * (n + 1) / 2] * 2] for t in data)

# %%
parts = nn.parallel.scatter(torch.arange(20).reshape(4, 5), devices)
print(parts)


# %% [markdown]
# ## Training
#
# Each device computes the loss of its part of the batch.  The calls only queue work: the loop goes on to the next device while
# the first one computes, and a step needs no wait at all.


# %%
def sgd(params, lr, batch_size):
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad / batch_size
            p.grad.zero_()


def step(X, y, device_params, devices, lr):
    Xs, ys = nn.parallel.scatter(X, devices), nn.parallel.scatter(y, devices)
    losses = [loss(lenet(X, params), y).sum() for X, y, params in zip(Xs, ys, device_params)]
    for l in losses:
        l.backward()
    with torch.no_grad():
        for i in range(len(device_params[0])):
            allreduce([params[i].grad for params in device_params])
    for params in device_params:
        sgd(params, lr, X.shape[0])
    return losses


def batches(count, size):
    g = torch.Generator().manual_seed(1)
    for _ in range(count):
        y = torch.randint(10, (size,), generator=g)
        yield torch.rand((size, 1, 28, 28), generator=g) * 0.1 + torch.eye(28)[y * 2][:, None, :, None], y


def train(devices, steps=6, size=32, lr=0.3):
    device_params = [on_device(first_parameters(), d) for d in devices]
    history, start = [], time.time()
    for X, y in batches(steps, size):
        history.append(step(X, y, device_params, devices, lr))
    queued = time.time() - start
    starling.torch.synchronize()
    done = time.time() - start
    means = [sum(l.item() for l in losses) / size for losses in history]
    print(f"{len(devices)} devices: queued in {queued:.2f} s, done in {done:.2f} s, losses " + " ".join(f"{m:.4f}" for m in means))
    return means


# %% [markdown]
# One device and several give the same losses; so does PyTorch's own CPU.

# %%
one, several = train(devices[:1]), train(devices)
assert max(abs(a - b) for a, b in zip(one, several)) < 1e-4
params = [p.requires_grad_() for p in first_parameters()]
theirs = []
for X, y in batches(6, 32):
    l = loss(lenet(X, params), y).sum()
    l.backward()
    sgd(params, 0.3, 32)
    theirs.append(l.item() / 32)
assert max(abs(a - b) for a, b in zip(one, theirs)) < 1e-4
assert one[-1] < one[0]
