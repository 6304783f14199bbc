"""Defaults of options: the lists SL_DEFAULTS_… of the public headers, for the signatures of functions and for starling._core.options."""
import re
import subprocess

UNSET = object()  # the default depends on other things: None in Python


def _arguments(text, begin):
    """The text between the parenthesis at `begin` and its closing one."""
    depth = 0
    for i in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if not depth:
            return text[begin + 1 : i]
    raise ValueError(text[begin : begin + 60])


def _value(text, lists):
    text = text.strip()
    if text.startswith("{"):
        return tuple(_value(part, lists) for part in text.strip("{}").split(","))
    if text in ("SL_UNSET", "SL_UNSET_INT"):
        return UNSET
    inside = re.fullmatch(r"SL_FILLED_\((\w+)\)", text)
    if inside:
        return _fields(inside[1], lists)
    quotient = [float(part) if re.search(r"[.e]", part) else int(part) for part in text.split("/")]
    return quotient[0] if len(quotient) == 1 else quotient[0] / quotient[1]


def _fields(struct, lists):
    text, fields = lists[struct], {}
    for found in re.finditer(r"\bX(?=\()", text):
        name, _, value = _arguments(text, found.end()).partition(",")
        fields[name.strip()] = _value(value, lists)
    return fields


def read(include, compiler="cc"):
    """{structure: {field: default}} of the headers in a folder: what the preprocessor makes of the lists, with X as it is."""
    names = sorted({n for header in include.glob("*.h") for n in re.findall(r"#define SL_DEFAULTS_(\w+)\(X\)", header.read_text())})
    kept = "#undef SL_UNSET\n#undef SL_UNSET_INT\n#undef SL_FILLED_\n#undef X\n"
    lists = "".join(f"SLPY_LIST {n} SL_DEFAULTS_{n}(X)\n" for n in names)
    command = [*compiler.split(), "-E", "-P", f"-I{include.parent}", "-x", "c", "-"]
    text = subprocess.run(command, input=f"#include <starling.h>\n{kept}{lists}", check=True, capture_output=True, text=True).stdout
    found = dict(part.split(None, 1) if " " in part.strip() else (part.strip(), "") for part in text.split("SLPY_LIST ")[1:])
    return {struct: _fields(struct, found) for struct in names}


def _written(value, kind):
    if value is UNSET:
        return "UNSET" if kind == "double" else "UNSET_INT"
    if isinstance(value, tuple):
        return f"({', '.join(_written(v, kind) for v in value)},)"
    return repr(value)


def module(defaults, structs):
    """starling/_defaults.py."""
    lines = ['"""Defaults of options, made from the C headers: what a call leaves out."""', "import struct", "",
             "UNSET = struct.unpack(\"<d\", struct.pack(\"<Q\", 0x7FF80000000051E7))[0]  # SL_UNSET: not given",
             "UNSET_INT = -(2**31)", "", "DEFAULTS = {"]
    for name, fields in defaults.items():
        kinds = {field.name: field.type for field in structs[name]}
        parts = [f'"{f}": DEFAULTS_OF_{kinds[f].removeprefix("struct ")}' if isinstance(v, dict) else f'"{f}": {_written(v, kinds[f])}'
                 for f, v in fields.items()]
        lines.append(f'    "{name}": {{{", ".join([*parts, chr(34) + "as_written" + chr(34) + ": True"])}}},')
    text = "\n".join([*lines, "}"]) + "\n"
    return re.sub(r"DEFAULTS_OF_(\w+)", lambda m: next(line for line in lines if line.startswith(f'    "{m[1]}":')).partition(": ")[2].rstrip(","), text)
