"""Cells of gluon-chapters.py: arrays of np, and what helpers of books do."""
from .base import *  # noqa: F403


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
