"""Products, convolutions, pooling, normalisation, images, recurrent layers."""
from .model import FLOATS


def products(m):
    m.op = m.r.choice(["MatMul", "Gemm", "Einsum"])
    a, b, k = m.r.randint(1, 5), m.r.randint(1, 5), m.r.randint(1, 5)
    dtype = m.r.choice(FLOATS + ["int32"] * (m.op == "MatMul"))
    if m.op == "Gemm":
        ta, tb = m.r.choice([0, 1]), m.r.choice([0, 1])
        m.add(m.array([k, a] if ta else [a, k], dtype))
        m.add(m.array([b, k] if tb else [k, b], dtype), constant=m.r.random() < 0.5)
        if m.r.random() < 0.6:
            m.add(m.array(m.r.choice([[b], [a, 1], [a, b], [1]]), dtype))
        m.attributes.update(transA=ta, transB=tb, alpha=m.r.choice([1.0, 0.5]), beta=m.r.choice([1.0, 2.0]))
        return
    if m.op == "Einsum":
        m.attributes["equation"] = m.r.choice(["ij,jk->ik", "ij,jk->ki", "ij,jk", "ij,jk->i"])
        m.add(m.array([a, k], dtype))
        m.add(m.array([k, b], dtype))
        return
    batch = m.shape(0, 2, 3)
    m.add(m.np.clip(m.array(m.r.choice([batch + [a, k], [k]]), dtype), -99, 99).astype(dtype))
    m.add(m.np.clip(m.array(m.r.choice([m.broadcast(batch) + [k, b] if batch else [k, b], [k]]), dtype), -99, 99).astype(dtype))


def window(m, spatial):
    """Kernel, strides, dilations and pads for images of some axes."""
    kernel = [m.r.randint(1, 3) for _ in range(spatial)]
    a = {"kernel_shape": kernel, "strides": [m.r.randint(1, 3) for _ in range(spatial)]}
    if m.r.random() < 0.4:
        a["dilations"] = [m.r.randint(1, 2) for _ in range(spatial)]
    how = m.r.random()
    if how < 0.5:
        a["pads"] = [m.r.randint(0, k - 1) for k in kernel + kernel]
    elif how < 0.7:
        a["auto_pad"] = m.r.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
        a.pop("dilations", None)
        a["strides"] = [min(s, k) for s, k in zip(a["strides"], kernel)]  # else the evaluator pads by less than nothing
    m.attributes.update(a)
    return kernel


def convolution(m):
    m.op, spatial = m.r.choice(["Conv", "Conv", "ConvTranspose"]), m.r.choice([1, 2, 2, 2, 3])
    group, each = m.r.choice([1, 1, 2, 4]), m.r.randint(1, 3)
    channels, out = group * each, group * m.r.randint(1, 3)
    kernel = window(m, spatial)
    m.attributes["group"] = group
    m.add(m.array([m.r.randint(1, 2), channels] + [m.r.randint(6, 9) for _ in range(spatial)]))
    m.add(m.array(([out, each] if m.op == "Conv" else [channels, out // group]) + kernel), constant=m.r.random() < 0.7)
    if m.r.random() < 0.5:
        m.add(m.array([out]), constant=m.r.random() < 0.7)


def pooling(m):
    m.op, spatial = m.r.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"]), m.r.choice([1, 2, 2, 3])
    spatial = 2 if m.op == "GlobalMaxPool" else spatial  # of others the evaluator keeps axes
    m.add(m.array([m.r.randint(1, 2), m.r.randint(1, 3)] + [m.r.randint(6, 9) for _ in range(spatial)]))
    if not m.op.startswith("Global"):
        window(m, spatial)
        if "auto_pad" not in m.attributes:
            m.attributes["ceil_mode"] = m.r.choice([0, 1])
        if m.op == "AveragePool":
            m.attributes["count_include_pad"] = m.r.choice([0, 1])


def norms(m):
    m.op = m.r.choice("BatchNormalization InstanceNormalization LayerNormalization GroupNormalization RMSNormalization LpNormalization LRN MeanVarianceNormalization".split())
    c = m.r.choice([2, 4])
    shape = [m.r.randint(1, 3), c] + m.shape(1, 2)
    m.add(m.array(shape))
    if m.op == "RMSNormalization":
        m.opset = 23
    if m.op in ("BatchNormalization", "InstanceNormalization", "GroupNormalization"):
        m.add(m.array([c]), constant=True)
        m.add(m.array([c]), constant=True)
        m.attributes["epsilon"] = 1e-3
    if m.op == "BatchNormalization":
        m.add(m.array([c]), constant=True)
        m.add(m.array([c], low=0.5), constant=True)
    if m.op == "GroupNormalization":
        m.inputs[0] = m.array(shape[:2] + [n + 2 for n in shape[2:]])  # the evaluator and others normalise groups of two elements to four digits only
        m.attributes["num_groups"] = m.r.choice([1, 2])
    if m.op in ("LayerNormalization", "RMSNormalization"):
        axis = m.axis(len(shape))
        m.add(m.array(shape[axis:] if axis else shape))
        if m.op == "LayerNormalization" and m.r.random() < 0.6:
            m.add(m.array(shape[axis:] if axis else shape))
        m.attributes.update(axis=axis, epsilon=1e-3)
    if m.op == "LpNormalization":
        m.attributes.update(axis=m.axis(len(shape)), p=m.r.choice([1, 2]))
    if m.op == "LRN":
        m.attributes["size"] = m.r.choice([1, 3])
    if m.op == "MeanVarianceNormalization":
        m.inputs = [m.array([2, 3, 4, 4])]


def images(m):
    m.op = m.r.choice(["DepthToSpace", "SpaceToDepth", "Resize", "GridSample"])
    if m.op == "DepthToSpace":
        m.add(m.array([1, 8, 2, 3]))
        m.attributes.update(blocksize=2, mode=m.r.choice(["DCR", "CRD"]))
    elif m.op == "SpaceToDepth":
        m.add(m.array([1, 2, 4, 6]))
        m.attributes["blocksize"] = 2
    elif m.op == "Resize":
        m.add(m.array([1, 2, m.r.randint(2, 5), m.r.randint(2, 5)]))
        m.add(None)
        if m.r.random() < 0.5:
            m.add(m.np.array([1, 1, m.r.choice([0.5, 1.5, 2.0]), m.r.choice([0.6, 2.0, 3.0])], "float32"), constant=True)
        else:
            m.add(None)
            m.ints([1, 2, m.r.randint(1, 8), m.r.randint(1, 8)])
        m.attributes["mode"] = m.r.choice(["nearest", "linear", "cubic"])
        m.attributes["coordinate_transformation_mode"] = m.r.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
        if m.attributes["mode"] == "nearest":
            m.attributes["nearest_mode"] = m.r.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    else:
        m.add(m.array([1, 2, 4, 5]))
        m.add(m.array([1, 3, 2, 2], low=-1.2, high=1.2))
        m.attributes.update(mode=m.r.choice(["linear", "nearest"]), padding_mode=m.r.choice(["zeros", "border", "reflection"]), align_corners=m.r.choice([0, 1]))


def quantised(m):
    m.op, dtype = m.r.choice(["QuantizeLinear", "DequantizeLinear"]), m.r.choice(["int8", "uint8", "int16", "uint16"])
    shape, axis = m.shape(2, 3), m.r.choice([0, 1])
    scales = m.r.choice([[], [shape[axis]]])
    m.add(m.array(shape, "float32" if m.op == "QuantizeLinear" else dtype))
    m.add(m.array(scales, low=0.05, high=0.5), constant=True)
    m.add(m.np.clip(m.array(scales, dtype), -20, 20).astype(dtype), constant=True)
    m.attributes["axis"] = axis


def recurrent(m):
    m.op = m.r.choice(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[m.op]
    t, n, i, h = m.r.randint(1, 4), m.r.randint(1, 3), m.r.randint(1, 4), m.r.randint(1, 4)
    m.attributes.update(hidden_size=h, direction="forward")
    if m.op == "GRU":
        m.attributes["linear_before_reset"] = m.r.choice([0, 1])
    m.add(m.array([t, n, i]))
    m.add(m.array([1, gates * h, i], low=-1, high=1), constant=True)
    m.add(m.array([1, gates * h, h], low=-1, high=1), constant=True)
    m.add(m.array([1, 2 * gates * h], low=-1, high=1) if m.r.random() < 0.7 else None, constant=True)
    m.outputs = 2


KINDS = [products, convolution, convolution, pooling, norms, images, quantised, recurrent]
