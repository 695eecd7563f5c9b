"""Agreement of two machines, or of a table and a machine: the Markov chain of pairs of states."""

import math

import numpy as np


def pair_matrix(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the transition matrix of a pair of states that read the same uniform letters, float64 (N^2, N^2).

    Args:
        first: float64 (m, N, N), probabilities of the next state by letter and state; drawn independently for each.
        second: float64 (m, N, N), likewise. The pair (s, s') is row s N + s'.
    """
    letters, N, _ = first.shape
    together = first.reshape(letters, -1).T @ second.reshape(letters, -1) / letters
    return together.reshape(N, N, N, N).transpose(0, 2, 1, 3).reshape(N * N, N * N)


def limit_agreement(states: int, length: float) -> float:
    """Return 1/N + (1 - 1/N)(1 - 1/(N-1))^T: agreement of two shuffle machines when every letter is fresh.

    The permutation that takes one machine's state to the other's moves by a random transposition with probability 1/2
    a letter. The chance that it fixes a state has the eigenvalue 1/2 + (N-3) / (2 (N-1)) = 1 - 1/(N-1).
    """
    return 1 / states + (1 - 1 / states) * (1 - 1 / (states - 1)) ** length


def factorial_length(states: int) -> float:
    """Return the T at which this agreement is 1/N! above chance, for N >= 3; of order N^2 ln N."""
    decay = -math.log1p(-1 / (states - 1))
    return (math.lgamma(states + 1) + math.log1p(-1 / states)) / decay
