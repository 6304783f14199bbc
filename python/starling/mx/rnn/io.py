"""Sentences as numbers, and batches of sentences of similar lengths."""
import bisect
import random
import warnings

import numpy

from .. import nd
from ..io import DataBatch, DataDesc, DataIter
from ..unsupported import missing


def encode_sentences(sentences, vocab=None, invalid_label=-1, invalid_key="\n", start_label=0, unknown_token=None):
    """(sentences with a number for each word, the numbers of the words)."""
    number, fixed = start_label, vocab is not None
    vocab = vocab if fixed else {invalid_key: invalid_label}

    def code(word):
        nonlocal number
        if word not in vocab:
            if fixed and not unknown_token:
                raise ValueError(f"encode_sentences: the word {word!r} is not in vocab")
            word = unknown_token if fixed else word
            if word not in vocab:
                number += number == invalid_label
                vocab[word] = number
                number += 1
        return vocab[word]

    return [[code(word) for word in sentence] for sentence in sentences], vocab


class BucketSentenceIter(DataIter):
    """Batches of sentences, padded to the length of the smallest bucket that holds them; the label of a word is the next word."""

    def __init__(self, sentences, batch_size, buckets=None, invalid_label=-1, data_name="data", label_name="softmax_label", dtype="float32", layout="NT"):
        super().__init__(batch_size)
        if not buckets:
            counts = numpy.bincount([len(s) for s in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        self.buckets, self.data_name, self.label_name, self.dtype, self.layout = sorted(buckets), data_name, label_name, dtype, layout
        if not self.buckets:
            raise ValueError("BucketSentenceIter: no length has a batch of sentences; give buckets")
        self.default_bucket_key, self.invalid_label, self.major_axis = max(self.buckets), invalid_label, layout.find("N")
        if self.major_axis not in (0, 1):
            raise ValueError(f"BucketSentenceIter: layout is {layout!r}, not NT or TN")
        rows, lost = [[] for _ in self.buckets], 0
        for sentence in sentences:
            place = bisect.bisect_left(self.buckets, len(sentence))
            if place == len(self.buckets):
                lost += 1
                continue
            row = numpy.full((self.buckets[place],), invalid_label, dtype)
            row[: len(sentence)] = sentence
            rows[place].append(row)
        if lost:
            warnings.warn(f"BucketSentenceIter: {lost} sentences are longer than the largest bucket, and are left out", stacklevel=2)
        self.data = [numpy.asarray(r, dtype) for r in rows]
        self._places = [(i, j) for i, r in enumerate(self.data) for j in range(0, len(r) - batch_size + 1, batch_size)]
        self.reset()

    def _described(self, name, length):
        shape = (self.batch_size, length) if self.major_axis == 0 else (length, self.batch_size)
        return [DataDesc(name, shape, layout=self.layout)]

    @property
    def provide_data(self):
        """The name and shape of the largest bucket's batches."""
        return self._described(self.data_name, self.default_bucket_key)

    @property
    def provide_label(self):
        """The same of labels."""
        return self._described(self.label_name, self.default_bucket_key)

    def reset(self):
        """Begins again, in another order."""
        self._at = 0
        random.shuffle(self._places)
        for rows in self.data:
            numpy.random.shuffle(rows)

    def next(self):
        """The next batch."""
        if self._at == len(self._places):
            raise StopIteration
        bucket, first = self._places[self._at]
        self._at += 1
        rows = self.data[bucket][first : first + self.batch_size]
        labels = numpy.full_like(rows, self.invalid_label)
        labels[:, :-1] = rows[:, 1:]
        data, label = (nd.array(a.T if self.major_axis else a, dtype=self.dtype) for a in (rows, labels))
        length = self.buckets[bucket]
        return DataBatch([data], [label], pad=0, bucket_key=length, provide_data=self._described(self.data_name, length),
                         provide_label=self._described(self.label_name, length))  # fmt: skip


__getattr__ = missing("mx.rnn.io")
