"""mx.contrib.text.vocab: words and their numbers."""
import collections

UNKNOWN_IDX = 0


class Vocabulary:
    """Words by number: the unknown one, the reserved ones, then the most frequent ones of a counter."""

    def __init__(self, counter=None, most_freq_count=None, min_freq=1, unknown_token="<unk>", reserved_tokens=None):
        if min_freq < 1:
            raise AssertionError("`min_freq` must be set to a positive value.")
        reserved = list(reserved_tokens or ())
        if unknown_token in reserved:
            raise AssertionError("`reserved_token` cannot contain `unknown_token`.")
        if len(set(reserved)) != len(reserved):
            raise AssertionError("`reserved_tokens` cannot contain duplicate reserved tokens.")
        self._unknown_token, self._reserved_tokens = unknown_token, reserved_tokens and reserved
        self._idx_to_token = [unknown_token, *reserved]
        if counter is not None:
            self._take(counter, most_freq_count, min_freq)
        self._token_to_idx = {token: i for i, token in enumerate(self._idx_to_token)}

    def _take(self, counter, most, least):
        if not isinstance(counter, collections.Counter):
            raise AssertionError("`counter` must be an instance of collections.Counter.")
        special = set(self._idx_to_token)
        ordered = sorted(sorted(counter.items()), key=lambda each: each[1], reverse=True)
        limit = len(special) + (len(counter) if most is None else most)
        for token, count in ordered:
            if count < least or len(self._idx_to_token) == limit:
                break
            if token not in special:
                self._idx_to_token.append(token)

    def __len__(self):
        return len(self._idx_to_token)

    @property
    def token_to_idx(self):
        """The numbers by words."""
        return self._token_to_idx

    @property
    def idx_to_token(self):
        """The words by number."""
        return self._idx_to_token

    @property
    def unknown_token(self):
        """The word for all unknown ones."""
        return self._unknown_token

    @property
    def reserved_tokens(self):
        """The reserved words."""
        return self._reserved_tokens

    def to_indices(self, tokens):
        """The number of a word, or a list of those of words; 0 is unknown."""
        if isinstance(tokens, list):
            return [self._token_to_idx.get(token, UNKNOWN_IDX) for token in tokens]
        return self._token_to_idx.get(tokens, UNKNOWN_IDX)

    def to_tokens(self, indices):
        """The word of a number, or a list of those of numbers."""
        given = indices if isinstance(indices, list) else [indices]
        for i in given:
            if not isinstance(i, int) or not 0 <= i < len(self):
                raise ValueError(f"Token index {i} in the provided `indices` is invalid.")
        found = [self._idx_to_token[i] for i in given]
        return found if isinstance(indices, list) else found[0]
