"""mx.optimizer: how parameters are updated by their gradients.

SGD, NAG, Adam and AdamW are the engine's.  The others are made of operations, one parameter at a time.
"""
from .. import _ops as ops
from .missing import missing, not_here

_classes = {}


class Optimizer:
    """The base of optimisers; one of your own has update(index, weight, grad, state), which changes weight in place."""

    _rate = 0.01

    def __init__(self, rescale_grad=1.0, param_idx2name=None, wd=0.0, clip_gradient=None, learning_rate=None, lr_scheduler=None,
                 begin_num_update=0, **options):
        for name in options:
            if name not in ("multi_precision", "param_dict", "sym", "aggregate_num", "use_fused_step", "lazy_update"):
                raise TypeError(f"{type(self).__name__} has no setting {name!r}")
        self.rescale_grad, self.wd, self.clip_gradient, self.lr_scheduler = rescale_grad, wd, clip_gradient, lr_scheduler
        self.lr = self._rate if learning_rate is None else learning_rate
        if lr_scheduler is not None and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.num_update, self._counts, self.lr_mult, self.wd_mult = begin_num_update, {}, {}, {}

    @staticmethod
    def register(kind):
        """Makes an optimiser known by its name in lower case."""
        _classes[kind.__name__.lower()] = kind
        return kind

    @staticmethod
    def create_optimizer(name, **options):
        """The optimiser of that name."""
        return create(name, **options)

    @property
    def learning_rate(self):
        """The learning rate of the next update."""
        return self.lr_scheduler(self.num_update) if self.lr_scheduler is not None else self.lr

    def set_learning_rate(self, lr):
        """Sets the learning rate."""
        if self.lr_scheduler is not None:
            raise UserWarning("LRScheduler of the optimizer has already been defined. Note that set_learning_rate can mutate the "
                              "value of the learning rate of the optimizer only when the LRScheduler of the optimizer is undefined.")  # fmt: skip
        self.lr = lr

    def set_lr_mult(self, args_lr_mult):
        """Factors of the learning rate by the parameters' numbers."""
        self.lr_mult = dict(args_lr_mult)

    def set_wd_mult(self, args_wd_mult):
        """Factors of the weight decay by the parameters' numbers."""
        self.wd_mult = dict(args_wd_mult)

    def create_state(self, index, weight):
        """What is kept for a parameter."""

    create_state_multi_precision = create_state

    def update(self, index, weight, grad, state):
        """Changes weight in place by its gradient."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def update_multi_precision(self, index, weight, grad, state):
        """The same as update."""
        self.update(index, weight, grad, state)

    def engine(self):
        """(the engine's optimiser, its settings) that does the same; None if there is none."""

    def _update_count(self, index):
        for i in index if isinstance(index, (list, tuple)) else [index]:
            self._counts[i] = self._counts.get(i, 0) + 1
            self.num_update = max(self.num_update, self._counts[i])

    def _get_lr(self, index):
        return self.learning_rate * self.lr_mult.get(index, 1.0)

    def _get_wd(self, index):
        return self.wd * self.wd_mult.get(index, 1.0)

    def _begin(self, index):
        """(learning rate, weight decay, number of the update)."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._counts[index]

    def _given(self, grad, weight=None, wd=0.0):
        """The gradient, scaled and clipped, and what decays."""
        g = grad if self.rescale_grad == 1 else grad * self.rescale_grad
        if self.clip_gradient:
            g = ops.clip(g, -self.clip_gradient, self.clip_gradient)
        return g + weight * wd if wd else g

    def _options(self, lr, wd):
        return {"lr": lr, "weight_decay": wd, "rescale": self.rescale_grad, "clip_value": self.clip_gradient or None}


register = Optimizer.register


def _zeros(weight, n=1):
    made = [weight.zeros_like() for _ in range(n)]
    return made[0] if n == 1 else tuple(made)


@register
class SGD(Optimizer):
    """Stochastic gradient descent, with a momentum."""

    _nesterov = False

    def __init__(self, learning_rate=None, momentum=0.0, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.momentum = momentum

    def engine(self):
        return "sgd", {"momentum": self.momentum, "nesterov": self._nesterov and self.momentum > 0}

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        ops.sgd_update([weight], [grad], None if state is None else [state], momentum=self.momentum,
                       nesterov=self._nesterov and self.momentum > 0, **self._options(lr, wd))  # fmt: skip


@register
class NAG(SGD):
    """With Nesterov's momentum."""

    _nesterov = True


@register
class Adam(Optimizer):
    """Adam."""

    _rate, _decoupled = 0.001, False

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def engine(self):
        return "adamw" if self._decoupled else "adam", {"beta1": self.beta1, "beta2": self.beta2, "eps": self.epsilon}

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        ops.adam_update([weight], [grad], [state[0]], [state[1]], beta1=self.beta1, beta2=self.beta2, eps=self.epsilon,
                        decoupled=self._decoupled, step=t, **self._options(lr, wd))  # fmt: skip


@register
class AdamW(Adam):
    """Adam whose weights decay by themselves."""

    _decoupled = True


@register
class AdaGrad(Optimizer):
    """Rates by the sum of squared gradients."""

    def __init__(self, learning_rate=None, eps=1e-7, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.float_stable_eps = eps

    def create_state(self, index, weight):
        return _zeros(weight)

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g = self._given(grad)
        state += ops.square(g)
        weight[:] = weight - (g * ops.rsqrt(state + self.float_stable_eps) + weight * wd) * lr


@register
class RMSProp(Optimizer):
    """Rates by the running mean of squared gradients; epsilon is under the root."""

    def __init__(self, learning_rate=0.001, gamma1=0.9, gamma2=0.9, epsilon=1e-8, centered=False, clip_weights=None, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.gamma1, self.gamma2, self.epsilon, self.centered, self.clip_weights = gamma1, gamma2, epsilon, centered, clip_weights

    def create_state(self, index, weight):
        return _zeros(weight, 3) if self.centered else (_zeros(weight),)

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g, n = self._given(grad, weight, wd), state[0]
        n[:] = ops.square(g) * (1 - self.gamma1) + n * self.gamma1
        if self.centered:
            mean, delta = state[1:]
            mean[:] = g * (1 - self.gamma1) + mean * self.gamma1
            delta[:] = delta * self.gamma2 - g * ops.rsqrt(n - ops.square(mean) + self.epsilon) * lr
            new = weight + delta
        else:
            new = weight - g * ops.rsqrt(n + self.epsilon) * lr
        weight[:] = ops.clip(new, -self.clip_weights, self.clip_weights) if self.clip_weights else new


@register
class AdaDelta(Optimizer):
    """Rates by the running means of squared gradients and updates."""

    def __init__(self, rho=0.90, epsilon=1e-5, **options):
        super().__init__(**options)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        _, wd, _ = self._begin(index)
        g, (squares, updates) = self._given(grad), state
        squares[:] = squares * self.rho + ops.square(g) * (1 - self.rho)
        delta = ops.sqrt(updates + self.epsilon) * ops.rsqrt(squares + self.epsilon) * g
        updates[:] = updates * self.rho + ops.square(delta) * (1 - self.rho)
        weight[:] = weight - delta - weight * wd


@register
class Adamax(Optimizer):
    """Adam with the largest gradient in the place of the mean square."""

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.beta1, self.beta2 = beta1, beta2

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        g, (mean, most) = self._given(grad, weight, wd), state
        mean[:] = mean * self.beta1 + g * (1 - self.beta1)
        most[:] = ops.maximum(most * self.beta2, abs(g))
        weight[:] = weight - mean / (most + 1e-8) * (lr / (1 - self.beta1**t))


@register
class Ftrl(Optimizer):
    """Follow the regularised leader."""

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.lamda1, self.beta = lamda1, beta

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g, (z, n) = self._given(grad), state
        sum_ = n + ops.square(g)
        z[:] = z + g - (ops.sqrt(sum_) - ops.sqrt(n)) * weight / lr
        n[:] = sum_
        weight[:] = (ops.sign(z) * self.lamda1 - z) / ((ops.sqrt(n) + self.beta) / lr + wd) * (abs(z) > self.lamda1)


@register
class Signum(Optimizer):
    """By the sign of the momentum."""

    def __init__(self, learning_rate=0.01, momentum=0.9, wd_lh=0.0, **options):
        super().__init__(learning_rate=learning_rate, **options)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g = self._given(grad, weight, wd)
        if state is None:
            weight[:] = weight * (1 - lr * self.wd_lh) - ops.sign(g) * lr
            return
        state[:] = state * self.momentum - g * (1 - self.momentum)
        weight[:] = weight * (1 - lr * self.wd_lh) + ops.sign(state) * lr


class Updater:
    """Keeps an optimiser's states by the parameters' numbers."""

    def __init__(self, optimizer):
        self.optimizer, self.states = optimizer, {}

    def __call__(self, index, grad, weight):
        if index not in self.states:
            self.states[index] = self.optimizer.create_state(index, weight)
        self.optimizer.update(index, weight, grad, self.states[index])


def get_updater(optimizer):
    """A function (number, gradient, weight) that updates the weight."""
    return Updater(optimizer)


def create(name, **options):
    """The optimiser of that name."""
    if isinstance(name, Optimizer):
        return name
    if str(name).lower() not in _classes:
        raise not_here(f"optimizer {name!r}", ", ".join(sorted(_classes)))
    return _classes[name.lower()](**options)


__getattr__ = missing("mx.optimizer")
