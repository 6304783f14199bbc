"""Cells in the style of the tutorial, run under MXNet 1.9.1 and under Starling by gluon-check: gluon-cells.py mxnet|starling FILE.

Both start from equal weights, made by NumPy; FILE gets what they computed.
"""
import sys

import numpy

if sys.argv[1] == "mxnet":
    import mxnet as mx
    from mxnet import autograd, gluon, init, nd, np, npx
    from mxnet.gluon import loss as gloss
    from mxnet.gluon import nn, rnn
else:
    from starling import mx
    from starling.mx import autograd, gluon, init, nd, np, npx
    from starling.mx.gluon import loss as gloss
    from starling.mx.gluon import nn, rnn

rng = numpy.random.RandomState(0)
results = {}


def random(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype("float32")


def keep(name, *arrays):
    for i, a in enumerate(arrays):
        results["%s %d" % (name, i)] = a.asnumpy() if hasattr(a, "asnumpy") else numpy.asarray(a)


def equal_weights(net, *inputs):
    """Gives the parameters values that depend on their order and shapes alone."""
    net(*inputs)
    values = numpy.random.RandomState(1)
    for p in net.collect_params().values():
        if "running" not in p.name:
            p.set_data(nd.array(values.standard_normal(p.shape) * 0.2))


# ---- arrays

a, b = nd.array(random(3, 4)), nd.array(random(4))
keep("operators", a + b, a - 2, 3 / (b * b + 1), a * b, a**2, -a, abs(a), a > 0, a == a)
keep("reductions", a.sum(), a.mean(axis=1), a.max(axis=0), a.norm(), nd.sum(a, axis=0, keepdims=True), a.argmax(axis=1))
keep("moves", a.T, a.reshape((0, -1)), a.reshape((2, 6)), a[1], a[0:2], a[:, 1:3], nd.concat(a, a, dim=1), nd.stack(a, a))
keep("products", nd.dot(a, b), nd.dot(a, a.T), nd.dot(a, a, transpose_b=True), nd.batch_dot(nd.stack(a, a), nd.stack(a.T, a.T)))
keep("functions", nd.relu(a), nd.sigmoid(a), nd.tanh(a), nd.softmax(a), nd.log_softmax(a), nd.exp(a), nd.clip(a, -0.5, 0.5))
x = nd.arange(12).reshape((3, 4))
x[1] = 7
x[:, 2] = -1
x[:] += 1
keep("in place", x)
images = nd.array(random(2, 3, 9, 9))
w, bias = nd.array(random(4, 3, 3, 3)), nd.array(random(4))
keep("layers", nd.Convolution(images, w, bias, kernel=(3, 3), num_filter=4, stride=(2, 2), pad=(1, 1)),
     nd.Pooling(images, kernel=(2, 2), stride=(2, 2), pool_type="avg"), nd.Pooling(images, kernel=(3, 3), stride=(2, 2)),
     nd.Pooling(images, global_pool=True, kernel=(1, 1), pool_type="avg"), nd.flatten(images))  # fmt: skip

# ---- gradients

x = nd.array(random(3, 4))
x.attach_grad()
with autograd.record():
    y = (nd.relu(x) * x + nd.exp(x)).sum()
y.backward()
keep("gradient", y, x.grad)

# ---- a perceptron, imperative and hybridised

x = nd.array(random(5, 20))
net = nn.HybridSequential()
net.add(nn.Dense(16, activation="relu"), nn.Dense(8, activation="sigmoid"), nn.Dense(2))
net.initialize()
equal_weights(net, x)
keep("imperative", net(x))
net.hybridize()
keep("hybridised", net(x))


class HybridNet(nn.HybridBlock):
    def __init__(self, **kwargs):
        super(HybridNet, self).__init__(**kwargs)
        self.hidden = nn.Dense(10)
        self.output = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.output(F.relu(self.hidden(x)))


net = HybridNet()
net.initialize()
equal_weights(net, x)
net.hybridize()
keep("hybrid block", net(x))

# ---- training with Trainer, each optimiser

labels = nd.array(rng.randint(0, 4, 32))
X = nd.array(random(32, 10))
for name, options in (("sgd", {"learning_rate": 0.1, "momentum": 0.9, "wd": 0.01}), ("adam", {"learning_rate": 0.01}),
                      ("nag", {"learning_rate": 0.1, "momentum": 0.5})):  # fmt: skip
    net = nn.Sequential()
    net.add(nn.Dense(16, activation="tanh"), nn.Dense(4))
    net.initialize()
    equal_weights(net, X)
    trainer, loss = gluon.Trainer(net.collect_params(), name, options), gloss.SoftmaxCrossEntropyLoss()
    for _ in range(5):
        with autograd.record():
            l = loss(net(X), labels)
        l.backward()
        trainer.step(32)
    keep("training by " + name, l)

# ---- training on two contexts, each with a backward pass of its own

net = nn.HybridSequential()
net.add(nn.Dense(16, activation="tanh"), nn.Dense(4))
ctx = [mx.cpu(0), mx.cpu(1)]
net.initialize(ctx=ctx)
for part in gluon.utils.split_and_load(X, ctx):
    net(part)
equal_weights(net, X)
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
for _ in range(5):
    Xs, ys = gluon.utils.split_and_load(X, ctx), gluon.utils.split_and_load(labels, ctx)
    with autograd.record():
        parts = [loss(net(a), b) for a, b in zip(Xs, ys)]
    for l in parts:
        l.backward()
    trainer.step(32)
keep("training on two contexts", *parts)

# ---- recurrent layers and cells

x = nd.array(random(5, 3, 4))
for name, make in (("RNN", lambda: rnn.RNN(6)), ("LSTM", lambda: rnn.LSTM(6, num_layers=2, bidirectional=True)),
                   ("GRU", lambda: rnn.GRU(6, 2, layout="NTC"))):  # fmt: skip
    layer = make()
    layer.initialize()
    equal_weights(layer, x)
    states = layer.begin_state(5 if name == "GRU" else 3)
    with autograd.record():
        y, states = layer(x, states)
        total = (y * y).sum()
    total.backward()
    keep(name, y, *(list(states) + [p.grad() for p in layer.collect_params().values()]))
    layer.hybridize()
    keep(name + " hybridised", layer(x))
for name, cell in (("RNNCell", rnn.RNNCell(6)), ("LSTMCell", rnn.LSTMCell(6)), ("GRUCell", rnn.GRUCell(6))):
    cell.initialize()
    equal_weights(cell, x[0], cell.begin_state(batch_size=3))
    y, states = cell.unroll(5, x, layout="TNC", merge_outputs=True)
    lengths, ends = cell.unroll(3, x, layout="NTC", merge_outputs=True, valid_length=nd.array([1, 2, 3, 1, 2]))
    keep(name, y, lengths, *(list(states) + list(ends)))

# ---- arrays of np

npx.set_np()
a, b = np.array(random(3, 4)), np.array(random(4))
keep("np", a + b, np.dot(a, b), a.mean(axis=1), np.exp(a), a.reshape(2, -1), a.T, np.arange(20).reshape(4, 5), a.sum(), a.argmax(axis=1),
     a > 0, npx.relu(a), npx.softmax(a), np.concatenate([a, a], axis=1), a[1:, 2], np.stack([a, a]), a.std(axis=0), np.dot(b, b))  # fmt: skip
a.attach_grad()
with autograd.record():
    y = (npx.relu(a) * a).sum()
y.backward()
keep("gradient of np", y, a.grad)
npx.reset_np()

# ---- LeNet from scratch, two parts of a batch

params = [nd.array(p) for p in (random(6, 1, 3, 3, scale=0.3), random(6, scale=0.1), random(12, 6, 5, 5, scale=0.1),
                                random(12, scale=0.1), random(192, 20, scale=0.1), random(20, scale=0.1),
                                random(20, 10, scale=0.2), random(10, scale=0.1))]  # fmt: skip


def lenet(X, params):
    h = nd.relu(nd.Convolution(data=X, weight=params[0], bias=params[1], kernel=(3, 3), num_filter=6))
    h = nd.Pooling(data=h, pool_type="avg", kernel=(2, 2), stride=(2, 2))
    h = nd.relu(nd.Convolution(data=h, weight=params[2], bias=params[3], kernel=(5, 5), num_filter=12))
    h = nd.flatten(nd.Pooling(data=h, pool_type="avg", kernel=(2, 2), stride=(2, 2)))
    h = nd.relu(nd.dot(h, params[4]) + params[5])
    return nd.dot(h, params[6]) + params[7]


ctx = [mx.cpu(0), mx.cpu(1)]
copies = [[p.copyto(c) for p in params] for c in ctx]
for p in copies[0] + copies[1]:
    p.attach_grad()
X, y, loss = nd.array(random(16, 1, 28, 28)), nd.array(rng.randint(0, 10, 16)), gloss.SoftmaxCrossEntropyLoss()
for _ in range(3):
    parts = list(zip(gluon.utils.split_and_load(X, ctx), gluon.utils.split_and_load(y, ctx), copies))
    with autograd.record():
        losses = [loss(lenet(a, w), b) for a, b, w in parts]
    for l in losses:
        l.backward()
    for first, second in zip(*copies):
        first.grad[:] += second.grad.copyto(first.grad.context)
        first.grad.copyto(second.grad)
    for p in copies[0] + copies[1]:
        p[:] = p - 0.1 * p.grad / 16
keep("LeNet from scratch", *losses)

# ---- a residual network with batch normalisation


class Residual(nn.Block):
    def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
        super(Residual, self).__init__(**kwargs)
        self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
        self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides) if use_1x1conv else None
        self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

    def forward(self, X):
        Y = self.bn2(self.conv2(nd.relu(self.bn1(self.conv1(X)))))
        return nd.relu(Y + (self.conv3(X) if self.conv3 else X))


net = nn.Sequential()
net.add(nn.Conv2D(4, kernel_size=3, padding=1), nn.BatchNorm(), nn.Activation("relu"), Residual(4), Residual(8, True, 2),
        nn.MaxPool2D(2), nn.GlobalAvgPool2D(), nn.Dense(10))  # fmt: skip
net.initialize(init=init.Normal(sigma=0.01))
equal_weights(net, X)
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
for _ in range(3):
    with autograd.record():
        l = loss(net(X), y)
    l.backward()
    trainer.step(16)
keep("residual network", l, net(X))

nd.waitall()
numpy.savez(sys.argv[2], **results)
