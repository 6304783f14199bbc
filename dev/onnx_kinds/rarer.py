"""Rarer operators, half types, earlier operator sets."""
from . import elements, layers, places
from .model import FLOATS, INTEGERS, any_type


def of_one(m):
    m.op = m.r.choice("Log Acos Asin Acosh Atanh IsNaN IsInf Not BitwiseNot Shrink Swish PRelu Sqrt Reciprocal".split())
    shape, dtype = m.shape(0), m.r.choice(FLOATS)
    low, high = {"Log": (0.1, 9), "Acosh": (1, 5), "Sqrt": (0, 9), "Reciprocal": (0.2, 3)}.get(m.op, (-0.95, 0.95))
    if m.op == "Not":
        m.add(m.array(shape, "bool"))
    elif m.op == "BitwiseNot":
        m.add(m.array(shape, m.r.choice(INTEGERS)))
    elif m.op == "PRelu":
        dtype = m.r.choice(["float32", "float64", "int32", "int64"])
        m.add(m.array(shape, dtype))
        m.add(m.array(m.broadcast(shape), dtype), constant=m.r.random() < 0.5)
    else:
        x = m.array(shape, dtype, low, high)
        if m.op in ("IsNaN", "IsInf") and x.size:
            x.flat[m.r.randrange(x.size)] = m.r.choice([m.np.nan, m.np.inf, -m.np.inf])
        m.add(x)
    if m.op == "Swish":
        m.opset, m.attributes["alpha"] = 24, m.r.choice([0.5, 1.0, 2.0])
    if m.op == "Shrink":
        m.attributes.update(lambd=m.r.choice([0.2, 0.5]), bias=m.r.choice([0.0, 0.1]))
    if m.op == "IsInf":
        m.attributes.update(detect_negative=m.r.choice([0, 1]), detect_positive=m.r.choice([0, 1]))


def of_several(m):
    m.op, shape = m.r.choice(["Sum", "Mean", "Max", "Min"]), m.shape(0)
    dtype = m.r.choice(FLOATS + (INTEGERS if m.op in ("Max", "Min") else []))
    for i in range(m.r.randint(1, 4)):
        m.add(m.array(m.broadcast(shape) if i else shape, dtype), constant=i > 0 and m.r.random() < 0.3)


def halves(m):
    """float16 for float32 in operators that round once."""
    m.r.choice([elements.unary, elements.binary, elements.soft, places.moves, places.gathers, elements.arg, of_several])(m)
    if m.op == "Gelu" or m.op == "Mod":
        return
    m.inputs = [x.astype("float16") if x is not None and x.dtype == m.np.float32 else x for x in m.inputs]


def integers(m):
    m.op = m.r.choice("MatMulInteger ConvInteger QLinearMatMul QLinearConv DynamicQuantizeLinear".split())
    if m.op == "DynamicQuantizeLinear":
        m.add(m.array(m.shape(1, 3), low=m.r.choice([-4.0, 0.5]), high=m.r.choice([4.0, 9.0])))
        m.outputs = 3
        return
    a, b = m.r.choice(["int8", "uint8"]), m.r.choice(["int8", "uint8"])
    conv = "Conv" in m.op
    channels, out, k = m.r.randint(1, 3), m.r.randint(1, 4), m.r.randint(1, 5)
    x = m.array([1, channels, 6, 7] if conv else [m.r.randint(1, 4), k], a)
    w = m.array([out, channels, m.r.randint(1, 3), m.r.randint(1, 3)] if conv else [k, out], b)
    per = m.r.random() < 0.5
    zero_x, zero_w = m.np.clip(m.array([], a), -9, 9).astype(a), m.np.clip(m.array([out] if per else [], b), -9, 9).astype(b)
    if conv:
        layers.window(m, 2)
        m.attributes["kernel_shape"] = list(w.shape[2:])
        m.attributes.pop("auto_pad", None)
    if m.op.endswith("Integer"):
        for v, constant in ((x, False), (w, m.r.random() < 0.7), (zero_x, True), (zero_w if not conv else zero_w.flat[0], True)):
            m.add(v, constant=constant)
        return
    if conv and per:
        zero_w[:] = zero_w.flat[0]  # onnxruntime takes one for all
    scale_w = m.array([out] if per else [], low=0.01, high=0.1)
    c = m.r.choice(["int8", "uint8"]) if a != b else a
    m.add(x)
    for v in (m.array([], low=0.01, high=0.1), zero_x, w, scale_w, zero_w, m.array([], low=0.2, high=0.9),
              m.np.clip(m.array([], c), -9, 9).astype(c)):
        m.add(v, constant=True)
    if conv and m.r.random() < 0.5:
        m.add(m.array([out], "int32"), constant=True)


def blocks(m):
    """Quantised by rows, columns or blocks."""
    m.op, dtype = m.r.choice(["QuantizeLinear", "DequantizeLinear"]), m.r.choice(["int8", "uint8", "int16", "uint16"])
    if m.op == "DequantizeLinear" and m.r.random() < 0.2:
        m.add(m.array(m.shape(1, 3), "int32"))
        m.add(m.array([], low=0.05, high=0.5), constant=True)
        return
    shape, axis = [m.r.randint(1, 3), 4, m.r.randint(1, 3)], 1
    scales = list(shape)
    scales[1] = 2
    m.add(m.array(shape, "float32" if m.op == "QuantizeLinear" else dtype))
    m.add(m.array(scales, low=0.05, high=0.5), constant=m.r.random() < 0.7)
    m.add(m.np.clip(m.array(scales, dtype), -20, 20).astype(dtype), constant=True)
    m.attributes.update(axis=m.r.choice([axis, axis - 3]), block_size=2)


def earlier(m):
    """What earlier operator sets wrote as attributes."""
    m.op = m.r.choice("ReduceSum ReduceMax ReduceMean Squeeze Unsqueeze Softmax LogSoftmax Hardmax Clip Pad Slice Split Upsample TopK Scatter Gemm Flatten Add".split())
    shape = m.shape(2, 4)
    n = len(shape)
    m.opset = m.r.choice([7, 8, 9, 10, 11])
    if m.op == "Squeeze":
        shape[m.r.randrange(n)] = 1
    x = m.array(shape)
    m.add(x)
    if m.op.startswith("Reduce"):
        m.attributes.update(axes=[a - n if m.opset > 10 and m.r.random() < 0.3 else a for a in m.r.sample(range(n), m.r.randint(1, n))], keepdims=m.r.choice([0, 1]))
    elif m.op == "Squeeze":
        m.attributes["axes"] = [shape.index(1)]
    elif m.op == "Unsqueeze":
        m.attributes["axes"] = m.r.sample(range(n + 1), 1)
    elif m.op in ("Softmax", "LogSoftmax", "Hardmax"):
        m.attributes["axis"] = m.r.randrange(n)
    elif m.op == "Clip":
        m.opset = min(m.opset, 10)
        m.attributes.update(min=-1.0, max=m.r.choice([0.5, 2.0]))
    elif m.op == "Pad":
        m.opset = min(m.opset, 10)
        m.attributes.update(pads=[m.r.randint(0, 2) for _ in range(2 * n)], value=m.r.choice([0.0, 1.5]), mode="constant")
    elif m.op == "Slice":
        m.opset = min(m.opset, 9)
        axes = m.r.sample(range(n), m.r.randint(1, n))
        m.attributes.update(axes=axes, starts=[m.r.randint(-6, 3) for _ in axes], ends=[m.r.randint(-3, 9) for _ in axes])
    elif m.op == "Split":
        first = m.r.randint(0, shape[0])
        m.attributes.update(axis=0, split=[first, shape[0] - first])
        m.outputs = 2
    elif m.op == "Upsample":
        m.opset, m.inputs = 9, []
        m.add(m.array([1, 2, 3, 4]))
        m.add(m.np.array([1, 1, m.r.choice([1, 2]), m.r.choice([2, 3])], "float32"), constant=True)
        m.attributes["mode"] = m.r.choice(["nearest", "linear"])
    elif m.op == "TopK":
        m.inputs, axis = [], m.r.randrange(n)
        m.add(m.np.random.default_rng(m.r.randrange(2**32)).permutation(x.size).reshape(shape).astype("float32"))
        m.opset = 10
        m.ints([m.r.randint(1, shape[axis])])
        m.attributes["axis"], m.outputs = axis, 2
    elif m.op == "Scatter":
        m.opset = m.r.choice([9, 10])
        m.add(m.np.zeros([1] + shape[1:], "int64") + m.r.randrange(shape[0]))
        m.add(m.array([1] + shape[1:]))
        m.attributes["axis"] = 0
    elif m.op == "Gemm":
        m.inputs = []
        a, b, k = m.r.randint(1, 4), m.r.randint(1, 4), m.r.randint(1, 4)
        m.add(m.array([a, k]))
        m.add(m.array([k, b]))
        m.add(m.array([a, b]))
    elif m.op == "Flatten":
        m.attributes["axis"] = m.r.randint(0, n)
    elif m.op == "Add":
        m.add(m.array(m.broadcast(shape)))


def shapes(m):
    m.op = m.r.choice("EyeLike CenterCropPad ReverseSequence CumProd Unique NonZero TensorScatter CastLike Col2Im MaxUnpool Shape Range ConstantOfShape BitCast".split())
    shape, dtype = m.shape(2, 3), any_type(m)
    x = m.array(shape, dtype)
    if m.op == "EyeLike":
        m.add(m.array(shape[:2], "float32"))
        m.attributes["k"] = m.r.randint(-3, 3)
    elif m.op == "CenterCropPad":
        m.add(x)
        axes = m.r.sample(range(len(shape)), m.r.randint(1, len(shape)))
        m.ints([m.r.randint(1, 7) for _ in axes])
        m.attributes["axes"] = axes
    elif m.op == "ReverseSequence":
        batch = m.r.choice([0, 1])
        m.add(x)
        m.ints([m.r.randint(1, shape[1 - batch]) for _ in range(shape[batch])])
        m.attributes.update(batch_axis=batch, time_axis=1 - batch)
    elif m.op == "CumProd":
        m.opset = 26
        m.add(m.array(shape, m.r.choice(["float32", "int64", "int32"]), -1.5, 1.5))
        m.add(m.np.array(m.axis(len(shape)), "int64"), constant=True)
        m.attributes.update(exclusive=m.r.choice([0, 1]), reverse=m.r.choice([0, 1]))
    elif m.op == "Unique":
        m.add(m.np.round(m.array(shape, m.r.choice(["float32", "int64", "int8"]), -2, 2)))
        if m.r.random() < 0.5:
            m.attributes["axis"] = m.axis(len(shape))
        m.attributes["sorted"], m.outputs = m.r.choice([0, 1]), 4
    elif m.op == "NonZero":
        m.add(m.array(shape, "bool") if m.r.random() < 0.5 else m.np.round(m.array(shape, "float32", -1, 1)))
    elif m.op == "TensorScatter":
        m.opset, n = 24, m.r.randint(1, 3)
        m.add(m.array([2, 3, 5, 2], "float32"))
        m.add(m.array([2, 3, n, 2], "float32"))
        m.add(m.np.array([m.r.randint(0, 5 - n) for _ in range(2)], "int64"))
        m.attributes.update(mode=m.r.choice(["linear", "circular"]), axis=-2)
    elif m.op == "CastLike":
        to = m.r.choice(FLOATS + INTEGERS + ["bool"])
        m.add(m.np.clip(x, 0, 100).astype(dtype))
        m.add(m.array([1], to))
    elif m.op == "Col2Im":
        k, image = [m.r.randint(1, 2), m.r.randint(1, 3)], [m.r.randint(3, 5), m.r.randint(3, 5)]
        stride, pads = [m.r.randint(1, 2), 1], [m.r.randint(0, 1) for _ in range(4)]
        count = [(image[i] + pads[i] + pads[i + 2] - k[i]) // stride[i] + 1 for i in range(2)]
        m.add(m.array([1, 2 * k[0] * k[1], count[0] * count[1]]))
        m.ints(image)
        m.ints(k)
        m.attributes.update(strides=stride, pads=pads)
    elif m.op == "MaxUnpool":
        m.add(m.array([1, 1, 2, 2]))
        m.add(m.np.array([[[[m.r.choice([0, 1, 4, 5]), m.r.choice([2, 3, 6, 7])], [m.r.choice([8, 9, 12, 13]), m.r.choice([10, 11, 14, 15])]]]], "int64"))
        m.attributes.update(kernel_shape=[2, 2], strides=[2, 2])
    elif m.op == "Shape":
        m.add(x)
        m.attributes.update(start=m.r.randint(-4, 3), end=m.r.randint(-4, 4))
    elif m.op == "Range":
        t = m.r.choice(["int64", "int32", "float32"])
        for v in m.r.choice([(0, 5, 1), (3, -4, -2), (2, 2, 1), (1, 9, 3)]):
            m.add(m.np.array(v, t))
    elif m.op == "ConstantOfShape":
        m.add(m.np.array(shape, "int64"))
        m.attributes["value"] = m.array([1], dtype)
    elif m.op == "BitCast":
        m.opset = 26
        a, b = m.r.choice([("float32", "int32"), ("int32", "float32"), ("uint8", "int8"), ("int64", "float64"), ("float64", "uint64"), ("int16", "uint16")])
        m.add(m.array(shape, a, -4, 4))
        m.attributes["to"] = "dtype:" + b


def signals(m):
    m.op = m.r.choice("DFT DFT STFT MelWeightMatrix HannWindow HammingWindow BlackmanWindow".split())
    if m.op == "DFT":
        inverse, onesided = m.r.choice([(0, 0), (1, 0), (0, 1)])
        n = m.r.randint(3, 9)
        m.opset = 20
        m.add(m.array([m.r.randint(1, 2), n, m.r.randint(1, 3), 1 if onesided else m.r.choice([1, 2])]))
        if m.r.random() < 0.4:
            m.add(m.np.array(m.r.randint(3, 10), "int64"), constant=True)
        else:
            m.add(None)
        m.add(m.np.array(m.r.choice([1, -3, 2]), "int64"), constant=True)
        m.attributes.update(inverse=inverse, onesided=onesided)
    elif m.op == "STFT":
        length, step = m.r.choice([4, 6, 8]), m.r.randint(1, 4)
        m.add(m.array([m.r.randint(1, 2), 20, 1]))
        m.ints(step)
        m.add(m.array([length], low=0.1, high=1) if m.r.random() < 0.7 else None, constant=True)
        m.add(m.np.array(length, "int64"), constant=True)
        m.attributes["onesided"] = m.r.choice([0, 1])
    elif m.op == "MelWeightMatrix":
        for v, t in ((m.r.randint(3, 8), "int64"), (m.r.choice([16, 32]), "int64"), (8000, "int64"), (m.r.choice([0.0, 100.0]), "float32"), (m.r.choice([3000.0, 4000.0]), "float32")):
            m.add(m.np.array(v, t))
    else:
        m.add(m.np.array(m.r.randint(2, 12), "int64"))  # one element of a symmetric window is 0/0
        m.attributes["periodic"] = m.r.choice([0, 1])


def losses(m):
    m.op = m.r.choice(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    n, c, rest = m.r.randint(1, 4), m.r.randint(2, 5), m.shape(0, 2, 3)
    rng = m.np.random.default_rng(m.r.randrange(2**32))
    target = rng.integers(0, c, [n] + rest).astype(m.r.choice(["int32", "int64"]))
    m.attributes["reduction"] = m.r.choice(["none", "sum", "mean"])
    if m.r.random() < 0.5:
        m.attributes["ignore_index"] = m.r.choice([0, 1, -1])
        target = m.np.where(rng.random(target.shape) < 0.2, m.attributes["ignore_index"], target).astype(target.dtype)
        target.flat[0] = 1 - max(m.attributes["ignore_index"], 0)
    m.add(m.array([n, c] + rest))
    m.add(target)
    if m.r.random() < 0.5:
        m.add(m.array([c], low=0.1, high=1), constant=m.r.random() < 0.5)
    m.outputs = m.r.choice([1, 2]) if m.op[0] == "S" else 1


def attention(m):
    m.op, m.opset = m.r.choice(["Attention", "Attention", "RotaryEmbedding"]), m.r.choice([23, 24])
    n, heads, kv, q, d = m.r.randint(1, 2), m.r.choice([2, 4]), m.r.choice([1, 2]), m.r.randint(1, 5), m.r.choice([2, 4, 8])
    if m.op == "RotaryEmbedding":
        three, part = m.r.random() < 0.5, m.r.choice([0, d])
        m.add(m.array([n, q, heads * d] if three else [n, heads, q, d]))
        if m.r.random() < 0.6:
            m.add(m.array([9, d // 2], low=-1, high=1), constant=True)
            m.add(m.array([9, d // 2], low=-1, high=1), constant=True)
            m.add(m.np.array([[m.r.randrange(9) for _ in range(q)] for _ in range(n)], "int64"))
        else:
            m.add(m.array([n, q, d // 2], low=-1, high=1))
            m.add(m.array([n, q, d // 2], low=-1, high=1))
        m.attributes.update(interleaved=m.r.choice([0, 1]), rotary_embedding_dim=part)
        if three or part:
            m.attributes["num_heads"] = heads
        return
    k, v = m.r.randint(1, 6), m.r.choice([2, 4, 8])
    three = m.r.random() < 0.4
    past = m.r.randint(1, 3) if m.r.random() < 0.3 else 0
    for length, h, width in ((q, heads, d), (k, kv, d), (k, kv, v)):
        m.add(m.array([n, length, h * width] if three else [n, h, length, width], low=-2, high=2))
    kind = m.r.choice(["", "bool", "float32"])
    if kind:
        mask = m.array(m.r.choice([[q, k + past], [n, 1, q, k + past], [n, heads, q, k + past]]), kind)
        if kind == "bool":
            mask[..., 0] = True
        m.add(mask)
    elif past:
        m.add(None)
    if past:
        m.add(m.array([n, kv, past, d]))
        m.add(m.array([n, kv, past, v]))
        m.outputs = 3
    if three:
        m.attributes.update(q_num_heads=heads, kv_num_heads=kv)
    if m.r.random() < 0.5:
        m.attributes["is_causal"] = 1
    if m.r.random() < 0.3:
        m.attributes["softcap"] = 2.0
    if m.r.random() < 0.3:
        m.attributes["scale"] = m.r.choice([0.1, 0.7])


def boxes(m):
    m.op = m.r.choice("NonMaxSuppression RoiAlign AffineGrid Det DeformConv GridSample Resize LpPool GlobalLpPool MaxPool".split())
    rng = m.np.random.default_rng(m.r.randrange(2**32))
    if m.op == "NonMaxSuppression":
        n, count, classes = m.r.randint(1, 2), m.r.randint(1, 8), m.r.randint(1, 3)
        corners = rng.uniform(0, 1, [n, count, 2])
        m.add(m.np.concatenate([corners, corners + rng.uniform(0.1, 0.6, corners.shape)], -1).astype("float32"))
        m.add(rng.permutation(n * classes * count).reshape([n, classes, count]).astype("float32") / 50)
        m.ints([m.r.randint(1, count)])
        m.add(m.np.array([m.r.choice([0.1, 0.5, 0.9])], "float32"), constant=True)
        m.add(m.np.array([m.r.choice([0.0, 0.2])], "float32"), constant=True)
        m.attributes["center_point_box"] = m.r.choice([0, 0, 1])
    elif m.op == "RoiAlign":
        m.add(m.array([2, 2, 8, 8]))
        corners = rng.uniform(0, 6, [3, 2])
        m.add(m.np.concatenate([corners, corners + rng.uniform(1, 4, corners.shape)], -1).astype("float32"))
        m.add(m.np.array([0, 1, 0], "int64"))
        m.attributes.update(output_height=m.r.randint(1, 3), output_width=m.r.randint(1, 3), sampling_ratio=m.r.choice([0, 2]), spatial_scale=m.r.choice([0.5, 1.0]),
                            coordinate_transformation_mode=m.r.choice(["half_pixel", "output_half_pixel"]))
    elif m.op == "AffineGrid":
        three = m.r.random() < 0.4
        m.opset = 20
        m.add(m.array([2, 3, 4] if three else [2, 2, 3]))
        m.ints([2, 3, 2, 3, 4] if three else [2, 3, 3, 4])
        m.attributes["align_corners"] = m.r.choice([0, 1])
    elif m.op == "Det":
        k = m.r.randint(1, 4)
        m.add(m.array(m.shape(0, 2) + [k, k], m.r.choice(FLOATS)))
    elif m.op == "DeformConv":
        k, group = m.r.choice([1, 2, 3]), m.r.choice([1, 2])
        pad, stride = m.r.randint(0, 1), m.r.randint(1, 2)
        out = (5 + 2 * pad - k) // stride + 1
        m.add(m.array([1, 2, 5, 5]))
        m.add(m.array([3, 2, k, k]), constant=True)
        m.add(m.array([1, 2 * k * k * group, out, out], low=-1.5, high=1.5))
        m.add(m.array([3]) if m.r.random() < 0.5 else None, constant=True)
        if m.r.random() < 0.5:
            m.add(m.array([1, k * k * group, out, out], low=0, high=1))
        m.attributes.update(kernel_shape=[k, k], pads=[pad] * 4, strides=[stride] * 2, offset_group=group)
        m.opset = 22
    elif m.op == "GridSample":
        m.opset = 20
        m.add(m.array([1, 2, 3, 4, 3]))
        m.add(m.array([1, 2, 3, 2, 3], low=-1.2, high=1.2))
        m.attributes.update(mode=m.r.choice(["linear", "nearest"]), padding_mode=m.r.choice(["zeros", "border", "reflection"]), align_corners=m.r.choice([0, 1]))
    elif m.op == "Resize":
        n = m.r.choice([3, 4, 5])
        shape = [1, 2] + [m.r.randint(2, 5) for _ in range(n - 2)]
        m.opset = m.r.choice([11, 13, 18, 19])
        m.add(m.array(shape))
        m.add(m.np.zeros(0, "float32"), constant=True)
        if m.r.random() < 0.5:
            m.add(m.np.array([1, 1] + [m.r.choice([0.5, 1.5, 2.0]) for _ in shape[2:]], "float32"), constant=True)
        else:
            m.add(m.np.zeros(0, "float32"), constant=True)
            m.ints([1, 2] + [m.r.randint(1, 7) for _ in shape[2:]])
        m.attributes["mode"] = m.r.choice(["nearest", "linear", "cubic"] if n == 4 else ["nearest", "linear"])
        m.attributes["coordinate_transformation_mode"] = m.r.choice(["half_pixel", "asymmetric", "align_corners"])
        if m.attributes["mode"] == "cubic":
            m.attributes.update(cubic_coeff_a=m.r.choice([-0.5, -0.75]), exclude_outside=m.r.choice([0, 1]))
        if m.opset > 17 and m.attributes["mode"] != "nearest" and m.r.random() < 0.4:
            m.attributes["antialias"] = 1
    else:
        m.add(m.array([m.r.randint(1, 2), m.r.randint(1, 3)] + [m.r.randint(5, 8) for _ in range(m.r.choice([1, 2]))]))
        if m.op != "GlobalLpPool":
            layers.window(m, len(m.inputs[0].shape) - 2)
        if m.op == "MaxPool":
            m.outputs = 2
        else:
            m.attributes["p"] = m.r.choice([1, 2, 3])


def einsum(m):
    m.op, letters = "Einsum", "abcde"
    sizes = {c: m.r.randint(1, 4) for c in letters}
    terms = ["".join(m.r.sample(letters, m.r.randint(1, 4))) for _ in range(m.r.choice([1, 2, 2, 3]))]
    used = sorted(set("".join(terms)))
    out = "".join(m.r.sample(used, m.r.randint(0, len(used))))
    dtype = m.r.choice(FLOATS + ["int32"])
    for t in terms:
        m.add(m.array([sizes[c] for c in t], dtype))
    m.attributes["equation"] = ",".join(terms) + "->" + out


def directions(m):
    """Recurrent layers in two directions, with lengths, states, other activations."""
    m.op = m.r.choice(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[m.op]
    t, n, i, h = m.r.randint(1, 4), m.r.randint(1, 3), m.r.randint(1, 4), m.r.randint(1, 4)
    direction = m.r.choice(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    m.attributes.update(hidden_size=h, direction=direction)
    if m.op == "GRU":
        m.attributes["linear_before_reset"] = m.r.choice([0, 1])
    m.add(m.array([t, n, i]))
    m.add(m.array([d, gates * h, i], low=-1, high=1), constant=True)
    m.add(m.array([d, gates * h, h], low=-1, high=1), constant=True)
    m.add(m.array([d, 2 * gates * h], low=-1, high=1) if m.r.random() < 0.7 else None, constant=True)
    m.add(m.np.array([m.r.randint(1, t) for _ in range(n)], "int32") if m.r.random() < 0.5 else None)
    states = m.r.random() < 0.5
    m.add(m.array([d, n, h], low=-1, high=1) if states else None)
    if m.op == "LSTM":
        m.add(m.array([d, n, h], low=-1, high=1) if states else None)
        m.add(m.array([d, 3 * h], low=-1, high=1) if m.r.random() < 0.3 else None, constant=True)
    m.outputs = m.r.choice([1, 2, 3]) if m.op == "LSTM" else m.r.choice([1, 2])


KINDS = [of_one, of_several, halves, halves, integers, integers, blocks, earlier, earlier, shapes, shapes, signals, losses, attention, attention, boxes, boxes,
         einsum, directions]  # fmt: skip
