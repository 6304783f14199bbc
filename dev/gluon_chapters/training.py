"""Cells of gluon-chapters.py: optimisers, data, computational performance."""
from .base import *  # noqa: F403


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
