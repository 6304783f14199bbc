# %% [markdown]
# # Several devices, concisely, in PyTorch
#
# `nn.DataParallel` and `torch.optim.SGD` as they are, on Starling's devices.  The network is a narrow ResNet-18.
#
# Start it with `STARPU_NCPU=2`, to have two teams of cores where there are no GPUs.

# %%
import time

import torch
from torch import nn
from torch.nn import functional as F

import starling.torch

devices = [starling.torch.device(i) for i in range(min(2, starling.torch.device_count()))]


# %%
class Residual(nn.Module):
    def __init__(self, inputs, outputs, strides=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, stride=strides)
        self.conv2 = nn.Conv2d(outputs, outputs, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(inputs, outputs, kernel_size=1, stride=strides) if inputs != outputs else None
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)

    def forward(self, X):
        Y = F.relu(self.bn1(self.conv1(X)))
        Y = self.bn2(self.conv2(Y))
        return F.relu(Y + (X if self.conv3 is None else self.conv3(X)))


def resnet18(classes, channels=1, width=8):
    layers = [nn.Conv2d(channels, width, kernel_size=3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    for k in range(4):
        inputs, outputs = width * 2 ** max(k - 1, 0), width * 2**k
        layers += [Residual(inputs, outputs, 2 if k else 1), Residual(outputs, outputs)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8 * width, classes))


# %% [markdown]
# Parameters are initialised where they lie: random numbers come from PyTorch's generator, so they are the same on all devices.


# %%
def init_weights(module):
    if type(module) in (nn.Linear, nn.Conv2d):
        nn.init.normal_(module.weight, std=0.1)


net = resnet18(10).to(devices[0])
net.apply(init_weights)
print(net[0].weight.device, net(torch.rand(2, 1, 28, 28, device=devices[0])).shape)


# %% [markdown]
# ## Training
#
# `DataParallel` cuts a batch, copies the parameters to the other devices, and adds up gradients on the first one.  The loop keeps
# the losses and reads them at the end, so that it never waits.


# %%
def batches(count, size):
    g = torch.Generator().manual_seed(1)
    for _ in range(count):
        y = torch.randint(10, (size,), generator=g)
        yield torch.rand((size, 1, 28, 28), generator=g) * 0.1 + torch.eye(28)[y * 2][:, None, :, None], y


def train(forward, net, device, steps=3, size=16, lr=0.05):
    trainer, loss, history, start = torch.optim.SGD(net.parameters(), lr), nn.CrossEntropyLoss(), [], time.time()
    for X, y in batches(steps, size):
        trainer.zero_grad()
        X, y = X.to(device), y.to(device)
        l = loss(forward(X), y)
        l.backward()
        trainer.step()
        history.append(l)
    starling.torch.synchronize()
    return [l.item() for l in history], time.time() - start


def fresh(device):
    torch.manual_seed(0)
    net = resnet18(10)
    net.apply(init_weights)
    return net.to(device)


# %% [markdown]
# Batch normalisation has the statistics of each device's part of the batch, in PyTorch, too.  So losses are compared with those of
# PyTorch's CPU on the same parts; networks with batch normalisation enlarge differences of rounding from step to step.

# %%
for n in range(1, len(devices) + 1):
    net = fresh(devices[0])
    ours, seconds = train(nn.DataParallel(net, device_ids=devices[:n]), net, devices[0])
    print(f"{n} devices: {seconds:.2f} s, losses " + " ".join(f"{l:.4f}" for l in ours))
    net = fresh("cpu")
    theirs, _ = train(lambda X: torch.cat([net(part) for part in X.chunk(n)]), net, "cpu")
    assert max(abs(a - b) for a, b in zip(ours, theirs)) < 1e-2, theirs
