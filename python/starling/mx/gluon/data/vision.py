"""mx.gluon.data.vision: data sets of images on this machine, and transforms."""
import os
import pathlib

import numpy

from .... import _whole_files
from ...unsupported import missing
from . import transforms


def _idx(path):
    shape, data = _whole_files.read_idx("MNIST", path)
    return numpy.frombuffer(data, numpy.uint8).reshape(shape)


class MNIST:
    """Labelled images (height, width, 1) of bytes from a folder of files in MNIST's format."""

    _folder = None

    def __init__(self, root=None, train=True, transform=None):
        folder = pathlib.Path(os.path.expanduser(root or self._folder or "."))
        if not folder.is_dir() and self._folder:
            folder = pathlib.Path(self._folder)
        part = "train" if train else "t10k"
        found = {kind: next(iter(sorted(folder.glob(f"{part}-{kind}*"))), None) for kind in ("images", "labels")}
        if None in found.values():
            raise FileNotFoundError(f"no {part} images and labels in {folder}; nothing is downloaded here")
        self._images, self._labels = _idx(found["images"])[..., None], _idx(found["labels"]).astype(numpy.int32)
        self._first = None
        self._both = transform

    def __len__(self):
        return len(self._images)

    def __getitem__(self, i):
        x, y = self._images[i], self._labels[i]
        if self._first:
            x = self._first(x)
        return self._both(x, y) if self._both else (x, y)

    def transform_first(self, fn, lazy=True):
        """The same data set with images transformed by fn."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._first = fn
        if self._both is None and getattr(fn, "takes_batches", False):
            other.rows = lambda rows: [fn(self._images[rows]), self._labels[rows]]
        return other if lazy else _now(other)

    def transform(self, fn, lazy=True):
        """The same data set with images and labels transformed by fn(image, label)."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._both = fn
        other.__dict__.pop("rows", None)
        return other if lazy else _now(other)


def _now(data):
    """The current samples."""
    from . import SimpleDataset

    return SimpleDataset([data[i] for i in range(len(data))])


class FashionMNIST(MNIST):
    """Fashion-MNIST; without another folder from the Debian package dataset-fashion-mnist."""

    _folder = "/usr/share/datasets/fashion-mnist"


__getattr__ = missing("mx.gluon.data.vision")
