"""Operators that move, choose and convert elements."""
from .model import FLOATS, INTEGERS, any_type


def moves(m):
    m.special = True
    m.op = m.r.choice("Transpose Reshape Flatten Squeeze Unsqueeze Expand Tile Concat Slice Pad Split Trilu Shape Size".split())
    shape, dtype = m.shape(), any_type(m)
    n = len(shape)
    if m.op == "Squeeze":
        shape[m.r.randrange(n)] = 1
    if m.op == "Trilu":
        shape = m.shape(2)
    x = m.array(shape, dtype)
    m.add(x)
    if m.op == "Transpose":
        m.attributes["perm"] = m.r.sample(range(n), n)
    elif m.op == "Reshape":
        m.ints(m.r.choice([[-1], [0, -1], [int(x.size)], [1, -1, 1]]))
    elif m.op == "Flatten":
        m.attributes["axis"] = m.r.randint(-n, n)
    elif m.op == "Squeeze":
        m.ints([i for i, d in enumerate(shape) if d == 1][:m.r.randint(1, 2)])
    elif m.op == "Unsqueeze":
        m.ints(m.r.sample(range(n + 2), 2))
    elif m.op == "Expand":
        m.inputs[0] = m.array(m.broadcast(shape), dtype)
        m.ints(shape)
    elif m.op == "Tile":
        m.ints([m.r.randint(0, 3) for _ in shape])
    elif m.op == "Concat":
        axis = m.axis(n)
        for _ in range(m.r.randint(0, 2)):
            other = list(shape)
            other[axis] = m.r.randint(1, 3)
            m.add(m.array(other, dtype))
        m.attributes["axis"] = axis
    elif m.op == "Slice":
        axes = m.r.sample(range(n), m.r.randint(1, n))
        m.ints([m.r.randint(-6, 6) for _ in axes])
        m.ints([m.r.randint(-7, 7) for _ in axes])
        m.ints(axes)
        m.ints([m.r.choice([-2, -1, 1, 2]) for _ in axes])
    elif m.op == "Pad":
        m.attributes["mode"] = m.r.choice(["constant", "edge", "reflect", "wrap"])
        most = 0 if m.attributes["mode"] in ("reflect", "wrap") and min(shape) < 2 else 1 if m.attributes["mode"] != "constant" else 2
        m.ints([m.r.randint(0, most) for _ in range(2 * n)])
        if m.attributes["mode"] == "constant" and m.r.random() < 0.5:
            m.add(m.array([], dtype), constant=True)
    elif m.op == "Split":
        axis = m.axis(n)
        first = m.r.randint(0, shape[axis])
        m.ints([first, shape[axis] - first])
        m.attributes["axis"], m.outputs = axis, 2
    elif m.op == "Trilu":
        m.attributes["upper"] = m.r.choice([0, 1])
        m.add(m.np.array(m.r.randint(-3, 3), "int64"), constant=True)


def gathers(m):
    m.special = True
    m.op = m.r.choice("Gather GatherElements GatherND ScatterElements ScatterND OneHot TopK Where Compress".split())
    shape, dtype = m.shape(1, 3), any_type(m)
    rng = m.np.random.default_rng(m.r.randrange(2**32))
    axis = m.axis(len(shape))
    n = shape[axis]
    if m.op in ("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"):
        m.add(m.array(shape, dtype))
    if m.op == "Gather":
        m.add(rng.integers(-n, n, m.shape(0, 2)).astype(m.r.choice(["int32", "int64"])), constant=m.r.random() < 0.5)
        m.attributes["axis"] = axis
    elif m.op in ("GatherElements", "ScatterElements"):
        k = m.r.randint(1, n)
        where = list(shape)
        where[axis] = k
        lines = rng.permuted(m.np.broadcast_to(m.np.arange(n).reshape([-1 if i == axis % len(shape) else 1 for i in range(len(shape))]), shape), axis=axis)
        m.add(m.np.take(lines, range(k), axis).astype("int64"))
        m.attributes["axis"] = axis
        if m.op == "ScatterElements":
            m.add(m.array(where, dtype))
            if dtype == "float32" and m.r.random() < 0.5:
                m.attributes["reduction"] = m.r.choice(["add", "mul", "max", "min"])
    elif m.op in ("GatherND", "ScatterND"):
        k = m.r.randint(1, len(shape))
        rows = m.np.array(m.r.sample(range(int(m.np.prod(shape[:k]))), min(2, int(m.np.prod(shape[:k])))), "int64")
        m.add(m.np.stack(m.np.unravel_index(rows, shape[:k]), -1).astype("int64"))
        if m.op == "ScatterND":
            m.add(m.array([len(rows)] + shape[k:], dtype))
    elif m.op == "OneHot":
        m.add(rng.integers(-3, 3, shape).astype("int64"))
        m.add(m.np.array(3, "int64"), constant=True)
        m.add(m.array([2], m.r.choice(["float32", "int64"])), constant=True)
        m.attributes["axis"] = m.axis(len(shape) + 1)
    elif m.op == "TopK":
        m.add(rng.permutation(int(m.np.prod(shape))).reshape(shape).astype(m.r.choice(["float32", "int64", "int32"])))
        m.ints([m.r.randint(1, n)])
        m.attributes.update(axis=axis, largest=m.r.choice([0, 1]))
        m.outputs = 2
    elif m.op == "Where":
        m.add(m.array(m.broadcast(shape), "bool"))
        m.add(m.array(shape, dtype))
        m.add(m.array(m.broadcast(shape), dtype))
    elif m.op == "Compress":
        m.add(m.array(shape, dtype))
        m.add(m.array([n], "bool"), constant=m.r.random() < 0.5)
        m.attributes["axis"] = axis


def cast(m):
    m.op, source = "Cast", any_type(m)
    to = m.r.choice(FLOATS + INTEGERS + ["bool"])
    x = m.array(m.shape(), source)
    if source in FLOATS and to in INTEGERS:
        x = m.np.clip(x, 0, 100)
    m.add(x)
    m.attributes["to"] = "dtype:" + to


def clip(m):
    m.op, dtype = "Clip", m.r.choice(FLOATS + INTEGERS)
    m.add(m.array(m.shape(), dtype))
    low, high = sorted([m.array([], dtype), m.array([], dtype)])
    m.add(low if m.r.random() < 0.7 else None, constant=True)
    m.add(high if m.r.random() < 0.7 else None, constant=True)


KINDS = [moves, moves, moves, gathers, gathers, cast, clip]
