"""Python's names for C's names in the library's messages: sl_cast is astype, .force = true is force=True."""
import re

from ._ffi import lib

_NAMES = {
    "accuracy_new": "Accuracy", "adopt": "from_numpy", "backward": "backward", "block_find": "find", "block_param": "param",
    "cache_new": "Cache", "cast": "astype", "checkpoint_open": "checkpoint.load", "checkpoint_restore": "checkpoint.load", "clone": "copy", "copy_": "copy_",
    "from": "array", "import": "load", "import_onnx": "load", "init": "start", "loader_new": "data.Loader", "loader_next": "data.Loader",
    "mean_new": "Mean", "param_fit": "forward", "read": "numpy", "step_compile": "Step", "step_run": "Step",
    "topk_new": "TopK", "trainer_new": "Trainer",
}  # fmt: skip
_CLASSES = {"block": "Block", "cache": "Cache", "checkpoint": "checkpoint", "dataset": "Dataset", "metric": "Metric", "param": "Parameter", "trainer": "Trainer"}
_SCOPES = {"SL_RECORD": "starling.record()", "SL_PAUSE": "starling.pause()"}


def _name(match):
    from . import _ops, data, nn

    name = match[1]
    if name in _NAMES:
        return _NAMES[name]
    if name in data.__all__ and name not in _ops.__all__:
        return f"data.{name}"
    if not hasattr(lib, f"sl_{name}_at") and not hasattr(lib, f"sl_{name}"):
        return match[0]  # a file, for example
    layer = "".join(part.capitalize() for part in name.removesuffix("_layer").split("_"))
    if name not in _ops.__all__ and layer in nn.__all__:
        return f"nn.{layer}"
    first, _, rest = name.partition("_")
    if rest and first in _CLASSES and name not in _ops.__all__:
        return f"data.{rest}" if first == "dataset" and rest in data.__all__ else f"{_CLASSES[first]}.{rest}"
    return name.removesuffix("_inplace") + "_" if name.endswith("_inplace") else name


def _option(match):
    from ._ops import OPTIONS

    name, value = match[1], match[2]
    if name not in OPTIONS:
        return match[0]
    return name if value is None else f"{name}={value.capitalize() if value in ('true', 'false') else value}"


def in_python(message):
    """The message with Python's names."""
    message = re.sub(r"(?<![\w/.'\"-])sl_(\w+)(?![\w/-]|\.\w|:\d)", _name, message)
    message = re.sub(r"(?<![\w/.*'\"-])\.([a-z]\w*)\b(?! file)(?: = (\w+))?(?![\w/.]*:\d)", _option, message)
    message = re.sub(r"\bNULL\b", "None", message)
    message = re.sub(r"\bSL_SHAPE\(([^()]*)\)", r"(\1)", message)
    message = re.sub(r"\bSL_SHAPES\(((?:\([^()]*\)(?:, )?)+)\)", r"shapes=[\1]", message)
    return re.sub(r"\bSL_(RECORD|PAUSE)\b", lambda m: _SCOPES[m[0]], message)
