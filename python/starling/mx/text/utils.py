"""mx.contrib.text.utils: counting words."""
import collections
import re


def count_tokens_from_str(source_str, token_delim=" ", seq_delim="\n", to_lower=False, counter_to_update=None):
    """The numbers of the words of a text."""
    words = [w for w in re.split(re.escape(token_delim) + "|" + re.escape(seq_delim), source_str) if w]
    words = [w.lower() for w in words] if to_lower else words
    if counter_to_update is None:
        return collections.Counter(words)
    counter_to_update.update(words)
    return counter_to_update
