#!/usr/bin/env python3
"""Prints python/starling/mx/_signatures.py: the signatures of MXNet 1.9.1's functions and classes, one a line, as MXNet itself
tells them.  Run it with the Python that has MXNet (dev/gluon-check says how to get one):

    mx/bin/python dev/gluon-signatures.py > python/starling/mx/_signatures.py
"""
import ast
import inspect
import os
import re
import sys
import warnings

warnings.simplefilter("ignore")
import mxnet as mx  # noqa: E402

HEAD = '''"""The signatures of MXNet 1.9.1, as dev/gluon-signatures.py reads them from MXNet itself: a line for each function and class.

name parameter parameter=default *several; a parameter without a default is an array, or has to be given.
"""
LINES = """\\
'''
SPACES = [
    ("nd", mx.nd), ("nd.random", mx.nd.random), ("nd.linalg", mx.nd.linalg), ("nd.contrib", mx.nd.contrib), ("sym", mx.sym), ("np", mx.np),
    ("np.random", mx.np.random), ("np.linalg", mx.np.linalg), ("npx", mx.npx), ("random", mx.random), ("autograd", mx.autograd),
    ("init", mx.init), ("optimizer", mx.optimizer), ("metric", mx.metric), ("lr_scheduler", mx.lr_scheduler), ("gluon", mx.gluon),
    ("gluon.nn", mx.gluon.nn), ("gluon.rnn", mx.gluon.rnn), ("gluon.loss", mx.gluon.loss), ("gluon.data", mx.gluon.data),
    ("gluon.data.vision", mx.gluon.data.vision), ("gluon.data.vision.transforms", mx.gluon.data.vision.transforms),
    ("gluon.utils", mx.gluon.utils), ("np.ndarray", mx.np.ndarray),
]  # fmt: skip
MODULES = {"nd.linalg": "_linalg_", "nd.contrib": "_contrib_", "npx": "_npx_"}

UNTOLD = {"potrf": ["lower=True"], "potri": ["lower=True"]}  # options of operators that MXNet does not list


def default_of(kind):
    """The default that an operator's documentation names, as Python's text; None if there is none."""
    found = re.search(r"default=(.*)$", kind)
    if not found:
        return None
    value = found.group(1).strip()
    if value.startswith("'") and value.endswith("'"):
        value = value[1:-1]
        if value in ("", "None"):
            return "None"
        try:
            return repr(ast.literal_eval(value))
        except (ValueError, SyntaxError):
            return repr(value)
    if kind.startswith("boolean"):
        return {"0": "False", "1": "True"}.get(value, "None")
    value = "()" if value == "[]" else value
    if value in ("None", "null"):
        return "None"
    try:
        return repr(float(f"{float(value):.7g}")) if re.match(r"(float|double)", kind) else repr(ast.literal_eval(value))
    except (ValueError, SyntaxError):
        return repr(value)


def with_default(name, kind):
    value = default_of(kind)
    return name if value is None else f"{name}={value.replace(' ', '')}"


def operator_of(space, name):
    """(names, kinds) of the operator behind a function that MXNet makes; None if it is not known."""
    for candidate in (MODULES.get(space, "") + name, f"_{name}", f"_sample_{name}"):
        try:
            found = mx.operator.get_operator_arguments(candidate)
        except Exception:
            continue
        if found.names:
            return dict(zip(found.names, found.types))
    return {}


def text(value):
    if type(value).__name__ == "_NullType":
        return "None"
    if isinstance(value, (bool, int, float, str, type(None))):
        value = value.replace(os.path.expanduser("~"), "~") if isinstance(value, str) else value
        return repr(value).replace(" ", "\\x20")
    if isinstance(value, (tuple, list)) and all(isinstance(v, (bool, int, float, str)) for v in value):
        return repr(value).replace(" ", "")
    if isinstance(value, type):
        return repr(value.__name__)
    return "..."  # an object: given or not is all that counts


def merged(kind):
    """The parameters of a class, with those of its bases where it hands on **kwargs."""
    found, more = {}, True
    for base in kind.__mro__:
        own = base.__dict__.get("__init__")
        if own is None or not more or not inspect.isfunction(own):
            continue
        parameters = list(inspect.signature(own).parameters.values())[1:]
        more = any(p.kind == p.VAR_KEYWORD for p in parameters)
        for p in parameters:
            if p.kind != p.VAR_KEYWORD:
                found.setdefault(p.name, p)
    return list(found.values())


def line(space, name, thing):
    if inspect.isclass(thing):
        parameters, operator = merged(thing), {}
    else:
        parameters = list(inspect.signature(thing).parameters.values())
        made = any(p.name == "name" or p.kind == p.VAR_POSITIONAL for p in parameters)  # by MXNet from an operator
        operator = operator_of(space, name) if made and space in ("nd", "nd.linalg", "nd.contrib", "sym", "npx") else {}
        if space == "np.ndarray":
            parameters = parameters[1:]
    words, given, extra = [], set(), []
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):  # several arrays: the operator's settings are keywords
        extra = [n for n in operator if n not in {p.name for p in parameters}]
    for p in parameters:
        if p.name in given or p.kind == p.VAR_KEYWORD:
            continue
        given.add(p.name)
        if p.kind == p.VAR_POSITIONAL:
            words.append(f"*{p.name}")
            words += [with_default(n, operator[n]) for n in extra]
            given |= set(extra)
        elif p.name in operator:
            words.append(with_default(p.name, operator[p.name]))
        else:
            words.append(p.name if p.default is p.empty else f"{p.name}={text(p.default)}")
    if not operator and any(p.kind == p.VAR_KEYWORD for p in parameters):
        words.append("**")
    if operator and "out" not in given:
        words += ["out=None", "name=None"]
    words[1:1] = UNTOLD.get(re.sub("^linalg_", "", name), []) if operator else []
    return " ".join([f"{space}.{name}", *words])


def main():
    lines = []
    for space, module in SPACES:
        for name in sorted(vars(module) if space != "np.ndarray" else dir(module)):
            thing = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(thing) or not callable(thing):
                continue
            if not (getattr(thing, "__module__", "") or "mxnet").startswith(("mxnet", "ndarray", "symbol")):
                continue
            try:
                lines.append(line(space, name, thing))
            except ValueError:
                continue
    sys.stdout.write(HEAD + "\n".join(lines).replace("\\x20", " ").replace("\\", "\\\\") + '\n"""\n')


if __name__ == "__main__":
    main()
