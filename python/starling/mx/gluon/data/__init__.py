"""mx.gluon.data: data sets and mini-batches."""
import numpy

from ...._core import wrong
from ...missing import missing
from ...ndarray import NDArray
from ... import nd
from ..._mode import array_class
from ...context import cpu
from . import vision


class Dataset:
    """A sequence of samples."""

    def transform(self, fn, lazy=True):
        """The samples as fn makes them."""
        return SimpleDataset([fn(*s) if isinstance(s, tuple) else fn(s) for s in (self[i] for i in range(len(self)))])

    def transform_first(self, fn, lazy=True):
        """The samples with the first part as fn makes it."""
        return self.transform(lambda x, *rest: (fn(x), *rest))


class SimpleDataset(Dataset):
    """A list as a data set."""

    def __init__(self, data):
        self._data = data

    def __len__(self):
        return len(self._data)

    def __getitem__(self, i):
        return self._data[i]


class ArrayDataset(Dataset):
    """Arrays with a row for each sample."""

    def __init__(self, *args):
        self._data = [a.asnumpy() if isinstance(a, NDArray) else numpy.asarray(a) for a in args]
        if len({len(a) for a in self._data}) > 1:
            raise ValueError("All arrays must have the same length")

    def __len__(self):
        return len(self._data[0])

    def __getitem__(self, i):
        return self._data[0][i] if len(self._data) == 1 else tuple(a[i] for a in self._data)

    def rows(self, indices):
        """The parts of the samples with these numbers, stacked."""
        return [a[indices] for a in self._data]


class DataLoader:
    """Mini-batches of a data set; shuffled anew each time it is gone through."""

    def __init__(self, dataset, batch_size=None, shuffle=False, sampler=None, last_batch="keep", batch_sampler=None,
                 batchify_fn=None, num_workers=0, **_):
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise wrong("DataLoader: dataset", dataset, "a data set")
        if not hasattr(batch_size, "__index__") or batch_size < 1:
            raise ValueError(f"DataLoader: batch_size is {batch_size!r}, a positive whole number is needed")
        self._dataset, self._batch_size, self._shuffle, self._last = dataset, batch_size, shuffle, last_batch
        if sampler or batch_sampler or batchify_fn:
            raise NotImplementedError("DataLoader with samplers is not in Starling; use shuffle and batch_size")
        if last_batch not in ("keep", "discard"):
            raise NotImplementedError(f"DataLoader(last_batch={last_batch!r}) is not in Starling; use 'keep' or 'discard'")

    def __len__(self):
        n = len(self._dataset)
        return n // self._batch_size if self._last == "discard" else -(-n // self._batch_size)

    def _stack(self, rows):
        if hasattr(self._dataset, "rows"):
            return self._dataset.rows(rows)
        samples = [self._dataset[int(i)] for i in rows]
        samples = [s if isinstance(s, tuple) else (s,) for s in samples]
        return [numpy.stack([p.asnumpy() if isinstance(p, NDArray) else numpy.asarray(p) for p in part]) for part in zip(*samples)]

    def __iter__(self):
        order = numpy.arange(len(self._dataset))
        if self._shuffle:
            numpy.random.shuffle(order)
        for i in range(len(self)):
            parts = self._stack(order[i * self._batch_size : (i + 1) * self._batch_size])
            arrays = [nd.array(p, cpu(), "float32" if p.dtype.kind == "f" else "int32") for p in parts]
            for a in arrays:
                a.__class__ = array_class()
            yield arrays[0] if len(arrays) == 1 else arrays


__getattr__ = missing("mx.gluon.data")
