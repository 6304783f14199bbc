"""mx.gluon.data: data sets and mini-batches."""
import numpy

from ...._core import wrong
from ...._tensor import Tensor
from ...._values import fit
from ..._signed import as_mxnet as _as_mxnet
from ...unsupported import missing
from ... import nd
from ..._mode import array_class
from ...context import cpu
from . import vision
from .sampler import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler


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
        sample = tuple(a[i] if kind is None or a.ndim == 1 else _made(a[i], kind) for a, kind in zip(self._data, self._kinds))
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


def _made(values, kind):
    made = nd.array(values, cpu(), str(numpy.asarray(values).dtype))
    made.__class__ = kind
    return made


def default_batchify_fn(data):
    """Stacks samples into an array, or a list of arrays."""
    if isinstance(data[0], (tuple, list)):
        return [default_batchify_fn(part) for part in zip(*data)]
    values = numpy.stack([d.asnumpy() if isinstance(d, Tensor) else numpy.asarray(d) for d in data])
    return _batch(values)


def _batch(values):
    if values.dtype == numpy.float64:
        values = fit(values, "float32")
    return _made(values, array_class())


class DataLoader:
    """Mini-batches of a data set; with shuffle in a new order in each iteration.

    num_workers has no effect: batches are assembled in the program's thread, while the engine computes.
    """

    def __init__(self, dataset, batch_size=None, shuffle=False, sampler=None, last_batch=None, batch_sampler=None,
                 batchify_fn=None, num_workers=0, pin_memory=False, pin_device_id=0, prefetch=None, thread_pool=False, timeout=120,
                 try_nopython=None):
        if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
            raise wrong("DataLoader: dataset", dataset, "a data set")
        if batch_sampler is None:
            if not hasattr(batch_size, "__index__") or batch_size < 1:
                raise ValueError(f"DataLoader: batch_size is {batch_size!r}, a positive whole number is needed")
            if sampler is not None and shuffle:
                raise ValueError("shuffle must not be specified if sampler is specified")
            if sampler is None:
                sampler = (RandomSampler if shuffle else SequentialSampler)(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError("batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified.")
        if num_workers < 0:
            raise ValueError(f"DataLoader: num_workers is {num_workers}")
        self._dataset, self._batches, self._batchify = dataset, batch_sampler, batchify_fn

    def __len__(self):
        return len(self._batches)

    def __iter__(self):
        for rows in self._batches:
            if self._batchify is None and hasattr(self._dataset, "rows"):
                arrays = [_batch(part) for part in self._dataset.rows(rows)]
                yield arrays[0] if len(arrays) == 1 else arrays
            else:
                yield (self._batchify or default_batchify_fn)([self._dataset[int(i)] for i in rows])


_as_mxnet("gluon.data", globals())
__getattr__ = missing("mx.gluon.data")
