"""The cases of tools/bench in PyTorch.

Usage: bench-peer.py THREADS [DEVICE [float32 | tf32 [deterministic | compiled]]].  Writes a line that says what it is; then answers
each line "NUMBER CASE TIMES" with "NUMBER SECONDS [HOW]", the seconds of one repetition and the way it was done, where
there are several, or "NUMBER none" for a case that it has not got.  "NUMBER threads N" sets the number of
threads.  On a GPU whole steps are captured as CUDA graphs.
With "deterministic" only algorithms are used that give the same bits each time; with "compiled" networks of whole steps are compiled by
torch.compile, and a case that takes longer than 30 s to start is left out.
"""
import os
import signal
import sys
import time
import warnings

if "deterministic" in sys.argv:
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when it starts

import torch
import torch.nn.functional as F

torch.manual_seed(1)
warnings.filterwarnings("ignore")  # that torch.jit is old


def wait():
    """Until the device has done what it was asked for.  CPUs do that at once."""
    if on_gpu():
        torch.cuda.synchronize()


def on_gpu():
    return torch.get_default_device().type == "cuda"


def tf32():
    return torch.backends.cuda.matmul.allow_tf32


# ---- whole steps ----

COMPILED = "compiled" in sys.argv
PATIENCE = 30  # seconds until a compiled case has run once


def perhaps_compiled(net, always=False):
    return torch.compile(net) if always or COMPILED else net


def captured(step):
    """The step as a CUDA graph, after some without, in which libraries choose their algorithms."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def again(step, how="", before=None):
    """Runs a step again and again; before each run of several, what `before` does."""
    def run(times):
        if before:
            before()
        for _ in range(times):
            step()
    run.how = how
    return run


def whole(step, before=None):
    """The fastest way without compiling: on a GPU as a CUDA graph, if it can be captured."""
    if not on_gpu():
        return again(step, "", before)
    try:
        return again(captured(step).replay, "graph", before)
    except RuntimeError as error:
        print(f"bench-peer: no CUDA graph: {error}", file=sys.stderr)
        torch.cuda.synchronize()
        return again(step, "calls", before)


def training_step(optimizer, loss, half):
    """Forward, in bfloat16 where it is safe with `half`, back, and the update."""
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(torch.get_default_device().type, torch.bfloat16, enabled=half, cache_enabled=False):
            value = loss()
        value.backward()
        optimizer.step()
    return step


# ---- the engine ----

def chain():
    def run(times):
        x = torch.ones(1, 2)
        for _ in range(times):
            x = x + 1
    return run


def plus_one(wait_for_each=False):
    def make():
        x = torch.ones(1, 2)

        def run(times):
            for _ in range(1000 * times):
                x + 1
                if wait_for_each:
                    wait()
        return run
    return make


def waiting(size):
    def make():
        x = torch.randn(size, size)

        def run(times):
            for _ in range(times):
                x @ x
                wait()
        return run
    return make


# ---- operations ----

def forward(fn, *inputs):
    """Runs fn(inputs) again and again, without recording."""
    def make():
        made = [i() for i in inputs]

        def run(times):
            with torch.no_grad():
                for _ in range(times):
                    fn(*made)
        return run
    return make


def backward(fn, *inputs):
    """Goes back through fn(inputs) again and again, by those inputs that want a gradient."""
    def make():
        made = [i() for i in inputs]
        wanted = [t for t in made if t.requires_grad]
        out = fn(*made)
        ones = torch.ones_like(out)

        def run(times):
            for _ in range(times):
                torch.autograd.grad(out, wanted, ones, retain_graph=True)
        return run
    return make


def normal(*shape):
    return lambda: torch.randn(*shape)


def positive(*shape):
    return lambda: torch.rand(*shape) + 0.5


def grad(*shape):
    return lambda: torch.randn(*shape, requires_grad=True)


def classes(n):
    return lambda: torch.arange(n) % 10


def pool(x):
    return F.avg_pool2d(x, 2, 2)


def linear(x, w, b):
    return torch.addmm(b, x, w)


def cross_entropy(x, y):
    return F.cross_entropy(x, y, reduction="none")


def batch_norm(x, gamma, beta, mean, var):
    return F.batch_norm(x, mean, var, gamma, beta, training=True)


# ---- networks ----

LENET = [(20, 1, 3, 3), (20,), (50, 20, 5, 5), (50,), (800, 128), (128,), (128, 10), (10,)]
MLP = [(784, 256), (256,), (256, 128), (128,), (128, 64), (64,), (64, 32), (32,), (32, 10), (10,)]


def lenet(x, p):
    h = pool(torch.relu(F.conv2d(x, p[0], p[1])))
    h = pool(torch.relu(F.conv2d(h, p[2], p[3])))
    h = torch.relu(linear(h.flatten(1), p[4], p[5]))
    return linear(h, p[6], p[7])


MLP5 = [(784, 512), (512,), (512, 512), (512,), (512, 512), (512,), (512, 512), (512,), (512, 10), (10,)]


def mlp(x, p):
    h = x.flatten(1)
    for i in range(0, len(p) - 2, 2):
        h = torch.relu(linear(h, p[i], p[i + 1]))
    return linear(h, p[-2], p[-1])


class Residual(torch.nn.Module):
    """Two convolutions with batch normalisation beside a shortcut."""

    def __init__(self, inputs, channels, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, channels, 3, stride, 1)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, 1, 1)
        self.conv3 = torch.nn.Conv2d(inputs, channels, 1, stride) if stride > 1 else None
        self.norm1, self.norm2 = torch.nn.BatchNorm2d(channels), torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (self.conv3(x) if self.conv3 else x))


def resnet18():
    layers = [torch.nn.Conv2d(1, 64, 3, 1, 1), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
    inputs = 64
    for channels in (64, 128, 256, 512):
        layers += [Residual(inputs, channels, 1 if channels == inputs else 2), Residual(channels, channels, 1)]
        inputs = channels
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(512, 10))


def vgg():
    """The convolutions of VGG-11, and one dense layer."""
    layers, inputs = [], 3
    for channels in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if channels == "M":
            layers.append(torch.nn.MaxPool2d(2))
        else:
            layers += [torch.nn.Conv2d(inputs, channels, 3, 1, 1), torch.nn.ReLU()]
            inputs = channels
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(4 * 512, 10))


def vgg_step(batch, half=False):
    return image_step(vgg, (batch, 3, 64, 64), 0.01, half)


def resnet_step(batch, half=False):
    return image_step(resnet18, (batch, 1, 28, 28), 0.05, half)


def image_step(network, images, lr, half):
    def make():
        batch = images[0]
        net, x, y = network().train(), torch.rand(*images), classes(batch)()
        if on_gpu() and (half or tf32()):  # tensor cores take channels last
            net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(net.parameters(), lr=lr / batch)
        model = perhaps_compiled(net)
        return whole(training_step(optimizer, lambda: F.cross_entropy(model(x), y, reduction="sum"), half))
    return make


class Attention(torch.nn.Module):
    """Of a step to itself and those before it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        n, steps, width = x.shape
        parts = (p.view(n, steps, self.heads, -1).transpose(1, 2) for p in self.qkv(x).split(width, 2))
        y = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, steps, width))


class Layer(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = torch.nn.Sequential(torch.nn.LayerNorm(width), Attention(width, heads))
        self.dense = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                         torch.nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.dense(x)


class GPT(torch.nn.Module):
    """As models/driver/networks.c has it: the last layer's weights are the embedding's."""

    def __init__(self, words, steps, width, layers, heads):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(steps, width)
        self.body = torch.nn.Sequential(*[Layer(width, heads) for _ in range(layers)], torch.nn.LayerNorm(width))
        for p in self.parameters():
            if p.dim() > 1:
                torch.nn.init.normal_(p, 0, 0.02)

    def forward(self, x):
        h = self.body(self.words(x) + self.places.weight[:x.shape[1]])
        return F.linear(h, self.words.weight)


def gpt_step(rows, words, steps, width, layers, heads, compiled=False, half=False):
    def make():
        net = GPT(words, steps, width, layers, heads)
        model = perhaps_compiled(net, compiled)
        x, y = torch.randint(words, (rows, steps)), torch.randint(words, (rows, steps))
        options = {"capturable": True, "fused": True} if on_gpu() else {}
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1, **options)
        step = training_step(optimizer, lambda: F.cross_entropy(model(x).flatten(0, 1), y.flatten()), half)
        return again(step) if compiled else whole(step)
    return make


def writing(words, steps, width, layers, heads, prompt):
    """A GPT writes the likeliest word again and again; keys and values of those before are kept."""
    def make():
        torch.set_grad_enabled(False)
        net = GPT(words, steps, width, layers, heads).eval()
        kept = [[torch.zeros(1, heads, steps, width // heads) for _ in range(2)] for _ in range(layers)]
        word, place, all_places = torch.zeros(1, 1, dtype=torch.long), torch.full((1,), prompt), torch.arange(steps)

        def attend(attention, h, keys, values, mask):
            q, k, v = (p.view(1, 1, heads, -1).transpose(1, 2) for p in attention.qkv(h).split(width, 2))
            keys.index_copy_(2, place, k)
            values.index_copy_(2, place, v)
            y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
            return attention.out(y.transpose(1, 2).reshape(1, 1, width))

        def one():
            h, mask = net.words(word) + net.places(place), (all_places <= place).view(1, 1, 1, steps)
            for layer, (keys, values) in zip(net.body[:-1], kept):
                h = h + attend(layer.attention[1], layer.attention[0](h), keys, values, mask)
                h = h + layer.dense(h)
            word.copy_(F.linear(net.body[-1](h), net.words.weight)[:, -1].argmax(-1, keepdim=True))
            place.add_(1).clamp_(max=steps - 1)
        return whole(one, lambda: place.fill_(prompt))
    return make


def back_from(net, *inputs):
    """Forward through a module or function, and back from the sum of its result."""
    def make():
        model, given = net(), [make_one().requires_grad_() for make_one in inputs]
        leaves = given + (list(model.parameters()) if isinstance(model, torch.nn.Module) else [])

        def run(times):
            for _ in range(times):
                for leaf in leaves:
                    leaf.grad = None
                y = model(*given)
                (y[0] if isinstance(y, tuple) else y).sum().backward()
        return run
    return make


def parameters(shapes):
    return [(torch.randn(s) * 0.01 if len(s) > 1 else torch.zeros(s)).requires_grad_() for s in shapes]


def training(net, shapes, batch, lr, update_only=False, compiled=False, wait_for_each=False, one_program=False, half=False):
    def make():
        forward = perhaps_compiled(net, compiled)
        params = parameters(shapes)
        x, y = torch.rand(batch, 1, 28, 28), classes(batch)()
        optimizer = torch.optim.SGD(params, lr=lr / batch)
        step = training_step(optimizer, lambda: F.cross_entropy(forward(x, params), y, reduction="sum"), half)
        if one_program:
            return whole(step)
        step()

        def run(times):
            for _ in range(times):
                optimizer.step() if update_only else step()
                if wait_for_each:
                    wait()
        return run
    return make


def row():
    params = parameters(MLP)
    x = torch.rand(1, 1, 28, 28)

    def run(times):
        with torch.no_grad():
            for _ in range(times):
                mlp(x, params).cpu().numpy()
    return run


def row_network():
    return torch.nn.Sequential(torch.nn.Linear(512, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(),
                               torch.nn.Linear(128, 2)).eval()


def forwards(net, x, mode):
    def run(times):
        with mode():
            for _ in range(times):
                net(x)
    return run


def row_eager():
    return forwards(row_network(), torch.randn(1, 512), torch.inference_mode)


def row_jit():
    net, x = row_network(), torch.randn(1, 512)
    with torch.no_grad():
        net = torch.jit.freeze(torch.jit.trace(net, x))
    return forwards(net, x, torch.no_grad)


def row_compiled():
    return forwards(torch.compile(row_network()), torch.randn(1, 512), torch.no_grad)


def fastest(**makers):
    """The fastest of several ways, found out anew for each process; ways that do not work here are left out."""
    def make():
        runs = {}
        for how, maker in makers.items():
            try:
                runs[how] = maker()
                runs[how](300)
            except Exception as error:  # no C++ compiler, for example
                runs.pop(how, None)
                print(f"bench-peer: {how}: {error}", file=sys.stderr)
        seconds = {how: min(measure(run, 1000) for _ in range(3)) for how, run in runs.items()}
        best = min(seconds, key=seconds.get)
        runs[best].how = best
        return runs[best]
    return make


def half(make_one):
    """The same in bfloat16."""
    def make():
        t = make_one()
        return t.detach().bfloat16().requires_grad_(t.requires_grad)
    return make


def causal_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def conv_padded(x, w, b):
    return F.conv2d(x, w, b, padding=1)


CONV_BF16 = [(32, 64, 28, 28), (64, 64, 3, 3), (64,)]

row_best = fastest(eager=row_eager, jit=row_jit, compile=row_compiled)

CASES = {
    "op-chain": chain,
    "op-chain-bulk": chain,
    "plus-one-async": plus_one(),
    "plus-one-sync": plus_one(wait_for_each=True),
    "dot2000": forward(torch.mm, normal(2000, 2000), normal(2000, 2000)),
    "wait-dot256": waiting(256),
    "wait-dot1024": waiting(1024),
    "nanogpt-step": gpt_step(12, 65, 64, 128, 4, 4),
    "gpt2-step": gpt_step(4, 50257, 64, 768, 12, 12),
    "gpt2-step-compiled": gpt_step(4, 50257, 64, 768, 12, 12, compiled=True),
    "gpt2-step-bf16": gpt_step(4, 50257, 64, 768, 12, 12, half=True),
    "gpt2-step-long": gpt_step(8, 50257, 1024, 768, 12, 12, half=True),
    "generate": writing(50257, 1024, 768, 12, 12, 512),
    "lenet-step": training(lenet, LENET, 256, 0.2),
    "lenet-step-sync": training(lenet, LENET, 256, 0.2, wait_for_each=True),
    "lenet-update": training(lenet, LENET, 256, 0.2, update_only=True),
    "mlp-step": training(mlp, MLP, 64, 0.05),
    "row-mlp": row,
    "row-mlp-eager": row_eager,
    "row-mlp-hybrid": row_best,
    "row-mlp-latency": row_best,
    "mlp5-step": training(mlp, MLP5, 64, 0.05, one_program=True),
    "mlp5-step-compiled": training(mlp, MLP5, 64, 0.05, compiled=True),
    "lenet-step-hybrid": training(lenet, LENET, 256, 0.2, one_program=True),
    "lenet-step-compiled": training(lenet, LENET, 256, 0.2, compiled=True),
    "resnet18-step": resnet_step(32),
    "resnet18-step-256": resnet_step(256),
    "vgg-step": vgg_step(8),
    "vgg-step-256": vgg_step(256),
    "vgg-step-256-bf16": vgg_step(256, half=True),
    "gemm-bf16": forward(torch.mm, half(normal(2048, 2048)), half(normal(2048, 2048))),
    "conv-bf16": forward(conv_padded, *[half(normal(*s)) for s in CONV_BF16]),
    "conv-bf16-back": backward(conv_padded, *[half(grad(*s)) for s in CONV_BF16]),
    "resnet18-step-bf16": resnet_step(32, half=True),
    "resnet18-step-256-bf16": resnet_step(256, half=True),
    "mlp5-step-bf16": training(mlp, MLP5, 64, 0.05, one_program=True, half=True),
    "nanogpt-step-bf16": gpt_step(12, 65, 64, 128, 4, 4, half=True),
    "lenet-step-bf16": training(lenet, LENET, 256, 0.2, one_program=True, half=True),
    "lstm-step": back_from(lambda: torch.nn.LSTM(256, 256), normal(35, 32, 256)),
    "attention": back_from(lambda: F.scaled_dot_product_attention, *[normal(4, 12, 1024, 64)] * 3),
    "attention-bf16": back_from(lambda: F.scaled_dot_product_attention, *[half(normal(4, 12, 1024, 64))] * 3),
    "attention-bf16-causal": back_from(lambda: causal_attention, *[half(normal(4, 12, 1024, 64))] * 3),
    "conv1": forward(F.conv2d, normal(256, 1, 28, 28), normal(20, 1, 3, 3), normal(20)),
    "conv1-back": backward(F.conv2d, normal(256, 1, 28, 28), grad(20, 1, 3, 3), grad(20)),
    "relu1": forward(torch.relu, normal(256, 20, 26, 26)),
    "relu1-back": backward(torch.relu, grad(256, 20, 26, 26)),
    "pool1": forward(pool, normal(256, 20, 26, 26)),
    "pool1-back": backward(pool, grad(256, 20, 26, 26)),
    "conv2": forward(F.conv2d, normal(256, 20, 13, 13), normal(50, 20, 5, 5), normal(50)),
    "conv2-back": backward(F.conv2d, grad(256, 20, 13, 13), grad(50, 20, 5, 5), grad(50)),
    "relu2": forward(torch.relu, normal(256, 50, 9, 9)),
    "pool2": forward(pool, normal(256, 50, 9, 9)),
    "pool2-back": backward(pool, grad(256, 50, 9, 9)),
    "linear1": forward(linear, normal(256, 800), normal(800, 128), normal(128)),
    "linear1-back": backward(linear, grad(256, 800), grad(800, 128), grad(128)),
    "cross-entropy": forward(cross_entropy, normal(256, 10), classes(256)),
    "cross-entropy-back": backward(cross_entropy, grad(256, 10), classes(256)),
    "add-16mb": forward(torch.add, normal(4194304), normal(4194304)),
    "sum-64mb": forward(torch.sum, normal(16777216)),
    "softmax": forward(lambda x: torch.softmax(x, -1), normal(2048, 2048)),
    "batch-norm": forward(batch_norm, normal(64, 64, 32, 32), normal(64), normal(64), normal(64), positive(64)),
    "batch-norm-back": backward(batch_norm, grad(64, 64, 32, 32), grad(64), grad(64), normal(64), positive(64)),
}


def too_late(*_):
    raise RuntimeError(f"it takes longer than {PATIENCE} s to start")


def started(name):
    """The case, after a first run if it is to be compiled."""
    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(PATIENCE if COMPILED else 0)
    run = CASES[name]()
    if COMPILED:
        run(1)
        wait()
    return run


def made(name):
    """How a case runs; None for a case that there is not, or that does not work here."""
    if on_gpu():
        torch.cuda.empty_cache()
    torch.set_grad_enabled(True)
    try:
        return started(name) if name in CASES else None
    except Exception as error:  # no compiler for torch.compile, for example
        print(f"bench-peer: {name}: {error}", file=sys.stderr)
        return None
    finally:
        signal.alarm(0)


def measure(run, times):
    if times < 1000:  # else warming up does not matter
        run(1)
    wait()
    start = time.perf_counter()
    run(times)
    wait()
    return (time.perf_counter() - start) / times


def main():
    torch.set_num_threads(int(sys.argv[1]))
    if len(sys.argv) > 2:
        torch.set_default_device(sys.argv[2])
    allowed = len(sys.argv) > 3 and sys.argv[3] == "tf32"  # as in Starling
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True
    same_bits = "deterministic" in sys.argv
    if same_bits:
        torch.use_deterministic_algorithms(True)
        torch.backends.cudnn.deterministic = True
    print(f"PyTorch {torch.__version__} with {torch.get_num_threads()} threads on {torch.get_default_device()}"
          f"{', deterministic' if same_bits else ', compiled' if COMPILED else ''}", flush=True)
    name, run = None, None
    for line in sys.stdin:
        number, wanted, times = line.split()
        if wanted == "threads":  # from now on
            torch.set_num_threads(int(times))
            print(number, 0, flush=True)
            continue
        if wanted != name:
            name, run = wanted, None  # frees what the last one held
            run = made(wanted)
        print(number, measure(run, int(times)) if run else "none", getattr(run, "how", ""), flush=True)


if __name__ == "__main__":
    main()
