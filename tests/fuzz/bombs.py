"""Writes files that are small and ask for much: bombs.py FOLDER [EVERY], all of them, or every so many.

tests/bombs reads each of them; it must end with an error, soon, and with little memory.
"""
import gzip
import json
import os
import struct
import sys
import zlib

folder = sys.argv[1]
every = int(sys.argv[2]) if len(sys.argv) > 2 else 1
count = 0


def wanted():
    global count
    count += 1
    return (count - 1) % every == 0


def bomb(name, data):
    """data: bytes, or a function that makes them."""
    if wanted():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data() if callable(data) else data)


# ---- protobuf, as far as ONNX needs it ------------------------------------------------------------------------------


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


FLOAT, INT64, BOOL = 1, 7, 9


def tensor(name, kind, dims, raw, *more):
    return b"".join([*(field(1, d) for d in dims), field(2, kind), field(8, name), field(9, raw), *more])


def ints(name, *values):
    return tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def int0(name, value):
    return tensor(name, INT64, [], struct.pack("<q", value))


def floats(name, *values):
    return tensor(name, FLOAT, [len(values)], struct.pack(f"<{len(values)}f", *values))


def attr(name, value):
    if isinstance(value, dict):
        return field(1, name) + field(6, value["graph"]) + field(20, 5)
    if isinstance(value, bytes):
        return field(1, name) + field(5, value) + field(20, 4)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)


def node(op, inputs, outputs, **attrs):
    return b"".join([*(field(1, i) for i in inputs.split()), *(field(2, o) for o in outputs.split()),
                     field(3, "n_" + outputs.split()[0]), field(4, op),
                     *(field(5, attr(k, v)) for k, v in attrs.items())])


def value(name, kind=FLOAT, dims=None):
    shape = b"" if dims is None else field(2, b"".join(field(1, field(1, d)) for d in dims))
    return field(1, name) + field(2, field(1, field(1, kind) + shape))


def graph(nodes, inputs=(), outputs=("y",), tensors=(), name="g"):
    return b"".join([*(field(1, n) for n in nodes), field(2, name), *(field(5, t) for t in tensors),
                     *(field(11, i if isinstance(i, bytes) else value(i)) for i in inputs),
                     *(field(12, o if isinstance(o, bytes) else value(o)) for o in outputs)])


def model(nodes, dims=(2, 3), tensors=(), outputs=("y",), opset=17):
    g = graph(nodes, [value("x", FLOAT, dims)], outputs, tensors)
    return field(1, 8) + field(7, g) + field(8, field(1, "") + field(2, opset))


def onnx(name, nodes, dims=(2, 3), tensors=(), **rest):
    def make():
        n, t = (nodes() if callable(nodes) else nodes), (tensors() if callable(tensors) else tensors)
        return model(n, dims, t, **rest)
    bomb(f"{name}@{'x'.join(map(str, dims))}.onnx", make)


# ---- ONNX: one operator that makes much of little ---------------------------------------------------------------------

big = [10**5, 10**7, 2 * 10**9, 2**40, 2**61]
for n in big:
    onnx(f"pad-{n}", [node("Pad", "x p", "y")], tensors=[ints("p", n, n, n, n)])
for mode in ("reflect", "edge", "wrap"):
    onnx(f"pad-{mode}", [node("Pad", "x p", "y", mode=mode)], tensors=[ints("p", 0, 0, 30000, 30000)])
for n in big:
    onnx(f"expand-{n}", [node("Expand", "x s", "y")], tensors=[ints("s", n, 2, 3)] if n > 10**9 else
         [ints("s", n, n // 1000, 2, 3)])
for n in big:
    onnx(f"tile-{n}", [node("Tile", "x s", "y")], tensors=[ints("s", n, n)])
for n in big[1:]:
    onnx(f"constantofshape-{n}", [node("ConstantOfShape", "s", "c"), node("ReduceSum", "c", "r"),
                                  node("Add", "x r", "y")], tensors=[ints("s", n, 100)])
for n in (10**9, 2**40, 2**62):
    onnx(f"range-{n}", [node("Range", "a b c", "r"), node("ReduceSum", "r", "s"),
                        node("Cast", "s", "f", to=FLOAT), node("Add", "x f", "y")],
         tensors=[int0("a", 0), int0("b", n), int0("c", 1)])
for n in (3e4, 1e6, 1e18):
    for mode in ("nearest", "linear", "cubic"):
        onnx(f"resize-{mode}-{n:g}", [node("Resize", "x e s", "y", mode=mode)], (1, 1, 4, 4),
             tensors=[floats("e"), floats("s", 1, 1, n, n)])
for n in (30000, 2**40):
    onnx(f"resize-sizes-{n}", [node("Resize", "x e e s", "y")], (1, 1, 4, 4), tensors=[floats("e"), ints("s", 1, 1, n, n)])
for n in (10**8, 2**31, 2**50):
    onnx(f"onehot-{n}", [node("Cast", "x", "i", to=INT64), node("OneHot", "i d v", "y")],
         tensors=[int0("d", n), floats("v", 0, 1)])
for n in (30000, 2**33):
    onnx(f"eyelike-{n}", [node("Expand", "x s", "e"), node("EyeLike", "e", "y")], (1, 1), tensors=[ints("s", n, n)])
for n in (10**9, 2**60):
    onnx(f"random-{n}", [node("RandomNormal", "", "r", shape=[n]), node("ReduceSum", "r", "s"), node("Add", "x s", "y")])
onnx("multinomial", [node("Multinomial", "x", "i", sample_size=2**31 - 1), node("Cast", "i", "y", to=FLOAT)])
for n in (2**14, 2**20, 2**31 - 1):
    onnx(f"depthtospace-{n}", [node("Expand", "x s", "e"), node("DepthToSpace", "e", "y", blocksize=n)], (1, 1, 1, 1),
         tensors=[ints("s", 1, n * n if n < 2**30 else 4, 1, 1)])
for n in (20000, 2**31 - 1):
    onnx(f"roialign-{n}", [node("RoiAlign", "x r b", "y", output_height=n, output_width=n)], (1, 1, 4, 4),
         tensors=[tensor("r", FLOAT, [1, 4], struct.pack("<4f", 0, 0, 1, 1)), ints("b", 0)])
onnx("affinegrid", [node("Reshape", "x t", "h"), node("AffineGrid", "h s", "y")], tensors=[ints("t", 1, 2, 3),
     ints("s", 1, 1, 50000, 50000)], opset=20)
onnx("gridsample", [node("AffineGrid", "h s", "g"), node("GridSample", "i g", "y")], tensors=[
     tensor("h", FLOAT, [1, 2, 3], bytes(24)), tensor("i", FLOAT, [1, 1, 2, 2], bytes(16)), ints("s", 1, 1, 30000, 30000)],
     opset=20)
onnx("einsum-outer", [node("Flatten", "x", "f", axis=0), node("Einsum", "f f", "y", equation="ai,bj->abij"),
                      ], (1, 40000))
onnx("einsum-four", [node("Einsum", "x x x x", "y", equation="ai,bj,ck,dl->abcdijkl")], (100, 100))
onnx("einsum-letters", [node("Einsum", " ".join("x" * 26), "y", equation=",".join("ab" for _ in range(26)) + "->ab")],
     (4000, 4000))
for n in (25000, 10**6):
    onnx(f"matmul-outer-{n}", [node("Reshape", "x c", "k"), node("Reshape", "x r", "w"), node("MatMul", "k w", "y")],
         (1, n), tensors=[ints("c", n, 1), ints("r", 1, n)])
onnx("matmul-cube", [node("Expand", "x s", "e"), node("MatMul", "e e", "a"), node("MatMul", "a a", "b"),
                     node("MatMul", "b b", "y")], (1, 1), tensors=[ints("s", 7000, 7000)])
onnx("gemm-cube", [node("Expand", "x s", "e"), node("Gemm", "e e", "y")], (1, 1), tensors=[ints("s", 8000, 8000)])
for n in (3000, 2**20):
    onnx(f"conv-{n}", [node("Expand", "x s", "e"), node("Conv", "e k", "y")], (1, 1, 1, 1),
         tensors=[ints("s", 1, 1, n, n), tensor("k", FLOAT, [1, 1, 128, 128], bytes(65536))])
onnx("conv-channels", [node("Expand", "x s", "e"), node("Expand", "x t", "k"), node("Conv", "e k", "y")], (1, 1, 1, 1),
     tensors=[ints("s", 1, 3000, 64, 64), ints("t", 3000, 3000, 3, 3)])
for n in (10**5, 2**31 - 1):
    onnx(f"conv-pads-{n}", [node("Conv", "x k", "y", pads=[n] * 4)], (1, 1, 4, 4),
         tensors=[tensor("k", FLOAT, [1, 1, 1, 1], bytes(4))])
    onnx(f"convtranspose-{n}", [node("ConvTranspose", "x k", "y", strides=[n, n])], (1, 1, 4, 4),
         tensors=[tensor("k", FLOAT, [1, 1, 1, 1], bytes(4))])
    onnx(f"pool-{n}", [node("Expand", "x s", "e"), node("AveragePool", "e", "y", kernel_shape=[n // 100, n // 100],
                                                         pads=[n // 200] * 4)], (1, 1, 1, 1), tensors=[ints("s", 1, 1, 2000, 2000)])
onnx("maxpool-window", [node("Expand", "x s", "e"), node("MaxPool", "e", "y", kernel_shape=[999, 999], strides=[1, 1])],
     (1, 1, 1, 1), tensors=[ints("s", 1, 1, 2999, 2999)])
onnx("lrn-size", [node("Expand", "x s", "e"), node("LRN", "e", "y", size=9999)], (1, 1, 1, 1),
     tensors=[ints("s", 1, 10000, 30, 30)])
onnx("col2im", [node("Col2Im", "x a b", "y")], (1, 4, 1), tensors=[ints("a", 2**20, 2**20), ints("b", 2, 2)], opset=18)
onnx("maxunpool", [node("MaxPool", "x", "p i", kernel_shape=[2, 2]), node("MaxUnpool", "p i s", "y", kernel_shape=[2, 2])],
     (1, 1, 4, 4), tensors=[ints("s", 1, 1, 2**18, 2**18)])
for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    onnx(f"recurrent-{op}", [node("Expand", "x a", "e"), node("Expand", "w b", "W"), node("Expand", "w c", "R"),
                             node(op, "e W R", "y", hidden_size=4000)], (1, 1, 1),
         tensors=[tensor("w", FLOAT, [1, 1, 1], bytes(4)), ints("a", 20000, 8, 8), ints("b", 1, gates * 4000, 8),
                  ints("c", 1, gates * 4000, 4000)])
onnx("cumsum", [node("Expand", "x s", "e"), node("CumSum", "e a", "y")], (1, 1), tensors=[ints("s", 2**15, 2**15), int0("a", 0)])
onnx("topk", [node("Expand", "x s", "e"), node("TopK", "e k", "y i")], (1, 1), tensors=[ints("s", 2**15, 2**14), ints("k", 2**14)])
onnx("nonzero", [node("Expand", "x s", "e"), node("NonZero", "e", "i"), node("Cast", "i", "y", to=FLOAT)], (1, 1),
     tensors=[ints("s", 2**14, 2**15)])
onnx("scatter", [node("Expand", "x s", "e"), node("Cast", "e", "i", to=INT64), node("ScatterElements", "e i e", "y")],
     (1, 1), tensors=[ints("s", 2**14, 2**15)])
onnx("quantise", [node("Expand", "x s", "e"), node("DynamicQuantizeLinear", "e", "q a b"), node("DequantizeLinear", "q a b", "y")],
     (1, 1), tensors=[ints("s", 2**15, 2**15)])

for n, times in ((10**6, 2000), (5 * 10**6, 100)):  # sorts, none of which is long
    onnx(f"sorts-{n}", [node("Expand", "x s", "e"), node("CumSum", "e a", "c"), node("Sin", "c", "v0")] +
         [node("TopK", "v0 k", "w0 p0")] +
         [step for i in range(times) for step in (node("Neg", f"w{i}", f"v{i + 1}"), node("TopK", f"v{i + 1} k", f"w{i + 1} p{i + 1}"))] +
         [node("Identity", f"w{times}", "y")], (1, 1), tensors=[ints("s", 1, n), ints("k", n), int0("a", 1)])

# ---- ONNX: chains that double -----------------------------------------------------------------------------------------


def doubling(op, more=""):
    return [node(op, f"v{i} v{i}{more}" if op != "Tile" else f"v{i} two", f"v{i + 1}", **({"axis": 0} if op == "Concat" else {}))
            for i in range(45)]


start, end = [node("Identity", "x", "v0")], [node("Identity", "v45", "y")]
onnx("double-concat", start + doubling("Concat") + end)
onnx("double-tile", start + doubling("Tile") + end, tensors=[ints("two", 2, 1)])
onnx("double-pad", start + [node("Pad", f"v{i} p", f"v{i + 1}") for i in range(45)] + end, tensors=[ints("p", 99, 99, 99, 99999)])
onnx("double-outer", start + [node("Einsum", f"v{i} v{i}", f"v{i + 1}", equation="ij,kl->ijkl") for i in range(45)] + end, (999, 999))
onnx("double-kron", [node("Flatten", "x", "v0", axis=0)] + [n for i in range(20) for n in (
     node("Reshape", f"v{i} c", f"a{i}"), node("Mul", f"a{i} v{i}", f"b{i}"), node("Reshape", f"b{i} r", f"v{i + 1}"))] +
     [node("Identity", "v20", "y")], tensors=[ints("c", -1, 1), ints("r", 1, -1)])
onnx("double-upsample", start + [node("Resize", f"v{i} e s", f"v{i + 1}", mode="nearest") for i in range(45)] + end, (1, 1, 4, 4),
     tensors=[floats("e"), floats("s", 1, 1, 2, 2)])
onnx("double-sequence", [node("SequenceConstruct", " ".join("x" * 64), "s0")] +
     [n for i in range(30) for n in (node("ConcatFromSequence", f"s{i}", f"c{i}", axis=0),
                                     node("SequenceConstruct", " ".join([f"c{i}"] * 64), f"s{i + 1}"))] +
     [node("ConcatFromSequence", "s30", "y", axis=0)])
onnx("layers-of-matmul", lambda: start + [node("Expand", "v0 s", "w")] + [node("MatMul", f"{'w' if not i else 'm%d' % i} w", f"m{i + 1}")
     for i in range(3000)] + [node("Identity", "m3000", "y")], (1, 1), tensors=[ints("s", 2000, 2000)])

# ---- ONNX: loops -------------------------------------------------------------------------------------------------------


def body(nodes, extra_in=(), outputs=("c", "o")):
    return {"graph": graph(nodes, [value("i", INT64, []), value("c", BOOL, []), *extra_in], outputs, name="body")}


def loop(nodes, times, **rest):
    return [node("Loop", "m t x", "y", body=body(nodes, [value("v")]))], \
        dict(tensors=[int0("m", times), tensor("t", BOOL, [], b"\1")], **rest)


def add_loop(name, nodes, times, **rest):
    n, more = loop(nodes, times, **rest)
    onnx(name, n, **more)


for times in (10**6, 10**12, 2**63 - 1):
    add_loop(f"loop-{times}", [node("Add", "v v", "o")], times)
    add_loop(f"loop-known-{times}", [node("Mul", "i i", "q"), node("Cast", "q", "f", to=FLOAT), node("Add", "v f", "o")], times)
add_loop("loop-grows", [node("Concat", "v v", "o", axis=0)], 60)
add_loop("loop-heavy", [node("Einsum", "v v", "p", equation="ij,jk->ik"), node("Tanh", "p", "o")], 50000, dims=(1500, 1500))


def nested(depth):
    inner = [node("Add", "v v", "o")]
    for _ in range(depth):
        inner = [node("Loop", "m t v", "o", body=body(inner, [value("v")]))]
    return inner


for depth in (3, 12, 40):
    add_loop(f"loop-nested-{depth}", nested(depth), 1000)


def nested_fields(depth):
    data = b""
    for _ in range(depth):
        data = field(7, data)
        if len(data) > 1 << 20:
            break
    return data


def deep(depth, op, key):
    g = graph([node("Identity", "x", "y")], outputs=["y"])
    for _ in range(depth):
        g = graph([node(op, "t", "y", then_branch={"graph": g}, else_branch={"graph": g})] if key else
                  [node(op, "m t x", "y", body={"graph": g})], outputs=["y"])
        if len(g) > 1 << 24:
            break
    return g


for depth in (18,):
    def branches(depth=depth):
        g = deep(depth, "If", True)
        return field(1, 8) + field(7, graph([node("If", "t", "y", then_branch={"graph": g}, else_branch={"graph": g})],
                                            [value("x", FLOAT, (2, 3))], ["y"], [tensor("t", BOOL, [], b"\1")])) + \
            field(8, field(1, "") + field(2, 17))
    bomb(f"branches-{depth}.onnx", branches)
bomb("deep-graphs.onnx", lambda: field(1, 8) + field(7, deep(4000, "Loop", False)) + field(8, field(1, "") + field(2, 17)))
onnx("scan", [node("Scan", "x", "s", num_scan_inputs=1, body={"graph": graph([node("Expand", "r s2", "o")], [value("r")], ["o"],
     name="b")}), node("ReduceSum", "s", "y")], (100000, 1), tensors=[ints("s2", 10000)])
onnx("sequence-map", [node("SplitToSequence", "x", "s", axis=0), node("SequenceMap", "s", "t", body={"graph": graph(
     [node("Tile", "e r", "o")], [value("e")], ["o"])}), node("ConcatFromSequence", "t", "y", axis=0)], (100000, 2),
     tensors=[ints("r", 1000, 1000)])

# ---- ONNX: long files ---------------------------------------------------------------------------------------------------

onnx("nodes-1e5", lambda: start + [node("Sin", f"v{i}", f"v{i + 1}") for i in range(10**5)] + [node("Nothing", "v100000", "y")])
onnx("nodes-unknown", lambda: [node(f"Op{i}", "x", f"v{i}") for i in range(10**5)] + [node("Sum", " ".join(
     f"v{i}" for i in range(10**5)), "y")])
onnx("names-twice", lambda: [node("Relu", "x", "y")] * 10**5)
onnx("inputs-1e6", lambda: [node("Sum", "x " * 10**6, "y"), node("Nothing", "y", "z")], outputs=("z",))
onnx("outputs-1e5", lambda: [node("Split", "x", " ".join(f"o{i}" for i in range(10**5)), axis=0), node("Sum", "o0 o99999", "y")])
onnx("attribute-1e6", lambda: [node("Transpose", "x", "y", perm=list(range(10**6)))])
onnx("attributes-1e5", lambda: [node("Relu", "x", "y", **{f"a{i}": i for i in range(10**5)}), node("Nothing", "y", "z")],
     outputs=("z",))
onnx("axes-1e5", lambda: [node("Unsqueeze", "x a", "y")], tensors=lambda: [ints("a", *range(10**5))])
onnx("concat-1e5", lambda: [node("Expand", "x s", "e"), node("Concat", "e " * 10**5, "y", axis=0)], (1, 1),
     tensors=[ints("s", 1000, 1000)])
onnx("initialisers-1e5", lambda: start + [node("Add", f"v{i} w{i}", f"v{i + 1}") for i in range(40000)] +
     [node("Nothing", "v40000", "y")], tensors=lambda: [floats(f"w{i}", 1) for i in range(40000)])
onnx("parameters", lambda: start + [node("Add", f"v{i} w{i}", f"v{i + 1}") for i in range(20000)] + [node("Tile", "v20000 r", "y")],
     tensors=lambda: [ints("r", 2**30, 2**30)] + [tensor(f"w{i}", FLOAT, [65, 1], bytes(260)) for i in range(20000)], dims=(65, 1))
bomb("inputs-of-model.onnx", lambda: field(1, 8) + field(7, graph([node("Relu", "x0", "y")], [value(f"x{i}", FLOAT, (2, 2))
     for i in range(10**5)])) + field(8, field(1, "") + field(2, 17)))
bomb("groups.onnx", lambda: b"\x0b" * 10**6)
bomb("nested-fields.onnx", lambda: nested_fields(20000))


bomb("length.onnx", b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
bomb("packed.onnx", lambda: field(1, 8) + field(7, graph([node("Add", "x w", "y")], ["x"], tensors=[
     b"".join([field(1, 10**7), field(2, INT64), field(8, "w"), field(7, b"\0" * 10**7)])])) + field(8, field(1, "") + field(2, 17)))
for place in ("/dev/zero", "zero", "../secret", "fifo", "hole", "loop"):
    onnx("external-" + place.strip("./").replace("/", "-"), [node("Gather", "w i", "g", axis=0), node("Add", "x g", "y")], tensors=[
         b"".join([field(1, 2**28), field(1, 4), field(2, FLOAT), field(8, "w"), field(13, field(1, "location") + field(2, place)),
                   field(14, 1)]), ints("i", 0)])
for offset in ("-1", "18446744073709551615", "99999999999999999999", " 1", "1e9", "0x10"):
    onnx("offset" + offset.replace(" ", "_"), [node("Add", "x w", "y")], tensors=[
         b"".join([field(1, 3), field(2, FLOAT), field(8, "w"), field(13, field(1, "location") + field(2, "small")),
                   field(13, field(1, "offset") + field(2, offset)), field(14, 1)])])
for dims in ([2**40, 2**40], [2**62, 4], [-1, 3], [2**63 - 1], [0, 2**62, 2**62]):
    onnx("tensor-" + "x".join(map(str, dims)), [node("Add", "x w", "y")], tensors=[tensor("w", FLOAT, dims, bytes(12))])
onnx("reshape", [node("Reshape", "x s", "y")], tensors=[ints("s", 2**62, 4, -1)])
onnx("slice", [node("Slice", "x a b c d", "y")], tensors=[ints("a", -2**63), ints("b", 2**63 - 1), ints("c", 0), ints("d", -2**63)])
onnx("transpose-back", [node("Expand", "x s", "e"), node("Transpose", "e", "y", perm=[1, 0])], (1, 1), tensors=[ints("s", 2**14, 2**15)])
if os.path.isdir(folder):
    with open(os.path.join(folder, "small"), "wb") as f:
        f.write(bytes(12))
    for link, to in (("zero", "/dev/zero"), ("loop", "loop")):
        if not os.path.lexists(os.path.join(folder, link)):
            os.symlink(to, os.path.join(folder, link))
    if not os.path.exists(os.path.join(folder, "fifo")):
        os.mkfifo(os.path.join(folder, "fifo"))
    with open(os.path.join(folder, "hole"), "wb") as f:
        f.truncate(2**32)

# ---- MXNet's symbols ----------------------------------------------------------------------------------------------------


def symbol(name, nodes):
    def make():
        listed = [{"op": "null", "name": "data", "inputs": []}]
        for op, inputs, attrs in (nodes() if callable(nodes) else nodes):
            listed.append({"op": op, "name": f"n{len(listed)}", "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]})
        return json.dumps({"nodes": listed, "arg_nodes": [0], "heads": [[len(listed) - 1, 0, 0]]}).encode()
    bomb(f"{name}-symbol.json", make)


for n in ("30000", "1099511627776", "4611686018427387904"):
    symbol(f"broadcast-{n}", [("broadcast_to", [0], {"shape": f"({n}, {n}, 2, 3)"})])
    symbol(f"zeros-{n}", [("_zeros", [], {"shape": f"({n}, {n})"}), ("sum", [1], {}), ("broadcast_add", [0, 2], {})])
    symbol(f"onehot-{n}", [("one_hot", [0], {"depth": n}), ("one_hot", [1], {"depth": n})])
    symbol(f"arange-{n}", [("_arange", [], {"start": "0", "stop": n + "000"}), ("sum", [1], {}), ("broadcast_add", [0, 2], {})])
symbol("double", [("Concat", [i, i], {"dim": "0", "num_args": "2"}) for i in range(60)])
symbol("shared", lambda: [("broadcast_add", [i, i], {}) for i in range(10**5)] + [("Nothing", [10**5], {})])
symbol("chain-run", lambda: [("tanh", [i], {}) for i in range(3 * 10**4)] + [("broadcast_to", [3 * 10**4], {"shape": "(30000,30000,2,3)"})])
symbol("stack", [("stack", [i] * 100, {"axis": "0", "num_args": "100"}) for i in range(20)])
symbol("inputs", lambda: [("add_n", [0] * 10**6, {"num_args": "1000000"}), ("Nothing", [1], {})])
symbol("tuple", lambda: [("transpose", [0], {"axes": "(" + "1, " * 10**6 + ")"})])
symbol("attributes", lambda: [("tanh", [0], {f"a{i}": "1" for i in range(10**5)}), ("Nothing", [1], {})])
symbol("outputs", [("SliceChannel", [0], {"num_outputs": "2147483647"})])
symbol("conv", [("Convolution", [0, 0], {"kernel": "(99999, 99999)", "num_filter": "2147483647", "pad": "(2147483647, 2147483647)"})])
bomb("brackets-symbol.json", b"[" * 10**6)
bomb("many-arrays-symbol.json", lambda: b'{"nodes": [' + b"[]," * (5 * 10**6) + b"[]]}")
bomb("many-objects-symbol.json", lambda: b'{"nodes": [' + b"{}," * (5 * 10**6) + b"{}]}")
bomb("long-text-symbol.json", lambda: b'{"nodes": "' + b"\\u0041" * (10**6) + b'"}')
bomb("number-symbol.json", lambda: b'{"nodes": [' + b"9" * 10**6 + b"]}")

# ---- arrays in files ----------------------------------------------------------------------------------------------------


def safetensors(name, header, data=bytes(64)):
    def make():
        text = header() if callable(header) else header
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        return struct.pack("<Q", len(text)) + text + data
    bomb(f"{name}.safetensors", make)


def entry(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


safetensors("overlap", {"a": entry([16], 0, 64), "b": entry([16], 0, 64)})
safetensors("huge-offset", {"a": entry([16], 2**62, 2**62 + 64)})
safetensors("huge-shape", {"a": entry([2**40, 2**40], 0, 64)})
safetensors("wrapped", {"a": entry([2**62 + 4, 4], 0, 64)})
safetensors("negative", {"a": entry([-16], 0, 64)})
safetensors("minus", b'{"a":{"dtype":"F32","shape":[16],"data_offsets":[-1,63]}}')
safetensors("gap", {"a": entry([1], 60, 64)})
safetensors("entries", lambda: {f"t{i}": entry([0], 0, 0) for i in range(3 * 10**5)})
safetensors("axes", lambda: {"a": entry([1] * 10**6, 0, 64)})
safetensors("nested", b'{"a":' + b'{"a":' * 10**5)
safetensors("many-arrays", lambda: b'{"a":[' + b"[]," * (5 * 10**6) + b"[]]}")
safetensors("metadata", lambda: {"__metadata__": {f"k{i}": "v" * 10 for i in range(3 * 10**5)}, "a": entry([99], 0, 64)})
bomb("length.safetensors", struct.pack("<Q", 2**63) + b"{}")
bomb("length2.safetensors", struct.pack("<Q", 100 << 20) + b"{}")


def params(name, body):
    bomb(f"{name}.params", lambda: struct.pack("<QQ", 0x112, 0) + body())


def array(dims, data=b""):
    return struct.pack("<Iii", 0xf993faca, 0, len(dims)) + struct.pack(f"<{len(dims)}q", *dims) + struct.pack("<iii", 1, 0, 0) + data


params("count", lambda: struct.pack("<Q", 2**63))
params("count2", lambda: struct.pack("<Q", 10**6) + bytes(8 * 10**6))
params("shape", lambda: struct.pack("<Q", 1) + array([2**40, 2**40]))
params("shape-wraps", lambda: struct.pack("<Q", 1) + array([2**62 + 1, 4], bytes(16)))
params("shape-negative", lambda: struct.pack("<Q", 1) + array([-4, -4], bytes(64)))
params("names", lambda: struct.pack("<Q", 1) + array([1], bytes(4)) + struct.pack("<QQ", 1, 2**63) + b"w")
params("names-twice", lambda: struct.pack("<Q", 10**5) + array([1], bytes(4)) * 10**5 + struct.pack("<Q", 10**5) +
       (struct.pack("<Q", 5) + b"arg:w") * 10**5)


def npy(name, header, data=bytes(16), version=(1, 0)):
    text = header.encode()
    bomb(f"{name}.npy", b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version[0] == 1 else "<I", len(text)) + text + data)


for i, shape in enumerate(["(1099511627776, 1099511627776)", "(4611686018427387905, 4)", "(99999999999999999999999,)", "(-4,)",
                           "(18446744073709551616,)", "(9223372036854775807,)", "(" + "1, " * 1000 + ")", "(1000000000,)"]):
    npy(f"shape-{i}", "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % shape)
npy("type", "{'descr': [('a', '<f4')] * 1000000, 'fortran_order': False, 'shape': (4,), }")
npy("nested", "{'descr': " + "(" * 60000)
bomb("header.npy", b"\x93NUMPY\2\0" + struct.pack("<I", 2**32 - 1) + b"{}")

# ---- images, tables, IDX ------------------------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(name, width, height, depth=8, colour=0, interlace=0, rows=0, more=b""):
    def make():
        z = zlib.compressobj(9)
        row, data = bytes(1 + width * depth // 8 * (3 if colour == 2 else 1)), []
        for _ in range(rows):
            data.append(z.compress(row))
        data = b"".join(data) + z.flush()
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)) + \
            more + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    bomb(f"{name}.png", make)


png("100000", 10**5, 10**5)
png("100000-grey1", 10**5, 10**5, 1)
png("widest", 2**31 - 1, 2**31 - 1)
png("16000", 16000, 16000, 8, 2, rows=16000)
png("16000-interlaced", 16000, 16000, 8, 0, 1, rows=8000)
png("16000-deep", 12000, 12000, 16, 0, rows=12000)
png("bits", 16000, 16000, 1, 0, rows=16000)
if every == 1:
    png("profile", 8, 8, rows=7, more=chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(10**8), 9)))
    png("text", 8, 8, rows=7, more=chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(10**8), 9)) * 20)


def segment(marker, data):
    return bytes([0xff, marker]) + struct.pack(">H", len(data) + 2) + data


def jpeg(name, width, height, scans, components=1, progressive=True):
    """Progressive scans of nothing: the first has the mean of each block, the others say that 32767 blocks have no more."""
    def make():
        parts = [b"\xff\xd8", segment(0xdb, b"\0" + b"\1" * 64)]
        parts.append(segment(0xc2 if progressive else 0xc0, struct.pack(">BHHB", 8, height, width, components) +
                             b"".join(bytes([i + 1, 0x11, 0]) for i in range(components))))
        parts.append(segment(0xc4, b"\0" + b"\1" + bytes(15) + b"\0"))
        parts.append(segment(0xc4, b"\x10" + b"\1" + bytes(15) + b"\xe0"))
        blocks = -(-width // 8) * -(-height // 8)
        parts.append(segment(0xda, bytes([components]) + b"".join(bytes([i + 1, 0]) for i in range(components)) + b"\0\0\0"))
        parts.append(bytes(-(-blocks * components // 8)))
        bits = ("0" + "1" * 14) * -(-blocks // 32767)
        bits += "1" * (-len(bits) % 8)
        data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
        for i in range(scans):
            parts.append(segment(0xda, bytes([1, i % components + 1, 0, 1, 63, 0])) + data)
        return b"".join(parts) + b"\xff\xd9"
    bomb(f"{name}.jpg", make)


jpeg("scans-2000", 1024, 1024, 2000)
jpeg("scans-90", 14000, 14000, 90)
jpeg("scans-90-colour", 8000, 8000, 90, 3)
jpeg("widest", 65500, 65500, 1, 1)
jpeg("wide-empty", 65500, 65500, 0, 1, False)
jpeg("large", 16000, 16000, 20)
bomb("markers.jpg", lambda: b"\xff\xd8" + segment(0xe1, bytes(65000)) * 300)


def table(name, make):
    bomb(f"{name}.csv", make)


table("columns", lambda: b"1," * 2 * 10**7 + b"1\n1\n")
table("field", lambda: b"1," + b"9" * 10**6 + b"\n")
table("quote", lambda: b'1,"' + b"\n" * 10**7)
table("labels", lambda: "\n".join(f"1,{i:08d}x" for i in range(200000, 0, -1)).encode())
table("lines", lambda: b"\n" * 10**7 + b"1,2,3\n4,5\n")
table("rows", lambda: b"1,2\n" * 10**7 + b"1,2,3\n")


def idx(name, dims, data):
    bomb(f"{name}.idx.gz", lambda: gzip.compress(struct.pack(f">BBBB{len(dims)}I", 0, 0, 8, len(dims), *dims) + data(), 9))


idx("claims", (2**31 - 1, 2**15, 2**15), lambda: b"")
idx("large", (500, 1000, 1000), lambda: bytes(5 * 10**8))
idx("longer", (1, 2, 2), lambda: bytes(3 * 10**8))
idx("wraps", (2**31 - 1, 2**31 - 1, 2**31 - 1), lambda: bytes(100))
bomb("members.idx.gz", lambda: gzip.compress(struct.pack(">BBBBIII", 0, 0, 8, 3, 1, 2, 2), 9) + gzip.compress(b"", 9) * 10**6)
print(count)
