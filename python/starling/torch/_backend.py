"""The backend of torch.compile: graphs from Dynamo through AOTAutograd."""
import functools

from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext

from ._graph import Function
from ._table import LOWER


@functools.lru_cache(maxsize=None)
def decompositions():
    """PyTorch's decompositions into core operations, less those of what the table has whole."""
    return {target: f for target, f in core_aten_decompositions().items() if target not in LOWER}


def _forward(gm, examples):
    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    return make_boxed_func(Function(gm, True, getattr(metadata, "num_forward", None)))


def _backward(gm, examples):
    return make_boxed_func(Function(gm, True))


@functools.lru_cache(maxsize=None)
def _compiler():
    return aot_autograd(
        fw_compiler=_forward, bw_compiler=_backward, inference_compiler=_forward, decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True,
    )  # fmt: skip


def backend(gm, example_inputs, **options):
    """What torch.compile(model, backend="starling") calls."""
    if options:
        raise TypeError(f"the backend starling takes no options, not {', '.join(options)}")
    return _compiler()(gm, example_inputs)
