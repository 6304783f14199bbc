"""Mini-batches: of arrays in main memory, and of the data sets that the library reads."""
import numpy

from . import _core
from ._core import NULL, ffi, here, lib, raise_error, shape_from, text_of
from ._tensor import Tensor, array, device_of, wrap

__all__ = ["Dataset", "Loader", "fashion_mnist", "mnist"]

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


class Dataset:
    """Labelled images in main memory; made by mnist and fashion_mnist."""

    def __init__(self, p):
        self._p = p
        if not p:
            raise_error()

    def __del__(self, free=lib.sl_dataset_free):
        if getattr(self, "_p", None):
            free(self._p)

    def __len__(self):
        return lib.sl_dataset_size(self._p)

    @property
    def shape(self):
        """The shape of a sample."""
        return shape_from(lib.sl_dataset_sample_shape(self._p))

    @property
    def classes(self):
        """The names of the classes."""
        names = (lib.sl_dataset_class_name(self._p, i) for i in range(lib.sl_dataset_classes(self._p)))
        return [ffi.string(n).decode() if n else str(i) for i, n in enumerate(names)]


def mnist(folder, train=True):
    """The data set in a folder of files in MNIST's format."""
    split = lib.SL_TRAIN if train else lib.SL_TEST
    return Dataset(lib.sl_dataset_mnist_at(here(), text_of(folder, "folder"), split))


def fashion_mnist(train=True):
    """Fashion-MNIST from the Debian package dataset-fashion-mnist."""
    return mnist(FASHION_MNIST, train)


class Loader:
    """Shuffled mini-batches: Loader((x, y), batch_size=256) of arrays, Loader(dataset, batch_size=256) of a data set.

    An iteration is an epoch.  The order depends on the seed and the epoch alone.  With rank and ranks it hands out one part of batches
    of ranks * batch_size, as many as all other ranks: rank=starling.dist.rank(), ranks=starling.dist.size().
    """

    def __init__(self, data, batch_size, *, shuffle=True, seed=0, drop_last=False, device=None, limit=0, kind=Tensor, rank=0, ranks=1):
        if not hasattr(batch_size, "__index__"):
            raise _core.wrong("batch_size", batch_size, "a whole number")
        if batch_size < 1:
            raise _core.InvalidArgument(f"batch_size is {batch_size}")
        if not 0 <= rank < ranks:
            raise _core.InvalidArgument(f"rank is {rank} of {ranks} ranks")
        self._rank, self._ranks = rank, ranks
        self.batch_size, self.drop_last, self._device, self._kind = batch_size, drop_last, device, kind
        self._shuffle, self._seed, self._epoch, self._p = shuffle, seed, 0, None
        if isinstance(data, Dataset):
            last = lib.SL_LAST_DISCARD if drop_last else lib.SL_LAST_KEEP
            opts = (batch_size, shuffle, seed, last, limit, 0, device_of(device), 0, rank, ranks)
            self._p = lib.sl_loader_new_at(here(), data._p, opts)
            self._data = data
            if not self._p:
                raise_error()
            return
        self._data = [numpy.asarray(a) for a in (data if isinstance(data, (tuple, list)) else [data])]
        if not all(a.ndim for a in self._data):
            raise _core.wrong("data", data, "arrays with rows, or a data set,")
        sizes = {len(a) for a in self._data}
        if len(sizes) != 1:
            raise _core.ShapeError(f"arrays of one data set have {sorted(sizes)} rows")
        self._size = min(sizes.pop(), limit or float("inf"))

    def __del__(self, free=lib.sl_loader_free):
        if getattr(self, "_p", None):
            free(self._p)

    def __len__(self):
        """The number of batches in an epoch."""
        if self._p:
            return lib.sl_loader_batches(self._p)
        own = self._size // self._ranks
        return own // self.batch_size if self.drop_last else -(-own // self.batch_size)

    def __iter__(self):
        return self._from_library() if self._p else self._from_arrays()

    def _from_library(self):
        batch = ffi.new("struct sl_batch *")
        while lib.sl_loader_next_at(here(), self._p, batch):
            yield wrap(batch.x, self._kind), wrap(batch.y, self._kind)
        if lib.sl_error():
            raise_error()

    def _from_arrays(self):
        order = numpy.arange(self._size)
        if self._shuffle:
            numpy.random.default_rng((self._seed, self._epoch)).shuffle(order)
        self._epoch += 1
        for i in range(len(self)):
            count = min(self.batch_size, self._size // self._ranks - i * self.batch_size)
            first = i * self.batch_size * self._ranks + self._rank * count
            rows = order[first : first + count]
            batch = [array(a[rows], device=self._device, like=self._kind) for a in self._data]
            yield batch[0] if len(batch) == 1 else tuple(batch)
