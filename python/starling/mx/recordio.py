"""mx.recordio: files of records in MXNet's format, with or without an index."""
import collections
import numbers
import os
import struct

import numpy

from .unsupported import missing, not_here

_MAGIC = 0xCED7230A
IRHeader = collections.namedtuple("HEADER", ["flag", "label", "id", "id2"])
_HEAD = struct.Struct("<IfQQ")


class MXRecordIO:
    """A file of records, for reading ("r") or writing ("w") one after the other."""

    def __init__(self, uri, flag):
        self.uri, self.flag, self._file = os.fspath(uri), flag, None
        self.open()

    @property
    def writable(self):
        """Whether it was opened for writing."""
        return self.flag == "w"

    @property
    def is_open(self):
        """Whether the file is open."""
        return self._file is not None

    def open(self):
        """Opens the file; writing begins with an empty one."""
        if self.flag not in ("r", "w"):
            raise ValueError(f"Invalid flag {self.flag}")
        self._file, self._pid = open(self.uri, self.flag + "b"), os.getpid()

    def close(self):
        """Closes the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __del__(self):
        if getattr(self, "_file", None) is not None:
            self.close()

    def __getstate__(self):
        state = {name: value for name, value in self.__dict__.items() if name != "_file"}
        return {**state, "is_open": self.is_open, "at": self._file.tell() if self.is_open and not self.writable else 0}

    def __setstate__(self, state):
        opened, at = state.pop("is_open"), state.pop("at")
        self.__dict__.update(state, _file=None)
        if opened:
            self.open()
            self._file.seek(at)

    def reset(self):
        """Goes back to the first record; a file for writing becomes empty."""
        self.close()
        self.open()

    def write(self, buf):
        """Appends a record."""
        if not self.writable:
            raise AssertionError(f"{self.uri} is open for reading")
        parts = self._parts(bytes(buf))
        for i, part in enumerate(parts):
            kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
            if len(part) >= 1 << 29:
                raise ValueError("a record of more than 2^29 bytes")
            self._file.write(struct.pack("<II", _MAGIC, kind << 29 | len(part)) + part + b"\0" * (-len(part) % 4))

    @staticmethod
    def _parts(data):
        """The data cut where the magic number is at a multiple of four bytes."""
        magic, parts, begin = struct.pack("<I", _MAGIC), [], 0
        at = data.find(magic)
        while at >= 0:
            if at % 4 == 0:
                parts.append(data[begin:at])
                begin = at + 4
            at = data.find(magic, at + 4 if at % 4 == 0 else at + 1)
        return [*parts, data[begin:]]

    def read(self):
        """The next record, or None at the end."""
        if self.writable:
            raise AssertionError(f"{self.uri} is open for writing")
        parts = []
        while True:
            head = self._file.read(8)
            if not head and not parts:
                return None
            magic, length = struct.unpack("<II", head) if len(head) == 8 else (0, 0)
            kind, length = length >> 29, length & ((1 << 29) - 1)
            part = self._file.read(length)
            if magic != _MAGIC or len(part) < length:
                raise OSError(f"{self.uri}: Invalid RecordIO File")
            self._file.read(-length % 4)
            parts.append(part)
            if kind in (0, 3):
                return struct.pack("<I", _MAGIC).join(parts)

    def tell(self):
        """The place in the file."""
        return self._file.tell()


class MXIndexedRecordIO(MXRecordIO):
    """A file of records with a file of their places, by keys."""

    def __init__(self, idx_path, uri, flag, key_type=int):
        self.idx_path, self.key_type, self.idx, self.keys = os.fspath(idx_path), key_type, {}, []
        super().__init__(uri, flag)

    def open(self):
        super().open()
        self.idx, self.keys = {}, []
        if not self.writable:
            with open(self.idx_path) as index:
                for line in index:
                    key, _, place = line.strip().partition("\t")
                    self.idx[self.key_type(key)] = int(place)
            self.keys = list(self.idx)

    def close(self):
        if self.is_open and self.writable:
            with open(self.idx_path, "w") as index:
                index.writelines(f"{key}\t{self.idx[key]}\n" for key in self.keys)
        super().close()

    def seek(self, idx):
        """Goes to the record of a key."""
        if self.writable:
            raise AssertionError(f"{self.uri} is open for writing")
        self._file.seek(self.idx[idx])

    def read_idx(self, idx):
        """The record of a key."""
        self.seek(idx)
        return self.read()

    def write_idx(self, idx, buf):
        """Appends a record with a key."""
        key = self.key_type(idx)
        self.idx[key] = self.tell()
        self.keys.append(key)
        self.write(buf)


def pack(header, s):
    """The bytes of a record of a header and data."""
    header = IRHeader(*header)
    if isinstance(header.label, numbers.Number):
        return _HEAD.pack(0, header.label, header.id, header.id2) + s
    label = numpy.asarray(header.label, dtype=numpy.float32)
    return _HEAD.pack(label.size, 0, header.id, header.id2) + label.tobytes() + s


def unpack(s):
    """(header, data) of a record."""
    header, s = IRHeader(*_HEAD.unpack(s[: _HEAD.size])), s[_HEAD.size :]
    if header.flag > 0:
        header = header._replace(label=numpy.frombuffer(s, numpy.float32, header.flag))
        s = s[header.flag * 4 :]
    return header, s


def unpack_img(s, iscolor=-1):
    """(header, image of blue, green and red) of a record."""
    from .image import imdecode

    header, s = unpack(s)
    return header, imdecode(s, 0 if iscolor == 0 else 1, False).asnumpy()


def pack_img(header, img, quality=95, img_fmt=".jpg"):
    """Images are not written here."""
    raise not_here("recordio.pack_img", "pack of the bytes of an image file")


__getattr__ = missing("mx.recordio")
