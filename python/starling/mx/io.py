"""mx.io: iterators over mini-batches, as programs before Gluon used them."""
import collections

import numpy

from .._core import FormatError, InvalidArgument
from .._tensor import Tensor
from ._mode import array_class
from .context import cpu
from .unsupported import missing


class DataDesc(collections.namedtuple("DataDesc", ["name", "shape"])):
    """The name, shape, data type and layout of data."""

    def __new__(cls, name, shape, dtype=numpy.float32, layout="NCHW"):
        made = super().__new__(cls, name, tuple(shape))
        made.dtype, made.layout = dtype, layout
        return made

    def __repr__(self):
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout):
        """The axis of samples in a layout."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes, types):
        """Descriptions of pairs of names and shapes."""
        kinds = dict(types) if types is not None else {}
        return [DataDesc(name, shape, kinds[name]) if types is not None else DataDesc(name, shape) for name, shape in shapes]


class DataBatch:
    """A mini-batch: lists of arrays, and the number of rows that only fill it up."""

    def __init__(self, data, label=None, pad=None, index=None, bucket_key=None, provide_data=None, provide_label=None):
        for name, value in (("Data", data), ("Label", label)):
            if value is not None and not isinstance(value, (list, tuple)):
                raise AssertionError(f"{name} must be list of NDArrays")
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key, self.provide_data, self.provide_label = bucket_key, provide_data, provide_label

    def __str__(self):
        shapes = [None if part is None else [d.shape for d in part] for part in (self.data, self.label)]
        return f"{type(self).__name__}: data shapes: {shapes[0]} label shapes: {shapes[1]}"


class DataIter:
    """The base of iterators; a custom one has next(), or iter_next(), getdata(), getlabel(), getpad() and getindex()."""

    def __init__(self, batch_size=0):
        self.batch_size = batch_size

    def __iter__(self):
        return self

    def reset(self):
        """Starts again."""

    def next(self):
        """The next mini-batch."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(data=self.getdata(), label=self.getlabel(), pad=self.getpad(), index=self.getindex())

    def __next__(self):
        return self.next()

    def iter_next(self):
        """Goes to the next mini-batch; False at the end."""

    def getdata(self):
        """The data of the mini-batch."""

    def getlabel(self):
        """The labels of the mini-batch."""

    def getindex(self):
        """The indices of the samples, if they are known."""
        return None

    def getpad(self):
        """The number of rows that only fill the mini-batch up."""


def _values(data):
    return data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else [data]


def _is_sparse(data):
    return hasattr(data, "tocsr") or getattr(data, "stype", "default") != "default"


def _listed(data, allow_empty, name):
    """Pairs of names and arrays on the host, in order."""
    if data is None:
        if not allow_empty:
            raise AssertionError("data is needed")
        data = []
    if isinstance(data, (Tensor, numpy.ndarray)) or hasattr(data, "shape"):
        data = [data]
    if isinstance(data, (list, tuple)):
        if not allow_empty and not data:
            raise AssertionError("data is needed")
        data = {name if len(data) == 1 else f"_{i}_{name}": d for i, d in enumerate(data)}
    if not isinstance(data, dict):
        raise TypeError("Input must be NDArray, numpy.ndarray, h5py.Dataset a list of them or dict with them as values")
    return [(k, v, v.asnumpy() if isinstance(v, Tensor) else v.toarray() if hasattr(v, "tocsr") else numpy.asarray(v)) for k, v in data.items()]


class NDArrayIter(DataIter):
    """Mini-batches of arrays; last_batch_handle: "pad" fills the last one with the first rows, "discard", "roll_over"."""

    def __init__(self, data, label=None, batch_size=1, shuffle=False, last_batch_handle="pad", data_name="data", label_name="softmax_label"):
        super().__init__(batch_size)
        if last_batch_handle != "discard" and any(_is_sparse(d) for d in _values(data)):
            raise NotImplementedError("`NDArrayIter` only supports ``CSRNDArray`` with `last_batch_handle` set to `discard`.")
        self._data, self._label = _listed(data, False, data_name), _listed(label, True, label_name)
        self.num_data = self._data[0][2].shape[0]
        if any(v.shape[0] != self.num_data for _, _, v in self._data + self._label):
            raise AssertionError("All arrays must have the same number of rows")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ValueError(f"last_batch_handle is {last_batch_handle!r}; these are pad, discard and roll_over")
        if self.num_data < batch_size and last_batch_handle != "pad":
            raise AssertionError("batch_size needs to be smaller than data size.")
        self.shuffle, self.last_batch_handle, self.idx = shuffle, last_batch_handle, numpy.arange(self.num_data)
        self._first, self._left = True, numpy.zeros(0, int)
        self.reset()

    @property
    def data(self):
        """Pairs of names and data."""
        return [(name, given) for name, given, _ in self._data]

    @property
    def label(self):
        """Pairs of names and labels."""
        return [(name, given) for name, given, _ in self._label]

    def _described(self, listed):
        return [DataDesc(k, (self.batch_size, *v.shape[1:]), numpy.dtype(self._dtype(given, v)).type) for k, given, v in listed]

    @property
    def provide_data(self):
        """The descriptions of the data."""
        return self._described(self._data)

    @property
    def provide_label(self):
        """The descriptions of the labels."""
        return self._described(self._label)

    def hard_reset(self):
        """Starts again, without the rows that the last pass left over."""
        self._left = numpy.zeros(0, int)
        self._begin()

    def reset(self):
        """Starts again."""
        if self.last_batch_handle == "roll_over" and not self._first:
            self._left = self._rest()
        self._begin()

    def _rest(self):
        """The rows of a last batch that was not full."""
        order, done = self._order, self._at
        return order[done : done + self.batch_size] if done < len(order) < done + self.batch_size else numpy.zeros(0, int)

    def _begin(self):
        if self.shuffle:
            numpy.random.shuffle(self.idx)
        self._carried = len(self._left)
        self._order, self._first = numpy.concatenate([self._left, self.idx]), False
        self._left, self._at, self._started = numpy.zeros(0, int), 0, False

    def iter_next(self):
        self._at += self.batch_size if self._started else 0
        self._started = True
        whole = self._at + self.batch_size <= len(self._order)
        return whole or self._at < len(self._order) and self.last_batch_handle == "pad"

    def _rows(self):
        rows = self._order[self._at : self._at + self.batch_size]
        return numpy.concatenate([rows, numpy.resize(self.idx, self.batch_size - len(rows))])

    def _batch(self, listed):
        from . import nd

        made = []
        for _, given, values in listed:
            made.append(nd.array(values[self._rows()], cpu(), self._dtype(given, values)))
            made[-1].__class__ = array_class()
        return made

    def _dtype(self, given, values):
        """The data type of batches: float32 of NumPy's arrays, as in MXNet."""
        return str(values.dtype) if isinstance(given, Tensor) else "float32"

    def getdata(self):
        return self._batch(self._data)

    def getlabel(self):
        return self._batch(self._label)

    def getpad(self):
        if self.last_batch_handle == "roll_over":  # the rows of the pass before
            return self._carried if self._at == 0 else 0
        return max(0, self._at + self.batch_size - len(self._order)) if self.last_batch_handle == "pad" else 0


class ResizeIter(DataIter):
    """Another iterator with `size` mini-batches in each pass."""

    def __init__(self, data_iter, size, reset_internal=True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal, self.cur, self.current_batch = data_iter, size, reset_internal, 0, None
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label

    def reset(self):
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self):
        if self.cur == self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True

    def getdata(self):
        return self.current_batch.data

    def getlabel(self):
        return self.current_batch.label

    def getindex(self):
        return self.current_batch.index

    def getpad(self):
        return self.current_batch.pad


class PrefetchingIter(DataIter):
    """Several iterators side by side; the engine computes ahead anyway."""

    def __init__(self, iters, rename_data=None, rename_label=None):
        self.iters = iters if isinstance(iters, list) else [iters]
        if not self.iters:
            raise AssertionError("an iterator is needed")
        self._names = rename_data, rename_label
        super().__init__(self.iters[0].batch_size)

    def _described(self, which):
        names, found = self._names[which], []
        for i, inner in enumerate(self.iters):
            for d in inner.provide_label if which else inner.provide_data:
                found.append(DataDesc(names[i][d.name] if names else d.name, d.shape, d.dtype))
        return found

    provide_data = property(lambda self: self._described(0))
    provide_label = property(lambda self: self._described(1))

    def reset(self):
        for inner in self.iters:
            inner.reset()

    def next(self):
        batches = [inner.next() for inner in self.iters]
        data, label = (sum((list(getattr(b, part) or []) for b in batches), []) for part in ("data", "label"))
        return DataBatch(data, label, batches[0].pad, batches[0].index, provide_data=self.provide_data, provide_label=self.provide_label)


def CSVIter(data_csv, data_shape, label_csv=None, label_shape=(1,), batch_size=1, round_batch=True, dtype="float32", **_):
    """Mini-batches of rows of numbers in files."""
    read = lambda path, shape: numpy.loadtxt(path, dtype, delimiter=",", ndmin=2).reshape((-1, *shape))  # noqa: E731
    data = read(data_csv, data_shape)
    label = read(label_csv, label_shape).reshape((-1, *label_shape)[: 1 if tuple(label_shape) == (1,) else None]) if label_csv else numpy.zeros(len(data), dtype)
    return _OfFile(data, label, batch_size, last_batch_handle="pad" if round_batch else "discard", label_name="label")


class _OfFile(NDArrayIter):
    """Mini-batches of one array of data and one of labels, as MXNet's iterators in C++."""

    def next(self):
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def _dtype(self, given, values):
        return str(values.dtype)

    def _batch(self, listed):
        return super()._batch(listed)[0]


def _of_libsvm(path, columns):
    """(labels, values, columns, ends of rows) of a file of lines: a label, and column:value for what is not zero."""
    labels, values, places, ends = [], [], [], [0]
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            label, *words = line.split() or [None]
            if label is None:
                continue
            try:
                pairs = [(int(at), float(value)) for at, value in (word.split(":") for word in words)]
                labels.append(float(label))
            except ValueError:
                raise FormatError(f"{path}, line {number}: not a label and column:value pairs") from None
            if wrong := [at for at, _ in pairs if not 0 <= at < columns]:
                raise FormatError(f"{path}, line {number}: column {wrong[0]} of {columns}, counted from 0")
            places += [at for at, _ in pairs]
            values += [value for _, value in pairs]
            ends.append(len(places))
    return numpy.array(labels), numpy.array(values), numpy.array(places, numpy.int64), numpy.array(ends)


class LibSVMIter(DataIter):
    """Mini-batches of csr from a file in libsvm's format, whose columns count from 0.  Labels are the first numbers of its lines,
    or the rows of label_libsvm, csr too if label_shape is not (1,)."""

    def __init__(self, data_libsvm, data_shape, label_libsvm="NULL", label_shape=(1,), num_parts=1, part_index=0, batch_size=1, round_batch=True,
                 prefetch_buffer=4, dtype="float32", data_name="data", label_name="label"):
        super().__init__(batch_size)
        self._columns, self._dtype, self._round = int(tuple(data_shape)[0]), dtype or "float32", round_batch
        labels, *self._rows_of_data = _of_libsvm(data_libsvm, self._columns)
        self._rows_of_labels, self._label_columns = None, int(tuple(label_shape)[0])
        if label_libsvm not in (None, "NULL"):
            first, *rows = _of_libsvm(label_libsvm, self._label_columns)
            if len(first) != len(labels):
                raise InvalidArgument(f"LibSVMIter: {len(labels)} rows of data, {len(first)} of labels")
            labels, self._rows_of_labels = (first, None) if self._label_columns == 1 else (None, rows)
        n, self._labels = len(self._rows_of_data[2]) - 1, labels
        self._chosen = numpy.arange(n * part_index // num_parts, n * (part_index + 1) // num_parts)
        if not len(self._chosen):
            raise InvalidArgument(f"LibSVMIter: part {part_index} of {num_parts} of {data_libsvm} has no rows")
        self.provide_data = [DataDesc(data_name, (batch_size, self._columns), numpy.dtype(self._dtype).type)]
        shape = (batch_size,) if self._rows_of_labels is None else (batch_size, self._label_columns)
        self.provide_label = [DataDesc(label_name, shape, numpy.dtype(self._dtype).type)]
        self.reset()

    def reset(self):
        self._at = -self.batch_size

    def iter_next(self):
        self._at += self.batch_size
        left = len(self._chosen) - self._at
        return left > 0 and (self._round or left >= self.batch_size)

    def _now(self):
        """The rows of the mini-batch: after the last row comes the first one."""
        return self._chosen[numpy.arange(self._at, self._at + self.batch_size) % len(self._chosen)]

    def _csr(self, rows, columns):
        from . import sparse

        values, places, ends = rows
        chosen = [numpy.arange(ends[i], ends[i + 1]) for i in self._now()]
        at = numpy.concatenate(chosen)
        parts = values[at], places[at], numpy.cumsum([0, *map(len, chosen)])
        return sparse.csr_matrix(parts, shape=(self.batch_size, columns), dtype=self._dtype)

    def getdata(self):
        return self._csr(self._rows_of_data, self._columns)

    def getlabel(self):
        from . import nd

        if self._rows_of_labels is not None:
            return self._csr(self._rows_of_labels, self._label_columns)
        return nd.array(self._labels[self._now()], cpu(), self._dtype)

    def next(self):
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def getpad(self):
        return max(0, self._at + self.batch_size - len(self._chosen))


__getattr__ = missing("mx.io")
