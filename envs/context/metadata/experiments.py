"""Experiments on metadata: texts drawn from the rules, and learners that count what they have seen."""

import itertools

import numpy as np

#: What a learner adds to each count.
PSEUDO = 0.05
#: Instances of the claims on many grammars, and texts that are held at a time.
INSTANCES, TOGETHER = range(12), 2**17


class Corpus:
    """Texts with the labels of their grammars, drawn rule by rule.

    Args:
        rules: int (D, 2, q, 2, 2), the pairs that a symbol may become, by level, label and symbol.
        count: number of texts.
        rng: draws them.

    Attributes:
        labels: int64 (count,), the labels as a binary number, the first label highest.
        texts: int64 (count, L), symbols.
    """

    def __init__(self, rules: np.ndarray, count: int, rng: np.random.Generator) -> None:
        levels, self.q = len(rules), rules.shape[2]
        self.kinds, self.labels = 2**levels, rng.integers(2**levels, size=count)
        text = np.zeros((count, 1), np.int64)
        for level, own in enumerate(rules):
            label = self.labels[:, None] >> (levels - 1 - level) & 1
            text = own[label, text, rng.integers(2, size=text.shape)].reshape(count, -1)
        self.texts = text

    def beginnings(self, length: int) -> np.ndarray:
        """Return the first symbols of each text as one number in base q: int64 (count,)."""
        return self.texts[:, :length] @ self.q ** np.arange(length)[::-1]


class Counter:
    """A learner that counts beginnings of texts, apart for each way to label.

    Args:
        corpus: what it is trained on.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.q, self.kinds, self.L = corpus.q, corpus.kinds, corpus.texts.shape[1]
        #: by length: float64 (kinds, q^length)
        self.counts = []
        for length in range(self.L + 1):
            cells = self.q**length
            found = np.bincount(corpus.labels * cells + corpus.beginnings(length), minlength=self.kinds * cells)
            self.counts.append(found.reshape(self.kinds, cells).astype(np.float64))

    def losses(self, corpus: Corpus, *, labelled: bool) -> np.ndarray:
        """Return the loss of each symbol of a corpus in bits, with labels in sight or without: float64 (count, L)."""
        found = np.empty(corpus.texts.shape)
        for length in range(self.L):
            chance = self.next_symbol(length, labelled=labelled)
            kind = corpus.labels if labelled else 0
            found[:, length] = -np.log2(chance[kind, corpus.beginnings(length), corpus.texts[:, length]])
        return found

    def next_symbol(self, length: int, *, labelled: bool) -> np.ndarray:
        """Return its probabilities of what follows each beginning: float64 (kinds or 1, q^length, q)."""
        counts = self.counts[length + 1]
        counts = (counts if labelled else counts.sum(axis=0, keepdims=True)).reshape(-1, self.q**length, self.q)
        return (counts + PSEUDO) / (counts + PSEUDO).sum(axis=2, keepdims=True)

    def guess(self, corpus: Corpus, length: int) -> np.ndarray:
        """Return the labels that it has seen most often with each beginning: int64 (count,)."""
        return np.asarray(self.counts[length].argmax(axis=0)[corpus.beginnings(length)])

    def likely(self, corpus: Corpus, length: int, rng: np.random.Generator) -> np.ndarray:
        """Go on after each beginning by drawing likely symbols: int64 (count,), whole texts in base q."""
        text = corpus.beginnings(length)
        for longer in range(length, self.L):
            levels = np.cumsum(self.next_symbol(longer, labelled=False)[0], axis=1)[text, :-1]
            text = text * self.q + (levels <= rng.random(len(text))[:, None]).sum(axis=1)
        return text

    def best(self, corpus: Corpus, length: int) -> np.ndarray:
        """Go on after each beginning with the text that is most often of its grammar: int64 (count,), in base q.

        A text is of those grammars that it was seen with.
        """
        seen, begun = self.counts[self.L] > 0, self.counts[length]
        block = self.q ** (self.L - length)
        right = np.einsum("kb,kbt->bt", begun, seen.reshape(self.kinds, -1, block))
        text = corpus.beginnings(length)
        return np.asarray(text * block + right.argmax(axis=1)[text])


def grammatical(rules: np.ndarray) -> np.ndarray:
    """Return which texts, as numbers in base q, are of which grammar: bool (2^D, q^L).

    From the last level upwards: what each symbol may become is what the symbols of its two pairs may become.
    """
    levels, q = len(rules), rules.shape[2]
    found = np.zeros((2**levels, q**2**levels), bool)
    for kind, way in enumerate(itertools.product((0, 1), repeat=levels)):
        becomes, size = [{symbol} for symbol in range(q)], q
        for level in reversed(range(levels)):
            pairs = rules[level, way[level]].tolist()
            becomes = [
                {left * size + right for a, b in pairs[symbol] for left in becomes[a] for right in becomes[b]}
                for symbol in range(q)
            ]
            size *= size
        found[kind, sorted(becomes[0])] = True
    return found
