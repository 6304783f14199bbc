# %% [markdown]
# # Imperative and symbolic
#
# An imperative program computes line by line: it is easy to write, to print from and to debug.  A symbolic one is first described
# as a whole, then optimised, then run, many times and without Python.  A hybrid block is both: this program writes one, compiles it,
# measures the difference, exports it, and looks at what the block sees while it is traced.

# %%
import os
import tempfile
import time

from starling import mx
from starling.mx import nd, sym
from starling.mx.gluon import nn

# %% [markdown]
# ## A network, as usual
#
# `HybridSequential` behaves as `Sequential` does until `hybridize` is called.


# %%
def perceptron():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    net.initialize()
    return net


x = nd.random.normal(shape=(1, 512))
net = perceptron()
before = net(x)
print(before)

# %% [markdown]
# `hybridize` has the network traced at its next call and compiled.  The result is the same.

# %%
net.hybridize()
after = net(x)
print(after)
assert (before.asnumpy() == after.asnumpy()).all()

# %% [markdown]
# ## The gain
#
# A compiled call submits one prepared program instead of many calls.  Calls are asynchronous, so the measured time includes
# `waitall`.


# %%
def benchmark(net, x, calls=200):
    start = time.time()
    for _ in range(calls):
        net(x)
    nd.waitall()
    return time.time() - start


net = perceptron()
benchmark(net, x, 1)
imperative = benchmark(net, x)
net.hybridize()
benchmark(net, x, 1)
print(f"imperative {imperative:.4f} s, hybridised {benchmark(net, x):.4f} s")

# %% [markdown]
# ## Without the code that made it
#
# A hybridised network that has run can be exported, as a description and a file of parameters.  MXNet reads them
# (`SymbolBlock.imports`), and so does Starling, from Python, from C and by its tool `sl-run`.  Nodes have MXNet's names.

# %%
with tempfile.TemporaryDirectory() as folder:
    net.export(os.path.join(folder, "perceptron"))
    print(sorted(os.listdir(folder)))

# %% [markdown]
# A symbol in place of an array gives a description of the result.

# %%
print(net(sym.var("data")))

# %% [markdown]
# ## Inputs of a block
#
# `hybrid_forward` gets the module of functions as `F`: that of arrays while the block is imperative, that of symbols while it is
# traced.  Once compiled, it is not called any more: the third call of the network below prints nothing.


# %%
class HybridNet(nn.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = nn.Dense(10)
        self.output = nn.Dense(2)
        self.calls = 0

    def hybrid_forward(self, F, x):
        self.calls += 1
        print("F:", F.__name__, " x:", type(x).__name__)
        x = F.relu(self.hidden(x))
        print("hidden:", type(x).__name__)
        return self.output(x)


net = HybridNet()
net.initialize()
x = nd.random.normal(shape=(1, 4))
net(x)
net.hybridize()
net(x)
net(x)
assert net.calls == 2
