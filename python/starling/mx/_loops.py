"""Loops and branches in programs of symbols: foreach, while_loop and cond.  Their functions are called once, with variables, and the
programs that these return are run with arrays, as often as the loop's values say."""
from .. import _engine
from .._tensor import Tensor
from . import _later, _shapes

engine = None  # what the engine knows of single symbols; set by _program.py
symbol_class = None  # set by _program.py
_count = [0]


def flat(value):
    """The symbols or arrays in nested lists."""
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flat(v)]
    return [] if value is None else [value]


def shaped(like, values):
    """Values taken from an iterator, in the nested lists of like."""
    if isinstance(like, (list, tuple)):
        return [shaped(v, values) for v in like]
    return None if like is None else next(values)


def has_symbols(*values):
    """Whether there is a symbol, outside of blocks that are traced."""
    return not getattr(_later.callbacks, "depth", 0) and any(isinstance(v, Tensor) and v.is_symbol for v in flat(values))


def _variable(like):
    _count[0] += 1
    symbol = _engine.var(f"inside_a_loop{_count[0]}")
    symbol.__class__ = type(like) if isinstance(like, Tensor) and like.is_symbol else symbol_class
    return symbol


class Part:
    """The program of a function that is called with variables like these symbols."""

    def __init__(self, function, likes):
        before = _later.kept_ids()
        self.fresh = [_variable(like) for like in likes]
        self._set(function(self.fresh))
        self.free = self._free(before)

    def _set(self, result):
        self.result, self.values = result, flat(result)
        self.heads = [s for s in self.values if isinstance(s, Tensor) and s.is_symbol]

    @classmethod
    def of(cls, fresh, free, result):
        """A part with these variables, symbols from outside and results."""
        self = cls.__new__(cls)
        self.fresh, self.free = fresh, free
        self._set(result)
        return self

    def _free(self, before):
        """The symbols from outside that the program uses."""
        found, seen = [], {id(s) for s in self.fresh}

        def look(symbol):
            if id(symbol) in seen:
                return
            seen.add(id(symbol))
            made = _later.call_of(symbol)
            if made is None or id(symbol) in before:
                found.append(symbol)
            else:
                for each in made[0].symbols():
                    look(each)

        for head in self.heads:
            look(head)
        return found

    def run(self, values, outside):
        """The arrays of the result.  outside: arrays by the ids of symbols."""
        known = {**outside, **{id(s): v for s, v in zip(self.fresh, values)}}
        run = _later.Run({}, engine, self.heads, known)
        return [run.value(s) if isinstance(s, Tensor) and s.is_symbol else s for s in self.values]

    def infer(self, fresh, outside, heads):
        """The shapes (of the variables, of symbols from outside by their ids, of the results) by partial ones."""
        given = {**outside, **{id(s): shape for s, shape in zip(self.fresh, fresh)}}
        found = _shapes.Inference(self.heads, engine, {}, given, heads)
        return [found.of(s) for s in self.fresh], {id(s): found.of(s) for s in self.free}, found.heads()


class _Loop(_later.Call):
    """A call of a function that runs parts.  infer(options, shapes of the arguments, of the results) changes the lists of shapes."""

    def __init__(self, kind, run, symbols, count, infer, name):
        run.__name__ = kind
        super().__init__(run, tuple(symbols), {}, name)
        self._count, self.infer = count, infer

    def several(self):
        return self._count

    def again(self, args, kwargs):
        other = _Loop(self.function.__name__, self.function, args, self._count, self.infer, self.name)
        vars(other).update({k: v for k, v in vars(self).items() if k in ("part", "rows", "outputs")})
        return other.results()

    def results(self):
        """The symbols of the results."""
        return list(_later.wait_for(self, symbol_class)) if self._count else []


def _outside(*parts):
    """The symbols from outside of all parts."""
    return list({id(s): s for part in parts for s in part.free}.values())


def _same_count(kind, after, states):
    if len(flat(after)) != len(states):
        raise ValueError(f"{kind}: the function returns {len(flat(after))} states, there are {len(states)}")


def _by_ids(symbols, values):
    return dict(zip(map(id, symbols), values))


def foreach(body, data, init_states, name=None):
    """As of arrays; the number of rows is known when the program runs."""
    rows, states = flat(data), flat(init_states)
    part = Part(lambda fresh: body(shaped(data, iter(fresh)), shaped(init_states, iter(fresh[len(rows) :]))), [*rows, *states])
    outputs, after = part.result
    _same_count("foreach", after, states)
    made = foreach_of(part, len(rows), len(flat(outputs)), [*rows, *states, *part.free], name)
    return shaped(outputs, iter(made)), shaped(after, iter(made[len(flat(outputs)) :]))


def foreach_of(part, m, n, symbols, name=None):
    """The results of a loop: m of the symbols are rows, then come states, then those from outside; n of the results are outputs."""
    ends = len(part.fresh)  # of the states among the symbols

    def run(*values):
        from . import nd

        outside, now, found = _by_ids(part.free, values[ends:]), list(values[m:ends]), []
        for i in range(values[0].shape[0]):
            results = part.run([*(v[i] for v in values[:m]), *now], outside)
            found.append(results[:n])
            now = results[n:]
        return [*(nd.stack(*each, axis=0) for each in zip(*found)), *now]

    def infer(_, ins, outs):
        length = next((s[0] for s in [*ins[:m], *outs[:n]] if s is not None and s[0] >= 0), -1)
        fresh = [s and s[1:] for s in ins[:m]] + ins[m:ends]
        fresh, outside, heads = part.infer(fresh, _by_ids(part.free, ins[ends:]), [s and s[1:] for s in outs[:n]] + outs[n:])
        ins[:m] = [s and (length, *s) for s in fresh[:m]]
        ins[m:] = [_shapes.joined(a, b, "a state") for a, b in zip(fresh[m:], heads[n:])] + [outside[id(s)] for s in part.free]
        outs[:] = [s and (length, *s) for s in heads[:n]] + heads[n:]

    loop = _Loop("foreach", run, symbols, len(part.values), infer, name)
    loop.part, loop.rows, loop.outputs = part, m, n
    return loop.results()


def while_loop(cond, func, loop_vars, max_iterations, name=None):
    """As of arrays; the condition is computed when the program runs."""
    variables = flat(loop_vars)
    nested = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    test = Part(lambda fresh: cond(*shaped(nested, iter(fresh))), variables)
    part = Part(lambda fresh: func(*shaped(nested, iter(fresh))), variables)
    outputs, after = part.result
    after = nested if after is None else after
    _same_count("while_loop", after, variables)
    n, free = len(flat(outputs)), _outside(test, part)

    def run(*values):
        from .contrib import is_true, padded

        outside, now, found = _by_ids(free, values[len(variables) :]), list(values[: len(variables)]), []
        while len(found) < max_iterations and is_true("while_loop", test.run(now, outside)[0]):
            results = part.run(now, outside)
            found.append(results[:n])
            now = results[n:] or now
        if not found:
            return [*_zeros(part, now, outside), *now]
        return [*(padded(each, max_iterations) for each in zip(*found)), *now]

    def _zeros(part, now, outside):
        from . import nd

        shapes = part.infer([v.shape for v in now], {i: v.shape for i, v in outside.items()}, [None] * len(part.heads))[2][:n]
        return [nd.zeros((max_iterations, *s)) for s in shapes]

    def infer(_, ins, outs):
        v = len(variables)
        known = _by_ids(free, ins[v:])
        fresh, outside, heads = part.infer(ins[:v], known, [s and s[1:] for s in outs[:n]] + outs[n:])
        known.update(outside)
        ins[:] = [_shapes.joined(a, b, "a variable") for a, b in zip(fresh, heads[n:] or fresh)] + [known[id(s)] for s in free]
        outs[:] = [s and (max_iterations, *s) for s in heads[:n]] + [_shapes.joined(a, b) for a, b in zip(outs[n:], ins)]

    made = _Loop("while_loop", run, [*variables, *free], n + len(variables), infer, name).results()
    return ([] if outputs is None else shaped(outputs, iter(made))), shaped(after, iter(made[n:]))


def cond(pred, then_func, else_func, name=None):
    """As of arrays; the condition is computed when the program runs."""
    parts = [Part(lambda _, f=f: f(), []) for f in (then_func, else_func)]
    counts = [len(part.values) for part in parts]
    if counts[0] != counts[1]:
        raise ValueError(f"cond: one function returns {counts[0]} results, the other {counts[1]}")
    free = _outside(*parts)

    def run(condition, *values):
        from .contrib import is_true

        return parts[0 if is_true("cond", condition) else 1].run([], _by_ids(free, values))

    def infer(_, ins, outs):
        outside = _by_ids(free, ins[1:])
        for part in parts:
            _, found, outs[:] = part.infer([], outside, outs)
            outside.update(found)
        ins[1:] = [outside[id(s)] for s in free]

    made = _Loop("cond", run, [pred, *free], counts[0], infer, name).results()
    return shaped(parts[0].result, iter(made))
