"""GPT-2 by hand, for gpt-params.sh: with Python's own modules alone, nothing of Starling's.

    gpt-params.py write LAYOUT FILE    a small network, in safetensors: with the names and the layout of "transformers" (with and
                                       without "transformer." before them) or "nanogpt"
    gpt-params.py check LAYOUT FILE.npy TOKENS    whether these are its scores after the tokens, to 1e-5 of the largest
"""
import ast
import json
import math
import struct
import sys

WORDS, STEPS, WIDTH, LAYERS, HEADS = 23, 9, 12, 3, 3
STANDARD = {"transformers": "transformer.", "plain": "", "nanogpt": "_orig_mod."}  # layouts, what their names begin with


class Numbers:
    """Pseudo-random numbers, float32, around 0."""

    def __init__(self):
        self.state = 12345

    def one(self, size):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return struct.unpack("f", struct.pack("f", (self.state / 2**30 - 1) * size))[0]

    def matrix(self, rows, columns, size):
        return [[self.one(size) for _ in range(columns)] for _ in range(rows)]

    def vector(self, n, middle=0.0):
        return [struct.unpack("f", struct.pack("f", middle + self.one(0.3)))[0] for _ in range(n)]


def network(layout):
    """Parameters by OpenAI's names; matrices are (inputs, outputs)."""
    n, p = Numbers(), {}
    p["wte.weight"], p["wpe.weight"] = n.matrix(WORDS, WIDTH, 1), n.matrix(STEPS, WIDTH, 0.5)
    for i in range(LAYERS):
        for part, rows, columns in (("attn.c_attn", WIDTH, 3 * WIDTH), ("attn.c_proj", WIDTH, WIDTH),
                                    ("mlp.c_fc", WIDTH, 4 * WIDTH), ("mlp.c_proj", 4 * WIDTH, WIDTH)):
            p[f"h.{i}.{part}.weight"], p[f"h.{i}.{part}.bias"] = n.matrix(rows, columns, 0.6), n.vector(columns)
        for norm in ("ln_1", "ln_2"):
            p[f"h.{i}.{norm}.weight"], p[f"h.{i}.{norm}.bias"] = n.vector(WIDTH, 1), n.vector(WIDTH)
    p["ln_f.weight"], p["ln_f.bias"] = n.vector(WIDTH, 1), n.vector(WIDTH)
    if layout == "nanogpt":  # .bias = False
        p = {k: v for k, v in p.items() if not k.endswith(".bias")}
    return p


def turned(m):
    return [list(column) for column in zip(*m)]


def write(layout, path):
    arrays = {}
    for name, value in network(layout).items():
        linear = layout == "nanogpt" and ".c_" in name and isinstance(value[0], list)
        arrays[STANDARD[layout] + name] = turned(value) if linear else value
    before, wte = STANDARD[layout], arrays[STANDARD[layout] + "wte.weight"]
    if layout == "transformers":
        arrays["lm_head.weight"] = wte
        for i in range(LAYERS):  # buffers that older versions wrote
            arrays[f"{before}h.{i}.attn.bias"] = [[1.0] * STEPS] * STEPS
            arrays[f"{before}h.{i}.attn.masked_bias"] = [-1e4]
    if layout == "nanogpt":
        arrays[before + "lm_head.weight"] = wte
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, value in arrays.items():
        rows = value if isinstance(value[0], list) else [value]
        shape = [len(value), len(value[0])] if isinstance(value[0], list) else [len(value)]
        flat = [x for row in rows for x in row]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(flat)]}
        data += struct.pack(f"<{len(flat)}f", *flat)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def dense(p, name, x):
    bias = p.get(name + ".bias")
    y = [dot(x, column) for column in turned(p[name + ".weight"])]
    return [a + b for a, b in zip(y, bias)] if bias else y


def norm(p, name, x):
    mean = math.fsum(x) / len(x)
    scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    bias = p.get(name + ".bias", [0] * len(x))
    return [(v - mean) * scale * g + b for v, g, b in zip(x, p[name + ".weight"], bias)]


def gelu(x, exact):
    if exact:
        return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def attention(p, name, rows):
    wide = [dense(p, name + ".c_attn", x) for x in rows]
    each, out = WIDTH // HEADS, []
    for i, now in enumerate(wide):
        y = []
        for h in range(HEADS):
            q = now[h * each:(h + 1) * each]
            keys = [w[WIDTH + h * each:WIDTH + (h + 1) * each] for w in wide[:i + 1]]
            values = [w[2 * WIDTH + h * each:2 * WIDTH + (h + 1) * each] for w in wide[:i + 1]]
            weights = [math.exp(dot(q, k) / math.sqrt(each)) for k in keys]
            y += [dot(weights, column) / math.fsum(weights) for column in turned(values)]
        out.append(dense(p, name + ".c_proj", y))
    return out


def scores(layout, tokens):
    p = network(layout)
    rows = [[a + b for a, b in zip(p["wte.weight"][t], p["wpe.weight"][i])] for i, t in enumerate(tokens[-STEPS:])]
    for i in range(LAYERS):
        found = attention(p, f"h.{i}.attn", [norm(p, f"h.{i}.ln_1", x) for x in rows])
        rows = [[a + b for a, b in zip(x, y)] for x, y in zip(rows, found)]
        for k, x in enumerate(rows):
            inner = [gelu(v, layout == "nanogpt") for v in dense(p, f"h.{i}.mlp.c_fc", norm(p, f"h.{i}.ln_2", x))]
            rows[k] = [a + b for a, b in zip(x, dense(p, f"h.{i}.mlp.c_proj", inner))]
    last = norm(p, "ln_f", rows[-1])
    return [dot(last, word) for word in p["wte.weight"]]


def check(layout, path, tokens):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<f4" and header["shape"] == (WORDS,), header
    got = struct.unpack(f"<{WORDS}f", data[10 + length:])
    expected = scores(layout, tokens)
    error = max(abs(a - b) for a, b in zip(got, expected)) / max(map(abs, expected))
    print(f"{layout}: scores differ by {error:.1e} of the largest")
    return error < 1e-5


if sys.argv[1] == "write":
    write(*sys.argv[2:4])
elif not check(sys.argv[2], sys.argv[3], [int(t) for t in sys.argv[4].split(",")]):
    sys.exit(1)
