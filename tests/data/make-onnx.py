#!/usr/bin/env python3
"""make-onnx.py FILE: writes onnx.safetensors, small networks as PyTorch exports them and what PyTorch computes.

Each network NAME is three kinds of arrays: NAME, the bytes of its ONNX model; NAME.x0, NAME.x1, …, its inputs; NAME.y, its result.
Which exporter and operator set is part of the name: net.17 is the older exporter, net.new the newer one.  It takes a Python that
has torch and onnxscript.
"""
import io
import json
import os
import sys
import tempfile
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.norm = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1), nn.BatchNorm2d(8)
        self.gates = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1), nn.Sigmoid())
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu(self.first(x))
        y = self.norm(self.second(x))
        return self.last(F.relu(x + y * self.gates(y)).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.up = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), nn.ConvTranspose2d(8, 4, 2, 2)

    def forward(self, x):
        a = F.relu(self.down(x))
        return torch.cat([a, self.up(F.relu(self.middle(F.max_pool2d(a, 2))))], 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.attention, self.norm = nn.Embedding(20, 8), nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, tokens):
        mask, x = tokens == 0, self.words(tokens) + torch.arange(tokens.shape[1]).unsqueeze(-1) / 10
        return self.norm(x + self.attention(x, x, x, key_padding_mask=mask, need_weights=False)[0])


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layers = getattr(nn, kind)(3, 4, **options)

    def forward(self, x):
        y, state = self.layers(x)
        return y + (state[0] if isinstance(state, tuple) else state).sum()


def with_mask(x):
    return (x @ x.transpose(1, 2) / 2 + torch.triu(torch.full((5, 5), float("-inf")), 1)).softmax(-1) @ x


def cleared(x):
    y = x.clone()
    y[:, 1] = 0
    return y


def normal(*shape):
    return torch.randn(*shape)


def whole(low, high, *shape):
    return torch.randint(low, high, shape)


def batch_norm():
    net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.PReLU(8), nn.Dropout(0.3), nn.Linear(8, 3), nn.LogSoftmax(1))
    net[1].running_mean.uniform_(-1, 1)
    net[1].running_var.uniform_(0.5, 2)
    return net


torch.manual_seed(0)
# name, how it is exported, the network or function, its inputs
NETWORKS = [
    ("unary", "17", lambda x: torch.sin(x) + torch.cos(x) * torch.tanh(x) - torch.exp(-x.abs()) + torch.log(x.abs() + 1) +
     torch.sqrt(x * x + 1) + torch.erf(x) + torch.floor(x) + torch.ceil(x) + torch.round(x) + torch.sign(x), [normal(3, 4)]),
    ("hyperbolic", "new", lambda x: torch.tan(x * 0.3) + torch.sinh(x) + torch.cosh(x) + torch.asinh(x) + torch.atanh(x * 0.1) +
     torch.acosh(x.abs() + 1.1), [normal(3, 4)]),
    ("activations", "new", lambda x: F.elu(x) + F.selu(x) + F.leaky_relu(x, 0.1) + F.softplus(x) + F.softsign(x) + F.hardsigmoid(x) +
     F.hardswish(x) + F.silu(x) + F.mish(x) + F.gelu(x) + F.gelu(x, approximate="tanh") + F.celu(x, 1.3) + F.relu6(x), [normal(3, 5)]),
    ("activations", "17", lambda x: F.elu(x) + F.selu(x) + F.softplus(x) + F.hardswish(x) + F.mish(x) + F.gelu(x) + F.celu(x, 1.3), [normal(3, 5)]),
    ("choices", "13", lambda x, y: torch.where(x > 0, x, y) + torch.where(x <= y, torch.zeros_like(x), x * 2) + x.clamp(-0.5, 0.3) +
     x.masked_fill(x < 0, -1e9).softmax(-1), [normal(3, 4), normal(3, 4)]),
    ("logic", "17", lambda x, y: ((x > 0) & (y < 1) | ~(x > y)).float() + (x == x).float() + (x != y).float() + torch.isnan(x / 0).float() +
     torch.isinf(x / 0).float(), [normal(3, 4), normal(3, 4)]),
    ("powers", "17", lambda x: x.abs() ** 2.5 + x ** 3 + 2 ** x + x.abs() ** 0.5 + x.abs().rsqrt() + torch.remainder(x, 0.7) + torch.fmod(x, 0.7), [normal(3, 4)]),
    ("reductions", "13", lambda x: x.sum(1) + x.mean(1) + x.amax(1) + x.amin(1) + x.prod(1) + x.norm(dim=1) + x.abs().sum(1) +
     torch.logsumexp(x, 1) + x.var(1), [normal(2, 4, 5)]),
    ("reductions", "new", lambda x: x.sum(1) + x.mean(1) + x.amax(1) + x.amin(1) + x.prod(1) + x.norm(dim=1) + torch.logsumexp(x, 1) + x.var(1), [normal(2, 4, 5)]),
    ("order", "17", lambda x: x.topk(3, dim=1)[0] + x.topk(3, dim=1, largest=False)[0] + x.cumsum(1)[:, :3] + x.argmax(1, keepdim=True) +
     x.argmin(1, keepdim=True), [normal(3, 7)]),
    ("places", "17", lambda x: x.topk(3, dim=1)[1], [normal(3, 7)]),
    ("parts", "new", lambda x: torch.cat([x[:, 1:], x[:, :1]], 1)[:, ::2] + x[..., -1:] + x[:, -3:-1].sum(1, keepdim=True) + x.flip(1)[:, :3], [normal(3, 6)]),
    ("parts", "17", lambda x: x[:, torch.tensor([2, 0, -1])] + x[:, 3:4] + x.roll(2, 1)[:, :3] + x.chunk(2, 1)[1] + x[0, 0], [normal(3, 6)]),
    ("gather", "17", lambda x, i: x.gather(1, i), [normal(3, 6), whole(0, 6, 3, 4)]),
    ("scatter", "17", lambda x, i, v: x.scatter(1, i, v), [normal(3, 6), torch.tensor([[0, 2], [1, 5], [3, 4]]), normal(3, 2)]),
    ("scatter", "new", lambda x, i, v: x.scatter_add(1, i, v), [normal(3, 6), whole(0, 6, 3, 6), normal(3, 6)]),
    ("scatter-most", "new", lambda x, i, v: x.scatter_reduce(1, i, v, "amax") + x.scatter_reduce(0, i % 3, v, "amin") * 2 + x.scatter_reduce(1, i, v, "prod") * 3,
     [normal(3, 6), whole(0, 6, 2, 4), normal(2, 4)]),
    ("put", "17", cleared, [normal(3, 6)]),
    ("expanded", "17", lambda x: x.unsqueeze(1).expand(3, 4, 6) + x.repeat(4, 1, 1).transpose(0, 1), [normal(3, 6)]),
    ("borders", "17", lambda x: F.pad(x, (1, 2, 0, 1)) + F.pad(x, (1, 2, 0, 1), mode="reflect") + F.pad(x, (1, 2, 0, 1), mode="replicate"), [normal(1, 2, 5, 6)]),
    ("sizes", "17", lambda x: F.interpolate(x, scale_factor=2) + F.interpolate(x, size=(10, 12), mode="bilinear") +
     F.interpolate(x, size=(10, 12), mode="bilinear", align_corners=True) + F.interpolate(x, size=(10, 12), mode="bicubic"), [normal(1, 2, 5, 6)]),
    ("nearest", "new", lambda x: F.interpolate(x, size=(7, 9)), [normal(1, 2, 5, 6)]),
    ("pixels", "17", lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 4), [normal(1, 16, 2, 4)]),
    ("products", "17", lambda x, y: torch.einsum("bij,bjk->bik", x, y) + torch.bmm(x, y) + x.matmul(y[0]) + torch.addmm(y[0, :3], x[0], y[0], alpha=0.5, beta=2) +
     (x @ y[0, :, 0]).unsqueeze(-1), [normal(2, 3, 4), normal(2, 4, 5)]),
    ("masked", "17", with_mask, [normal(2, 5, 4)]),
    ("whole", "17", lambda i: torch.div(i * 2 + 1, 3, rounding_mode="trunc") + i % 4 - i.abs().clamp(max=3), [whole(-9, 9, 3, 4)]),
    ("one-hot", "17", lambda i: F.one_hot(i, 5).float(), [whole(0, 5, 3, 4)]),
    ("casts", "new", lambda x: (x * 3).int().float() + (x > 0).double().float() + x.to(torch.float64).sum(1, keepdim=True).float(), [normal(3, 4)]),
    ("double", "17", lambda x: (x @ x.t()).tanh(), [normal(4, 4).double()]),
    ("half", "17", lambda x: (x.half() @ x.half().t()).float(), [whole(-3, 3, 4, 4).float()]),
    ("shapes", "13", lambda x: x.view(x.shape[0], -1).reshape(-1, 2, 3).permute(2, 0, 1).flatten(1).squeeze().unsqueeze(0) + torch.arange(4).float()[0], [normal(3, 4, 1)]),
    ("sequences", "17", nn.Sequential(nn.Conv1d(3, 6, 3, padding=1, stride=2), nn.ReLU(), nn.Conv1d(6, 4, 3, dilation=2, padding="same"), nn.MaxPool1d(2), nn.AvgPool1d(2)), [normal(2, 3, 32)]),
    ("larger", "17", nn.Sequential(nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), nn.ReLU(), nn.ConvTranspose2d(4, 4, 2, groups=2)), [normal(1, 3, 5, 6)]),
    ("windows", "17", nn.Sequential(nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.AvgPool2d(2, 1, 1, count_include_pad=False), nn.AvgPool2d(3, 2, 1, ceil_mode=True)), [normal(1, 2, 15, 16)]),
    ("norms", "17", nn.Sequential(nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.LayerNorm([4, 6, 6])), [normal(2, 4, 6, 6)]),
    ("batch-norm", "12", batch_norm, [normal(4, 6)]),
    ("attention", "17", Attention, [whole(0, 20, 2, 6)]),
    ("attention", "new", Attention, [whole(0, 20, 2, 6)]),
    ("lstm", "17", lambda: Recurrent("LSTM", num_layers=2, batch_first=True), [normal(2, 5, 3)]),
    ("gru", "17", lambda: Recurrent("GRU", bidirectional=True), [normal(5, 2, 3)]),
    ("rnn", "new", lambda: Recurrent("RNN", bidirectional=True), [normal(5, 2, 3)]),
    ("residual", "17", Residual, [normal(2, 3, 8, 8)]),
    ("residual", "new", Residual, [normal(2, 3, 8, 8)]),
    ("unet", "17", UNet, [normal(1, 3, 8, 8)]),
    ("einsum", "17", lambda x, y: torch.einsum("...i,ji->...j", x, y) + torch.einsum("bii->bi", x[:, :, :2]).sum() +
     torch.einsum("...ij,...ij->...i", x, x[:1]).unsqueeze(-1), [normal(3, 2, 4), normal(5, 4)]),
    ("gaps", "17", lambda x: F.max_pool2d(x, (3, 2), (2, 1), 1, (2, 1), ceil_mode=True), [normal(1, 2, 10, 7)]),
    ("gaps", "new", lambda x: F.max_pool1d(x, 3, 2, 1, 3, ceil_mode=True), [normal(2, 3, 13)]),
    ("largest", "17", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], [normal(2, 3, 7, 9)]),
    ("volumes", "17", lambda: nn.Sequential(nn.Conv3d(2, 4, (2, 3, 3), (2, 1, 1), (1, 1, 0)), nn.BatchNorm3d(4), nn.ReLU(),
                                            nn.Conv3d(4, 4, 2, dilation=(1, 2, 1), groups=2), nn.MaxPool3d((1, 2, 2), ceil_mode=True)), [normal(2, 2, 5, 8, 7)]),
    ("volumes", "new", lambda: nn.Sequential(nn.ConvTranspose3d(2, 4, (3, 2, 3), (2, 1, 2), (1, 0, 1), (1, 0, 0), dilation=(1, 2, 1)), nn.AvgPool3d(2, padding=1),
                                             nn.ConvTranspose3d(4, 2, 2, groups=2), nn.AvgPool3d(2, 1, count_include_pad=False)), [normal(1, 2, 3, 4, 3)]),
    ("bits", "new", lambda x, y: (x & y) + (x | y) * 2 + (x ^ y) * 3 + ~x + (x & 255), [whole(-2 ** 40, 2 ** 40, 3, 4), whole(-2 ** 40, 2 ** 40, 4)]),
    ("bytes", "new", lambda x, y: (x & y) ^ (~y | (x ^ 15)), [whole(0, 256, 3, 4).byte(), whole(0, 256, 4).byte()]),
    ("grid", "17", lambda x, g: F.grid_sample(x, g, align_corners=False) + F.grid_sample(x, g, padding_mode="border", align_corners=True) +
     F.grid_sample(x, g, padding_mode="reflection", align_corners=False) + F.grid_sample(x, g * 0.9, mode="nearest", align_corners=False),
     [normal(2, 3, 5, 6), normal(2, 4, 3, 2)]),
    ("grid", "16", lambda x, g: F.grid_sample(x, g, mode="bicubic", align_corners=False) + F.grid_sample(x, g, mode="bicubic", padding_mode="border", align_corners=True) +
     F.grid_sample(x, g, mode="bicubic", padding_mode="reflection", align_corners=True), [normal(2, 3, 5, 6), normal(2, 4, 3, 2)]),
    ("grid", "20", lambda x, g: F.grid_sample(x, g, align_corners=False) + F.grid_sample(x, g, padding_mode="reflection", align_corners=True),
     [normal(1, 2, 3, 4, 5), normal(1, 2, 3, 2, 3)]),
    ("columns", "18", lambda x: F.fold(x, (6, 7), (2, 3), (2, 1), (1, 1), (2, 2)), [normal(2, 12, 12)]),
    ("columns", "new", lambda x: F.fold(F.unfold(x, 3, padding=1), (5, 4), 3, padding=1), [normal(2, 2, 5, 4)]),
    ("smoothed", "new", lambda x: F.interpolate(x, (3, 4), mode="bilinear", antialias=True).repeat(1, 1, 2, 2) + F.interpolate(x, (6, 8), mode="bicubic", antialias=True), [normal(1, 2, 9, 11)]),
    ("losses", "17", lambda x, w: F.cross_entropy(x, torch.tensor([[1, 0], [3, 2]]), w, ignore_index=3) + F.nll_loss(F.log_softmax(x, 1), torch.tensor([[1, 1], [0, 2]])) +
     F.cross_entropy(x, torch.tensor([[1, 0], [3, 2]]), reduction="none") + F.nll_loss(x, torch.tensor([[1, 1], [0, 2]]), w, reduction="sum"), [normal(2, 4, 2), normal(4).abs()]),
    ("neighbours", "17", lambda x: nn.LocalResponseNorm(3, 0.5, 0.6, 2)(x), [normal(2, 5, 4)]),
]
MADE = (Attention, Residual, UNet, batch_norm)


def network(what):
    if isinstance(what, nn.Module):
        return what
    if what in MADE or (what.__code__.co_argcount == 0 if hasattr(what, "__code__") else False):
        return what()
    return Function(what)


def export(net, inputs, way):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.onnx")
        if way == "new":
            torch.onnx.export(net, tuple(inputs), path, dynamo=True, external_data=False, verbose=False)
        else:
            torch.onnx.export(net, tuple(inputs), path, dynamo=False, opset_version=int(way))
        with open(path, "rb") as f:
            return f.read()


def stripped(model):
    """Without the places in Python files that the exporters note."""
    import onnx
    m = onnx.load_from_string(model)
    for thing in (*m.graph.node, *m.graph.input, *m.graph.output, *m.graph.initializer, m.graph, m):
        thing.doc_string = ""
        if hasattr(thing, "metadata_props"):
            del thing.metadata_props[:]
    del m.graph.value_info[:]
    return m.SerializeToString()


def write(path, arrays):
    names = {np.dtype("f4"): "F32", np.dtype("f8"): "F64", np.dtype("i8"): "I64", np.dtype("u1"): "U8"}
    header, data, place = {}, io.BytesIO(), 0
    for name, a in arrays.items():
        a = np.ascontiguousarray(a)
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [place, place + a.nbytes]}
        data.write(a.tobytes())
        place += a.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data.getvalue())


def main():
    warnings.filterwarnings("ignore")
    arrays = {}
    for name, way, what, inputs in NETWORKS:
        torch.manual_seed(1)
        net = network(what).eval()
        with torch.no_grad():
            y = net(*inputs)
        key = f"{name}.{way}"
        arrays[key] = np.frombuffer(stripped(export(net, inputs, way)), np.uint8)
        arrays[key + ".y"] = y.numpy()
        arrays.update({f"{key}.x{i}": x.numpy() for i, x in enumerate(inputs)})
        print(key, len(arrays[key]))
    write(sys.argv[1], arrays)


if __name__ == "__main__":
    main()
