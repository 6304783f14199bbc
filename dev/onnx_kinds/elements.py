"""Elementwise operators, reductions, softmax."""
from .model import FLOATS, INTEGERS, any_type


def unary(m):
    m.op = m.r.choice("Abs Neg Exp Sqrt Reciprocal Relu Sigmoid Tanh Softplus Sin Cos Tan Atan Erf Sign Floor Ceil Round Sinh Cosh Asinh "
                      "Softsign HardSwish Mish Identity Elu LeakyRelu Selu Celu HardSigmoid ThresholdedRelu Gelu".split())
    dtype = m.r.choice(FLOATS)
    m.special = m.op != "Gelu"  # of -inf its formula has 0 inf, its limit is 0
    if m.op in ("Abs", "Neg", "Sign", "Relu", "Identity") and m.r.random() < 0.5:
        dtype = m.r.choice(["int8", "int16", "int32", "int64"])
    if m.op in ("Celu", "Mish", "Softsign", "HardSwish", "Gelu"):
        dtype = "float32"
    m.add(m.array(m.shape(0), dtype, 0.1 if m.op in ("Sqrt", "Reciprocal") else -4.0))
    if m.op in ("Elu", "LeakyRelu", "Celu", "ThresholdedRelu", "HardSigmoid") and m.r.random() < 0.6:
        m.attributes["alpha"] = m.r.choice([0.1, 0.5, 1.5])
    if m.op == "Gelu":
        m.attributes["approximate"] = m.r.choice(["none", "tanh"])


def binary(m):
    m.special = True
    m.op = m.r.choice("Add Sub Mul Div Max Min Equal Less Greater LessOrEqual GreaterOrEqual Pow Mod BitwiseAnd BitwiseOr BitwiseXor And Or Xor".split())
    shape = m.shape(0)
    other = m.broadcast(shape)
    dtype = m.r.choice(FLOATS + INTEGERS)
    if m.op in ("And", "Or", "Xor"):
        dtype = "bool"
    if m.op.startswith("Bitwise"):
        dtype = m.r.choice(INTEGERS)
    if m.op == "Pow":
        dtype = m.r.choice(FLOATS)
    a, b = m.array(shape, dtype), m.array(other, dtype)
    if m.op == "Mod":
        m.attributes["fmod"] = 1 if dtype in FLOATS else m.r.choice([0, 1])
    if m.op in ("Div", "Mod"):
        b = m.np.where(b == 0, m.np.ones_like(b), b)
        if dtype in INTEGERS and dtype.startswith("int"):
            b = m.np.where(b == -1, m.np.ones_like(b), b)
        if dtype in INTEGERS and m.op == "Div":
            a = m.np.abs(m.np.clip(a, -100, 100)).astype(dtype)
            b = m.np.abs(m.np.clip(b, 1, 100)).astype(dtype)
        if dtype == "uint64":
            a, b = a % 1000, b % 1000 + 1
    if m.op == "Pow":
        a, b = abs(a) + dtype_one(m, dtype), m.np.clip(b, -2, 2)
    pair = [a, b]
    if m.r.random() < 0.5 and m.op not in ("Mod", "Div", "Pow"):
        pair.reverse()
    for x in pair:
        m.add(x.astype(dtype), constant=m.r.random() < 0.25)
    if m.constants == {0, 1}:
        m.constants = {1}


def dtype_one(m, dtype):
    return m.np.asarray(0.5, dtype)


def shift(m):
    m.op, dtype = "BitShift", m.r.choice(["uint8", "uint16", "uint32", "uint64"])
    shape = m.shape()
    m.add(m.array(shape, dtype))
    m.add(m.np.random.default_rng(m.r.randrange(2**32)).integers(0, 8, shape).astype(dtype))
    m.attributes["direction"] = m.r.choice(["LEFT", "RIGHT"])


def reduce(m):
    m.special = True
    m.op = m.r.choice("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp".split())
    dtype = m.r.choice(FLOATS + (["int32", "int64"] if m.op in ("ReduceSum", "ReduceMax", "ReduceMin") else []))
    shape = m.shape()
    m.add(m.np.clip(m.array(shape, dtype), -1000, 1000).astype(dtype))
    if m.r.random() < 0.8:
        axes = m.r.sample(range(len(shape)), m.r.randint(1, len(shape)))
        m.ints([a - len(shape) if m.r.random() < 0.3 else a for a in axes])
    elif m.r.random() < 0.5:
        m.attributes["noop_with_empty_axes"] = 1
    m.attributes["keepdims"] = m.r.choice([0, 1])


def arg(m):
    m.special = True
    m.op, shape = m.r.choice(["ArgMax", "ArgMin"]), m.shape()
    m.add(m.array(shape, m.r.choice(["float32", "int32", "uint8", "int8"])))
    m.attributes.update(axis=m.axis(len(shape)), keepdims=m.r.choice([0, 1]), select_last_index=m.r.choice([0, 1]))


def soft(m):
    m.op, shape = m.r.choice(["Softmax", "LogSoftmax", "Hardmax"]), m.shape()
    m.add(m.array(shape))
    m.attributes["axis"] = m.axis(len(shape))


def cumulative(m):
    m.op, shape = "CumSum", m.shape()
    m.add(m.array(shape, m.r.choice(["float32", "int64", "int32"])))
    m.add(m.np.array(m.axis(len(shape)), "int64"), constant=True)
    m.attributes.update(exclusive=m.r.choice([0, 1]), reverse=m.r.choice([0, 1]))


KINDS = [unary, binary, binary, shift, reduce, reduce, arg, soft, cumulative]
