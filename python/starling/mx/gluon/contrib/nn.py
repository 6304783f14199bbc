"""mx.gluon.contrib.nn: blocks side by side, and pixels that move to another axis."""
from .. import nn as _nn
from ...unsupported import missing, not_here
from ..block import HybridBlock


class Identity(HybridBlock):
    """The input itself."""

    def hybrid_forward(self, F, x):
        return x


class Concurrent(_nn.Sequential):
    """Blocks of the same input, whose results are joined along an axis."""

    def __init__(self, axis=-1, prefix=None, params=None):
        super().__init__(prefix, params)
        object.__setattr__(self, "_joined", axis)

    @property
    def axis(self):
        """The axis that results are joined along."""
        return self._joined

    def forward(self, x):
        from ... import nd

        return nd.concat(*(block(x) for block in self._children.values()), dim=self._joined)


class HybridConcurrent(Concurrent, _nn.HybridSequential):
    """Hybrid blocks of the same input, whose results are joined along an axis."""


class SyncBatchNorm(_nn.BatchNorm):
    """Batch normalisation on one context, where the statistics are those of the whole batch; several contexts are refused."""

    def __init__(self, in_channels=0, num_devices=None, momentum=0.9, epsilon=1e-5, center=True, scale=True, use_global_stats=False, **options):
        if num_devices not in (None, 1):
            raise not_here(f"SyncBatchNorm(num_devices={num_devices})", "one context")
        options.pop("ndev", None)
        super().__init__(in_channels=in_channels, momentum=momentum, epsilon=epsilon, center=center, scale=scale, use_global_stats=use_global_stats, **options)

    def initialize(self, init=None, ctx=None, **options):
        """As of other layers, on one context."""
        if isinstance(ctx, (list, tuple)) and len(ctx) > 1:
            raise not_here("SyncBatchNorm on several contexts", "one context")
        super().initialize(init, ctx, **options)

    def _set_contexts(self, contexts):
        if len(contexts) > 1:
            raise not_here("SyncBatchNorm on several contexts", "one context")
        super()._set_contexts(contexts)


class SparseEmbedding(_nn.Embedding):
    """Embedding whose gradient is given as sparse rows."""

    def __init__(self, input_dim, output_dim, dtype="float32", weight_initializer=None, **common):
        super().__init__(input_dim, output_dim, dtype, weight_initializer, sparse_grad=True, **common)


class _PixelShuffle(HybridBlock):
    _axes = 2

    def __init__(self, factor, prefix=None, params=None):
        super().__init__(prefix, params)
        factors = (factor,) * self._axes if isinstance(factor, int) else tuple(factor)
        if len(factors) != self._axes:
            raise ValueError(f"{type(self).__name__}: factor has {len(factors)} numbers, {self._axes} are needed")
        object.__setattr__(self, "_factors", factors)

    def hybrid_forward(self, F, x):
        n, f = self._axes, self._factors
        count = 1
        for each in f:
            count *= each
        lengths = x.shape[2:]
        x = x.reshape((x.shape[0], x.shape[1] // count, *f, *lengths))
        order = [0, 1] + [axis for i in range(n) for axis in (2 + n + i, 2 + i)]
        return F.transpose(x, axes=tuple(order)).reshape((x.shape[0], x.shape[1], *(m * k for m, k in zip(lengths, f))))

    def __repr__(self):
        return f"{type(self).__name__}({self._factors[0] if self._axes == 1 else self._factors})"


class PixelShuffle1D(_PixelShuffle):
    """(n, c·f, w) as (n, c, w·f)."""

    _axes = 1


class PixelShuffle2D(_PixelShuffle):
    """(n, c·f·g, h, w) as (n, c, h·f, w·g)."""


class PixelShuffle3D(_PixelShuffle):
    """(n, c·f·g·k, d, h, w) as (n, c, d·f, h·g, w·k)."""

    _axes = 3


__getattr__ = missing("mx.gluon.contrib.nn")
