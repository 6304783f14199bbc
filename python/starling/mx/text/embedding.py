"""mx.contrib.text.embedding: vectors of words, from files on this machine."""
import io
import logging
import os

import numpy

from ..unsupported import missing, not_here
from . import vocab

_kinds: dict = {}


def register(embedding_cls):
    """Registers a class of embeddings by its name in lower case."""
    _kinds[embedding_cls.__name__.lower()] = embedding_cls
    return embedding_cls


def create(embedding_name, **kwargs):
    """The embedding with that name."""
    if embedding_name.lower() not in _kinds:
        raise KeyError(f"Cannot find embedding {embedding_name}; these are {', '.join(sorted(_kinds))}")
    return _kinds[embedding_name.lower()](**kwargs)


def get_pretrained_file_names(embedding_name=None):
    """The names of files that MXNet's authors offer, by embedding."""
    if embedding_name is None:
        return {name: list(kind.pretrained_file_names) for name, kind in _kinds.items() if hasattr(kind, "pretrained_file_names")}
    if embedding_name.lower() not in _kinds:
        raise KeyError(f"Cannot find `embedding_name` {embedding_name}. Use `get_pretrained_file_names(embedding_name=None).keys()` to get all.")
    if embedding_name.lower() == "fasttext":
        raise not_here("the list of fastText's 327 files", "the name of a file that you have")
    return list(_kinds[embedding_name.lower()].pretrained_file_names)


class _TokenEmbedding(vocab.Vocabulary):
    """Words with a vector each; the first one is for unknown words."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._vec_len, self._idx_to_vec = 0, None

    def _load(self, path, delimiter, init_unknown_vec, encoding="utf8"):
        if not os.path.isfile(os.path.expanduser(path)):
            raise ValueError("`pretrained_file_path` must be a valid path to the pre-trained token embedding file.")
        vectors, unknown, seen = [], None, set()
        with io.open(os.path.expanduser(path), "r", encoding=encoding) as lines:
            for number, line in enumerate(lines):
                token, *numbers = line.rstrip().split(delimiter)
                if len(numbers) <= 1:
                    if number == 0 and len(numbers) == 1:
                        continue  # the head of fastText's files
                    raise AssertionError(f"At line {number + 1} of the pre-trained text embedding file: the data format of the pre-trained token "
                                         f"embedding file {path} is unexpected.")  # fmt: skip
                vector = [float(x) for x in numbers]
                if token == self.unknown_token and unknown is None:
                    unknown = vector
                elif token in self._token_to_idx or token in seen:
                    logging.warning("At line %d of the pre-trained text embedding file: duplicate embedding found for token %s.", number + 1, token)
                elif vectors and len(vector) != len(vectors[0]):
                    raise AssertionError(f"At line {number + 1} of the pre-trained token embedding file: the dimension of token {token} is "
                                         f"{len(vector)} but the dimension of previous tokens is {len(vectors[0])}.")  # fmt: skip
                else:
                    seen.add(token)
                    vectors.append(vector)
                    self._idx_to_token.append(token)
                    self._token_to_idx[token] = len(self._idx_to_token) - 1
        self._vec_len = len(vectors[0]) if vectors else len(unknown)
        first = unknown if unknown is not None else init_unknown_vec((self._vec_len,))
        table = numpy.zeros((len(self), self._vec_len), numpy.float32)
        table[-len(vectors) :] = vectors
        table[vocab.UNKNOWN_IDX] = first.asnumpy() if hasattr(first, "asnumpy") else first
        self._idx_to_vec = _array(table)

    def _restrict(self, vocabulary):
        """Keeps the words of a vocabulary."""
        if vocabulary is None:
            return
        self._set(vocabulary, [self])

    def _set(self, vocabulary, embeddings):
        table = numpy.concatenate([e.get_vecs_by_tokens(list(vocabulary.idx_to_token)).asnumpy() for e in embeddings], 1)
        table[vocab.UNKNOWN_IDX] = numpy.concatenate([e.idx_to_vec.asnumpy()[vocab.UNKNOWN_IDX] for e in embeddings])
        self._vec_len, self._idx_to_vec = table.shape[1], _array(table)
        self._token_to_idx, self._idx_to_token = vocabulary.token_to_idx.copy(), list(vocabulary.idx_to_token)
        self._unknown_token, self._reserved_tokens = vocabulary.unknown_token, vocabulary.reserved_tokens

    @property
    def vec_len(self):
        """The length of the vectors."""
        return self._vec_len

    @property
    def idx_to_vec(self):
        """The vectors by number."""
        return self._idx_to_vec

    def get_vecs_by_tokens(self, tokens, lower_case_backup=False):
        """The vectors of a word, or of a list of words."""
        given = tokens if isinstance(tokens, list) else [tokens]
        places = [self._token_to_idx.get(t, self._token_to_idx.get(t.lower(), 0) if lower_case_backup else 0) for t in given]
        rows = self._idx_to_vec[numpy.array(places, "int32")]
        return rows if isinstance(tokens, list) else rows[0]

    def update_token_vectors(self, tokens, new_vectors):
        """Gives words other vectors."""
        if self._idx_to_vec is None:
            raise AssertionError("The property `idx_to_vec` has not been properly set.")
        given = tokens if isinstance(tokens, list) else [tokens]
        for token in given:
            if token not in self._token_to_idx:
                raise ValueError(f"Token {token} is unknown. To update the embedding vector for an unknown token, please specify it explicitly as "
                                 f"the `unknown_token` {self.unknown_token} in `tokens`.")  # fmt: skip
        if new_vectors.shape not in ((len(given), self._vec_len), *[(self._vec_len,)] * (len(given) == 1)):
            raise AssertionError(f"The length of new_vectors must be equal to the number of tokens, {len(given)}, and the width of new_vectors to "
                                 f"the dimension of vectors, {self._vec_len}; their shape is {new_vectors.shape}")  # fmt: skip
        vectors = new_vectors.asnumpy().reshape((len(given), self._vec_len))
        for token, vector in zip(given, vectors):
            self._idx_to_vec[self._token_to_idx[token]] = _array(vector)


def _array(values):
    from ..nd import array

    return array(values)


def _zeros(shape):
    from ..nd import zeros

    return zeros(shape)


class _Pretrained(_TokenEmbedding):
    """Vectors from a file in the folder embedding_root/name."""

    def __init__(self, pretrained_file_name=None, embedding_root=os.path.join("~", ".mxnet", "embeddings"), init_unknown_vec=_zeros, vocabulary=None,
                 **kwargs):
        name = pretrained_file_name or self._usual
        if name not in self.pretrained_file_names:
            raise KeyError(f"Cannot find pretrained file {name} for token embedding {type(self).__name__.lower()}. Valid pretrained files for "
                           f"embedding {type(self).__name__.lower()}: {', '.join(self.pretrained_file_names)}")  # fmt: skip
        super().__init__(**kwargs)
        path = os.path.join(os.path.expanduser(embedding_root), type(self).__name__.lower(), name)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} is not there; nothing is downloaded here")
        self._load(path, " ", init_unknown_vec)
        self._restrict(vocabulary)


@register
class GloVe(_Pretrained):
    """The vectors of GloVe."""

    _usual = "glove.840B.300d.txt"
    pretrained_file_names = ["glove.42B.300d.txt", "glove.6B.50d.txt", "glove.6B.100d.txt", "glove.6B.200d.txt", "glove.6B.300d.txt",
                             "glove.840B.300d.txt", "glove.twitter.27B.25d.txt", "glove.twitter.27B.50d.txt", "glove.twitter.27B.100d.txt",
                             "glove.twitter.27B.200d.txt"]  # fmt: skip


@register
class FastText(_Pretrained):
    """The vectors of fastText."""

    _usual = "wiki.simple.vec"
    pretrained_file_names = ["wiki.simple.vec", "wiki.en.vec", "wiki.de.vec", "wiki.fr.vec", "wiki.es.vec", "crawl-300d-2M.vec"]


@register
class CustomEmbedding(_TokenEmbedding):
    """Vectors from a file of lines: a word and its numbers."""

    def __init__(self, pretrained_file_path, elem_delim=" ", encoding="utf8", init_unknown_vec=_zeros, vocabulary=None, **kwargs):
        super().__init__(**kwargs)
        self._load(pretrained_file_path, elem_delim, init_unknown_vec, encoding)
        self._restrict(vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """The vectors of several embeddings, one after the other, for the words of a vocabulary."""

    def __init__(self, vocabulary, token_embeddings):
        super().__init__()
        embeddings = token_embeddings if isinstance(token_embeddings, list) else [token_embeddings]
        self._set(vocabulary, embeddings)


__getattr__ = missing("mx.contrib.text.embedding")
