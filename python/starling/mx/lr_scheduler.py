"""mx.lr_scheduler: learning rates as functions of the number of updates."""
import math

from ._signed import as_mxnet as _as_mxnet
from .unsupported import missing


class LRScheduler:
    """The base of schedules: a call with the number of updates returns the learning rate."""

    def __init__(self, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        self.base_lr, self.warmup_steps, self.warmup_begin_lr, self.warmup_final_lr = base_lr, warmup_steps, warmup_begin_lr, base_lr
        if warmup_begin_lr > base_lr:
            raise ValueError("Base lr has to be higher than warmup_begin_lr")
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ValueError("Warmup steps has to be positive or 0")
        if warmup_mode not in ("linear", "constant"):
            raise ValueError("Supports only linear and constant modes of warmup")
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update):
        """The rate before warmup_steps."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def __call__(self, num_update):
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self._after(num_update)

    def _after(self, num_update):
        raise NotImplementedError("must override this")


class FactorScheduler(LRScheduler):
    """The rate is multiplied by factor every step updates."""

    def __init__(self, step, factor=1, stop_factor_lr=1e-8, base_lr=0.01, **options):
        super().__init__(base_lr, **options)
        if step < 1:
            raise ValueError("Schedule step must be greater or equal than 1 round")
        if factor > 1:
            raise ValueError("Factor must be no more than 1 to make lr reduce")
        self.step, self.factor, self.stop_factor_lr, self.count = step, factor, stop_factor_lr, 0

    def _after(self, num_update):
        while num_update > self.count + self.step:
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """The rate is multiplied by factor after each of the numbers of updates in step."""

    def __init__(self, step, factor=1, base_lr=0.01, **options):
        super().__init__(base_lr, **options)
        if not isinstance(step, list) or not step:
            raise ValueError("Schedule step must be a list of numbers")
        if any(b <= a for a, b in zip(step, step[1:])):
            raise ValueError("Schedule step must be an increasing integer list")
        self.step, self.factor, self.cur_step_ind = step, factor, 0

    def _after(self, num_update):
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.cur_step_ind += 1
            self.base_lr *= self.factor
        return self.base_lr


class _Towards(LRScheduler):
    """From base_lr to final_lr within max_update updates."""

    def __init__(self, max_update, base_lr=0.01, final_lr=0, **options):
        super().__init__(base_lr, **options)
        if not isinstance(max_update, int) or max_update < 1:
            raise ValueError("maximum number of updates must be strictly positive")
        self.base_lr_orig, self.max_update, self.final_lr = base_lr, max_update, final_lr
        self.max_steps = max_update - self.warmup_steps

    def _after(self, num_update):
        if num_update <= self.max_update:
            share = self._share((num_update - self.warmup_steps) / self.max_steps)
            self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * share
        return self.base_lr


class PolyScheduler(_Towards):
    """Decreases by a power of the remaining part."""

    def __init__(self, max_update, base_lr=0.01, pwr=2, final_lr=0, **options):
        super().__init__(max_update, base_lr, final_lr, **options)
        self.power = pwr

    def _share(self, done):
        return (1 - done) ** self.power


class CosineScheduler(_Towards):
    """Decreases along half a cosine."""

    def _share(self, done):
        return (1 + math.cos(math.pi * done)) / 2


_as_mxnet("lr_scheduler", globals())
__getattr__ = missing("mx.lr_scheduler")
