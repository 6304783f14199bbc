"""mx.gluon.data: data sets and mini-batches."""
import numpy

from ...._core import wrong
from ...._tensor import Tensor
from ...._values import fit
from ..._signed import as_mxnet as _as_mxnet
from ...unsupported import missing
from ..._mode import array_class
from . import vision
from ._datasets import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset, made
from .sampler import BatchSampler, FilterSampler, RandomSampler, Sampler, SequentialSampler


def default_batchify_fn(data):
    """Stacks samples into an array, or a list of arrays."""
    if isinstance(data[0], (tuple, list)):
        return [default_batchify_fn(part) for part in zip(*data)]
    values = numpy.stack([d.asnumpy() if isinstance(d, Tensor) else numpy.asarray(d) for d in data])
    return _batch(values)


def _batch(values):
    if values.dtype == numpy.float64:
        values = fit(values, "float32")
    return made(values, array_class())


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
