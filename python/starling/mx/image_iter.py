"""mx.image.ImageIter: mini-batches of images from files or from a record file, augmented."""
import os
import random as _random

import numpy

from . import recordio
from ._mode import array_class
from .context import cpu
from .io import DataBatch, DataIter
from .unsupported import not_here

_OPTIONS = ("pad", "discard", "roll_over")


def _entry(label, name, dtype):
    return numpy.atleast_1d(numpy.asarray(label, dtype)), name


def _in_file(path, dtype):
    """(label, name) by number of the lines of a list: number, labels, name, with tabs between them."""
    with open(path) as lines:
        rows = [line.strip().split("\t") for line in lines if line.strip()]
    return {int(row[0]): _entry([float(x) for x in row[1:-1]], row[-1], dtype) for row in rows}


def _in_list(entries, dtype):
    """The same of lists: label or labels, and the name."""
    return {i: _entry(e[0] if len(e) == 2 else e[:-1], e[-1], dtype) for i, e in enumerate(entries, 1)}


class ImageIter(DataIter):
    """Images of path_imglist or imglist, whose names are below path_root, or of the record file path_imgrec (with its index
    path_imgidx they can be shuffled, or divided into parts).  aug_list has the augmenters; without it, the other options are those
    of CreateAugmenter.  last_batch_handle: "pad" fills the last batch with the first images, "discard", "roll_over"."""

    def __init__(self, batch_size, data_shape, label_width=1, path_imgrec=None, path_imglist=None, path_root=None, path_imgidx=None, shuffle=False,
                 part_index=0, num_parts=1, aug_list=None, imglist=None, data_name="data", label_name="softmax_label", dtype="float32",
                 last_batch_handle="pad", **kwargs):
        super().__init__(batch_size)
        if not path_imgrec and not path_imglist and not isinstance(imglist, list):
            raise AssertionError("ImageIter: path_imgrec, path_imglist or imglist is needed")
        if dtype not in ("int32", "float32", "int64", "float64"):
            raise AssertionError(f"{dtype} label not supported")
        if last_batch_handle not in _OPTIONS:
            raise ValueError(f"ImageIter: last_batch_handle is {last_batch_handle!r}; these are {', '.join(_OPTIONS)}")
        self.check_data_shape(data_shape)
        self.data_shape, self.label_width, self.shuffle, self.last_batch_handle = tuple(data_shape), label_width, shuffle, last_batch_handle
        self.path_root, self._dtype = path_root, dtype
        self.imglist = _in_file(path_imglist, dtype) if path_imglist else _in_list(imglist, dtype) if isinstance(imglist, list) else None
        self._open(path_imgrec, path_imgidx, part_index, num_parts)
        if aug_list is None:
            from .image import CreateAugmenter

            aug_list = CreateAugmenter(self.data_shape, **kwargs)
        self.auglist = aug_list
        self.provide_data = [(data_name, (batch_size, *self.data_shape))]
        self.provide_label = [(label_name, (batch_size, label_width) if label_width > 1 else (batch_size,))]
        self._carried = []  # the images that the last pass left over
        self._begin()

    def _open(self, path_imgrec, path_imgidx, part_index, num_parts):
        """Determines the order of images: a list of their numbers; None where a record file is read from its beginning on."""
        if not path_imgrec:
            self.imgrec, self.seq = None, list(self.imglist)
        elif path_imgidx:
            self.imgrec = recordio.MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
            self.seq = list(self.imgrec.keys)
        else:
            if self.shuffle or num_parts > 1:
                raise AssertionError("ImageIter: shuffle and num_parts need path_imgidx")
            self.imgrec, self.seq = recordio.MXRecordIO(path_imgrec, "r"), None
        if num_parts > 1:
            if not 0 <= part_index < num_parts:
                raise AssertionError(f"ImageIter: part {part_index} of {num_parts}")
            each = len(self.seq) // num_parts
            self.seq = self.seq[part_index * each : (part_index + 1) * each]
        self.num_image = None if self.seq is None else len(self.seq)

    @staticmethod
    def check_data_shape(data_shape):
        """Refuses other shapes than (3, height, width)."""
        if len(data_shape) != 3:
            raise ValueError("data_shape should have length 3, with dimensions CxHxW")
        if data_shape[0] != 3:
            raise ValueError("This iterator expects inputs to have 3 channels.")

    # ---- passes

    def _begin(self):
        if self.seq is not None and self.shuffle:
            _random.shuffle(self.seq)
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur, self._ended = 0, False

    def reset(self):
        """Starts again; with roll_over the images that were left come first."""
        self._begin()

    def hard_reset(self):
        """Starts again, without the images that were left."""
        self._carried = []
        self._begin()

    def next_sample(self):
        """(label, bytes of the file) of the next image."""
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            header, image = recordio.unpack(record)
            return header.label, image
        if self.cur >= self.num_image:
            raise StopIteration
        number = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[number]
            return label, self.read_image(name)
        header, image = recordio.unpack(self.imgrec.read_idx(number))
        return (header.label if self.imglist is None else self.imglist[number][0]), image

    def read_image(self, fname):
        """The bytes of a file below path_root."""
        with open(os.path.join(self.path_root or "", fname), "rb") as file:
            return file.read()

    def imdecode(self, s):
        """The image in the bytes of a file."""
        from .image import imdecode

        try:
            return imdecode(s)
        except Exception as error:
            raise RuntimeError(f"Broken image {self._which()}, {error}") from error

    def _which(self):
        """The name or the number of the image that was read last."""
        number = self.cur - 1 if self.seq is None else self.seq[self.cur - 1]
        return f"index: {number}" if self.imglist is None else f"filename: {self.imglist[number][1]}"

    def augmentation_transform(self, data):
        """The image after the augmenters."""
        for each in self.auglist:
            data = each(data)
        return data

    def postprocess_data(self, datum):
        """The image as (channels, height, width)."""
        return datum.transpose((2, 0, 1))

    def _images(self, count):
        """The next (label, image) pairs, at most so many."""
        found = []
        while len(found) < count:
            try:
                label, data = self.next_sample()
            except StopIteration:
                break
            image = self.postprocess_data(self.augmentation_transform(self.imdecode(data))).asnumpy()
            if image.shape != self.data_shape:
                raise ValueError(f"ImageIter: image {self._which()} has the shape {image.shape} after augmenting, {self.data_shape} is needed")
            found.append((label, image))
        return found

    def next(self):
        """The next mini-batch."""
        if self._ended:
            raise StopIteration
        samples, self._carried = self._carried, []
        samples += self._images(self.batch_size - len(samples))
        pad = self.batch_size - len(samples)
        if pad and (not samples or self.last_batch_handle == "discard"):
            raise StopIteration
        if pad and self.last_batch_handle == "roll_over":
            self._carried, self._ended = samples, True
            raise StopIteration
        if pad:
            self._begin()
            first = self._images(pad)
            samples += [first[i % len(first)] for i in range(pad)]
            self._ended = True
        return self._batch(samples, pad)

    def _batch(self, samples, pad):
        from . import nd

        labels = numpy.stack([numpy.atleast_1d(label) for label, _ in samples])
        if labels.shape[1] < self.label_width or self.label_width == 1 and labels.shape[1] != 1:
            raise ValueError(f"ImageIter: images have {labels.shape[1]} labels, label_width is {self.label_width}")
        labels = labels[:, : self.label_width] if self.label_width > 1 else labels[:, 0]
        made = [nd.array(values, cpu(), "float32") for values in (numpy.stack([image for _, image in samples]), labels)]
        for each in made:
            each.__class__ = array_class()
        return DataBatch(made[:1], made[1:], pad=pad)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise not_here(f"ImageIter.{name}", "next, reset, hard_reset and the attributes of the arguments")
