"""Data sets, and mini-batches of them or of arrays in main memory (doc/data.md).

    images = data.images("photos", height=64, width=64)
    train, test = images.split(9000, seed=1)
    train = train.transform(data.random_flip(), data.normalise(mean=[0.5] * 3, std=[0.25] * 3))
    for x, y in data.Loader(train, 32, workers=2): ...
"""
import numpy

from . import _core, _samples
from ._core import NULL, ffi, here, lib, options, owned, pointer, raise_error, shape_from, shape_of, text_of, wrong
from ._tensor import Tensor, _numpy, array, device_of, dtypes, wrap
from ._values import fit

__all__ = [
    "Dataset", "Loader", "arrays", "center_crop", "cifar10", "colour_jitter", "csv", "fashion_mnist", "images", "mnist", "normalise",
    "npy", "random_crop", "random_flip", "random_resized_crop", "resize", "tokens",
]  # fmt: skip

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"


class Transform(_core.Owner):
    """A change of x on its way into a batch; made by random_crop, random_flip, normalise, …"""

    __slots__ = ("_c",)

    def __init__(self, kind, **settings):
        self._c = options("sl_transform", kind=kind, **settings)


def random_crop(height, width, pad=0):
    """A part of the image at a random position, after padding with `pad` zeros on each side."""
    return Transform(lib.SL_RANDOM_CROP, height=height, width=width, pad=pad)


def center_crop(height, width):
    """The middle of the image."""
    return Transform(lib.SL_CENTER_CROP, height=height, width=width)


def random_flip(p=0.5, *, vertical=False):
    """The image mirrored, left to right or upside down, with probability p."""
    if not 0 <= p <= 1:
        raise _core.InvalidArgument(f"random_flip: p is {p}, not from 0 to 1")
    return Transform(lib.SL_RANDOM_FLIP, p=p, vertical=vertical)


def resize(height, width):
    """The image in another size."""
    return Transform(lib.SL_RESIZE, height=height, width=width)


def normalise(mean, std):
    """(x - mean) / std, given for each channel (up to four)."""
    return Transform(lib.SL_NORMALISE, mean=list(mean), std=list(std))


def colour_jitter(brightness=0.0, contrast=0.0, saturation=0.0):
    """Multiplies brightness, contrast and saturation by random factors, from 1 - value to 1 + value."""
    return Transform(lib.SL_COLOUR_JITTER, brightness=brightness, contrast=contrast, saturation=saturation)


def random_resized_crop(height, width, area=(0.08, 1.0), ratio=(3 / 4, 4 / 3)):
    """A random part of the image, resized; area and ratio are ranges of its share of the area and of width / height."""
    return Transform(lib.SL_RANDOM_RESIZED_CROP, height=height, width=width, area=list(area), ratio=list(ratio))


class Dataset(_core.Settled):
    """Samples x, usually with a label or target y; made by arrays, npy, csv, images, cifar10, mnist, tokens."""

    def __init__(self, p, *owners):
        self._p = owned(p, lib.sl_dataset_free, *owners)

    def __len__(self):
        return lib.sl_dataset_size(self._p)

    def __getitem__(self, index):
        """Sample `index` as NumPy arrays: (x, y), or x if samples have no y."""
        index = index.__index__()
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of a data set of {len(self)}")
        x, y = (_empty(part(self._p)) for part in (lib.sl_dataset_x, lib.sl_dataset_y))
        targets = [NULL if a is None or not a.size else ffi.from_buffer(a) for a in (x, y)]
        _core.check(lib.sl_dataset_read_at(here(), self._p, index % len(self), *targets))
        return x if y is None else (x, y)

    def __add__(self, other):
        both = ffi.new("sl_dataset *[]", [self._p, pointer("data set", other, Dataset)])
        return Dataset(lib.sl_dataset_concat_at(here(), both, 2), self, other)

    def rows(self, first, count):
        """`count` samples from number `first` on."""
        return Dataset(lib.sl_dataset_range_at(here(), self._p, first, count), self)

    def select(self, numbers):
        """The samples with these numbers, in this order."""
        numbers = numpy.ascontiguousarray(numbers, numpy.int64)
        data = ffi.cast("int64_t *", ffi.from_buffer(numbers)) if numbers.size else NULL
        return Dataset(lib.sl_dataset_select_at(here(), self._p, data, numbers.size), self)

    def split(self, count, seed=0):
        """Two data sets: `count` samples drawn at random by the seed, and the others."""
        parts = ffi.new("sl_dataset *[2]")
        if not lib.sl_dataset_split_at(here(), self._p, count, _core.seed_of(seed), parts):
            raise_error()
        return Dataset(parts[0], self), Dataset(parts[1], self)

    def transform(self, *transforms):
        """The samples with x transformed, one transform after the other, with new random numbers in each epoch."""
        c = ffi.new("struct sl_transform[]", [_transform(t) for t in transforms])
        return Dataset(lib.sl_dataset_transform_at(here(), self._p, c, len(transforms)), self)

    @property
    def shape(self):
        """The shape of a sample."""
        return shape_from(lib.sl_dataset_sample_shape(self._p))

    @property
    def classes(self):
        """The names of the classes."""
        names = (lib.sl_dataset_class_name(self._p, i) for i in range(lib.sl_dataset_classes(self._p)))
        return [ffi.string(n).decode(errors="backslashreplace") if n else str(i) for i, n in enumerate(names)]


def _transform(t):
    if not isinstance(t, Transform):
        raise wrong("transform", t, "a transform of starling.data")
    return t._c


_names = {number: name for name, number in dtypes.items()}


def _empty(kind):
    """An array for one sample, as the C structure describes all of them; None if there is nothing."""
    return numpy.empty(shape_from(kind.shape), _numpy[_names[kind.dtype]]) if kind.dtype else None


def _array_of(name, values):
    values = numpy.ascontiguousarray(values)
    values = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
    if values.dtype.name not in _numpy:
        raise _core.DTypeError(f"{name} has values of type {values.dtype}, which tensors do not have")
    return values, (ffi.from_buffer(values) if values.size else NULL, shape_of(values.shape), dtypes[values.dtype.name])


def arrays(x, y=None, *, classes=0):
    """A data set of arrays in main memory, whose first axis counts the samples; they are copied."""
    x, c_x = _array_of("x", x)
    c_y = (NULL, shape_of(()), 0)
    if y is not None:
        y = numpy.asarray(y)
        y, c_y = _array_of("y", fit(y, "int32") if y.dtype.kind in "iu" and (classes or y.dtype != numpy.uint8) else y)
    return Dataset(lib.sl_dataset_arrays_at(here(), c_x, c_y, (classes, True)))


def npy(x, y=None, *, classes=0):
    """A data set of .npy files, whose rows are read on request."""
    return Dataset(lib.sl_dataset_npy_at(here(), text_of(x, "x"), text_of(y, "y"), (classes, False)))


def csv(path, *, separator=",", header=False, label=None, regression=False, missing=False):
    """A table of numbers, one sample per line.  Column `label`, counted from 1, is y, by default the last one; -1: none.

    Labels that are whole numbers from 0, such as 3 and 10.0, are class numbers; other numbers become classes in numeric
    order, texts in alphabetical order.  With regression y is a number.
    """
    if not isinstance(separator, str) or len(separator.encode()) != 1:
        raise _core.InvalidArgument(f"csv: separator is {separator!r}, one character (of ASCII) is needed")
    opts = options("sl_csv_opts", separator=separator.encode(), header=header, label=label, regression=regression, missing=missing)
    return Dataset(lib.sl_dataset_csv_at(here(), text_of(path, "path"), opts))


def images(folder, *, height=0, width=0, channels=3):
    """PNG and JPEG files, a folder for each class; resized to height and width if they are given."""
    opts = options("sl_images_opts", height=height, width=width, channels=channels)
    return Dataset(lib.sl_dataset_images_at(here(), text_of(folder, "folder"), opts))


def cifar10(folder, train=True):
    """CIFAR-10 from its binary files."""
    return Dataset(lib.sl_dataset_cifar10_at(here(), text_of(folder, "folder"), lib.SL_TRAIN if train else lib.SL_TEST))


def tokens(path, length, *, stride=None, bytes=2):
    """A file of tokens of 1 (text), 2 or 4 bytes as samples of `length` tokens: x, and y, shifted by one token."""
    return Dataset(lib.sl_dataset_tokens_at(here(), text_of(path, "path"), options("sl_tokens_opts", length=length, stride=stride, bytes=bytes)))


def mnist(folder, train=True):
    """The data set in a folder of files in MNIST's format."""
    split = lib.SL_TRAIN if train else lib.SL_TEST
    return Dataset(lib.sl_dataset_mnist_at(here(), text_of(folder, "folder"), split))


def fashion_mnist(train=True):
    """Fashion-MNIST from the Debian package dataset-fashion-mnist."""
    return mnist(FASHION_MNIST, train)


class Loader(_core.Settled):
    """Shuffled mini-batches: Loader((x, y), batch_size=256) of arrays, Loader(dataset, batch_size=256) of a data set.

    Each iteration is an epoch, even if the previous one ended early; the first one after a checkpoint was loaded continues in
    the middle.  The order depends on the seed and the epoch alone.  An object with __len__ and __getitem__ is a data set, too: see
    `workers` below.  With rank and ranks it returns one part of batches of
    ranks * batch_size, equally large on all ranks: rank=starling.dist.rank(), ranks=starling.dist.size().  For a data set,
    `workers` threads read and transform samples ahead, and `prefetch` batches are kept ready.

    A data set written in Python is any object whose data[i] is a sample, for i below len(data): an array or number, or a tuple,
    list or dictionary of such, of equal shapes (or as `collate`, a function from a list of samples to arrays, takes them).
    `workers`, also called num_workers, threads make its batches; with processes=True they are processes, started anew (spawn),
    which get a pickled copy of it and seed random and numpy.random for each batch.  Results are the same with any number of workers.
    """

    def __init__(self, data, batch_size, *, shuffle=True, seed=0, drop_last=False, device=None, limit=None, workers=0, num_workers=None, processes=False, collate=None, prefetch=None, rank=0, ranks=1, kind=Tensor):
        if not hasattr(batch_size, "__index__"):
            raise _core.wrong("batch_size", batch_size, "a whole number")
        if batch_size < 1:
            raise _core.InvalidArgument(f"batch_size is {batch_size}")
        seed = _core.seed_of(seed)
        if not 0 <= rank < ranks:
            raise _core.InvalidArgument(f"rank is {rank} of {ranks} ranks")
        if num_workers is not None:
            if workers and workers != num_workers:
                raise _core.InvalidArgument(f"workers is {workers} and num_workers {num_workers}: they are the same")
            workers = num_workers
        if not hasattr(workers, "__index__") or workers < 0:
            raise _core.InvalidArgument(f"workers is {workers!r}, a whole number from 0 on is needed")
        self._rank, self._ranks, self._batches = rank, ranks, None
        self._refer(batch_size=batch_size, drop_last=drop_last)
        self._device, self._kind = device, kind
        self._shuffle, self._seed, self._epoch, self._p = shuffle, seed, 0, None
        self._under_way = None  # of a data set: the iteration that took batches of the current epoch
        written = not isinstance(data, (Dataset, Tensor)) and _samples.is_samples(data)
        if (processes or collate is not None) and not written:
            raise _core.InvalidArgument("processes and collate are for data sets written in Python, objects with __len__ and __getitem__")
        if written:
            self._data, self._size = data, min(len(data), float("inf") if limit is None else limit)
            self._batches = _samples.Batches(data, collate, workers, processes, prefetch)
            return
        if isinstance(data, Dataset):
            last = lib.SL_LAST_DISCARD if drop_last else lib.SL_LAST_KEEP
            opts = dict(batch_size=batch_size, shuffle=shuffle, seed=seed, last=last, limit=limit, prefetch=prefetch)
            opts |= dict(device=device_of(device), workers=workers, rank=rank, ranks=ranks)
            self._p = owned(lib.sl_loader_new_at(here(), data._p, options("sl_loader_opts", **opts)), lib.sl_loader_free, data)
            self._data = data
            return
        if workers or prefetch:
            raise _core.InvalidArgument("workers and prefetch are for data sets; starling.data.arrays(x, y) makes one")
        self._data = [numpy.asarray(a) for a in (data if isinstance(data, (tuple, list)) else [data])]
        if not all(a.ndim for a in self._data):
            raise _core.wrong("data", data, "arrays with rows, or a data set,")
        sizes = {len(a) for a in self._data}
        if len(sizes) != 1:
            raise _core.ShapeError(f"arrays of one data set have {sorted(sizes)} rows")
        self._size = min(sizes.pop(), float("inf") if limit is None else limit)

    def __len__(self):
        """The number of batches in an epoch."""
        if self._p:
            return lib.sl_loader_batches(self._p)
        own = self._size // self._ranks
        return own // self.batch_size if self.drop_last else -(-own // self.batch_size)

    def __iter__(self):
        return self._from_library() if self._p else self._from_samples() if self._batches else self._from_arrays()

    def _from_library(self):
        if self._under_way:
            _core.check(lib.sl_loader_end_epoch_at(here(), self._p))
        self._under_way = this = object()
        batch = ffi.new("struct sl_batch *")
        while lib.sl_loader_next_at(here(), self._p, batch):
            x = wrap(batch.x, self._kind)
            yield (x, wrap(batch.y, self._kind)) if batch.y else x
            if self._under_way not in (this, None):
                raise _core.StateError("another iteration over this loader has begun; a data set may have several loaders")
        self._under_way = None
        if lib.sl_error():
            raise_error()

    def _go_on(self):
        """Makes the next iteration continue in the middle of an epoch, where a checkpoint put the loader."""
        self._under_way = None

    def _rows(self):
        """The numbers of the samples of each batch of the next epoch."""
        order = numpy.arange(self._size)
        if self._shuffle:
            numpy.random.default_rng((self._seed, self._epoch)).shuffle(order)
        self._epoch += 1
        for i in range(len(self)):
            count = min(self.batch_size, self._size // self._ranks - i * self.batch_size)
            first = i * self.batch_size * self._ranks + self._rank * count
            yield order[first : first + count]

    def _from_arrays(self):
        for rows in self._rows():
            batch = [array(a[rows], device=self._device, like=self._kind) for a in self._data]
            yield batch[0] if len(batch) == 1 else tuple(batch)

    def _from_samples(self):
        epoch = self._epoch
        jobs = ((rows.tolist(), (self._seed, epoch, i)) for i, rows in enumerate(self._rows()))
        for batch in self._batches.run(jobs):
            yield self._on_device(batch)

    def _on_device(self, batch):
        if isinstance(batch, dict):
            return {key: self._on_device(part) for key, part in batch.items()}
        if isinstance(batch, (tuple, list)):
            return tuple(map(self._on_device, batch))
        return array(batch, device=self._device, like=self._kind)
