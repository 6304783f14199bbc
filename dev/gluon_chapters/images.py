"""Cells of gluon-chapters.py: convolutions."""
from .base import *  # noqa: F403


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
