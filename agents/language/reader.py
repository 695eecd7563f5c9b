"""Cached forward passes: equal observations are read once, and of those that continue the last ones only new words."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from theorybench.agents.language.decoder import Cache, Decoder, Weights
from theorybench.agents.language.vocabulary import Vocabulary
from theorybench.envs.core.arrays import distinct_rows, find_rows

#: Words that are read at a time, and numbers that are kept of them, to bound memory.
WORDS, KEPT = 2**16, 2**26
#: (words int64 (n, words), cache of the words before them or None) -> outputs at the last word (n, ...), new cache.
Read = Callable[[torch.Tensor, Any], tuple[torch.Tensor, Any]]
#: (cache, rows) -> cache of these rows.
Choose = Callable[[Any, torch.Tensor], Any]


class _Reading(NamedTuple):
    """What was read last: equally long responses."""

    observations: np.ndarray  # integer (n, tokens), distinct
    said: int  # words of each response
    kept: Any  # of the model


class Reader:
    """Runs a model on observations.

    Args:
        vocabulary: words of the setting.
        read: the forward pass.
        choose: picks rows of a cache.
        size: numbers that the cache holds of each word.
    """

    def __init__(self, vocabulary: Vocabulary, read: Read, choose: Choose, size: int) -> None:
        self.vocabulary, self._read, self._choose, self._size = vocabulary, read, choose, size
        self._reading: _Reading | None = None

    @classmethod
    def of(cls, vocabulary: Vocabulary, decoder: Decoder, weights: Weights) -> "Reader":
        """Return the reader of a decoder, whose outputs are hidden states (n, width)."""
        most = vocabulary.prompt_words + vocabulary.response_words

        def read(words: torch.Tensor, cache: Cache | None) -> tuple[torch.Tensor, Cache]:
            cache = cache or decoder.cache(len(words), min(most, 2 * words.shape[1] + 4))
            hidden, _ = decoder(weights, words, cache)
            return hidden[:, -1], cache

        return cls(vocabulary, read, Cache.rows, 2 * decoder.layers * decoder.width)

    @torch.inference_mode()
    def __call__(self, observations: np.ndarray) -> torch.Tensor:
        """Return the outputs after observations (n, tokens): (n, ...)."""
        distinct, place = distinct_rows(observations)
        responses, said = self.vocabulary.responses(distinct)
        if (said == said[0]).all():
            return self._together(distinct, responses[:, : said[0]])[torch.from_numpy(place)]
        groups = [np.flatnonzero(said == length) for length in np.unique(said)]
        answers = torch.cat([self._together(distinct[own], responses[own, : said[own[0]]]) for own in groups])
        return answers[torch.from_numpy(np.argsort(np.concatenate(groups))[place])]

    def _together(self, observations: np.ndarray, responses: np.ndarray) -> torch.Tensor:
        """Read distinct observations, whose responses (n, words) have as many words."""
        (count, said), before = responses.shape, self.vocabulary.prompt_words
        whole = count * (before + said) * self._size > KEPT
        kept, begun = (None, 0) if whole else self._continued(observations, said)
        self._reading = None
        if kept is None:
            new = np.hstack([self.vocabulary.prompts(observations), responses])
        else:
            new = responses[:, begun - before :]
        if whole or (kept is None and new.size > WORDS):
            parts = torch.from_numpy(new).split(max(1, WORDS // new.shape[1]))
            return torch.cat([self._read(part, None)[0] for part in parts])
        answers, kept = self._read(torch.from_numpy(new), kept)
        self._reading = _Reading(observations, said, kept)
        return answers

    def _continued(self, observations: np.ndarray, said: int) -> tuple[Any, int]:
        """Return the cache of the last observations, and their words, where these continue them; else None, 0."""
        last, vocabulary = self._reading, self.vocabulary
        if last is None or last.said >= said:
            return None, 0
        begun = observations.copy()
        begun[:, vocabulary.setting.prompt_length + last.said :] = 0
        parents, known = find_rows(last.observations, begun)  # in the order of their keys, as `distinct_rows` has them
        if not known.all():
            return None, 0
        same = np.array_equal(parents, np.arange(len(last.observations)))
        kept = last.kept if same else self._choose(last.kept, torch.from_numpy(parents))
        return kept, vocabulary.prompt_words + last.said
