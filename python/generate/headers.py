"""The public C headers as data: their preprocessed text, functions, structures and enums."""
import pathlib
import re
import subprocess
import tempfile

import defaults
from pycparser import c_ast, c_parser

# Types of the standard headers, for pycparser; cffi knows them itself.
_STANDARD = """
typedef _Bool bool; typedef unsigned long size_t; typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;
typedef long int64_t; typedef unsigned long uint64_t; typedef struct _IO_FILE FILE;
"""


_NAMES = ("starling.h", "starling/dist.h")
_OPTIONAL = "restrict"  # stands for SL_OPTIONAL: a qualifier that the headers do not use otherwise, and that the parser keeps


def preprocess(include, compiler="cc", names=_NAMES, defines=()):
    """The declarations of these headers below the folder `include`, as cffi takes them."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool", "stddef", "stdint", "stdio"):
            (pathlib.Path(empty) / f"{name}.h").touch()
        command = [*compiler.split(), "-E", "-P", "-nostdinc", "-D__attribute__(x)=", *defines, f"-I{empty}", f"-I{include}", "-x", "c", "-"]
        lines = "".join(f"#include <{name}>\n" for name in names)
        text = subprocess.run(command, input=lines, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"^#pragma .*$", "", text, flags=re.MULTILINE)  # about warnings
    return re.sub(r"\n{2,}", "\n", text)


class Field:
    """A field of a structure, or a parameter: its name, its type as C writes it, and its length if it is an array."""

    def __init__(self, name, type_, length=None):
        self.name, self.type, self.length = name, type_, length
        self.optional = False  # SL_OPTIONAL: it may be NULL


class Function:
    def __init__(self, name, returns, parameters):
        self.name, self.returns, self.parameters = name, returns, parameters


def _spell(node):
    """The C type of a declaration, without its name."""
    if isinstance(node, c_ast.PtrDecl):
        return _spell(node.type) + " *" + "".join(f" {q}" for q in node.quals)
    if isinstance(node, c_ast.ArrayDecl):
        return _spell(node.type)
    if isinstance(node, c_ast.FuncDecl):
        return "function"
    inner = node.type
    if isinstance(inner, c_ast.IdentifierType):
        name = " ".join(inner.names)
    elif isinstance(inner, c_ast.Struct):
        name = f"struct {inner.name}"
    elif isinstance(inner, c_ast.Enum):
        name = f"enum {inner.name}"
    else:
        name = type(inner).__name__
    return " ".join([*node.quals, name])


def _field(declaration):
    length = None
    if isinstance(declaration.type, c_ast.ArrayDecl) and declaration.type.dim is not None:
        length = int(declaration.type.dim.value)
    field = Field(declaration.name, _spell(_plain(declaration.type)), length)
    field.optional = _OPTIONAL in getattr(declaration.type, "quals", [])
    return field


def _plain(node):
    """A type without the mark of optional arguments."""
    if isinstance(node, c_ast.PtrDecl) and _OPTIONAL in node.quals:
        return c_ast.PtrDecl([q for q in node.quals if q != _OPTIONAL], node.type)
    return node


class Headers:
    """Everything that the headers declare: .text, .functions, .structs, .enums, each by name; .defaults of options."""

    def __init__(self, include, compiler="cc", names=_NAMES):
        self.text = preprocess(include, compiler, names)
        self.functions, self.structs, self.enums = {}, {}, {}
        self.defaults = defaults.read(pathlib.Path(include) / "starling", compiler)
        marked = preprocess(include, compiler, names, [f"-DSL_OPTIONAL={_OPTIONAL}"])
        for node in c_parser.CParser().parse(_STANDARD + marked).ext:
            self._read(node)

    def _read(self, node):
        kind = node.type
        if isinstance(kind, c_ast.FuncDecl):
            parameters = [_field(p) for p in (kind.args.params if kind.args else []) if getattr(p, "name", None)]
            self.functions[node.name] = Function(node.name, _spell(kind.type), parameters)
        inner = getattr(kind, "type", kind)
        for part in (kind, inner):
            if isinstance(part, c_ast.Struct) and part.decls:
                self.structs[part.name] = [_field(d) for d in part.decls]
            if isinstance(part, c_ast.Enum) and part.values:
                self.enums[part.name] = [v.name for v in part.values.enumerators]
