"""mx.gluon.data.vision: data sets of images on this machine, and transforms."""
import os
import pathlib
import warnings

import numpy

from .... import _whole_files
from ...unsupported import missing
from . import transforms
from ._datasets import Dataset, RecordFileDataset


def _idx(path):
    shape, data = _whole_files.read_idx("MNIST", path)
    return numpy.frombuffer(data, numpy.uint8).reshape(shape)


class MNIST(Dataset):
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
    from ._datasets import SimpleDataset

    return SimpleDataset([data[i] for i in range(len(data))])


class FashionMNIST(MNIST):
    """Fashion-MNIST; without another folder from the Debian package dataset-fashion-mnist."""

    _folder = "/usr/share/datasets/fashion-mnist"


class CIFAR10(MNIST):
    """Labelled images (32, 32, 3) of bytes from a folder of files in CIFAR-10's binary format."""

    _parts, _heads, _label = ([f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]), 1, 0

    def __init__(self, root=None, train=True, transform=None):
        folder = pathlib.Path(os.path.expanduser(root or "."))
        rows = [self._rows(found) for name in self._parts[0 if train else 1] for found in sorted(folder.rglob(name))[:1]]
        if not rows:
            raise FileNotFoundError(f"no {self._parts[0 if train else 1][0]} in {folder}; nothing is downloaded here")
        rows = numpy.concatenate(rows)
        self._labels = rows[:, self._label].astype(numpy.int32)
        self._images = rows[:, self._heads :].reshape((-1, 3, 32, 32)).transpose((0, 2, 3, 1))
        self._first, self._both = None, transform

    def _rows(self, path):
        data = numpy.fromfile(path, numpy.uint8)
        if not data.size or data.size % (self._heads + 3072):
            raise OSError(f"{path} is not a file of {type(self).__name__}: its length is {data.size}")
        return data.reshape((-1, self._heads + 3072))


class CIFAR100(CIFAR10):
    """Labelled images from a folder of files in CIFAR-100's binary format; fine_label: 100 classes, else 20."""

    _parts, _heads = (["train.bin"], ["test.bin"]), 2

    def __init__(self, root=None, fine_label=False, train=True, transform=None):
        self._label = 1 if fine_label else 0
        super().__init__(root, train, transform)


class ImageFolderDataset(Dataset):
    """Images in the subfolders of a folder; each subfolder is a class, in the order of their names."""

    def __init__(self, root, flag=1, transform=None):
        self._root, self._flag, self._transform = os.path.expanduser(root), flag, transform
        self._exts = [".jpg", ".jpeg", ".png"]
        self.synsets, self.items = [], []
        for name in sorted(os.listdir(self._root)):
            path = os.path.join(self._root, name)
            if not os.path.isdir(path):
                warnings.warn(f"Ignoring {path}, which is not a directory.", stacklevel=3)
                continue
            label = len(self.synsets)
            self.synsets.append(name)
            for file in sorted(os.listdir(path)):
                if os.path.splitext(file)[1].lower() in self._exts:
                    self.items.append((os.path.join(path, file), label))
                else:
                    warnings.warn(f"Ignoring {file} of type {os.path.splitext(file)[1]}. Only support {', '.join(self._exts)}", stacklevel=3)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        from ... import image

        picture, label = image.imread(self.items[i][0], self._flag), self.items[i][1]
        return self._transform(picture, label) if self._transform is not None else (picture, label)


class ImageRecordDataset(Dataset):
    """Images in a file of records (recordio) with an index."""

    def __init__(self, filename, flag=1, transform=None):
        self._records, self._flag, self._transform = RecordFileDataset(filename), flag, transform

    def __len__(self):
        return len(self._records)

    def __getitem__(self, i):
        from ... import image, recordio

        header, data = recordio.unpack(self._records[i])
        picture = image.imdecode(data, self._flag)
        return self._transform(picture, header.label) if self._transform is not None else (picture, header.label)


__getattr__ = missing("mx.gluon.data.vision")
