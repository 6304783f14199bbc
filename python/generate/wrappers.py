"""Writes starling/_ops.py and starling/nn.py, one Python function for each operation and one class for each layer that the
headers declare, with the documentation above their definitions in C."""
import keyword
import re
import textwrap

from defaults import UNSET

HAND_MADE = {"compared", "recurrent", "topk", "from", "adopt", "copy_to", "grad", "forward", "param_use", "param_data", "param_grad", "var", "step_run", "cache_forward", "load_npy"}
_OPERATORS = """add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv pow rpow ipow matmul rmatmul
    floordiv rfloordiv ifloordiv mod rmod imod lt le gt ge and rand iand or ror ior xor rxor ixor"""
_LAYERS_BY_HAND = {"sequential", "lambda", "block_add", "import", "block_child", "block_retain"}
_NUMBERS = {"double": "float", "float": "float", "int": "int", "int64_t": "int", "uint64_t": "int", "unsigned": "int", "bool": "bool"}


def python_name(name):
    return name + "_" if keyword.iskeyword(name) else name


class Parameter:
    """One parameter of the Python function, and its conversion for C."""

    def __init__(self, name, hint, default=None, keyword_only=False):
        self.name, self.hint, self.default, self.keyword_only = python_name(name), hint, default, keyword_only

    def declared(self, stub):
        hint = f": {self.hint}" if stub else ""
        return f"{self.name}{hint}" + ("" if self.default is None else f" = {self.default}" if stub else f"={self.default}")


class Call:
    """The Python side of a C function: its parameters, the C argument of each, lines before the call."""

    def __init__(self, headers, function, doc, hidden=()):
        self.headers, self.doc, self.hidden = headers, doc, hidden
        self.parameters, self.arguments, self.before, self.checks = [], [], [], []
        self.counted = None  # the first of several arrays that have one length
        fields = function.parameters[1:]
        skip = None
        for i, field in enumerate(fields):
            if i == skip:
                continue
            following = fields[i + 1].name if i + 1 < len(fields) else ""
            if field.type.replace(" ", "") in ("sl_tensor*const*", "sl_block*const*"):
                shared = [f for f in fields[i + 1 :] if f.type in ("int",)]
                self._array(field, last=following == (shared[0].name if shared else ""))
                if following == (shared[0].name if shared else ""):
                    skip = i + 1
            else:
                self._one(field)

    def _array(self, field, last):
        name = python_name(field.name)
        first = self.counted or name
        optional = first != name and field.name != "grads"  # an optimiser's state, which it may not need
        self.parameters.append(Parameter(field.name, "Sequence[Tensor] | None" if optional else "Sequence[Tensor]", "None" if optional else None))
        count = "" if first == name else f", c_{first}[1]"
        self.before.append(f"c_{name} = tensors_of({name}, {name!r}{count})")  # beside the list, which keeps the tensors alive
        self.arguments.append(f"c_{name}[0]")
        self.counted = first
        if last:
            self.arguments.append(f"c_{first}[1]")
            self.counted = None

    def _one(self, field):
        name, kind = python_name(field.name), field.type
        if kind == "sl_tensor *":
            self.parameters.append(Parameter(field.name, "Tensor | None" if field.optional else "Tensor", "None" if field.optional else None))
            self.arguments.append(f"NULL if {name} is None else {name}._p" if field.optional else f"{name}._p")
            self.checks.append((name, "Tensor"))
        elif kind == "sl_block *":
            self.parameters.append(Parameter(field.name, "Block | None" if field.optional else "Block", "None" if field.optional else None))
            self.arguments.append(f"taken({name})")
        elif kind in _NUMBERS:
            default = "-1" if field.name == "axis" else None
            self.parameters.append(Parameter(field.name, _NUMBERS[kind], default))
            self.arguments.append(f"exact({name})" if kind == "double" else name)
            self.checks.append((name, "number" if kind == "double" else "int"))
        elif kind == "sl_shape":
            self.parameters.append(Parameter(field.name, "int | Sequence[int]"))
            self.arguments.append(f"shape_of({name})")
        elif kind == "sl_device":
            self.parameters.append(Parameter(field.name, "str | Device | None", "None"))
            self.arguments.append(f"device_of({name})")
        elif kind == "struct sl_make":
            self.parameters.append(Parameter("dtype", "Any", "None", True))
            self.parameters.append(Parameter("device", "str | Device | None", "None", True))
            self.arguments.append("(dtype_of(dtype), device_of(device))")
        elif kind == "enum sl_dtype":
            self.parameters.append(Parameter(field.name, "Any"))
            self.arguments.append(f"dtype_of({name})")
        elif kind.startswith("enum "):
            self.parameters.append(Parameter(field.name, "str | None", "None"))
            self.arguments.append(f"choice({_kinds(kind)}, {name}, {name!r})")
        elif kind.startswith("struct ") and kind[7:] in self.headers.structs:
            self._options(self.headers.structs[kind[7:]], self.headers.defaults.get(kind[7:], {}))
        elif kind == "const char *":
            self.parameters.append(Parameter(field.name, "str"))
            self.arguments.append(f"text_of({name}, {name!r})")
        else:
            raise NotImplementedError(f"{field.name}: {kind}")

    def _options(self, fields, defaults):
        parts = []
        for field in fields:
            name, kind = python_name(field.name), field.type
            if field.name in self.hidden or any(p.name == name for p in self.parameters):
                parts.append("(0, 0)" if field.length == 2 else "0")  # the function sets it
            elif field.name == "as_written":
                parts.append("True")  # a 0 is a 0
            elif field.name in defaults and (kind in _NUMBERS):
                parts.append(self._defaulted(field, defaults[field.name]))
            elif kind == "const int *":
                self.parameters.append(Parameter("axes", "int | Sequence[int] | None", "None"))
                self.parameters.append(Parameter("axis", "int | Sequence[int] | None", "None", True))  # NumPy's name for them
                self.before.append("axes, naxes = axes_of(axes, axis)")
                parts += ["axes", "naxes"]
            elif field.name == "naxes":
                continue
            elif field.length == 2:
                self.parameters.append(Parameter(field.name, "int | tuple[int, int]", "0", True))
                parts.append(f"pair({name})")
            elif kind in _NUMBERS:
                default = {"bool": "False", "float": "0.0"}.get(_NUMBERS[kind], "0")
                self.parameters.append(Parameter(field.name, _NUMBERS[kind], default, True))
                parts.append(f"exact({name})" if kind == "double" else name)
            elif kind == "struct sl_initializer":
                self.parameters.append(Parameter(field.name, "Initializer | None", "None", True))
                parts.append(f"initializer_of({name})")
            elif kind == "enum sl_dtype":
                self.parameters.append(Parameter(field.name, "Any", "None", True))
                parts.append(f"dtype_of({name})")
            elif kind.startswith("enum "):
                self.parameters.append(Parameter(field.name, "str | None", "None", True))
                parts.append(f"choice({_kinds(kind)}, {name}, {name!r})")
            elif kind == "sl_tensor *":
                self.parameters.append(Parameter(field.name, "Tensor | None", "None", True))
                self.checks.append((name, "Tensor"))
                parts.append(f"NULL if {name} is None else {name}._p")
            elif kind == "sl_device":
                self.parameters.append(Parameter(field.name, "str | Device | None", "None", True))
                parts.append(f"device_of({name})")
            else:
                raise NotImplementedError(f"{field.name}: {kind}")
        self.arguments.append(f"({', '.join(parts)},)")

    def _defaulted(self, field, default):
        """A field whose default is not 0: the value passed to C."""
        name, hint = python_name(field.name), _NUMBERS[field.type]
        given = name
        if field.length == 2:
            hint, given = "int | tuple[int, int]", f"pair({name}, {name!r}, 1)"
            default = default[0] if default[0] == default[1] else default
        if default is UNSET:
            unset = "UNSET" if hint == "float" else "UNSET_INT" if field.length is None else "(UNSET_INT, UNSET_INT)"
            self.parameters.append(Parameter(field.name, f"{hint} | None", "None", True))
            return f"{unset} if {name} is None else {given}"
        self.parameters.append(Parameter(field.name, hint, repr(float(default) if hint == "float" else default), True))
        return given

    def signature(self, stub=False, first=()):
        parts = list(first)
        plain = [p for p in self.parameters if not p.keyword_only]
        for i, p in enumerate(plain):  # after one with a default all have one
            if p.default is None and any(q.default is not None for q in plain[:i]):
                p.keyword_only = True
        parts += [p.declared(stub) for p in self.parameters if not p.keyword_only]
        named = [p.declared(stub) for p in self.parameters if p.keyword_only]
        return ", ".join(parts + (["*", *named] if named else []))


def _kinds(kind):
    return "kinds_" + kind.removeprefix("enum sl_")


def _public(name):
    """add_inplace_at is add_ in programs."""
    short = name.removeprefix("sl_").removesuffix("_at")
    return short.removesuffix("_inplace") + "_" if short.endswith("_inplace") else short


def _docstring(doc, name, indent="    "):
    doc = re.sub(r"sl_NAME\w*_at\b(?:(\()at, |(\())?", lambda m: name + (m[1] or m[2] or ""), doc)
    doc = doc.replace("\\", "\\\\").replace('"""', "'''").strip()
    doc = doc[:1].upper() + doc[1:]
    first, _, rest = doc.partition("\n\n")
    if rest and not first.endswith((".", ":")):
        first += "."
    text = first + ("\n\n" + rest if rest else "")
    # Examples in C are marked as such.
    text = re.sub(r"\n\n(?=    \S)", "\n\nIn C:\n\n", text, count=1)
    if "\n" in text:
        text += "\n"
    return textwrap.indent(f'"""{text}"""', indent, lambda line: line.strip() != "")


def _enums(headers, used):
    lines = []
    for kind in sorted(used):
        members = list(headers.enums["sl_" + kind])
        if members[-1].endswith(("S", "COUNT")):  # how many there are
            members.pop()
        prefix = "SL_POOL_" if kind == "pool_type" else "SL_"
        pairs = ", ".join(f'"{m.removeprefix(prefix).lower()}": lib.{m}' for m in members)
        lines.append(f"kinds_{kind} = {{{pairs}}}")
    return lines


def _is_operation(function, headers):
    if not function.name.endswith("_at") or function.returns != "sl_tensor *":
        return False
    return _public(function.name) not in HAND_MADE


_COUNTED = {"sum": "int64", "prod": "int64", "cumsum": "int64", "mean": "float32"}  # of bools, in this type
_COMPARISONS = set("eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isfinite".split())


def _is_comparison(name):
    return name.removesuffix("_scalar") in _COMPARISONS


def _is_update(function):
    return function.name.endswith("_update_at")


class Operations:
    """starling/_ops.py and its stub."""

    def __init__(self, headers, docs):
        self.calls, self.left_out = {}, {}
        for function in headers.functions.values():
            if not _is_operation(function, headers) and not _is_update(function):
                continue
            doc = docs.get(function.name) or docs.get(function.name.replace("_inplace_at", "_at"), "")
            try:
                call = Call(headers, function, doc)
                if _is_comparison(_public(function.name)):
                    call.parameters.append(Parameter("dtype", "Any", "None", True))
                self.calls[_public(function.name)] = (function, call)
            except NotImplementedError as reason:
                self.left_out[_public(function.name)] = str(reason)
        self.headers = headers

    def _function(self, name, function, call):
        lines = [f"def {name}({call.signature()}):", _docstring(call.doc, name)]
        lines += [f"    {line}" for line in call.before]
        arguments = ", ".join(["here()", *call.arguments])
        if name in _COUNTED:
            lines.append(f'    x = numbers_of(x, "{_COUNTED[name]}")')
        lines.append("    try:")
        lines.append(f"        p = lib.{function.name}({arguments})")
        lines.append("    except (AttributeError, TypeError, OverflowError) as error:")
        given = ", ".join(f'("{n}", {n}, {k if k == "Tensor" else repr(k)})' for n, k in call.checks)
        lines.append(f'        bad_argument("{name}", [{given}], error)')
        first = next((n for n, k in call.checks if k == "Tensor"), None)
        if function.returns != "sl_tensor *":
            lines.append("    check(p)")
        elif name.endswith("_") and not name.endswith("__"):
            lines += ["    if not p:", "        raise_error()", f"    return {first}"]
        else:
            result = f"wrap(p, {first}.__class__)" if first else "wrap(p, Tensor)"
            if _is_comparison(name):
                result = f"wrap(p, {first}.__class__) if dtype is None else wrap(p, {first}.__class__).astype(dtype)"
            lines.append(f"    return {result}")
        if function.returns == "sl_tensor *" and [k for _, k in call.checks] == ["Tensor", "Tensor"]:
            lines += ["", "", f'{name}._c_name = "{name}"']
        return "\n".join(lines)

    def module(self):
        used = set(re.findall(r"kinds_(\w+)", " ".join(a for _, c in self.calls.values() for a in c.arguments)))
        head = [
            '"""The operations, made from the C headers."""',
            "from ._arguments import *",
            "",
            f"__all__ = {sorted(self.calls)!r}",
            f"OPTIONS = frozenset({sorted({field.name for fields in self.headers.structs.values() for field in fields})!r})",
            "",
            *_enums(self.headers, used),
            "",
            "",
        ]
        return "\n".join(head) + "\n\n\n".join(self._function(n, f, c) for n, (f, c) in self.calls.items()) + "\n\n\nadd_methods(globals())\n"

    def stub(self):
        lines = ["from typing import Any, Sequence", "", "from ._tensor import Device, Tensor", "", f"__all__ = {sorted(self.calls)!r}", ""]
        for name, (function, call) in self.calls.items():
            returns = "Tensor" if function.returns == "sl_tensor *" else "None"
            lines += [f"def {name}({call.signature(True)}) -> {returns}:", _docstring(call.doc, name), "    ...", ""]
        return "\n".join(lines)


    def methods_stub(self, names):
        """The stub of tensors' methods: operators, and these operations."""
        lines = ["from typing import Any, Self, Sequence", "", "from ._tensor import Device, Tensor", "", "class Methods:", "    _p: Any"]
        lines += [f"    def __{o}__(self, other: Any) -> Self: ..." for o in _OPERATORS.split()]
        lines += [f"    def __{o}__(self) -> Self: ..." for o in ("neg", "pos", "abs", "invert")]
        for name in names:
            operation = "variance" if name == "var" else name
            if operation in self.calls:
                rest = self.calls[operation][1].signature(True).partition(", ")[2]
                lines.append(f"    def {name}(self{', ' if rest else ''}{rest}) -> Self: ...")
        return "\n".join(lines) + "\n"


class Layers:
    """starling/nn.py and its stub."""

    def __init__(self, headers, docs):
        self.calls, self.headers = {}, headers
        for function in headers.functions.values():
            short = function.name.removeprefix("sl_").removesuffix("_at")
            if function.returns != "sl_block *" or not function.name.endswith("_at") or short in _LAYERS_BY_HAND:
                continue
            doc = docs.get(function.name, "")
            try:
                self.calls[_class_name(short)] = (function, Call(headers, function, doc, hidden=("type",)))
            except NotImplementedError:
                continue

    def _class(self, name, function, call):
        children = [p.name for p in call.parameters if p.hint.startswith("Block")]
        recurrent = _is_recurrent(function)
        lines = [f"class {name}({'Recurrent' if recurrent else 'Block'}):", _docstring(call.doc, name), ""]
        lines.append(f"    def __init__({call.signature(first=('self',))}):")
        lines += [f"        {line}" for line in call.before]
        lines.append("        try:")
        lines.append(f"            p = lib.{function.name}({', '.join(['here()', *call.arguments])})")
        lines.append("        except (AttributeError, TypeError, OverflowError) as error:")
        given = ", ".join(f'("{n}", {n}, {k!r})' for n, k in call.checks)
        lines.append(f'            bad_argument("{name}", [{given}], error)')
        lines.append("        self._own(p)")
        lines += ["        self._before_states = 2 if lengths else 1"] if recurrent else []
        lines += [f'        self._children["{c}"] = {c}' for c in children]
        return "\n".join(lines)

    def module(self):
        used = set(re.findall(r"kinds_(\w+)", " ".join(a for _, c in self.calls.values() for a in c.arguments)))
        head = [
            '"""Layers, made from the C headers, and Sequential, Lambda and Block."""',
            "from ._arguments import *",
            "from ._blocks import Block, Lambda, Recurrent, Sequential, initializer_of, taken",
            "",
            f"__all__ = {sorted([*self.calls, 'Block', 'Lambda', 'Sequential'])!r}",
            "",
            *_enums(self.headers, used),
            "",
            "",
        ]
        return "\n".join(head) + "\n\n\n".join(self._class(n, f, c) for n, (f, c) in self.calls.items()) + "\n"

    def stub(self):
        lines = ["from typing import Any, Sequence", "", "from ._blocks import Block as Block, Initializer, Lambda as Lambda, Recurrent",
                 "from ._blocks import Sequential as Sequential", "from ._tensor import Device, Tensor", ""]
        for name, (function, call) in self.calls.items():
            lines += [f"class {name}({'Recurrent' if _is_recurrent(function) else 'Block'}):", _docstring(call.doc, name)]
            lines += [f"    def __init__({call.signature(True, ('self',))}) -> None: ...", ""]
        return "\n".join(lines)


def _is_recurrent(function):
    return any(p.type == "struct sl_recurrent_layer_opts" for p in function.parameters)


def _class_name(short):
    return "".join(part[:1].upper() + part[1:] for part in short.removesuffix("_layer").split("_"))
