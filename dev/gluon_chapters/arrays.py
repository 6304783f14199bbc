"""Cells of gluon-chapters.py: arrays and gradients."""
from .base import *  # noqa: F403


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
