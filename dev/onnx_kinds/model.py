"""One node with its inputs: shapes, types and values are drawn."""
FLOATS, INTEGERS = ["float32", "float64"], ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class Model:
    """One node: inputs by name, which of them are the file's, attributes, the number of results."""

    def __init__(self, random_, numpy):
        self.r, self.np, self.special = random_, numpy, False
        self.op, self.inputs, self.constants, self.attributes, self.outputs, self.opset = "", [], set(), {}, 1, 21

    def shape(self, low=1, high=4, most=5):
        """Sizes of axes; now and then none has elements."""
        sizes = [self.r.randint(1, most) for _ in range(self.r.randint(low, high))]
        if sizes and self.r.random() < 0.03:
            sizes[self.r.randrange(len(sizes))] = 0
        return sizes

    def array(self, shape, dtype="float32", low=-4.0, high=4.0):
        """Values of a type; integers reach the ends of their range now and then."""
        np, rng = self.np, self.np.random.default_rng(self.r.randrange(2**32))
        if dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype in INTEGERS:
            info = np.iinfo(dtype)
            wide = self.r.random() < 0.3
            a, b = (info.min, info.max) if wide else (max(info.min, -9), min(info.max, 9))
            return rng.integers(a, b, shape, dtype=dtype, endpoint=True)
        x = rng.uniform(low, high, shape).astype(dtype)
        if self.special and x.size and self.r.random() < 0.1:
            x.flat[self.r.randrange(x.size)] = self.r.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
        return x

    def add(self, value, constant=False, name=None):
        name = name or f"x{len(self.inputs)}"
        if constant:
            self.constants.add(len(self.inputs))
        self.inputs.append(value if value is None else self.np.asarray(value))
        return name

    def ints(self, values, dtype="int64"):
        return self.add(self.np.array(values, dtype), constant=True)

    def axis(self, ndim):
        return self.r.randint(-ndim, ndim - 1)

    def broadcast(self, shape):
        """A shape that goes with another."""
        cut = shape[self.r.randint(0, len(shape)):]
        return [1 if self.r.random() < 0.3 else n for n in cut]


def any_type(m):
    return m.r.choice(FLOATS + INTEGERS + ["bool"])
