"""mx.contrib.text: vocabularies and embeddings of words."""
from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
