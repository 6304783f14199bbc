# %% [markdown]
# # Automatic parallelism
#
# Independent calls run at the same time if they are on different devices.  The program need not say so: the engine knows the
# inputs and results of each call.  This program runs products on two devices, one after the other and together, then copies
# beside products.
#
# The two devices are GPUs where there are two, else teams of CPU cores: start it with `STARPU_NCPU=2` to have two teams.  With one
# team both names mean the same cores, and nothing is gained.

# %%
import time

from starling import mx
from starling.mx import nd

devices = [mx.gpu(0), mx.gpu(1)] if mx.num_gpus() >= 2 else [mx.cpu(0), mx.cpu(1)]
print(devices)


# %%
def run(x):
    return [nd.dot(x, x) for _ in range(10)]


def seconds(work):
    nd.waitall()
    start = time.time()
    work()
    nd.waitall()
    return time.time() - start


size = 200 if devices[0].device_type == "gpu" and mx.num_gpus() else 400
xs = [nd.random.uniform(shape=(size, size), ctx=d) for d in devices]
run(xs[0]), run(xs[1])
alone = [seconds(lambda x=x: run(x)) for x in xs]
both = seconds(lambda: (run(xs[0]), run(xs[1])))
print(f"{devices[0]} {alone[0]:.4f} s, {devices[1]} {alone[1]:.4f} s, both at once {both:.4f} s")

# %% [markdown]
# ## Copies beside computation
#
# A copy needs only its source: while later products are computed, earlier ones are copied.  Teams of cores share one
# memory, so the gain is small; between GPUs it is larger.


# %%
def copy(ys, to):
    return [y.copyto(to) for y in ys]


ys = run(xs[0])
computed = seconds(lambda: run(xs[0]))
copied = seconds(lambda: copy(ys, devices[1]))
together = seconds(lambda: copy(run(xs[0]), devices[1]))
print(f"products {computed:.4f} s, copies {copied:.4f} s, both {together:.4f} s")

# %%
a, b = run(xs[0])[0], copy(run(xs[0]), devices[1])[0]
assert b.context == devices[1] or mx.num_gpus() < 2
assert (a.asnumpy() == b.asnumpy()).all()
