"""mx.optimizer: updates of parameters by the rules of MXNet 1.9.1.

SGD, NAG, Adam, AdamW, and the engine's optimisers that MXNet lacks (Lion), are one call of the engine for all parameters
with the same rates.  The others are made of operations, one parameter at a time.
"""
import functools
import math
import pickle

import numpy

from .. import _ops as ops
from .._core import NULL, check, ffi, here, lib, options as _options
from .._tensor import Tensor, borrow
from .._training import OPTIMIZERS, SETTINGS
from ._array import NDArray
from ._lazy import sparse_update
from ._mode import is_np_array
from ._sparse import BaseSparseNDArray
from ._signed import as_mxnet as _as_mxnet
from .unsupported import missing, not_here

_classes = {}


def _of_sparse(update):
    """An optimiser's update, which sparse arrays reach by their rows or their dense values."""

    @functools.wraps(update)
    def call(self, index, weight, grad, state):
        if isinstance(grad, BaseSparseNDArray) or isinstance(weight, BaseSparseNDArray):
            return sparse_update(self, index, weight, grad, state)
        return update(self, index, weight, grad, state)

    return call


class Optimizer:
    """The base of optimisers; a custom one has update(index, weight, grad, state), which changes weight in place."""

    def __init__(self, rescale_grad=1.0, param_idx2name=None, wd=0.0, clip_gradient=None, learning_rate=None, lr_scheduler=None, sym=None,
                 begin_num_update=0, multi_precision=False, param_dict=None):
        attributes = {} if sym is None else sym.attr_dict()
        self._of_symbol = {name: attributes[name] for name in sym.list_arguments() if name in attributes} if attributes else {}
        self.rescale_grad, self.wd, self.clip_gradient, self.lr_scheduler = rescale_grad, wd, clip_gradient, lr_scheduler
        self.lr = 0.01 if learning_rate is None else learning_rate
        if lr_scheduler is not None:
            if learning_rate is None:
                self.lr = getattr(lr_scheduler, "base_lr", None)  # any function of the number of updates is a scheduler
            else:
                lr_scheduler.base_lr = learning_rate
        self.begin_num_update = self.num_update = begin_num_update
        self.multi_precision, self._index_update_count = multi_precision, {}
        self.allow_np_array = is_np_array()  # as MXNet's have it; both kinds of arrays are updated alike
        self.idx2name, self.param_dict = dict(param_idx2name or {}), dict(param_dict or {})
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass):
        """Registers an optimiser by its name in lower case."""
        _classes[klass.__name__.lower()] = klass
        if "update" in vars(klass) and klass.__module__ == __name__:
            klass.update = _of_sparse(klass.update)
        return klass

    @staticmethod
    def create_optimizer(name, **kwargs):
        """The optimiser of that name."""
        return create(name, **kwargs)

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
        """Factors of the learning rate by the parameters' numbers or names; before them, those of the program's variables."""
        self.lr_mult = {**self._factors("__lr_mult__"), **args_lr_mult}

    def _factors(self, attribute):
        return {name: float(given[attribute]) for name, given in self._of_symbol.items() if attribute in given}

    def set_wd_mult(self, args_wd_mult):
        """Factors of the weight decay by the parameters' numbers or names; biases do not decay if names are known."""
        self.wd_mult = {name: 0.0 for name in self.idx2name.values() if not name.endswith(("_weight", "_gamma"))}
        self.wd_mult.update({**self._factors("__wd_mult__"), **args_wd_mult})

    def create_state(self, index, weight):
        """The state of a parameter."""

    _master_first = True  # of the state with multi_precision, as MXNet's

    def _has_master(self, weight):
        """Whether the weight has a copy in float32, which is what is updated."""
        return self.multi_precision and weight.dtype == numpy.float16

    def create_state_multi_precision(self, index, weight):
        """The state; with multi_precision, for float16, that of a copy in float32, and the copy."""
        if not self._has_master(weight):
            return self.create_state(index, weight)
        master = weight.astype("float32")
        state = self.create_state(index, master)
        return (master, state) if self._master_first else (state, master)

    def update(self, index, weight, grad, state):
        """Changes weight in place by its gradient."""
        raise NotImplementedError(f"{type(self).__name__} has no update")

    def update_multi_precision(self, index, weight, grad, state):
        """update, of the copy in float32 if there is one; of lists, several parameters."""
        if isinstance(index, (list, tuple)):
            return self.update_several(index, weight, grad, state)
        if not self._has_master(weight):
            return self.update(index, weight, grad, state)
        master, inner = state if self._master_first else reversed(state)
        self.update(index, master, grad.astype("float32"), inner)
        weight[:] = master.astype("float16")

    def update_several(self, indices, weights, grads, states):
        """Updates several parameters."""
        for each in zip(indices, weights, grads, states):
            self.update_multi_precision(*each)

    def _update_count(self, index):
        for i in index if isinstance(index, (list, tuple)) else [index]:
            self._index_update_count[i] = self._index_update_count.get(i, self.begin_num_update) + 1
            self.num_update = max(self.num_update, self._index_update_count[i])

    def _factor(self, index, name):
        parameter = self.param_dict.get(index)
        if parameter is not None:
            return getattr(parameter, name)
        factors = getattr(self, name)
        return factors[index] if index in factors else factors.get(self.idx2name.get(index), 1.0)

    def _get_lr(self, index):
        return self.learning_rate * self._factor(index, "lr_mult")

    def _get_wd(self, index):
        return self.wd * self._factor(index, "wd_mult")

    def _begin(self, index):
        """(learning rate, weight decay, number of the update)."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._index_update_count[index]

    def _clipped(self, g):
        """The gradient limited to ±clip_gradient, if that is above 0: for MXNet's operators other values mean no limit."""
        return ops.clip(g, -self._limit, self._limit) if self._limit else g

    @property
    def _limit(self):
        return self.clip_gradient if self.clip_gradient is not None and not self.clip_gradient <= 0 else None

    def _scaled(self, grad):
        return grad if self.rescale_grad == 1 else grad * self.rescale_grad

    def _given(self, grad):
        """The gradient, scaled and clipped."""
        return self._clipped(self._scaled(grad))

    def _decayed(self, grad, weight, wd):
        """The scaled gradient plus the decay, clipped together."""
        g = self._scaled(grad)
        return self._clipped(g + weight * wd if wd else g)


register = Optimizer.register


def _zeros(weight, n=1):
    made = [weight.zeros_like() for _ in range(n)]
    return made[0] if n == 1 else tuple(made)


def _alike(rates):
    """The indices of parameters by their rates: {(learning rate, decay, number of the update): [index, …]}."""
    groups = {}
    for place, each in enumerate(rates):
        groups.setdefault(each, []).append(place)
    return groups


class _Together(Optimizer):
    """An optimiser for which one call of the engine updates all parameters with the same rates."""

    def update(self, index, weight, grad, state):
        self.update_several([index], [weight], [grad], [state])

    def update_several(self, indices, weights, grads, states):
        if any(map(self._has_master, weights)):
            for each in zip(indices, weights, grads, states):
                self.update_multi_precision(*each)
            return
        if any(isinstance(t, BaseSparseNDArray) for t in (*weights, *grads)):
            for each in zip(indices, weights, grads, states):
                sparse_update(self, *each)
            return
        for rates, places in _alike([self._begin(index) for index in indices]).items():
            self._update_alike(*rates, *([all_[i] for i in places] for all_ in (weights, grads, states)))


@register
class SGD(_Together):
    """Stochastic gradient descent, with momentum."""

    _nesterov, _master_first = False, False

    def __init__(self, momentum=0.0, lazy_update=True, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None

    def _update_alike(self, lr, wd, _, weights, grads, states):
        momentum = 0 if states[0] is None else self.momentum
        if lr < 0 or wd < 0 or momentum < 0:  # the engine's rates are positive
            for each in zip(weights, grads, states):
                self._by_operations(lr, wd, *each)
            return
        ops.sgd_update(weights, grads, states if momentum else None, lr=lr, momentum=momentum, nesterov=self._nesterov and bool(momentum),
                       velocity=bool(momentum), weight_decay=wd, rescale=self.rescale_grad, clip_value=self._limit)  # fmt: skip

    def _by_operations(self, lr, wd, weight, grad, state):
        change = (self._given(grad) + weight * wd) * -lr
        if state is not None:
            state[:] = state * self.momentum + change
            change = state * self.momentum + change if self._nesterov else state
        weight[:] = weight + change


@register
class ccSGD(SGD):
    """The same as SGD."""


@register
class NAG(SGD):
    """With Nesterov's momentum."""

    _nesterov = True

    def __init__(self, momentum=0.0, **kwargs):
        super().__init__(momentum, **kwargs)

    def _update_alike(self, lr, wd, t, weights, grads, states):
        if not wd or not self.momentum or states[0] is None:
            super()._update_alike(lr, wd, t, weights, grads, states)
            return
        for weight, grad, state in zip(weights, grads, states):
            g, before = self._given(grad) * lr, state * self.momentum
            weight[:] = weight + (before - g - weight * (lr * wd)) * self.momentum - g - weight * (lr * wd)
            state[:] = before - g - weight * (lr * wd)  # MXNet's momentum contains the decay of the new weight


@register
class Adam(_Together):
    """Adam; epsilon is added before the correction of the first steps' means, and the decay is clipped with the gradient."""

    _decoupled = False

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def _update_alike(self, lr, wd, t, weights, grads, states):
        corrected = math.sqrt(1 - self.beta2**t)
        if min(lr, self.beta1, self.beta2, self.epsilon, self.rescale_grad) <= 0 or wd < 0:  # the engine's settings are positive
            for each in zip(weights, grads, states):
                self._by_operations(lr * corrected / (1 - self.beta1**t), wd, *each)
            return
        rescale, clip = self.rescale_grad, self._limit
        if clip and wd and not self._decoupled:
            grads, rescale, clip, wd = [self._decayed(g, w, wd) for g, w in zip(grads, weights)], 1, None, 0
        ops.adam_update(weights, grads, [m for m, _ in states], [v for _, v in states], lr=lr, beta1=self.beta1, beta2=self.beta2,
                        eps=self.epsilon if self._decoupled else self.epsilon / corrected, weight_decay=wd, decoupled=self._decoupled,
                        rescale=rescale, clip_value=clip, step=t)  # fmt: skip

    def _by_operations(self, rate, wd, weight, grad, state):
        mean, square = state
        g = self._given(grad) if self._decoupled else self._decayed(grad, weight, wd)
        mean[:] = mean * self.beta1 + g * (1 - self.beta1)
        square[:] = square * self.beta2 + ops.square(g) * (1 - self.beta2)
        weight[:] = weight - mean * rate / (ops.sqrt(square) + self.epsilon)


@register
class AdamW(Adam):
    """Adam with decoupled weight decay, as in PyTorch: MXNet 1.9.1 lacks it."""

    _decoupled = True

    def _by_operations(self, rate, wd, weight, grad, state):
        raise not_here("AdamW with a rate, a beta or an epsilon of 0", "positive ones, or Adam")


class _AlwaysClips(Optimizer):
    """Optimisers that also clip to 0."""

    def _clipped(self, g):
        if self.clip_gradient is None:
            return g
        if not self.clip_gradient >= 0:
            raise ValueError(f"{type(self).__name__}: clip_gradient is {self.clip_gradient}, a number from 0 on is needed")
        return ops.clip(g, -self.clip_gradient, self.clip_gradient)


@register
class AdaGrad(_AlwaysClips):
    """Rates by the sum of squared gradients."""

    def __init__(self, eps=1e-7, **kwargs):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index, weight):
        return _zeros(weight)

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g = self._given(grad)
        state[:] = state + ops.square(g)
        weight[:] = weight - (g / ops.sqrt(state + self.float_stable_eps) + weight * wd) * lr


@register
class RMSProp(Optimizer):
    """Rates by the running mean of squared gradients; epsilon is under the root."""

    def __init__(self, learning_rate=0.001, gamma1=0.9, gamma2=0.9, epsilon=1e-8, centered=False, clip_weights=None, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon, self.centered, self.clip_weights = gamma1, gamma2, epsilon, centered, clip_weights

    def create_state(self, index, weight):
        return _zeros(weight, 3) if self.centered else (_zeros(weight),)

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g, n = self._decayed(grad, weight, wd), state[0]
        n[:] = ops.square(g) * (1 - self.gamma1) + n * self.gamma1
        if self.centered:
            mean, delta = state[1:]
            mean[:] = g * (1 - self.gamma1) + mean * self.gamma1
            delta[:] = delta * self.gamma2 - g / ops.sqrt(n - ops.square(mean) + self.epsilon) * lr
            new = weight + delta
        else:
            new = weight - g / ops.sqrt(n + self.epsilon) * lr
        weight[:] = ops.clip(new, -self.clip_weights, self.clip_weights) if self.clip_weights else new


@register
class AdaDelta(_AlwaysClips):
    """Rates by the running means of squared gradients and updates."""

    def __init__(self, rho=0.90, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        _, wd, _ = self._begin(index)
        g, (squares, updates) = self._given(grad), state
        squares[:] = squares * self.rho + ops.square(g) * (1 - self.rho)
        delta = ops.sqrt(updates + self.epsilon) / ops.sqrt(squares + self.epsilon) * g
        updates[:] = updates * self.rho + ops.square(delta) * (1 - self.rho)
        weight[:] = weight - delta - weight * wd


@register
class Adamax(_AlwaysClips):
    """Adam with the largest gradient instead of the mean square."""

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        g, (mean, most) = self._decayed(grad, weight, wd), state
        mean[:] = mean * self.beta1 + g * (1 - self.beta1)
        most[:] = ops.maximum(most * self.beta2, abs(g))
        weight[:] = weight - mean * (lr / (1 - self.beta1**t)) / most


@register
class Nadam(_AlwaysClips):
    """Adam with Nesterov's momentum."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule_decay=0.004, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.schedule_decay, self.m_schedule = beta1, beta2, epsilon, schedule_decay, 1.0

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def _momentum(self, t):
        return self.beta1 * (1 - 0.5 * 0.96 ** (t * self.schedule_decay))

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        g, (mean, square) = self._decayed(grad, weight, wd), state
        now, then = self._momentum(t), self._momentum(t + 1)
        self.m_schedule *= now  # of all parameters together, as in MXNet
        mean[:] = mean * self.beta1 + g * (1 - self.beta1)
        square[:] = square * self.beta2 + ops.square(g) * (1 - self.beta2)
        towards = g * ((1 - now) / (1 - self.m_schedule)) + mean * (then / (1 - self.m_schedule * then))
        weight[:] = weight - towards * lr / (ops.sqrt(square / (1 - self.beta2**t)) + self.epsilon)


@register
class Ftrl(Optimizer):
    """Follow the regularised leader."""

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **kwargs):
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

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
class FTML(Optimizer):
    """Follow the moving leader."""

    def __init__(self, beta1=0.6, beta2=0.999, epsilon=1e-8, **kwargs):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index, weight):
        return _zeros(weight, 3)

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        g, (before, square, z) = self._decayed(grad, weight, wd), state
        square[:] = square * self.beta2 + ops.square(g) * (1 - self.beta2)
        now = (ops.sqrt(square / (1 - self.beta2**t)) + self.epsilon) * ((1 - self.beta1**t) / lr if lr else math.inf)
        z[:] = z * self.beta1 + g * (1 - self.beta1) - (now - before * self.beta1) * weight
        before[:] = now
        weight[:] = -z / now


@register
class Signum(Optimizer):
    """By the sign of the momentum."""

    def __init__(self, learning_rate=0.01, momentum=0.9, wd_lh=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g = self._given(grad)
        if state is None:
            weight[:] = weight * (1 - lr * wd) - ops.sign(g) * lr
            return
        state[:] = state * self.momentum - (g + weight * wd) * (1 - self.momentum)
        weight[:] = weight * (1 - lr * self.wd_lh) + ops.sign(state) * lr


@register
class LAMB(Optimizer):
    """Adam whose step for each parameter is scaled by the parameter's norm."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-6, lower_bound=None, upper_bound=None, bias_correction=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.lower_bound, self.upper_bound, self.bias_correction = lower_bound, upper_bound, bias_correction

    def create_state(self, index, weight):
        return _zeros(weight, 2)

    def update(self, index, weight, grad, state):
        lr, wd, t = self._begin(index)
        step = self._direction(weight, grad, state, wd, t)
        weight[:] = weight - step * (self._ratio(ops.norm(weight), ops.norm(step)) * lr)

    def _direction(self, weight, grad, state, wd, t):
        """Adam's step with the decay; changes the state."""
        g, (mean, square) = self._given(grad), state
        mean[:] = mean * self.beta1 + g * (1 - self.beta1)
        square[:] = square * self.beta2 + ops.square(g) * (1 - self.beta2)
        corrected = (1 - self.beta1**t, 1 - self.beta2**t) if self.bias_correction else (1, 1)
        return mean / corrected[0] / (ops.sqrt(square / corrected[1]) + self.epsilon) + weight * wd

    def _ratio(self, length, other):
        """The norm of the weight, within the bounds, over that of the step; 1 if either is 0."""
        if self.lower_bound:
            length = ops.maximum_scalar(length, self.lower_bound)
        if self.upper_bound:
            length = ops.minimum_scalar(length, self.upper_bound)
        return ops.masked_fill(length / other, ops.eq_scalar(length * other, 0), 1)


@register
class DCASGD(_AlwaysClips):
    """SGD that compensates the delay of gradients."""

    def __init__(self, momentum=0.0, lamda=0.04, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index, weight):
        return (_zeros(weight) if self.momentum else None, weight.copy())

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        g, (momentum, before) = self._given(grad), state
        change = (g + weight * wd + ops.square(g) * (weight - before) * self.lamda) * -lr
        if momentum is not None:
            momentum[:] = momentum * self.momentum + change
            change = momentum
        before[:] = weight
        weight[:] = weight + change


@register
class SGLD(_AlwaysClips):
    """Langevin dynamics: half a step of SGD, and noise."""

    def update(self, index, weight, grad, state):
        lr, wd, _ = self._begin(index)
        noise = ops.cast(ops.normal(weight.shape, 0, math.sqrt(lr), device=weight.device), str(Tensor.dtype.fget(weight)))
        weight[:] = weight - (self._given(grad) + weight * wd) * (lr / 2) + noise


class _OfEngine(_Together):
    """An optimiser of the engine that MXNet 1.9.1 lacks; its settings are those of starling.Trainer."""

    def __init__(self, learning_rate=None, **kwargs):
        self._own = {name: kwargs.pop(name) for name in SETTINGS if name in kwargs}
        given = _options("sl_optimizer", kind=self._kind, **self._own)
        super().__init__(learning_rate=lib.sl_optimizer_lr(ffi.addressof(given)) if learning_rate is None else learning_rate, **kwargs)
        self._states = lib.sl_optimizer_states(ffi.addressof(given))

    def create_state(self, index, weight):
        return [weight.zeros_like() for _ in range(self._states)]

    def _update_alike(self, lr, wd, t, weights, grads, states):
        given = _options("sl_optimizer", kind=self._kind, lr=lr, weight_decay=wd, clip_value=self.clip_gradient or None, **self._own)
        tensors = [ffi.new("sl_tensor *[]", [each._p for each in list_]) for list_ in (weights, grads, *zip(*states))]
        tensors += [NULL] * (4 - len(tensors))
        check(lib.sl_optimizer_update_at(here(), given, t, self.rescale_grad, *tensors, len(weights)))


for _name, _kind in OPTIMIZERS.items():
    if _name not in _classes:
        _class = type(_name.capitalize(), (_OfEngine,), {"_kind": _kind, "__module__": __name__, "__doc__": f"The engine's {_name}."})
        globals()[_class.__name__] = register(_class)


class Updater:
    """Keeps an optimiser's states by the parameters' numbers."""

    def __init__(self, optimizer):
        self.optimizer, self.states = optimizer, {}

    def __call__(self, index, grad, weight):
        several = isinstance(index, (list, tuple))
        indices, grads, weights = (index, grad, weight) if several else ([index], [grad], [weight])
        grads, weights = [_plain(g) for g in grads], [_plain(w) for w in weights]
        for i, w in zip(indices, weights):
            if i not in self.states:
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
        self.optimizer.update_several(indices, weights, grads, [self.states[i] for i in indices])

    def get_states(self, dump_optimizer=False):
        """The states as bytes, for set_states."""
        return pickle.dumps((self.states, self.optimizer) if dump_optimizer else self.states)

    def set_states(self, states):
        """Continues from the states of get_states."""
        read = pickle.loads(states)
        self.states, self.optimizer = read if isinstance(read, tuple) else (read, self.optimizer)


def _plain(t):
    """The same array with the semantics of mx.nd, for the code of optimisers."""
    if not isinstance(t, Tensor):
        raise TypeError(f"an optimizer updates arrays, not {type(t).__name__}")
    return t if type(t) is NDArray or isinstance(t, BaseSparseNDArray) else borrow(t._p, NDArray)


def get_updater(optimizer):
    """A function (number, gradient, weight) that updates the weight."""
    return Updater(optimizer)


def create(name, **kwargs):
    """The optimiser of that name."""
    if isinstance(name, Optimizer):
        return name
    if str(name).lower() not in _classes:
        raise not_here(f"optimizer {name!r}", ", ".join(sorted(_classes)))
    return _classes[name.lower()](**kwargs)


_as_mxnet("optimizer", globals())
__getattr__ = missing("mx.optimizer")
