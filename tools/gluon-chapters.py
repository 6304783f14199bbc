"""Cells as the chapters of a book on deep learning have them, run under MXNet 1.9.1 and under Starling by gluon-check:
gluon-chapters.py mxnet|starling FILE.

Each function is a cell: it starts from values that NumPy makes and returns what it computed.  FILE gets the results, and of cells
that fail the exception.
"""
import json
import math
import os
import sys
import tempfile
import time

import numpy

if sys.argv[1] == "mxnet":
    import mxnet as mx
    from mxnet import autograd, gluon, init, lr_scheduler, nd, np, npx
    from mxnet.gluon import data as gdata
    from mxnet.gluon import loss as gloss
    from mxnet.gluon import nn
    from mxnet.gluon import utils as gutils
else:
    from starling import mx
    from starling.mx import autograd, gluon, init, lr_scheduler, nd, np, npx
    from starling.mx.gluon import data as gdata
    from starling.mx.gluon import loss as gloss
    from starling.mx.gluon import nn
    from starling.mx.gluon import utils as gutils

CELLS = []
source = numpy.random.RandomState(0)


def cell(function):
    CELLS.append(function)
    return function


def random(*shape, scale=1.0):
    return nd.array(source.standard_normal(shape) * scale)


def classes(n, most):
    return nd.array(source.randint(0, most, n))


def equal_weights(net, *inputs):
    """Gives the parameters values that depend on their order and shapes alone."""
    net(*inputs)
    values = numpy.random.RandomState(1)
    for p in net.collect_params().values():
        if "running" not in p.name:
            p.set_data(nd.array(values.standard_normal(p.shape) * 0.2))


# ---- arrays


@cell
def making_arrays():
    x = nd.arange(12)
    y = nd.array([[2, 1, 4, 3], [1, 2, 3, 4], [4, 3, 2, 1]])
    x = x.reshape((3, 4))
    return (x, x.shape, x.size, nd.zeros((2, 3, 4)), nd.ones_like(y), nd.full((2, 2), 7), x + y, x * y, x / y, y.exp(), nd.dot(x, y.T),
            nd.eye(3), nd.linspace(0, 1, 5), nd.empty((2, 2)).shape)  # fmt: skip


@cell
def joining_and_comparing():
    x, y = nd.arange(12).reshape((3, 4)), nd.array([[2, 1, 4, 3], [1, 2, 3, 4], [4, 3, 2, 1]])
    return (nd.concat(x, y, dim=0), nd.concat(x, y, dim=1), nd.stack(x, y, axis=1), x == y, x != y, x > y, (x < y).sum(), x.sum(), x.sum().asscalar(),
            x.norm().asscalar(), (x > 5) * x + (x <= 5) * y, nd.where(x > y, x, y), nd.maximum(x, 5), nd.minimum(x, y))  # fmt: skip


@cell
def broadcasting_and_parts():
    a, b = nd.arange(3).reshape((3, 1)), nd.arange(2).reshape((1, 2))
    x = nd.arange(12).reshape((3, 4))
    x[1, 2] = 9
    x[1:2, :] = 12
    x[0:2, 1] = -5
    x[-1] = nd.array([1, 1, 2, 3])
    return a + b, a * b, x, x[1:3], x[-1], x[1:3, 0:2], x[:, 1:-1], x[0, 3].asscalar(), x[::2], x[nd.array([0, 2])], x[:, -1]


@cell
def in_place_arithmetic():
    x, y = nd.arange(6).reshape((2, 3)), nd.ones((2, 3))
    z = y.zeros_like()
    z[:] = x + y
    nd.elemwise_add(x, y, out=z)
    x += y
    x *= 2
    x -= 0.5
    x /= 4
    y[:] = x
    y[1:3] = 0
    return x, y, z


@cell
def reductions_with_axes():
    x = random(2, 3, 4)
    return (x.sum(axis=0), x.sum(axis=(0, 2)), x.mean(axis=1, keepdims=True), x.max(axis=2), x.min(), x.prod(axis=0), nd.argmax(x, axis=2),
            nd.argmin(x, axis=1), nd.norm(x, axis=1), x.sum(axis=1, exclude=True), nd.sum(x * x).sqrt(), nd.mean(x, axis=0, exclude=True), nd.square(x).mean())  # fmt: skip


@cell
def shapes_moved():
    x = random(2, 3, 4)
    return (x.T, x.transpose((1, 0, 2)), x.reshape((-1, 4)), x.reshape((0, -1)), x.reshape((-3, 0)), x.flatten(), x.expand_dims(axis=1), nd.expand_dims(x, 0),
            x.swapaxes(0, 1), nd.tile(x, (2, 1, 1)), nd.repeat(x, 2, axis=1), x.slice_axis(axis=1, begin=0, end=2), nd.slice(x, begin=(0, 1), end=(2, 3)),
            nd.squeeze(x[:, :1]), x.flip(axis=1), nd.reverse(x, axis=2), x.broadcast_to((2, 3, 4)), *x.split(num_outputs=2, axis=2), nd.moveaxis(x, 0, 2))  # fmt: skip


@cell
def picking():
    x, y = random(4, 5), nd.array([0, 3, 4, 1])
    return (nd.pick(x, y), nd.pick(x, y, keepdims=True), nd.one_hot(y, 5), nd.take(x, nd.array([1, 3])), x.topk(k=2), x.topk(k=2, ret_typ="value"),
            x.sort(axis=1), x.argsort(axis=1), nd.clip(x, -0.5, 0.5), nd.gather_nd(x, nd.array([[0, 1], [2, 3]])), x.argmax(axis=1).astype("int32"),
            nd.SequenceMask(x.T, nd.array([1, 2, 3, 4]), use_sequence_length=True, value=-1), nd.abs(x), nd.sign(x), nd.round(x), nd.floor(x), nd.ceil(x))  # fmt: skip


@cell
def products_of_batches():
    a, b = random(3, 2, 4), random(3, 4, 5)
    return nd.batch_dot(a, b), nd.batch_dot(a, a, transpose_b=True), nd.dot(a, b[0]), nd.linalg.gemm2(a, b), nd.linalg_gemm2(a, b)


@cell
def types():
    x = random(3, 3)
    i = nd.array([1, 2, 3], dtype="int32")
    return x.astype("int32"), x.astype("float64"), i, i + 1, i * i, str(x.dtype), str(i.dtype), (x > 0).dtype.__name__, i.astype("float32") / 2, nd.cast(x, dtype="int32"), (x > 0).mean()


@cell
def to_numpy_and_back():
    x = nd.ones((2, 3))
    p = x.asnumpy()
    p[0] = 5
    d = nd.array(p)
    return x, d, float(d.sum().asscalar()), type(d.mean().asscalar()).__name__, len(d), [float(v.sum().asscalar()) for v in d], bool(d.sum() > 3), int(d[1, 1].asscalar())


@cell
def printing():
    net = nn.Sequential()
    net.add(nn.Dense(3, activation="relu", in_units=2), nn.Dropout(0.5), nn.Conv2D(2, 3), nn.BatchNorm(), nn.MaxPool2D(2), nn.Flatten(), nn.Activation("tanh"),
            nn.AvgPool2D(2, 1), nn.GlobalAvgPool2D(), nn.Embedding(4, 3), nn.LayerNorm())  # fmt: skip
    return repr(nd.arange(4)), str(nd.ones((2, 2))), repr(net), repr(mx.cpu()), repr(nd.array([1], dtype="int32"))


@cell
def files_of_arrays():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x")
        x, y = random(3), random(2, 2)
        nd.save(path, x)
        one = nd.load(path)
        nd.save(path, [x, y])
        several = nd.load(path)
        nd.save(path, {"x": x, "y": y})
        named = nd.load(path)
    return (*one, *several, named["x"], named["y"], sorted(named))


# ---- gradients


@cell
def gradient_of_a_square():
    x = nd.arange(4).reshape((4, 1))
    x.attach_grad()
    with autograd.record():
        y = 2 * nd.dot(x.T, x)
    y.backward()
    first = x.grad.copy()
    with autograd.record():
        y = (x.detach() * x).sum() + nd.stop_gradient(x * x).sum()
    y.backward()
    return first, x.grad, autograd.is_recording(), autograd.is_training()


@cell
def gradient_through_control_flow():
    def f(a):
        b = a * 2
        while b.norm().asscalar() < 1000:
            b = b * 2
        return b if b.sum().asscalar() > 0 else 100 * b

    a = random(1)
    a.attach_grad()
    with autograd.record():
        c = f(a)
    c.backward()
    return a.grad == c / a, c


@cell
def gradient_as_a_constant():
    w, x = random(4), random(4)
    w.attach_grad()
    with autograd.record():
        l = (w * w * x).sum()
    l.backward()
    with autograd.record():
        y = ((w - 0.1 * w.grad) * x).sum() + (w.grad * 2).sum()
    y.backward()
    return l, y, w.grad


@cell
def gradients_that_add():
    x = random(3)
    x.attach_grad(grad_req="add")
    for _ in range(3):
        with autograd.record():
            y = (x * x).sum()
        y.backward()
    added = x.grad.copy()
    x.grad[:] = 0
    with autograd.record():
        y = x * x * x
    y.backward(nd.array([1, 0, 2]))
    return added, x.grad


@cell
def gradients_of_several_heads():
    x = random(4)
    x.attach_grad()
    with autograd.record():
        a, b = (x * 2).sum(), (x * x).sum()
    autograd.backward([a, b])
    both = x.grad.copy()
    with autograd.record():
        y = x.exp()
        y.backward(retain_graph=True)
        y.backward()
    found = autograd.grad(heads=[_recorded(x)], variables=[x])
    return both, x.grad, found[0]


def _recorded(x):
    with autograd.record():
        return (x * x * x).sum()


class Sigmoid(autograd.Function):
    def forward(self, x):
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


class Halves(autograd.Function):
    def forward(self, x, y):
        return x + y, x * 3

    def backward(self, da, db):
        return da * 10 + db, da * 0.5


@cell
def functions_of_ones_own():
    x, z = random(5), random(5)
    x.attach_grad()
    z.attach_grad()
    with autograd.record():
        m = Sigmoid()(x)
        l = (m * m).sum()
    l.backward()
    first = x.grad.copy()
    with autograd.record():
        a, b = Halves()(x * 2, z)
        l = (a * a + b).sum()
    l.backward()
    with autograd.record():
        only = Halves()(x, z)[0]
    only.backward()
    return m, first, l, x.grad, z.grad, Sigmoid()(x)


# ---- linear and softmax regression, perceptrons


@cell
def linear_regression_from_scratch():
    true_w, true_b = nd.array([2, -3.4]), 4.2
    features = random(100, 2)
    labels = true_w[0] * features[:, 0] + true_w[1] * features[:, 1] + true_b
    labels += random(100, scale=0.01)

    def batches(size):
        indices = list(range(len(features)))
        for i in range(0, len(features), size):
            j = nd.array(indices[i : min(i + size, len(features))])
            yield features.take(j), labels.take(j)

    def sgd(params, lr, batch_size):
        for param in params:
            param[:] = param - lr * param.grad / batch_size

    w, b = random(2, 1, scale=0.01), nd.zeros(shape=(1,))
    for p in (w, b):
        p.attach_grad()
    for _ in range(3):
        for X, y in batches(10):
            with autograd.record():
                y_hat = nd.dot(X, w) + b
                l = (y_hat - y.reshape(y_hat.shape)) ** 2 / 2
            l.backward()
            sgd([w, b], 0.03, 10)
    return w, b, l.mean().asnumpy()


@cell
def linear_regression_concise():
    features, w = random(100, 2), nd.array([[2], [-3.4]])
    labels = nd.dot(features, w) + 4.2
    dataset = gdata.ArrayDataset(features, labels)
    net = nn.Sequential()
    net.add(nn.Dense(1))
    net.initialize(init.Normal(sigma=0.01))
    equal_weights(net, features)
    loss = gloss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.03})
    for _ in range(3):
        for X, y in gdata.DataLoader(dataset, 10, shuffle=False):
            with autograd.record():
                l = loss(net(X), y)
            l.backward()
            trainer.step(10)
    dense = net[0]
    return dense.weight.data(), dense.bias.data(), loss(net(features), labels).mean(), dense.weight.grad(), trainer.learning_rate


@cell
def softmax_regression_from_scratch():
    X, y = random(32, 1, 4, 4), classes(32, 3)
    W, b = random(16, 3, scale=0.1), nd.zeros(3)
    W.attach_grad()
    b.attach_grad()

    def softmax(X):
        X_exp = X.exp()
        return X_exp / X_exp.sum(axis=1, keepdims=True)

    def net(X):
        return softmax(nd.dot(X.reshape((-1, 16)), W) + b)

    def cross_entropy(y_hat, y):
        return -nd.pick(y_hat, y).log()

    for _ in range(3):
        with autograd.record():
            y_hat = net(X)
            l = cross_entropy(y_hat, y).sum()
        l.backward()
        for p in (W, b):
            p[:] = p - 0.1 * p.grad / 32
    accuracy = (y_hat.argmax(axis=1) == y.astype("float32")).mean().asscalar()
    return W, b, l, accuracy


@cell
def perceptron_from_scratch():
    X, y = random(20, 8), classes(20, 4)
    W1, b1, W2, b2 = params = [random(8, 16, scale=0.1), nd.zeros(16), random(16, 4, scale=0.1), nd.zeros(4)]
    for p in params:
        p.attach_grad()
    loss = gloss.SoftmaxCrossEntropyLoss()
    for _ in range(3):
        with autograd.record():
            h = nd.maximum(nd.dot(X, W1) + b1, 0)
            l = loss(nd.dot(h, W2) + b2, y) + 0.01 * (W1**2).sum() / 2
        l.backward()
        for p in params:
            p -= 0.1 * p.grad / 20
    return l, *params


class Accumulator:
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + float(b) for a, b in zip(self.data, args)]

    def reset(self):
        self.data = [0.0] * len(self.data)

    def __getitem__(self, i):
        return self.data[i]


class Timer:
    def __init__(self):
        self.times = []
        self.start()

    def start(self):
        self.tik = time.time()

    def stop(self):
        self.times.append(time.time() - self.tik)
        return self.times[-1]


def accuracy(y_hat, y):
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    cmp = y_hat.astype(y.dtype) == y
    return float(cmp.astype(y.dtype).sum().asscalar())


@cell
def a_training_loop_with_helpers():
    X, y = random(64, 1, 6, 6), classes(64, 3)
    net = nn.Sequential()
    net.add(nn.Flatten(), nn.Dense(16, activation="relu"), nn.Dense(3))
    net.initialize(init.Normal(sigma=0.01))
    equal_weights(net, X)
    loss, trainer = gloss.SoftmaxCrossEntropyLoss(), gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    found = []
    for _ in range(3):
        metric, timer = Accumulator(3), Timer()
        for a, b in gdata.DataLoader(gdata.ArrayDataset(X, y), 16):
            with autograd.record():
                y_hat = net(a)
                l = loss(y_hat, b)
            l.backward()
            trainer.step(a.shape[0])
            metric.add(float(l.sum().asscalar()), accuracy(y_hat, b), b.size)
        found.append((metric[0] / metric[2], metric[1] / metric[2]))
        assert timer.stop() >= 0
    return numpy.array(found)


@cell
def weight_decay():
    X, y = random(20, 5), random(20, 1)
    net = nn.Sequential()
    net.add(nn.Dense(1))
    net.initialize()
    equal_weights(net, X)
    decayed = gluon.Trainer(net.collect_params(".*weight"), "sgd", {"learning_rate": 0.1, "wd": 3})
    plain = gluon.Trainer(net.collect_params(".*bias"), "sgd", {"learning_rate": 0.1})
    loss = gloss.L2Loss()
    for _ in range(3):
        with autograd.record():
            l = loss(net(X), y)
        l.backward()
        decayed.step(20)
        plain.step(20)
    return net[0].weight.data(), net[0].bias.data(), net[0].weight.data().norm().asscalar()


@cell
def dropout_from_scratch():
    def dropout(X, rate):
        keep = 1 - rate
        if keep == 0:
            return X.zeros_like()
        mask = nd.random.uniform(0, 1, X.shape) < keep
        return mask * X / keep

    X = nd.ones((64, 64))
    half = dropout(X, 0.5)
    values = sorted(set(half.asnumpy().ravel().tolist()))
    layer = nn.Dropout(0.5)
    layer.initialize()
    with autograd.record():
        trained = sorted(set(layer(X).asnumpy().ravel().tolist()))
    return dropout(X, 0), dropout(X, 1), values, trained, layer(X), abs(half.mean().asscalar() - 1) < 0.1


@cell
def statistics_of_random_numbers():
    mx.random.seed(1)
    n, u = nd.random.normal(2, 3, shape=(20000,)), nd.random.uniform(-1, 1, shape=(20000,))
    i = nd.random.randint(0, 10, shape=(1000,))
    x = nd.arange(50)
    shuffled = nd.random.shuffle(x)
    e, p = nd.random.exponential(2.0, shape=(20000,)), nd.random.multinomial(nd.array([0.2, 0.8]), shape=(5000,))
    return (abs(n.mean().asscalar() - 2) < 0.1, abs(n.asnumpy().std() - 3) < 0.1, float(abs(u).max().asscalar()) <= 1, sorted(set(i.asnumpy().tolist())), i.shape,
            sorted(shuffled.asnumpy().tolist()), abs(e.mean().asscalar() - 2) < 0.1, abs(p.astype("float32").mean().asscalar() - 0.8) < 0.03, nd.random.normal(0, 1, (2, 3)).shape,
            nd.random_normal(shape=(2, 2)).shape, nd.random.randn(2, 3).shape, nd.random.gamma(2, 2, shape=(3,)).shape, nd.random.poisson(3, shape=(3,)).shape,
            nd.random.uniform(shape=3).shape)  # fmt: skip


@cell
def layers_of_ones_own():
    class MLP(nn.Block):
        def __init__(self, **kwargs):
            super(MLP, self).__init__(**kwargs)
            self.hidden = nn.Dense(8, activation="relu")
            self.output = nn.Dense(4)

        def forward(self, x):
            return self.output(self.hidden(x))

    class FancyMLP(nn.Block):
        def __init__(self, **kwargs):
            super(FancyMLP, self).__init__(**kwargs)
            self.rand_weight = self.params.get_constant("rand_weight", nd.ones((4, 4)) * 0.3)
            self.dense = nn.Dense(4, activation="relu")

        def forward(self, x):
            x = self.dense(x)
            x = nd.relu(nd.dot(x, self.rand_weight.data()) + 1)
            x = self.dense(x)
            while x.norm().asscalar() > 1:
                x /= 2
            if x.norm().asscalar() < 0.8:
                x *= 10
            return x.sum()

    class MyDense(nn.Block):
        def __init__(self, units, in_units, **kwargs):
            super(MyDense, self).__init__(**kwargs)
            self.weight = self.params.get("weight", shape=(in_units, units))
            self.bias = self.params.get("bias", shape=(units,))

        def forward(self, x):
            return nd.relu(nd.dot(x, self.weight.data()) + self.bias.data())

    class Centred(nn.Block):
        def forward(self, x):
            return x - x.mean()

    X = random(2, 4)
    found = []
    for make in (MLP, FancyMLP):
        net = make()
        net.initialize()
        if make is FancyMLP:
            net.dense.weight.shape = (4, 4)
            net(X)
            net.dense.weight.set_data(nd.arange(16).reshape((4, 4)) / 16)
            net.dense.bias.set_data(nd.ones(4) * 0.1)
        else:
            equal_weights(net, X)
        found.append(net(X))
    net = nn.Sequential()
    net.add(MyDense(8, in_units=4), Centred(), MyDense(1, in_units=8))
    net.initialize()
    equal_weights(net, X)
    return (*found, net(X), Centred()(X).sum().abs() < 1e-5, [p.shape for p in net.collect_params().values()])


@cell
def access_to_parameters():
    net = nn.Sequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(2))
    net.initialize()
    X = random(2, 6)
    try:
        net[0].weight.data()
        early = "no error"
    except Exception as error:
        early = [c.__name__ for c in type(error).__mro__ if c.__name__ == "DeferredInitializationError"]
    net(X)
    net.initialize(init=init.Constant(0.5), force_reinit=True)
    constant = net[0].weight.data()[0].copy()
    net[1].initialize(init=init.Zero(), force_reinit=True)
    net[0].weight.initialize(init=init.Constant(2), force_reinit=True)
    net[0].weight.set_data(net[0].weight.data() + 1)

    class MyInit(init.Initializer):
        def _init_weight(self, name, data):
            data[:] = nd.arange(data.size).reshape(data.shape)

    net[1].initialize(MyInit(), force_reinit=True)
    return (early, constant, net[0].weight.data(), net[1].weight.data(), net[0].bias.data(), net[0].weight.shape,
            len(net.collect_params().keys()), [p.shape for p in net.collect_params(".*weight").values()], net[0].weight.grad().shape, net[1].bias.grad_req, net[0].weight.list_ctx() == [mx.cpu()])  # fmt: skip


@cell
def shared_parameters():
    net = nn.Sequential()
    shared = nn.Dense(8, activation="relu")
    net.add(nn.Dense(8, activation="relu"), shared, nn.Dense(8, activation="relu", params=shared.params), nn.Dense(2))
    net.initialize()
    X = random(2, 5)
    equal_weights(net, X)
    with autograd.record():
        l = net(X).sum()
    l.backward()
    return net(X), (net[1].weight.data() == net[2].weight.data()).min(), net[1].weight.grad()


@cell
def files_of_networks():
    def make():
        net = nn.HybridSequential()
        net.add(nn.Dense(8, activation="relu"), nn.Dense(3))
        return net

    net, X = make(), random(2, 5)
    net.initialize()
    equal_weights(net, X)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.params")
        net.save_parameters(path)
        clone = make()
        clone.load_parameters(path)
        names = sorted(nd.load(path))
        net.hybridize()
        y = net(X)
        net.export(os.path.join(folder, "net"))
        files = sorted(os.listdir(folder))
        again = gluon.SymbolBlock.imports(os.path.join(folder, "net-symbol.json"), ["data"], os.path.join(folder, "net-0000.params"))
        y2 = again(X)
    return y, clone(X), y2, names, files


# ---- convolutions


@cell
def correlation_from_scratch():
    def corr2d(X, K):
        h, w = K.shape
        Y = nd.zeros((X.shape[0] - h + 1, X.shape[1] - w + 1))
        for i in range(Y.shape[0]):
            for j in range(Y.shape[1]):
                Y[i, j] = (X[i : i + h, j : j + w] * K).sum()
        return Y

    X = nd.ones((6, 8))
    X[:, 2:6] = 0
    K = nd.array([[1, -1]])
    Y = corr2d(X, K)
    conv = nn.Conv2D(1, kernel_size=(1, 2))
    conv.initialize()
    X4, Y4 = X.reshape((1, 1, 6, 8)), Y.reshape((1, 1, 6, 7))
    equal_weights(conv, X4)
    for _ in range(10):
        with autograd.record():
            l = (conv(X4) - Y4) ** 2
        l.backward()
        conv.weight.data()[:] -= 3e-2 * conv.weight.grad()
    return Y, conv.weight.data(), l.sum().asscalar()


@cell
def channels_and_pooling():
    X, K = random(3, 5, 5), random(2, 3, 1, 1)

    def corr1x1(X, K):
        c_i, h, w = X.shape
        return nd.dot(K.reshape((K.shape[0], c_i)), X.reshape((c_i, h * w))).reshape((K.shape[0], h, w))

    def pool2d(X, size, mode="max"):
        Y = nd.zeros((X.shape[0] - size + 1, X.shape[1] - size + 1))
        for i in range(Y.shape[0]):
            for j in range(Y.shape[1]):
                part = X[i : i + size, j : j + size]
                Y[i, j] = part.max() if mode == "max" else part.mean()
        return Y

    x = nd.arange(16).reshape((1, 1, 4, 4))
    pools = [nn.MaxPool2D(3), nn.MaxPool2D(3, padding=1, strides=2), nn.MaxPool2D((2, 3), padding=(1, 1), strides=(2, 3)), nn.AvgPool2D(2, 1), nn.GlobalMaxPool2D()]
    return corr1x1(X, K), nd.Convolution(X.expand_dims(0), K, no_bias=True, kernel=(1, 1), num_filter=2), pool2d(X[0], 2), pool2d(X[0], 2, "avg"), *[p(x) for p in pools]


@cell
def shapes_layer_by_layer():
    net = nn.Sequential()
    net.add(nn.Conv2D(6, kernel_size=5, activation="sigmoid"), nn.MaxPool2D(pool_size=2, strides=2), nn.Conv2D(16, kernel_size=5, activation="sigmoid"),
            nn.MaxPool2D(pool_size=2, strides=2), nn.Dense(120, activation="sigmoid"), nn.Dense(84, activation="sigmoid"), nn.Dense(10))  # fmt: skip
    X = random(1, 1, 28, 28)
    net.initialize()
    equal_weights(net, X)
    shapes = []
    for layer in net:
        X = layer(X)
        shapes.append(X.shape)
    return X, shapes


@cell
def batch_normalisation_from_scratch():
    def batch_norm(X, gamma, beta, moving_mean, moving_var, eps, momentum):
        if not autograd.is_training():
            X_hat = (X - moving_mean) / nd.sqrt(moving_var + eps)
        else:
            assert len(X.shape) in (2, 4)
            if len(X.shape) == 2:
                mean = X.mean(axis=0)
                var = ((X - mean) ** 2).mean(axis=0)
            else:
                mean = X.mean(axis=(0, 2, 3), keepdims=True)
                var = ((X - mean) ** 2).mean(axis=(0, 2, 3), keepdims=True)
            X_hat = (X - mean) / nd.sqrt(var + eps)
            moving_mean = momentum * moving_mean + (1.0 - momentum) * mean
            moving_var = momentum * moving_var + (1.0 - momentum) * var
        return gamma * X_hat + beta, moving_mean, moving_var

    class BatchNorm(nn.Block):
        def __init__(self, num_features, num_dims, **kwargs):
            super(BatchNorm, self).__init__(**kwargs)
            shape = (1, num_features) if num_dims == 2 else (1, num_features, 1, 1)
            self.gamma = self.params.get("gamma", shape=shape, init=init.One())
            self.beta = self.params.get("beta", shape=shape, init=init.Zero())
            self.moving_mean, self.moving_var = nd.zeros(shape), nd.zeros(shape)

        def forward(self, X):
            if self.moving_mean.context != X.context:
                self.moving_mean = self.moving_mean.copyto(X.context)
                self.moving_var = self.moving_var.copyto(X.context)
            Y, self.moving_mean, self.moving_var = batch_norm(X, self.gamma.data(), self.beta.data(), self.moving_mean, self.moving_var, eps=1e-5, momentum=0.9)
            return Y

    net = nn.Sequential()
    net.add(nn.Conv2D(4, kernel_size=3), BatchNorm(4, num_dims=4), nn.Activation("sigmoid"), nn.Dense(8), BatchNorm(8, num_dims=2), nn.Dense(3))
    X, y = random(8, 1, 8, 8), classes(8, 3)
    net.initialize()
    equal_weights(net, X)
    trainer, loss = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}), gloss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        with autograd.record():
            l = loss(net(X), y)
        l.backward()
        trainer.step(8)
    return l, net(X), net[1].gamma.data().reshape((-1,)), net[1].moving_mean


def nin_block(channels, kernel, strides, padding):
    block = nn.HybridSequential()
    block.add(nn.Conv2D(channels, kernel, strides, padding, activation="relu"), nn.Conv2D(channels, kernel_size=1, activation="relu"))
    return block


class Inception(nn.HybridBlock):
    def __init__(self, c1, c2, c3, **kwargs):
        super(Inception, self).__init__(**kwargs)
        self.p1 = nn.Conv2D(c1, kernel_size=1, activation="relu")
        self.p2_1 = nn.Conv2D(c2[0], kernel_size=1, activation="relu")
        self.p2_2 = nn.Conv2D(c2[1], kernel_size=3, padding=1, activation="relu")
        self.p3_1 = nn.MaxPool2D(pool_size=3, strides=1, padding=1)
        self.p3_2 = nn.Conv2D(c3, kernel_size=1, activation="relu")

    def hybrid_forward(self, F, x):
        return F.concat(self.p1(x), self.p2_2(self.p2_1(x)), self.p3_2(self.p3_1(x)), dim=1)


class DenseBlock(nn.HybridBlock):
    def __init__(self, num_convs, num_channels, **kwargs):
        super(DenseBlock, self).__init__(**kwargs)
        self.net = nn.HybridSequential()
        for _ in range(num_convs):
            part = nn.HybridSequential()
            part.add(nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(num_channels, kernel_size=3, padding=1))
            self.net.add(part)

    def hybrid_forward(self, F, X):
        for blk in self.net:
            X = F.concat(X, blk(X), dim=1)
        return X


@cell
def modern_networks():
    found = []
    for make in (lambda: nin_block(4, 3, 1, 1), lambda: Inception(2, (2, 3), 2), lambda: DenseBlock(2, 3)):
        net, X = nn.HybridSequential(), random(2, 3, 8, 8)
        net.add(make(), nn.GlobalAvgPool2D(), nn.Flatten())
        net.initialize(init.Xavier())
        equal_weights(net, X)
        with autograd.record():
            l = (net(X) ** 2).sum()
        l.backward()
        imperative = net(X)
        net.hybridize()
        found += [l, imperative, net(X)]
    return found


# ---- recurrent networks from scratch


@cell
def recurrent_network_from_scratch():
    vocab, hidden, batch, steps = 7, 6, 2, 5
    X, Y = nd.array(source.randint(0, vocab, (batch, steps))), nd.array(source.randint(0, vocab, (batch, steps)))

    def to_onehot(X, size):
        return [nd.one_hot(x, size) for x in X.T]

    W_xh, W_hh, W_hq = random(vocab, hidden, scale=0.1), random(hidden, hidden, scale=0.1), random(hidden, vocab, scale=0.1)
    b_h, b_q = nd.zeros(hidden), nd.zeros(vocab)
    params = [W_xh, W_hh, b_h, W_hq, b_q]
    for param in params:
        param.attach_grad()

    def rnn(inputs, state, params):
        (H,) = state
        outputs = []
        for X in inputs:
            H = nd.tanh(nd.dot(X, W_xh) + nd.dot(H, W_hh) + b_h)
            outputs.append(nd.dot(H, W_hq) + b_q)
        return outputs, (H,)

    def grad_clipping(params, theta):
        norm = nd.array([0])
        for param in params:
            norm += (param.grad**2).sum()
        norm = norm.sqrt().asscalar()
        if norm > theta:
            for param in params:
                param.grad[:] *= theta / norm
        return norm

    loss, state, norms = gloss.SoftmaxCrossEntropyLoss(), (nd.zeros((batch, hidden)),), []
    for _ in range(4):
        for s in state:
            s.detach()
        with autograd.record():
            outputs, state = rnn(to_onehot(X, vocab), state, params)
            outputs = nd.concat(*outputs, dim=0)
            y = Y.T.reshape((-1,))
            l = loss(outputs, y).mean()
        l.backward()
        norms.append(grad_clipping(params, 0.01))
        for p in params:
            p[:] = p - 10 * p.grad
    return math.exp(l.asscalar()), numpy.array(norms), *params


@cell
def gated_units_from_scratch():
    n, h = 4, 3
    X, H, C = random(5, 2, n), nd.zeros((2, h)), nd.zeros((2, h))
    W = [[random(n, h, scale=0.3), random(h, h, scale=0.3), nd.zeros(h)] for _ in range(4)]
    for gate in W:
        for p in gate:
            p.attach_grad()
    with autograd.record():
        outputs = []
        for x in X:
            i, f, o = [nd.sigmoid(nd.dot(x, a) + nd.dot(H, b) + c) for a, b, c in W[:3]]
            new = nd.tanh(nd.dot(x, W[3][0]) + nd.dot(H, W[3][1]) + W[3][2])
            C = f * C + i * new
            H = o * C.tanh()
            outputs.append(H)
        l = nd.stack(*outputs).sum()
    l.backward()
    return l, nd.stack(*outputs), W[0][0].grad, W[3][1].grad, C


@cell
def attention_by_hand():
    def masked_softmax(X, valid_length):
        shape = X.shape
        valid = valid_length.repeat(shape[1], axis=0)
        X = nd.SequenceMask(X.reshape((-1, shape[-1])), valid, True, axis=1, value=-1e6)
        return nd.softmax(X).reshape(shape)

    q, k, v = random(2, 3, 4), random(2, 5, 4), random(2, 5, 6)
    scores = nd.batch_dot(q, k, transpose_b=True) / math.sqrt(4)
    weights = masked_softmax(scores, nd.array([2, 4]))
    emb = nn.Embedding(6, 4)
    emb.initialize()
    words = nd.array([[1, 2], [4, 0]])
    equal_weights(emb, words)
    norm = nn.LayerNorm()
    norm.initialize()
    return weights, nd.batch_dot(weights, v), emb(words), norm(q), nd.softmax(q, axis=1), nd.log_softmax(q), nn.Dense(3, flatten=False, in_units=4).weight.shape


# ---- optimisers


@cell
def optimisers_from_scratch():
    X, y = random(30, 5), random(30, 1)

    def train(trainer_fn, states, hyperparams):
        w, b = nd.array(numpy.linspace(-0.1, 0.1, 5).reshape((5, 1))), nd.zeros(1)
        w.attach_grad()
        b.attach_grad()
        for _ in range(5):
            with autograd.record():
                l = ((nd.dot(X, w) + b - y) ** 2 / 2).mean()
            l.backward()
            trainer_fn([w, b], states, hyperparams)
        return w, b, l

    def momentum(params, states, h):
        for p, v in zip(params, states):
            v[:] = h["momentum"] * v + p.grad
            p[:] -= h["lr"] * v

    def adagrad(params, states, h):
        for p, s in zip(params, states):
            s[:] += p.grad.square()
            p[:] -= h["lr"] * p.grad / (s + 1e-6).sqrt()

    def rmsprop(params, states, h):
        for p, s in zip(params, states):
            s[:] = h["gamma"] * s + (1 - h["gamma"]) * p.grad.square()
            p[:] -= h["lr"] * p.grad / (s + 1e-6).sqrt()

    def adam(params, states, h):
        beta1, beta2, eps = 0.9, 0.999, 1e-6
        for p, (v, s) in zip(params, states):
            v[:] = beta1 * v + (1 - beta1) * p.grad
            s[:] = beta2 * s + (1 - beta2) * p.grad.square()
            v_hat, s_hat = v / (1 - beta1 ** h["t"]), s / (1 - beta2 ** h["t"])
            p[:] -= h["lr"] * v_hat / (s_hat.sqrt() + eps)
        h["t"] += 1

    def pair():
        return nd.zeros((5, 1)), nd.zeros(1)

    return (*train(momentum, pair(), {"lr": 0.1, "momentum": 0.9}), *train(adagrad, pair(), {"lr": 0.1}), *train(rmsprop, pair(), {"lr": 0.01, "gamma": 0.9}),
            *train(adam, list(zip(pair(), pair())), {"lr": 0.1, "t": 1}))  # fmt: skip


@cell
def optimisers_of_gluon():
    X, y = random(20, 4), random(20, 1)
    found = []
    for name, options in (("sgd", {"learning_rate": 0.1, "momentum": 0.9}), ("adagrad", {"learning_rate": 0.1}), ("rmsprop", {"learning_rate": 0.01, "gamma1": 0.9}),
                          ("adadelta", {"rho": 0.9}), ("adam", {"learning_rate": 0.01}), ("sgd", {"learning_rate": 0.1, "clip_gradient": 0.1}), ("ftrl", {}), ("nag", {"momentum": 0.9})):  # fmt: skip
        net = nn.Sequential()
        net.add(nn.Dense(1))
        net.initialize()
        equal_weights(net, X)
        trainer, loss = gluon.Trainer(net.collect_params(), name, options), gloss.L2Loss()
        for _ in range(4):
            with autograd.record():
                l = loss(net(X), y)
            l.backward()
            trainer.step(20)
        found += [l, net[0].weight.data()]
    return found


@cell
def schedules_of_learning_rates():
    schedules = [lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0), lr_scheduler.MultiFactorScheduler(step=[3, 6], factor=0.1, base_lr=0.5),
                 lr_scheduler.CosineScheduler(10, base_lr=0.3, final_lr=0.01), lr_scheduler.PolyScheduler(10, base_lr=0.3, pwr=2),
                 lr_scheduler.CosineScheduler(10, warmup_steps=3, base_lr=0.3, final_lr=0.01)]  # fmt: skip
    rates = [[s(t) for t in range(1, 12)] for s in schedules]
    net, X = nn.Dense(1), random(4, 3)
    net.initialize()
    equal_weights(net, X)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"lr_scheduler": lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=0.2)})
    used = []
    for _ in range(6):
        with autograd.record():
            l = net(X).sum()
        l.backward()
        trainer.step(4)
        used.append(trainer.learning_rate)
    other = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.2})
    other.set_learning_rate(0.05)
    return numpy.array(rates), numpy.array(used), net.weight.data(), other.learning_rate


@cell
def losses():
    p, t, y = random(4, 3), random(4, 3), classes(4, 3)
    sign = nd.array([1, -1, 1, -1])
    return [gloss.L2Loss()(p, t), gloss.L1Loss()(p, t), gloss.SoftmaxCrossEntropyLoss()(p, y), gloss.SoftmaxCELoss(sparse_label=False)(p, nd.softmax(t)),
            gloss.SigmoidBinaryCrossEntropyLoss()(p, t > 0), gloss.SigmoidBCELoss(from_sigmoid=True)(nd.sigmoid(p), t > 0), gloss.KLDivLoss()(nd.log_softmax(p), nd.softmax(t)),
            gloss.HuberLoss()(p, t), gloss.HingeLoss()(p[:, 0], sign), gloss.LogisticLoss()(p[:, 0], sign), gloss.SoftmaxCrossEntropyLoss(weight=0.5)(p, y),
            gloss.TripletLoss()(p, t, p * 2), gloss.L2Loss()(p, t, nd.array([[1], [0], [1], [2]])), nd.softmax_cross_entropy(p, y), gloss.CosineEmbeddingLoss()(p, t, sign)]  # fmt: skip


@cell
def norms_of_gradients():
    arrays = [random(3, 3), random(4)]
    norm = gutils.clip_global_norm(arrays, 1.0)
    return norm, *arrays


@cell
def metrics():
    y, p = nd.array([0, 1, 2, 1]), nd.softmax(random(4, 3))
    found = []
    for name in ("acc", "ce", "mse", "mae"):
        m = mx.metric.create(name)
        m.update([y if name in ("acc", "ce") else y.reshape((-1, 1))], [p if name in ("acc", "ce") else p[:, :1]])
        found.append(m.get())
    top = mx.metric.TopKAccuracy(top_k=2)
    top.update([y], [p])
    return [v for _, v in found], [n for n, _ in found], top.get()[1]


# ---- data


@cell
def loaders():
    X, y = nd.arange(20).reshape((10, 2)), nd.arange(10)
    dataset = gdata.ArrayDataset(X, y)
    found = [(a.sum().asscalar(), b.sum().asscalar()) for a, b in gdata.DataLoader(dataset, batch_size=4)]
    kept = [len(a) for a, _ in gdata.DataLoader(dataset, 4, last_batch="discard")]
    one = dataset[3]
    doubled = dataset.transform_first(lambda a: a * 2)[1][0]
    seen = sorted(float(v) for _, b in gdata.DataLoader(dataset, 3, shuffle=True) for v in b.asnumpy())
    simple = [float(v.asscalar()) for v in gdata.DataLoader(gdata.SimpleDataset([1.0, 2.0, 3.0]), 1)]
    return numpy.array(found), kept, one[0], one[1], doubled, seen, len(gdata.DataLoader(dataset, 4)), len(dataset), simple, [len(b) for b in gdata.DataLoader(X, 5)]


@cell
def transforms():
    t = gdata.vision.transforms
    image = nd.array(source.randint(0, 255, (8, 8, 3)), dtype="uint8")
    chain = t.Compose([t.ToTensor(), t.Normalize([0.5, 0.4, 0.3], [0.2, 0.2, 0.2])])
    return t.ToTensor()(image), chain(image), t.CenterCrop(4)(image), t.Cast("float32")(image), t.Resize(4)(image).shape, t.RandomFlipLeftRight()(image).shape


# ---- computational performance


@cell
def programs_and_symbols():
    x = random(1, 20)
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(8, activation="relu"), nn.Dense(2))
    net.initialize()
    equal_weights(net, x)
    first = net(x)
    net.hybridize()
    second = net(x)
    y = net(mx.sym.var("data"))
    a, b = mx.sym.var("a"), mx.sym.var("b")
    e = (a + b) * 2 - a / b
    value = e.eval(ctx=mx.cpu(), a=nd.ones((2,)) * 3, b=nd.ones((2,)) * 2)
    return first, second, type(y).__name__, len(json.loads(y.tojson())["nodes"]), value[0], e.list_arguments(), sorted(y.list_arguments())[0] == "data"


@cell
def asynchrony():
    a = nd.ones((1, 2))
    b = nd.ones((1, 2))
    c = a * b + 2
    c.wait_to_read()
    nd.waitall()
    mx.nd.waitall()
    for _ in range(1000):
        y = nd.dot(c, c.T)
    s = nd.zeros((1, 2))
    for _ in range(100):
        s = s + c
    return c, y, s, y.norm().asscalar(), c.sum().asnumpy()


@cell
def parallel_work():
    contexts = [mx.cpu(0), mx.cpu(1)]

    def run(x):
        return [nd.dot(x, x) for _ in range(5)]

    def copy(y, ctx):
        return [v.copyto(ctx) for v in y]

    x = random(20, 20)
    parts = [x.copyto(c) for c in contexts]
    done = [run(p) for p in parts]
    nd.waitall()
    host = copy(done[1], mx.cpu())
    z = x.as_in_context(mx.cpu(0))
    return done[0][-1], host[0], z is x, [str(c) for c in contexts], mx.context.num_gpus() * 0, mx.cpu() == mx.cpu(0), mx.Context("cpu", 0) == mx.cpu()


def allreduce(data):
    for i in range(1, len(data)):
        data[0][:] += data[i].copyto(data[0].context)
    for i in range(1, len(data)):
        data[0].copyto(data[i])


@cell
def several_devices_from_scratch():
    ctx = [mx.cpu(0), mx.cpu(1)]
    data = [nd.ones((1, 2), ctx=c) * (i + 1) for i, c in enumerate(ctx)]
    allreduce(data)
    batch = nd.arange(24).reshape((6, 4))
    split = gutils.split_and_load(batch, ctx)
    uneven = gutils.split_data(nd.arange(10), 3, even_split=False)
    try:
        gutils.split_data(nd.arange(10), 3)
        error = "none"
    except ValueError:
        error = "ValueError"
    return (*data, *split, *uneven, error)


@cell
def several_devices_concise():
    class Residual(nn.Block):
        def __init__(self, num_channels, use_1x1conv=False, strides=1, **kwargs):
            super(Residual, self).__init__(**kwargs)
            self.conv1 = nn.Conv2D(num_channels, kernel_size=3, padding=1, strides=strides)
            self.conv2 = nn.Conv2D(num_channels, kernel_size=3, padding=1)
            self.conv3 = nn.Conv2D(num_channels, kernel_size=1, strides=strides) if use_1x1conv else None
            self.bn1, self.bn2 = nn.BatchNorm(), nn.BatchNorm()

        def forward(self, X):
            Y = nd.relu(self.bn1(self.conv1(X)))
            Y = self.bn2(self.conv2(Y))
            if self.conv3:
                X = self.conv3(X)
            return nd.relu(Y + X)

    def resnet_block(num_channels, num_residuals, first_block=False):
        blk = nn.Sequential()
        for i in range(num_residuals):
            blk.add(Residual(num_channels, use_1x1conv=True, strides=2) if i == 0 and not first_block else Residual(num_channels))
        return blk

    net = nn.Sequential()
    net.add(nn.Conv2D(4, kernel_size=3, strides=1, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(resnet_block(4, 2, first_block=True), resnet_block(8, 2), nn.GlobalAvgPool2D(), nn.Dense(5))
    ctx = [mx.cpu(0), mx.cpu(1)]
    net.initialize(init=init.Normal(sigma=0.01), ctx=ctx)
    X, y = random(8, 1, 12, 12), classes(8, 5)
    for part in gutils.split_and_load(X, ctx):
        net(part)
    equal_weights(net, X)
    missing = ""
    try:
        net[0].weight.data(mx.gpu(7))
    except RuntimeError:
        missing = "RuntimeError"
    trainer, loss = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}), gloss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        Xs, ys = gutils.split_and_load(X, ctx), gutils.split_and_load(y, ctx)
        with autograd.record():
            ls = [loss(net(a), b) for a, b in zip(Xs, ys)]
        for l in ls:
            l.backward()
        trainer.step(8)
    return (*ls, net[0].weight.data(ctx[0]), missing)


# ---- arrays of np


@cell
def arrays_of_np():
    npx.set_np()
    try:
        x = np.arange(12).reshape(3, 4)
        y = np.array([[2.0, 1, 4, 3], [1, 2, 3, 4], [4, 3, 2, 1]])
        w = np.ones((4, 2))
        w.attach_grad()
        with autograd.record():
            l = (np.dot(x, w) ** 2).sum()
        l.backward()
        net = nn.Sequential()
        net.add(nn.Dense(4, activation="relu"), nn.Dense(2))
        net.initialize()
        net(x)
        for p in net.collect_params().values():
            p.set_data(np.ones(p.shape) * 0.1)
        out = net(x)
        mask = x > 5
        x[0:2, :] = 12
        return (x, y, np.concatenate([x, y], axis=0), x == y, mask, x.sum(), x.mean(axis=0), np.exp(y), x @ y.T, w.grad, l.item(), float(l), out, np.zeros((2, 3)),
                np.random.normal(0, 1, size=(3, 4)).shape, np.random.uniform(size=(2,)).shape, np.linspace(0, 1, 5), np.linalg.norm(y), np.abs(-y), np.maximum(x, y), x.T,
                np.expand_dims(y, 0), npx.softmax(y), npx.pick(y, np.array([0, 1, 2])), npx.one_hot(np.array([0, 2]), 3), npx.relu(-y), np.where(mask, y, x), y.reshape(-1),
                np.power(y, 2), np.argmax(y, axis=1), np.squeeze(y[:, :1]), np.split(y, 2, axis=1)[0], np.tile(y, (2, 1)), y.var(), np.sign(-y), np.outer(y[0], y[1]), np.cumsum(y, axis=1))  # fmt: skip
    finally:
        npx.reset_np()


# ---- with arrays of np


def with_np(function):
    """A cell in which blocks and loaders make arrays of np."""

    def run():
        npx.set_np()
        try:
            return function()
        finally:
            npx.reset_np()

    run.__name__ = function.__name__
    return cell(run)


def np_random(*shape, scale=1.0):
    return np.array(source.standard_normal(shape) * scale, dtype="float32")


@with_np
def np_regression_from_scratch():
    true_w, true_b = np.array([2, -3.4]), 4.2
    X = np_random(50, 2)
    y = (np.dot(X, true_w) + true_b).reshape((-1, 1))
    w, b = np_random(2, 1, scale=0.01), np.zeros(1)
    w.attach_grad()
    b.attach_grad()
    for i in range(0, 50, 10):
        batch = np.array(list(range(i, i + 10)))
        with autograd.record():
            l = (np.dot(X[batch], w) + b - y[batch]) ** 2 / 2
        l.backward()
        for p in (w, b):
            p[:] = p - 0.1 * p.grad / 10
    return w, b, l.mean(), float(l.sum()), true_w - w.reshape(true_w.shape)


@with_np
def np_softmax_regression():
    X, y = np_random(16, 1, 4, 4), np.array(source.randint(0, 3, 16))
    net = nn.Sequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dropout(0), nn.Dense(3))
    net.initialize(init.Normal(sigma=0.01))
    net(X)
    for i, p in enumerate(net.collect_params().values()):
        p.set_data(np.array(numpy.random.RandomState(i).standard_normal(p.shape) * 0.1))
    loss, trainer = gloss.SoftmaxCrossEntropyLoss(), gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with autograd.record():
            l = loss(net(X), y)
        l.backward()
        trainer.step(16)
    y_hat = net(X)
    hits = (y_hat.argmax(axis=1).astype(y.dtype) == y).astype("float32")
    return l, y_hat, hits.sum(), hits.mean().item(), y_hat[[0, 1], [0, 2]], np.log(npx.softmax(y_hat)), y_hat.max(axis=1)


@with_np
def np_shapes_and_parts():
    x = np.arange(24).reshape(2, 3, 4)
    x[0, 1, 2] = 100
    x[1, :, 0] = np.array([7, 8, 9])
    x[:, :, 3] += 1
    z = np.zeros_like(x)
    z[:] = x
    z *= 2
    return (x, z, x[0], x[-1, 1:], x[..., 1], x[:, None].shape, x[0, 1, 2], x[:, [0, 2]], x.transpose(2, 0, 1), x.swapaxes(0, 1), np.stack([x, x], axis=1).shape, np.vstack((x[0], x[1])),
            np.hstack([x[0], x[1]]), x.sum(axis=(0, 1)), x.min(), x.mean(), x.flatten().shape, np.full((2,), 3.5), np.eye(2), np.ones((2, 2), dtype="int32"), x.astype(np.int32), x.size, len(x), x.ndim,
            np.repeat(x[0], 2, axis=0), np.broadcast_to(x[0], (2, 3, 4)), np.dot(x[0], x[1].T), np.matmul(x, x.transpose(0, 2, 1)), npx.batch_dot(x, x, False, True), np.tanh(x / 24), np.sqrt(x),
            np.clip(x, 1, 5), x.copy(), x.tolist()[0][0], np.mean(x, axis=0), np.sort(x, axis=1), np.argsort(x, axis=2), np.arange(5, dtype="float32"), np.round(x / 7, 2), x > 3, (x > 3).sum(), ~(x > 3))  # fmt: skip


@with_np
def np_recurrent_network():
    vocab, hidden = 5, 4
    X = np.array(source.randint(0, vocab, (2, 3)))
    params = [np_random(vocab, hidden), np_random(hidden, hidden), np.zeros(hidden), np_random(hidden, vocab), np.zeros(vocab)]
    for p in params:
        p.attach_grad()
    H, loss = np.zeros((2, hidden)), gloss.SoftmaxCrossEntropyLoss()
    for _ in range(2):
        with autograd.record():
            outputs = []
            for x in npx.one_hot(X.T, vocab):
                H = np.tanh(np.dot(x, params[0]) + np.dot(H, params[1]) + params[2])
                outputs.append(np.dot(H, params[3]) + params[4])
            l = loss(np.concatenate(outputs, axis=0), X.T.reshape(-1)).mean()
        l.backward()
        norm = math.sqrt(sum((p.grad**2).sum() for p in params))
        for p in params:
            p.grad[:] *= 0.5 / norm
            p[:] -= p.grad
    return l, norm, *params


@with_np
def np_hybrid_and_devices():
    class HybridNet(nn.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.hidden, self.output = nn.Dense(4), nn.Dense(2)

        def hybrid_forward(self, F, x):
            x = F.npx.relu(self.hidden(x))
            return self.output(x)

    net, x = HybridNet(), np_random(2, 3)
    net.initialize()
    net(x)
    for i, p in enumerate(net.collect_params().values()):
        p.set_data(np.array(numpy.random.RandomState(i).standard_normal(p.shape)))
    first = net(x)
    net.hybridize()
    devices = [npx.cpu(0), npx.cpu(1)]
    split = gluon.utils.split_and_load(np.arange(20).reshape(4, 5), devices)
    npx.waitall()
    return first, net(x), *split, x.as_in_ctx(npx.cpu()) is x, str(x.ctx), x.copyto(npx.cpu(0)), np.dot(x, x.T).wait_to_read(), type(first).__name__


# ---- what helpers of books do


@cell
def loading_and_evaluating():
    class Counter(dict):
        def __missing__(self, key):
            return 0

    X, y = random(20, 3, 4, 4), classes(20, 4)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dense(6, activation="sigmoid"), nn.Dropout(0.3), nn.Dense(4))
    net.initialize(init.Xavier(), ctx=[mx.cpu()])
    equal_weights(net, X)
    net.hybridize(static_alloc=True, static_shape=True)
    hits, n = nd.zeros(1), Counter()
    for a, b in gdata.DataLoader(gdata.ArrayDataset(X, y), 8, shuffle=False, num_workers=0):
        a, b = a.as_in_context(mx.cpu()), b.as_in_context(mx.cpu()).astype("float32")
        hits += (net(a).argmax(axis=1) == b).sum()
        n["seen"] += b.size
    return hits, n["seen"], net(X), sum(p.data().size for p in net.collect_params().values()), [p.shape for p in net.collect_params().values()]


@cell
def names_of_things():
    net = nn.Sequential(prefix="model_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=2), nn.Dense(1, in_units=3, prefix="last_"))
    net.initialize()
    return (sorted(net.collect_params().keys()), net.prefix, net[1].name, net[0].weight.name, sorted(gluon.data.vision.__dict__.keys() & {"MNIST", "FashionMNIST", "transforms"}),
            gluon.nn is nn, gluon.loss is gloss, mx.nd is nd, [type(b).__name__ for b in net], net[0:1].__class__.__name__, str(mx.cpu(1)), mx.gpu(1).device_type, mx.gpu(1).device_id)  # fmt: skip


@cell
def fine_tuning():
    base = nn.HybridSequential()
    base.add(nn.Dense(6, activation="relu"), nn.Dense(5))
    X, y = random(12, 4), classes(12, 2)
    base.initialize()
    equal_weights(base, X)
    net = nn.HybridSequential()
    net.add(base[0], nn.Dense(2))
    net[1].initialize(init.Xavier())
    net(X)
    net[1].weight.set_data(nd.ones((2, 6)) * 0.1)
    net[1].collect_params().setattr("lr_mult", 10)
    net[0].collect_params().setattr("grad_req", "null")
    trainer, loss = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "wd": 0.001}), gloss.SoftmaxCrossEntropyLoss()
    for _ in range(3):
        with autograd.record():
            l = loss(net(X), y)
        l.backward()
        trainer.step(12)
    return l, net[1].weight.data(), net[0].weight.data()


@cell
def gradient_accumulation_and_ignored_parameters():
    net, X = nn.Dense(2), random(4, 3)
    net.initialize()
    equal_weights(net, X)
    net.collect_params().setattr("grad_req", "add")
    for _ in range(2):
        with autograd.record():
            l = (net(X) ** 2).mean()
        l.backward()
    added = net.weight.grad().copy()
    net.collect_params().zero_grad()
    with autograd.pause():
        frozen = net(X)
    with autograd.record(train_mode=False):
        modes = autograd.is_recording(), autograd.is_training()
    with autograd.train_mode():
        training = autograd.is_training()
    return added, net.weight.grad(), frozen, *modes, training


@cell
def elementary_functions():
    x = nd.array(numpy.linspace(0.1, 0.9, 9)).reshape((3, 3))
    names = "exp log sqrt square abs sin cos tan arcsin arccos arctan sinh cosh tanh sigmoid relu rsqrt reciprocal cbrt log2 log10 log1p expm1 erf floor ceil round degrees radians softsign".split()
    return [getattr(nd, n)(x) for n in names] + [x.exp(), x.log(), x.sqrt(), x.tanh(), x.relu(), x.softmax(), x**2, 2**x, x % 0.3, -x, 1 - x, 1 / x, nd.power(x, 2), nd.add_n(x, x, x), nd.Activation(x, "softrelu"), nd.LeakyReLU(x - 0.5, act_type="elu", slope=1.0)]


@cell
def errors_that_have_kinds():
    found = []
    for call in (lambda: nd.zeros((2, 3)).asscalar(), lambda: bool(nd.ones((2,))), lambda: nn.HybridSequential().add(nn.Sequential()), lambda: nn.Dense(2).weight.data(),
                 lambda: gluon.Trainer([1], "sgd"), lambda: nd.ones((2,)).nosuch, lambda: mx.nd.ones((2, 2))[5]):  # fmt: skip
        try:
            call()
            found.append("none")
        except Exception as error:
            found.append([k for k in ("AttributeError", "ValueError", "RuntimeError", "IndexError", "AssertionError", "TypeError") if k in [c.__name__ for c in type(error).__mro__]][:1])
    return found


# ---- running them


def flat(value):
    """The numbers and words in a result."""
    if value is None:
        return []
    if hasattr(value, "asnumpy"):
        return [value.asnumpy()]
    if isinstance(value, (numpy.ndarray, bool, int, float, str, numpy.generic)):
        return [numpy.asarray(value)]
    return [a for v in value for a in flat(v)]


def main():
    results, only = {}, sys.argv[3:]
    for number, function in enumerate(CELLS):
        if only and function.__name__ not in only:
            continue
        source.seed(number)
        name = function.__name__.replace("_", " ")
        try:
            for i, a in enumerate(flat(function())):
                results["%s %d" % (name, i)] = a
        except Exception as error:
            if only:
                raise
            results["%s !" % name] = numpy.array("%s: %s" % (type(error).__name__, error))
    numpy.savez(sys.argv[2], **results)


main()
