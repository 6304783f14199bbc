"""Mini-batches of data sets that are Python objects with __len__ and __getitem__: made by threads or by processes, in order."""
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import random
import weakref

import numpy

from ._core import ShapeError, StateError, wrong


def is_samples(data):
    """Whether it is a data set of the program's: an object with a length and samples by number."""
    return hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (tuple, list, numpy.ndarray))


def _leaf(x):
    """A part of a sample as NumPy's array."""
    values = numpy.asarray(x)
    if values.dtype.kind not in "fiub":
        raise wrong("a part of a sample", x, "numbers")
    return values


def stack(samples):
    """Samples as arrays with one more axis: a sample is an array or number, or a tuple, list or dictionary of such."""
    first = samples[0]
    if isinstance(first, (tuple, list)):
        if any(len(s) != len(first) for s in samples):
            raise ShapeError("the samples of a batch have different numbers of parts")
        return tuple(stack(list(parts)) for parts in zip(*samples))
    if isinstance(first, dict):
        return {key: stack([s[key] for s in samples]) for key in first}
    parts = [_leaf(s) for s in samples]
    if any(p.shape != parts[0].shape for p in parts):
        shapes = sorted({p.shape for p in parts})
        raise ShapeError(f"samples of shapes {shapes} do not fit into one batch; give Loader a collate function")
    return numpy.stack(parts)


def make(data, collate, rows):
    """A batch of these samples."""
    return (collate or stack)([data[i] for i in rows])


_of_process = None  # in a worker process: (the data set, the collate function)


def _begin(data, collate):
    global _of_process
    _of_process = data, collate


def _in_process(rows, seed):
    """A batch in a worker process: its random numbers depend on the seed, the epoch and the batch alone."""
    random.seed(repr(seed))
    numpy.random.seed(numpy.random.SeedSequence(seed).generate_state(4))
    return make(*_of_process, rows)


def _pool(data, collate, workers, processes):
    if not processes:
        return concurrent.futures.ThreadPoolExecutor(workers, "starling-samples")
    context = multiprocessing.get_context("spawn")  # a child of fork would have the engine's locks without its threads
    return concurrent.futures.ProcessPoolExecutor(workers, context, _begin, (data, collate))


class Batches:
    """The workers of a loader."""

    def __init__(self, data, collate, workers, processes, prefetch):
        self._data, self._collate, self._processes = data, collate, processes
        self._pool = _pool(data, collate, workers, processes) if workers else None
        self._ahead = max(1, 2 * workers if prefetch is None else prefetch)
        if self._pool:
            weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)

    def _submit(self, rows, seed):
        if self._processes:
            return self._pool.submit(_in_process, rows, seed)
        return self._pool.submit(make, self._data, self._collate, rows)

    def run(self, jobs):
        """The batches of (rows, seed), in their order; a few are made ahead.  A sample's exception is raised at its batch."""
        if not self._pool:
            for rows, _ in jobs:
                yield make(self._data, self._collate, rows)
            return
        coming, jobs = [], iter(jobs)
        try:
            while True:
                while len(coming) < self._ahead and (job := next(jobs, None)) is not None:
                    coming.append(self._submit(*job))
                if not coming:
                    return
                yield coming.pop(0).result()
        except concurrent.futures.process.BrokenProcessPool:
            raise StateError("a worker process of a loader has died") from None
        finally:
            for future in coming:
                future.cancel()
