"""Samplers: the order of samples, and the size of batches."""
import numpy


class Sampler:
    """The base of samplers: an iteration yields indices of samples."""

    def __len__(self):
        raise NotImplementedError

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """Indices in ascending order."""

    def __init__(self, length, start=0):
        self._length, self._start = length, start

    def __len__(self):
        return self._length

    def __iter__(self):
        return iter(range(self._start, self._start + self._length))


class RandomSampler(Sampler):
    """Indices in a new random order in each iteration."""

    def __init__(self, length):
        self._length = length

    def __len__(self):
        return self._length

    def __iter__(self):
        return iter(numpy.random.permutation(self._length).tolist())


class FilterSampler(Sampler):
    """Those samples for which fn holds."""

    def __init__(self, fn, dataset):
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __len__(self):
        return len(self._indices)

    def __iter__(self):
        return iter(self._indices)


class BatchSampler(Sampler):
    """Batches of another sampler's indices; the last one is kept, discarded, or carried to the next iteration ("rollover")."""

    def __init__(self, sampler, batch_size, last_batch="keep"):
        if last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}")
        self._sampler, self._batch_size, self._last_batch, self._left = sampler, batch_size, last_batch, []

    def __iter__(self):
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._left = batch

    def __len__(self):
        n = len(self._sampler)
        if self._last_batch == "keep":
            return -(-n // self._batch_size)
        return (n + (len(self._left) if self._last_batch == "rollover" else 0)) // self._batch_size
