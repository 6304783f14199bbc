"""Programs of symbols as MXNet's JSON: a node for each call, with the options as texts; and calls again by the nodes."""
import ast
import json

import numpy

from . import _attributes, _later, _loops
from ._mode import is_np_shape
from ._shapes import options_of
from .unsupported import not_here

# MXNet's operators by the names of functions, where these differ.
_OPERATORS = {"concat": "Concat", "split": "SliceChannel", "reshape": "Reshape", "flatten": "Flatten", "cast": "Cast", "astype": "Cast",
              "swapaxes": "SwapAxis", "_Plus": "elemwise_add", "_Minus": "elemwise_sub", "_Mul": "elemwise_mul", "_Div": "elemwise_div",
              "pad": "Pad", "T": "transpose", "_Power": "_power", "_Mod": "_mod", "equal": "_equal", "not_equal": "_not_equal", "greater": "_greater",
              "greater_equal": "_greater_equal", "lesser": "_lesser", "lesser_equal": "_lesser_equal"}  # fmt: skip
_ANY_NUMBER = ("concat", "stack", "add_n", "UpSampling", "khatri_rao")  # functions of any number of arrays, which MXNet counts
_SCALARS = {"_PlusScalar": "_plus_scalar", "_RPlusScalar": "_plus_scalar", "_MinusScalar": "_minus_scalar", "_RMinusScalar": "_rminus_scalar",
            "_MulScalar": "_mul_scalar", "_RMulScalar": "_mul_scalar", "_DivScalar": "_div_scalar", "_RDivScalar": "_rdiv_scalar",
            "_PowerScalar": "_power_scalar", "_RPowerScalar": "_rpower_scalar", "_ModScalar": "_mod_scalar", "_RModScalar": "_rmod_scalar",
            "_equalScalar": "_equal_scalar", "_not_equalScalar": "_not_equal_scalar", "_greaterScalar": "_greater_scalar",
            "_greater_equalScalar": "_greater_equal_scalar", "_lesserScalar": "_lesser_scalar", "_lesser_equalScalar": "_lesser_equal_scalar"}  # fmt: skip
_METHODS = {"_plus_scalar": "__add__", "_minus_scalar": "__sub__", "_rminus_scalar": "__rsub__", "_mul_scalar": "__mul__", "_div_scalar": "__truediv__",
            "_rdiv_scalar": "__rtruediv__", "_power_scalar": "__pow__", "_rpower_scalar": "__rpow__", "_mod_scalar": "__mod__",
            "_rmod_scalar": "__rmod__", "_equal_scalar": "__eq__", "_not_equal_scalar": "__ne__", "_greater_scalar": "__gt__",
            "_greater_equal_scalar": "__ge__", "_lesser_scalar": "__lt__", "_lesser_equal_scalar": "__le__"}  # fmt: skip
_FUNCTIONS = {"elemwise_add": "__add__", "elemwise_sub": "__sub__", "elemwise_mul": "__mul__", "elemwise_div": "__truediv__", "_power": "__pow__",
              "_mod": "__mod__", "_equal": "__eq__", "_not_equal": "__ne__", "_greater": "__gt__", "_greater_equal": "__ge__",
              "_lesser": "__lt__", "_lesser_equal": "__le__"}  # fmt: skip


def _text(value):
    """An option as a text."""
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_text, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, (type, numpy.dtype)):
        return numpy.dtype(value).name
    return str(value)


def _node(call):
    """(MXNet's operator, its options as texts); a refusal of calls that MXNet has no operator for."""
    from . import sym

    if any(type(s)._scalars for s in call.symbols()):
        raise not_here("a file of a program of mx.np", "HybridBlock.export")
    kind, options = _later.kind_of(call), options_of(call)
    operator, rest = _OPERATORS.get(kind, kind), [x for x in options.pop("*") if not _later.symbols_in([x])]
    plain = {k: v for k, v in options.items() if k not in ("name", "self", "out") and not _later.symbols_in([v]) and (v is not None or k == "end")}
    if kind in _SCALARS:
        (scalar,) = rest or [v for v in plain.values()]
        return _SCALARS[kind], {"scalar": str(float(scalar))}
    if kind == "astype" and rest:
        plain["dtype"], rest = rest[0], rest[1:]
    if kind == "transpose" and rest:
        plain["axes"], rest = rest[0] if isinstance(rest[0], (list, tuple)) else tuple(rest), []
    if kind == "reshape" and rest:
        plain["shape"], rest = rest[0] if isinstance(rest[0], (list, tuple)) else tuple(rest), []
    if kind in _ANY_NUMBER:
        plain["num_args"] = len(call.symbols())
    known = callable(vars(sym).get(operator)) or operator in _FUNCTIONS or operator in _OPERATORS.values()
    simple = all(v is None or isinstance(v, (int, float, str, bool, tuple, list, type, numpy.dtype)) for v in plain.values())
    if rest or not known or not simple:
        raise not_here(f"a file of a program with {kind}" + ("" if simple else " of other values"), "the functions of mx.sym by their names")
    return operator, {k: _text(v) for k, v in plain.items()}


def can_write(heads):
    """Whether programs consist of calls with operators of MXNet."""
    try:
        _nodes(heads)
    except NotImplementedError:
        return False
    return True


def _loop(call):
    """(the operator of a loop, its options as texts, the program of a step): the locations are those among the step's variables."""
    if not hasattr(call, "part"):
        raise not_here(f"a file of a program with {call.function.__name__}", "foreach")
    part = call.part
    inside = {id(s): s.name if _later.call_of(s) is None else s.list_outputs()[0] for s in (*part.fresh, *part.free)}
    nodes, ends = _nodes(part.heads, inside)
    places = [n["name"] for n in nodes if n["op"] == "null"]
    for name in inside.values():
        if name not in places:  # a variable that the step does not use
            places.append(name)
            nodes.append({"op": "null", "name": name, "inputs": []})
    at = [places.index(inside[id(s)]) for s in (*part.fresh, *part.free)]
    m, ends_of_states = call.rows, len(part.fresh)
    options = {"in_data_locs": at[:m], "in_state_locs": at[m:ends_of_states], "remain_locs": at[ends_of_states:], "num_args": len(call.args) + 1,
               "num_out_data": call.outputs, "num_outputs": len(part.values)}  # fmt: skip
    return "_foreach", {k: _text(v) for k, v in options.items()}, _program(nodes, ends)


def _nodes(heads, inside=()):
    """(the nodes, [node, number of the result, 0] of each head).  inside: names of symbols, by their ids, that are variables here."""
    nodes, places, inside = [], {}, dict(inside)

    def variable(symbol):
        name = inside.get(id(symbol), symbol.name)
        if ("var", name) not in places:
            attributes = {} if id(symbol) in inside else _attributes.of(symbol)
            if symbol.shape is not None and id(symbol) not in inside:
                attributes["__shape__"] = str(tuple(symbol.shape))
            places["var", name] = len(nodes)
            nodes.append({"op": "null", "name": name, **({"attrs": attributes} if attributes else {}), "inputs": []})
        return [places["var", name], 0, 0]

    def place(symbol):
        if id(symbol) in inside:
            return variable(symbol)
        made = _later.call_of(symbol)
        if made is None:
            if not _later.is_variable(symbol):
                raise not_here("a file of calls with symbols that the engine alone has made", "the functions of mx.sym")
            return variable(symbol)
        call, number = made
        if id(call) not in places:
            operator, options, *steps = _loop(call) if hasattr(call, "infer") else _node(call)
            inputs = [place(s) for s in call.symbols()]
            places[id(call)] = len(nodes)
            attributes = {**options, **_attributes.of(symbol)}
            nodes.append({"op": operator, "name": call.name, **({"attrs": attributes} if attributes else {}), "inputs": inputs,
                          **({"subgraphs": steps} if steps else {})})  # fmt: skip
        return [places[id(call)], number, 0]

    return nodes, [place(head) for head in heads]


def text_of(heads):
    """The JSON of programs."""
    return json.dumps(_program(*_nodes(heads)), indent=2)


def _program(nodes, ends):
    attributes = {"mxnet_version": ["int", 10901], **({"is_np_shape": ["int", 1]} if is_np_shape() else {})}
    return {"nodes": nodes, "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"], "node_row_ptr": list(range(len(nodes) + 1)),
            "heads": ends, "attrs": attributes}  # fmt: skip


# ---- and back


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _function(operator):
    """The function of an operator."""
    from . import sym
    from ._program import Symbol

    found = getattr(Symbol, _FUNCTIONS[operator]) if operator in _FUNCTIONS else vars(sym).get(operator)
    if found is None:
        found = vars(sym).get(next((ours for ours, theirs in _OPERATORS.items() if theirs == operator), None))
    if not callable(found) or operator.startswith("_") and operator not in _FUNCTIONS:
        raise not_here(f"the operator {operator} of a file", "another one")
    return found


def _in_this_mode(text, of_numpy):
    """A shape as a text, whose unknown lengths are -1 if the file was written with NumPy's shapes, else 0, as it is written now."""
    if text is None or of_numpy == is_np_shape():
        return text
    return str(tuple((-1 if d == 0 else d) if is_np_shape() else max(d, 0) for d in ast.literal_eval(text)))


def _made_again(node, inputs, of_numpy):
    """The symbols of a node's results."""
    from . import sym
    from ._program import Symbol

    attributes = dict(node.get("attrs") or node.get("attr") or node.get("param") or {})
    hidden = {k: v for k, v in attributes.items() if k.startswith("__") or k in _attributes.HIDDEN}
    options = {k: _value(v) for k, v in attributes.items() if k not in hidden}
    operator = node["op"]
    if operator == "null":
        shape = _in_this_mode(hidden.pop("__shape__", None), of_numpy)
        made = sym.var(node["name"], shape=shape and ast.literal_eval(shape))
        return [_attributes.keep(made, {**_attributes.of(made), **attributes, **({"__shape__": shape} if shape and made.shape is None else {})})]
    if operator == "_foreach":
        found = _foreach_again(node["subgraphs"][0], options, inputs, node["name"])
    elif operator in _METHODS:
        found = getattr(Symbol, _METHODS[operator])(inputs[0], options["scalar"])
        _later.call_of(found)[0].name = node["name"]
    elif operator in _FUNCTIONS:
        found = _function(operator)(*inputs)
        _later.call_of(found)[0].name = node["name"]
    else:
        found = _function(operator)(*inputs, **options, name=node["name"])
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    for symbol in results:
        if _later.call_of(symbol):
            _attributes.keep(symbol, hidden)
    return results


def _foreach_again(program, options, inputs, name):
    """The results of a loop."""
    variables = {}
    heads = symbols_of(program, variables)
    symbols = list(variables.values())
    fresh, free = ([symbols[i] for key in keys for i in options[key]] for keys in (("in_data_locs", "in_state_locs"), ("remain_locs",)))
    return _loops.foreach_of(_loops.Part.of(fresh, free, heads), len(options["in_data_locs"]), options["num_out_data"], inputs, name)


def symbols_of(program, variables=None):
    """The heads of a program's JSON; a refusal of operators that are no functions of mx.sym.  Its variables are put into variables."""
    nodes, made = program.get("nodes", ()), []
    if not isinstance(nodes, list) or not all(isinstance(n, dict) and isinstance(n.get("op"), str) for n in nodes):
        raise ValueError("sym.load: the file has no nodes of a program")
    for node in nodes:
        if node["op"] not in ("null", "_foreach", *_METHODS):
            _function(node["op"])
    of_numpy = "is_np_shape" in (program.get("attrs") or {})
    for node in nodes:
        made.append(_made_again(node, [made[i][number] for i, number, *_ in node["inputs"]], of_numpy))
    if variables is not None:
        variables.update({node["name"]: symbols[0] for node, symbols in zip(nodes, made) if node["op"] == "null"})
    return [made[i][number] for i, number, *_ in program["heads"]]
