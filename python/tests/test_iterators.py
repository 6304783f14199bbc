"""mx.io.LibSVMIter and mx.image.ImageIter: files that the tests write, read back in mini-batches."""
import os
import struct
import tempfile
import unittest
import zlib

import numpy as np
from starling import mx


class LibSVM(unittest.TestCase):
    rows = np.array([[0.5, 0, 1.25, 0], [0, 0, 0, 0], [0.5, 2.5, 1.25, 0], [0, 0, -1.25, 7], [1, 2, 3, 4]], "float32")
    labels = np.array([1, -2, -3, 4, 0.5], "float32")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "data.t")
        self.write(self.path, self.labels, self.rows)

    @staticmethod
    def write(path, labels, rows):
        with open(path, "w") as file:
            for label, row in zip(labels, rows):
                file.write(" ".join([str(label), *(f"{i}:{x}" for i, x in enumerate(row) if x)]) + "\n")

    def test_batches(self):
        iterator = mx.io.LibSVMIter(data_libsvm=self.path, data_shape=(4,), batch_size=2)
        for _ in range(2):
            order = [0, 1, 2, 3, 4, 0]  # after the last row comes the first
            for i, batch in enumerate(iterator):
                x, now = batch.data[0], order[2 * i : 2 * i + 2]
                self.assertEqual((x.stype, x.shape, batch.pad), ("csr", (2, 4), 0 if i < 2 else 1))
                x.check_format(True)
                np.testing.assert_array_equal(x.asnumpy(), self.rows[now])
                np.testing.assert_array_equal(batch.label[0].asnumpy(), self.labels[now])
            self.assertEqual(i, 2)
            iterator.reset()
        self.assertEqual(len(list(mx.io.LibSVMIter(data_libsvm=self.path, data_shape=(4,), batch_size=2, round_batch=False))), 2)
        part = mx.io.LibSVMIter(data_libsvm=self.path, data_shape=(4,), batch_size=1, num_parts=2, part_index=1)
        np.testing.assert_array_equal(np.concatenate([b.data[0].asnumpy() for b in part]), self.rows[2:])

    def test_labels(self):
        other = self.path + ".labels"
        self.write(other, self.labels, self.rows[::-1])
        batch = next(mx.io.LibSVMIter(data_libsvm=self.path, data_shape=(4,), label_libsvm=other, label_shape=(4,), batch_size=3))
        self.assertEqual(batch.label[0].stype, "csr")
        np.testing.assert_array_equal(batch.label[0].asnumpy(), self.rows[::-1][:3])

    def test_mistakes(self):
        self.assertRaises(mx.MXNetError, mx.io.LibSVMIter, data_libsvm=self.path, data_shape=(3,), batch_size=2)
        for line in ("1 -1:0.5", "1 0:x", "one 0:1", "1 0"):
            with open(self.path, "w") as file:
                file.write(line + "\n")
            with self.subTest(line), self.assertRaisesRegex(mx.MXNetError, "line 1"):
                mx.io.LibSVMIter(data_libsvm=self.path, data_shape=(3,), batch_size=2)


def png(image):
    """The bytes of a PNG file of an image in RGB."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = image.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in image)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class Images(unittest.TestCase):
    count = 5

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.values = np.random.RandomState(4).randint(0, 256, (cls.count, 8, 6, 3)).astype("uint8")
        for i, image in enumerate(cls.values):
            with open(os.path.join(cls.folder.name, f"{i}.png"), "wb") as file:
                file.write(png(image))
        cls.names = [[float(i), f"{i}.png"] for i in range(cls.count)]

    def iterator(self, batch_size=2, **options):
        given = {"imglist": self.names, "path_root": self.folder.name, "aug_list": [mx.image.CastAug()], **options}
        return mx.image.ImageIter(batch_size, (3, 8, 6), **given)

    def check(self, batch, order):
        np.testing.assert_array_equal(batch.data[0].asnumpy(), self.values[order].transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(batch.label[0].asnumpy(), order)

    def test_last_batch(self):
        for how, order, pads in (("pad", [[0, 1], [2, 3], [4, 0]], [0, 0, 1]), ("discard", [[0, 1], [2, 3]], [0, 0])):
            iterator = self.iterator(last_batch_handle=how)
            for _ in range(2):
                found = list(iterator)
                self.assertEqual([b.pad for b in found], pads)
                for batch, rows in zip(found, order):
                    self.check(batch, rows)
                iterator.reset()
        iterator = self.iterator(last_batch_handle="roll_over")
        self.assertEqual(len(list(iterator)), 2)
        iterator.reset()
        found = list(iterator)
        self.assertEqual(len(found), 3)
        self.check(found[0], [4, 0])

    def test_sources(self):
        lines = os.path.join(self.folder.name, "list.lst")
        with open(lines, "w") as file:
            file.write("".join(f"{i}\t{i}\t{i}.png\n" for i in range(self.count)))
        self.check(next(self.iterator(5, imglist=None, path_imglist=lines)), list(range(5)))
        record, index = (os.path.join(self.folder.name, name) for name in ("a.rec", "a.idx"))
        writer = mx.recordio.MXIndexedRecordIO(index, record, "w")
        for i, image in enumerate(self.values):
            writer.write_idx(i, mx.recordio.pack(mx.recordio.IRHeader(0, float(i), i, 0), png(image)))
        writer.close()
        plain = {"imglist": None, "path_root": None, "path_imgrec": record}
        self.check(next(self.iterator(5, **plain)), list(range(5)))
        self.check(next(self.iterator(2, **plain, path_imgidx=index, num_parts=2, part_index=1)), [2, 3])
        shuffled = next(self.iterator(5, **plain, path_imgidx=index, shuffle=True))
        self.check(shuffled, shuffled.label[0].asnumpy().astype(int).tolist())
        self.assertRaises(AssertionError, self.iterator, **plain, shuffle=True)

    def test_labels(self):
        iterator = self.iterator(2, imglist=[[i, i + 0.5, f"{i}.png"] for i in range(5)], label_width=2)
        np.testing.assert_array_equal(next(iterator).label[0].asnumpy(), [[0, 0.5], [1, 1.5]])
        self.assertRaises(ValueError, next, self.iterator(2, imglist=[[i, i, f"{i}.png"] for i in range(5)]))

    def test_mistakes(self):
        self.assertRaises(AssertionError, self.iterator, imglist=None)
        self.assertRaises(ValueError, mx.image.ImageIter, 2, (1, 8, 6), imglist=self.names)
        self.assertRaises(ValueError, next, self.iterator(aug_list=[mx.image.ForceResizeAug((4, 4))]))
        with open(os.path.join(self.folder.name, "bad.png"), "wb") as file:
            file.write(b"no image")
        self.assertRaisesRegex(RuntimeError, "bad.png", next, self.iterator(imglist=[[0, "bad.png"]]))


if __name__ == "__main__":
    unittest.main()
