#!/usr/bin/env python3
"""Answers for the cases in src/onnx/operators.def, from onnx's reference evaluator, or onnxruntime.

    onnx_cases.py [--fill] [--only NAME] [FILE]

Compares the answer of each row with that of the evaluator; --fill writes answers where a row has "" for one.  Needs
the packages onnx, onnxruntime and numpy.  The form of the cases is explained in FILE.
"""
import argparse
import os
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
         "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "b": np.bool_}
NAMES = {np.dtype(v): k for k, v in TYPES.items()}
# The reference evaluator of 1.23.2 takes neighbours for LRN from as many channels as there are samples.
WRONG = {"LRN"}
# onnxruntime 1.32 cuts off what it should round here: the answer is that of the operators that this one stands for.
INSTEAD = {"QLinearSoftmax": (r"y = .*\((x:.*), (xs.*), (xz.*), (ys.*), (yz.*), axis=-1, opset=13\)",
                              r"a = DequantizeLinear(\1, \2, \3); b = Softmax(a); y = QuantizeLinear(b, \4, \5)")}
TENSOR = re.compile(r"([a-z]+[0-9]*)\[([0-9,]*)\](?:\{([^}]*)\}|~([+0-9]+))")


def pattern(shape, seed, dtype):
    """The values that ~SEED stands for: multiples of 1/8, or integers; those of ~+SEED are above 0."""
    positive, seed = seed.startswith("+"), int(seed.lstrip("+"))
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    v = (i * 37 + seed * 11 + i * i * 5) % 19
    v = v + 1 if positive else v - 9
    if dtype == np.bool_:
        return (v > 0).reshape(shape)
    return (v / 8 if np.issubdtype(dtype, np.floating) else v).astype(dtype).reshape(shape)


def tensor_of(text):
    kind, dims, values, seed = TENSOR.fullmatch(text).groups()
    shape, dtype = [int(d) for d in dims.split(",") if d], TYPES[kind]
    if seed is not None:
        return pattern(shape, seed, dtype)
    numbers = [float(v) if "f" in kind else int(v) for v in values.split()]
    return np.array(numbers, dtype=dtype).reshape(shape)


class Parser:
    def __init__(self, text):
        self.text, self.at = text, 0

    def skip(self):
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1

    def take(self, word):
        self.skip()
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def match(self, regex):
        self.skip()
        m = re.compile(regex).match(self.text, self.at)
        if not m:
            raise ValueError(f"{self.text}: no {regex} at {self.text[self.at:]!r}")
        self.at = m.end()
        return m.group(0)

    def attribute(self):
        self.skip()
        if self.take("'"):
            text = self.match("[^']*")
            self.take("'")
            return text
        if self.take("("):
            return self.graph()
        if self.take("["):
            words = self.match(r"[^\]]*").split()
            self.take("]")
            if words and words[0].startswith("'"):
                return [w.strip("'") for w in words]
            return [float(w) if "." in w else int(w) for w in words]
        if self.take(":"):
            return numpy_helper.from_array(tensor_of(self.match(TENSOR.pattern)))
        word = self.match(r"[-+0-9.e]+")
        return float(word) if "." in word else int(word)

    def graph(self):
        ins = self.match("[a-z0-9 ]*").split()
        assert self.take("->")
        outs = self.match("[a-z0-9 ]*").split()
        assert self.take(":")
        body = Body()
        while not self.take(")"):
            self.statement(body)
            self.take(";")
        empty = helper.make_empty_tensor_value_info
        return helper.make_graph(body.nodes, "body", [empty(n) for n in ins], [empty(n) for n in outs],
                                 body.initializers)

    def statement(self, body):
        outs = self.match("[-a-z0-9 ]*").split()
        assert self.take("=")
        name, ins, attributes = self.match("[A-Za-z0-9.]+"), [], {}
        domain, _, name = name.rpartition(".")
        assert self.take("(")
        while not self.take(")"):
            word = self.match("[-A-Za-z0-9_]+")
            if self.take("="):
                value = self.attribute()
                attributes[word] = value
            else:
                self.operand(word, ins, body)
            self.take(",")
        node = helper.make_node(name, ins, ["" if o == "-" else o for o in outs], domain=domain)
        for key, value in attributes.items():
            if value == []:
                node.attribute.append(helper.make_attribute(key, value, attr_type=onnx.AttributeProto.INTS))
            else:
                node.attribute.append(helper.make_attribute(key, value))
        body.domains.add(domain)
        body.nodes.append(node)
        body.outs = outs

    def operand(self, word, ins, body):
        ins.append("" if word == "-" else word)
        if self.take(":"):
            value = tensor_of(self.match(TENSOR.pattern))
            body.inputs[word] = value
        elif self.take("!"):
            body.initializers.append(numpy_helper.from_array(tensor_of(self.match(TENSOR.pattern)), word))


class Body:
    def __init__(self):
        self.nodes, self.initializers, self.inputs, self.outs, self.domains = [], [], {}, [], {""}


def model_of(program):
    parser, body = Parser(program), Body()
    opset = int(parser.match("[0-9]+")) if parser.take("@") else 23
    while parser.at < len(program):
        parser.statement(body)
        parser.take(";")
    ins = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
           for n, v in body.inputs.items()]
    outs = [helper.make_empty_tensor_value_info(o) for o in body.outs if o != "-"]
    graph = helper.make_graph(body.nodes, "case", ins, outs, body.initializers)
    sets = [helper.make_opsetid(d, 1 if d else opset) for d in sorted(body.domains)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10), body.inputs


def evaluate(name, program):
    if name in INSTEAD:
        program = re.sub(*INSTEAD[name], program)
    model, inputs = model_of(program)
    try:
        if name in WRONG:
            raise NotImplementedError(f"{name} is wrong there")
        return ReferenceEvaluator(model).run(None, inputs), "onnx"
    except Exception as first:  # an operator that the evaluator lacks
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            return ort.InferenceSession(model.SerializeToString(), options).run(None, inputs), "onnxruntime"
        except Exception as second:
            raise RuntimeError(f"{str(first)[:200]} / {str(second)[:300]}")


def text_of(value):
    if isinstance(value, list):
        raise ValueError("a sequence")
    value = np.asarray(value)
    floats = np.issubdtype(value.dtype, np.floating)
    words = [("%.7g" % v) if floats else str(int(v)) for v in value.ravel()]
    return "%s[%s]{%s}" % (NAMES[value.dtype], ",".join(map(str, value.shape)), " ".join(words))


def close(a, b):
    x, y = tensor_of(a), tensor_of(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    scale = max(1.0, np.abs(np.nan_to_num(x.astype(np.float64), posinf=1, neginf=-1)).max(initial=0))
    return np.allclose(x.astype(np.float64), y.astype(np.float64), rtol=0, atol=2e-5 * scale, equal_nan=True)


def same(stored, found):
    if stored.endswith("?"):
        return re.match(r"[^{]*", found).group(0) == stored[:-1]
    return close(stored, found)


ROW = re.compile(r'^OP\((\w+), .*?\)$', re.M | re.S)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def strings_of(row):
    """The adjacent literals of a row, joined: attributes, program, answer."""
    groups, last = [], None
    for m in STRING.finditer(row):
        if last is not None and not row[last:m.start()].strip():
            groups[-1] += m.group(1)
        else:
            groups.append(m.group(1))
        last = m.end()
    return groups


def literals(text):
    """A string as literals of lines of 120 columns."""
    lines, line = [], ""
    for word in re.findall(r"\S+\s*", text) or [""]:
        if len(line) + len(word) > 112 and line:
            lines.append(line)
            line = ""
        line += word
    return "\n   ".join(f'"{x}"' for x in lines + [line])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--fill", action="store_true")
    p.add_argument("--only")
    p.add_argument("file", nargs="?", default=os.path.join(here, os.pardir, "src", "onnx", "operators.def"))
    o = p.parse_args()
    with open(o.file, encoding="utf-8") as f:
        text = f.read()
    failures, counts = 0, {"onnx": 0, "onnxruntime": 0}
    for m in list(ROW.finditer(text)):
        name, row = m.group(1), m.group(0)
        _, program, answer = strings_of(row)
        if o.only and name != o.only:
            continue
        try:
            values, who = evaluate(name, program)
            found = "; ".join(text_of(v) for v in values)
        except Exception as e:
            print(f"{name}: {e}")
            failures += 1
            continue
        counts[who] += 1
        if not answer and o.fill:
            head = row[: row.index('"')]
            text = text.replace(row, f"{head}{literals(strings_of(row)[0])},\n   {literals(program)},\n"
                                     f"   {literals(found)})")
        elif [same(a, b) for a, b in zip(answer.split("; "), found.split("; "))] != [True] * len(values):
            print(f"{name} ({who}): {answer!r} is stored, {found!r} found")
            failures += 1
    if o.fill:
        with open(o.file, "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{counts['onnx']} answers of onnx {onnx.__version__}, {counts['onnxruntime']} of onnxruntime, "
          f"{failures} failures")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
