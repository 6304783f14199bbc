"""Networks of eight-bit numbers."""
from . import _core
from ._blocks import Block
from ._core import NULL, check, ffi, here, lib, text_of
from ._tensor import Tensor, array

_METHODS = {"minmax": "SL_CALIBRATE_MINMAX", "percentile": "SL_CALIBRATE_PERCENTILE", "entropy": "SL_CALIBRATE_ENTROPY"}


def _tensors(samples):
    """The inputs of all samples, one after another."""
    if isinstance(samples, Tensor) or not isinstance(samples, (list, tuple)):
        raise _core.wrong("samples", samples, "a list of inputs, or of tuples of inputs")
    flat = [x for s in samples for x in (s if isinstance(s, (list, tuple)) else (s,))]
    return [x if isinstance(x, Tensor) else array(x) for x in flat]


def quantize(network, path, samples, *, method="minmax", percentile=None, per_tensor=False, inputs=()):
    """Writes a network of float32 as an ONNX model whose convolutions and products of matrices are computed in bytes.

    network is a block with one input, or the path of an ONNX model, whose inputs come in the order of the file if inputs does
    not name them.  samples is a list of inputs, or of tuples of inputs, from which the ranges of values follow: by method
    "minmax", "percentile" (99.99 for example; the others are cut off) or "entropy".

        starling.quantize("resnet50.onnx", "resnet50-int8.onnx", images)
    """
    if method not in _METHODS:
        raise _core.wrong("method", method, "one of " + ", ".join(_METHODS))
    if (percentile is None) == (method == "percentile"):
        raise _core.InvalidArgument('percentile and method="percentile" belong together')
    tensors = _tensors(samples)
    c_samples = ffi.new("sl_tensor *[]", [_core.pointer("a sample", t, Tensor) for t in tensors])
    names = [ffi.new("char[]", n.encode()) for n in ([inputs] if isinstance(inputs, str) else inputs)]
    c_names = ffi.new("const char *[]", names) if names else NULL
    opts = (getattr(lib, _METHODS[method]), percentile or 0, per_tensor, c_names, len(names))
    if isinstance(network, Block):
        check(lib.sl_quantize_at(here(), network._p, text_of(path, "path"), c_samples, len(tensors), opts))
    else:
        check(lib.sl_quantize_onnx_at(here(), text_of(network, "network"), text_of(path, "path"), c_samples, len(tensors), opts))
