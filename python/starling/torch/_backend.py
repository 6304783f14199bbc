"""The backend of torch.compile: graphs from Dynamo through AOTAutograd."""
import functools

import torch
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext

from ._graph import Function
from ._partition import partition
from ._table import LOWER


aten = torch.ops.aten
# Decompositions that PyTorch has beside the core ones.
MORE = [
    aten.ldexp, aten.dist, aten.batch_norm_backward, aten.grid_sampler_2d, aten.special_ndtr, aten.rrelu_with_noise_backward,
]  # fmt: skip


@functools.lru_cache(maxsize=None)
def decompositions():
    """PyTorch's decompositions into core operations, less those of what the table has whole."""
    known = {**core_aten_decompositions(), **get_decompositions(MORE)}
    return {target: f for target, f in known.items() if target not in LOWER}


def _boxed(function):
    """A plain function, whose mark survives Dynamo's wrappers: it takes the arguments in a list, and gives them up."""

    def call(args):
        fast = function.fast
        found = fast and fast(args)
        return function(args) if found is None else found

    call._boxed_call = True
    return call


def _forward(gm, examples):
    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    return _boxed(Function(gm, getattr(metadata, "num_forward", None)))


def _backward(gm, examples):
    return _boxed(Function(gm))


@functools.lru_cache(maxsize=None)
def _compiler():
    return aot_autograd(
        fw_compiler=_forward, bw_compiler=_backward, inference_compiler=_forward, decompositions=decompositions(),
        partition_fn=partition, keep_inference_input_mutations=True,
    )  # fmt: skip


def backend(gm, example_inputs, **options):
    """What torch.compile(model, backend="starling") calls."""
    if options:
        raise TypeError(f"the backend starling takes no options, not {', '.join(options)}")
    return _compiler()(gm, example_inputs)
