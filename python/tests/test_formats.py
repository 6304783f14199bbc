"""Older and newer versions of each file format: what is known is read, what is not is refused by its version.  ONNX's operator
sets are in tests/test_onnx.c, checkpoints in tests/test_checkpoint.c."""
import json
import os
import struct
import tempfile
import unittest

import numpy as np
import starling as sl
from starling import mx

VALUES = np.arange(6, dtype="float32").reshape(2, 3)


def npy(major, minor):
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    fixed = 10 if major < 2 else 12
    text += b" " * (-(fixed + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([major, minor]) + struct.pack("<H" if major < 2 else "<I", len(text)) + text + VALUES.tobytes()


def params(version):
    """One array "a" in a file of MXNet; version None: before 1.0, when an array began with its number of axes."""
    if version is None:
        array = struct.pack("<III", 2, 2, 3)
    else:
        array = struct.pack("<I", 0xF993FAC7 + version) + (struct.pack("<i", 0) if version > 1 else b"") + struct.pack("<iqq", 2, 2, 3)
    array += struct.pack("<iii", 1, 0, 0) + VALUES.tobytes()
    return struct.pack("<QQQ", 0x112, 0, 1) + array + struct.pack("<QQ", 1, 1) + b"a"


class Formats(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as out:
            out.write(content)
        return path

    def test_npy(self):
        for version in ((1, 0), (2, 0), (3, 0)):
            read = sl.load_npy(self.file("x.npy", npy(*version)))
            self.assertTrue(np.array_equal(np.asarray(read.tolist(), "float32"), VALUES), version)
        for version in ((0, 9), (4, 0), (255, 255)):
            with self.assertRaisesRegex(sl.Error, f"version {version[0]}.{version[1]}"):
                sl.load_npy(self.file("x.npy", npy(*version)))

    def test_params(self):
        for version in (None, 1, 2, 3):
            read = mx.nd.load(self.file("x.params", params(version)))
            self.assertTrue(np.array_equal(read["a"].asnumpy(), VALUES), version)
        for version, begin in ((4, "0xf993facb"), (0, "0xf993fac7")):
            with self.assertRaisesRegex(Exception, f"{begin}, which is not a version of the format"):
                mx.nd.load(self.file("x.params", params(version)))

    def test_symbols(self):
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Dense(3, activation="relu"), mx.gluon.nn.Dense(2))
        net.initialize()
        net.hybridize()
        x = mx.nd.array(VALUES)
        y = net(x).asnumpy()
        prefix = os.path.join(self.folder.name, "net")
        net.export(prefix)
        with open(f"{prefix}-symbol.json") as file:
            symbol = json.load(file)
        for version, attributes in ((10901, "attrs"), (700, "param"), (900, "attr"), (20000, "attrs")):
            older = json.loads(json.dumps(symbol))
            older["attrs"]["mxnet_version"] = ["int", version]
            for node in older["nodes"]:
                if "attrs" in node:
                    node[attributes] = node.pop("attrs")
            path = self.file("other-symbol.json", json.dumps(older).encode())
            again = mx.gluon.SymbolBlock.imports(path, ["data"], f"{prefix}-0000.params")
            self.assertTrue(np.array_equal(again(x).asnumpy(), y), version)


if __name__ == "__main__":
    unittest.main()
