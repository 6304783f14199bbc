# %% [markdown]
# # Asynchronous computation
#
# A call only submits work, and Python continues at once; the engine's threads compute.  This program shows the difference between
# submitting work and waiting for it, the functions that wait, the cost of waiting, and the memory for running ahead.

# %%
import os
import time

from starling import mx
from starling.mx import autograd, gluon, nd
from starling.mx.gluon import loss as gloss
from starling.mx.gluon import nn

a = nd.ones((1, 2))
b = nd.ones((1, 2))
c = a * b + 2
print(c)


# %%
class Timer:
    def __init__(self, what):
        self.what = what

    def __enter__(self):
        self.start = time.time()

    def __exit__(self, *exception):
        print(f"{self.what}: {time.time() - self.start:.4f} s")


# %% [markdown]
# Submitting a product takes microseconds.  Printing needs the values, and waits for them.

# %%
nd.waitall()
with Timer("asked for"):
    x = nd.random.uniform(shape=(1000, 1000))
    y = nd.dot(x, x)
with Timer("printed"):
    print("sum =", y.sum())

# %% [markdown]
# Functions that wait: `wait_to_read` for one array, `waitall` for everything, and all functions that return values to Python.

# %%
for name, wait in (
    ("wait_to_read", lambda y: y.wait_to_read()),
    ("waitall", lambda y: nd.waitall()),
    ("asnumpy", lambda y: y.asnumpy()),
    ("asscalar", lambda y: y.norm().asscalar()),
):
    with Timer(name):
        wait(nd.dot(x, x))

# %% [markdown]
# ## The cost of waiting
#
# A wait for each of many small results leaves the engine idle while Python runs, and Python idle while the engine computes.
# Without these waits, many small operations also share a task.

# %%
x = nd.ones((1, 2))
with Timer("waiting for each"):
    for _ in range(1000):
        y = x + 1
        y.wait_to_read()
with Timer("waiting once"):
    for _ in range(1000):
        y = x + 1
    nd.waitall()

# %% [markdown]
# ## Memory
#
# A program that never waits could queue more than memory holds.  The engine bounds how far a program runs ahead.  The last line
# compares the memory of training without a wait and with a wait for each batch.


# %%
def batches(n, batch_size=256):
    for _ in range(n):
        yield nd.random.normal(shape=(batch_size, 512)), nd.ones((batch_size,))


net = nn.Sequential()
net.add(nn.Dense(512, activation="relu"), nn.Dense(256, activation="relu"), nn.Dense(1))
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.005})
loss = gloss.L2Loss()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def train(n, wait):
    for X, y in batches(n):
        with autograd.record():
            l = loss(net(X), y)
        l.backward()
        trainer.step(X.shape[0])
        if wait:
            l.wait_to_read()
    nd.waitall()
    return l


train(5, True)
before = resident()
with Timer("waiting for each batch"):
    train(30, True)
waited = resident() - before
with Timer("not waiting"):
    l = train(30, False)
print(f"memory: {waited:.1f} MB more after waiting, {resident() - before:.1f} MB after not waiting")
assert l.mean().asscalar() < 1
