"""Cells of gluon-chapters.py: linear and softmax regression, perceptrons."""
from .base import *  # noqa: F403


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
