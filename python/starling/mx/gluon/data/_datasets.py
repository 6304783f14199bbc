"""Data sets: sequences of samples."""
import os

import numpy

from ...._tensor import Tensor
from ... import nd
from ...context import cpu
from .sampler import FilterSampler, Sampler, SequentialSampler


class Dataset:
    """A sequence of samples."""

    def __getitem__(self, i):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def transform(self, fn, lazy=True):
        """The samples transformed by fn, on request or now."""
        made = _Transformed(self, fn)
        return made if lazy else SimpleDataset([made[i] for i in range(len(made))])

    def transform_first(self, fn, lazy=True):
        """The samples with the first part transformed by fn."""
        return self.transform(lambda x, *rest: (fn(x), *rest) if rest else fn(x), lazy)

    def filter(self, fn):
        """Those samples for which fn holds."""
        return self.sample(FilterSampler(fn, self))

    def take(self, count):
        """The first samples."""
        return self.sample(SequentialSampler(min(count or len(self), len(self))))

    def shard(self, num_shards, index):
        """One of num_shards parts of nearly equal length."""
        each, more = divmod(len(self), num_shards)
        start = each * index + min(index, more)
        return self.sample(SequentialSampler(each + (index < more), start))

    def sample(self, sampler):
        """The samples whose indices a sampler yields."""
        if not isinstance(sampler, Sampler):
            raise TypeError(f"Invalid sampler type: {type(sampler)}. Expected gluon.data.Sampler instead.")
        return _Chosen(self, list(sampler))


class _Transformed(Dataset):
    def __init__(self, data, fn):
        self._data, self._fn = data, fn

    def __len__(self):
        return len(self._data)

    def __getitem__(self, i):
        sample = self._data[i]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _Chosen(Dataset):
    def __init__(self, data, indices):
        self._data, self._indices = data, indices

    def __len__(self):
        return len(self._indices)

    def __getitem__(self, i):
        return self._data[self._indices[i]]


class SimpleDataset(Dataset):
    """A list as a data set."""

    def __init__(self, data):
        self._data = data

    def __len__(self):
        return len(self._data)

    def __getitem__(self, i):
        return self._data[i]


class ArrayDataset(Dataset):
    """Arrays (or other sequences) with a row for each sample."""

    def __init__(self, *args):
        if not args:
            raise ValueError("Needs at least 1 arrays")
        self._data = [_rows(a) for a in args]
        self._kinds = [type(a) if isinstance(a, Tensor) else None for a in args]
        if len({len(a) for a in self._data}) > 1:
            raise ValueError("All arrays must have the same length")
        if all(isinstance(a, numpy.ndarray) for a in self._data):
            self.rows = lambda indices: [a[indices] for a in self._data]

    def __len__(self):
        return len(self._data[0])

    def __getitem__(self, i):
        sample = tuple(a[i] if kind is None or a.ndim == 1 else made(a[i], kind) for a, kind in zip(self._data, self._kinds))
        return sample[0] if len(sample) == 1 else sample


def _rows(a):
    """The samples on the host, where batches are assembled."""
    if isinstance(a, Tensor):
        return a.asnumpy()
    if isinstance(a, numpy.ndarray) or hasattr(a, "__getitem__") and not isinstance(a, (list, tuple)):
        return a
    try:
        found = numpy.asarray(a)
    except ValueError:  # samples of different lengths
        return a
    return found if found.dtype.kind in "fiub" else a


def made(values, kind):
    made = nd.array(values, cpu(), str(numpy.asarray(values).dtype))
    made.__class__ = kind
    return made


class RecordFileDataset(Dataset):
    """The records of a file (recordio) that has an index beside it."""

    def __init__(self, filename):
        from ... import recordio

        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = recordio.MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __len__(self):
        return len(self._record.keys)

    def __getitem__(self, i):
        return self._record.read_idx(self._record.keys[i])
