"""Experiments about semiautomata.

Agreement is counted in episodes of machines that run as policies, never taken from the oracle's matrix of pairs.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.curriculum.learning import OutcomeGradient
from theorybench.envs.curriculum.semiautomaton.pairs import factorial_length
from theorybench.envs.curriculum.semiautomaton.setting import Semiautomaton


def outcome_gradient(length: int) -> OutcomeGradient:
    """Return the squared norm of a table's gradient on words of some length.

    It is (1/N^2)(1 - 1/N) / (m N) on one letter: m N rows, each met with probability 1/(m N); 0 on longer words.
    """

    def theory(oracle: Oracle[Semiautomaton]) -> float:
        N, rows = oracle.setting.N, oracle.setting.m * oracle.setting.N
        return (1 - 1 / N) / (N**2 * rows) if length == 1 else 0.0

    return OutcomeGradient(stage=length, prediction=theory, episodes=16_384)


def excess(lab: Lab, lengths: tuple[int, ...], twins: int, episodes: int, seed: int) -> np.ndarray:
    """Count how much more than chance other machines of the family agree with the hidden one.

    Args:
        lab: simulates.
        lengths: of the words.
        twins: other machines; each runs as a policy.
        episodes: of each machine and length.
        seed: of machines and simulation.

    Returns:
        float64 (twins, lengths).
    """
    rng = np.random.default_rng(seed)
    shares = np.empty((twins, len(lengths)))
    for twin in range(twins):
        policy = lab.oracle.machine_policy(lab.oracle.twin(int(rng.integers(2**31))))
        for place, length in enumerate(lengths):
            shares[twin, place] = lab.simulate(policy, episodes, int(rng.integers(2**31)), stage=length).rewards.mean()
    return shares - 1 / lab.setting.N


def over_machines(estimate: Callable[[np.ndarray], float], above: np.ndarray) -> Interval:
    """Return a jackknife estimate over machines, leaving out one at a time, and its interval.

    The share of letters on which a machine differs from the hidden one is not exactly a half, which shifts all of its
    lengths together: the randomness comes from machines more than from episodes.

    Args:
        estimate: of means by length, float64 (lengths,).
        above: float64 (machines, lengths).

    Returns:
        Value, low and high; NaN if a mean is not above chance.
    """
    total, machines = above.sum(axis=0), len(above)
    without = (total - above) / (machines - 1)
    if (without <= 0).any():
        return point(math.nan)
    left_out = np.array([estimate(row) for row in without])
    return interval(estimate(total / machines), math.sqrt((machines - 1) * left_out.var()), machines - 1)


@dataclasses.dataclass(frozen=True)
class Decay:
    """Slope in T of the logarithm of agreement above chance."""

    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6)  # words' lengths
    twins: int = 32  # other machines
    episodes: int = 5_000  # of each machine and length

    def predicted(self, oracle: Oracle[Semiautomaton]) -> float:
        """ln(1 - 1/(N-1))."""
        return math.log1p(-1 / (oracle.setting.N - 1))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit a line, each point with the weight of its error."""

        def slope(above: np.ndarray) -> float:
            share = above + 1 / lab.setting.N
            weights = np.square(above) / (share * (1 - share))
            x = np.array(self.lengths) - np.average(self.lengths, weights=weights)
            return float(weights @ (x * np.log(above)) / (weights @ np.square(x)))

        return over_machines(slope, excess(lab, self.lengths, self.twins, self.episodes, seed))


@dataclasses.dataclass(frozen=True)
class FactorialLength:
    """Agreement above chance at the word length where it should be 1/N!, on the line through two lengths around it."""

    lengths: tuple[int, int] = (6, 8)  # one below and one above
    twins: int = 32  # other machines
    episodes: int = 10_000  # of each machine and length

    def predicted(self, oracle: Oracle[Semiautomaton]) -> float:
        """1/N!, at the length (ln N! + ln(1 - 1/N)) / -ln(1 - 1/(N-1)), which is of order N^2 ln N."""
        return 1 / math.factorial(oracle.setting.N)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Interpolate the logarithm."""
        first, last = self.lengths
        share = (factorial_length(lab.setting.N) - first) / (last - first)

        def between(above: np.ndarray) -> float:
            return float(np.exp((1 - share) * np.log(above[0]) + share * np.log(above[1])))

        return over_machines(between, excess(lab, self.lengths, self.twins, self.episodes, seed))


def network_rewards(lab: Lab, seed: int) -> np.ndarray:
    """Train networks on the outcome of the full task; return the mean of 8,192 rewards of each, float64 (8,)."""
    policies = lab.train("rlvr", run_seeds(seed, 8), 16_000, policy="mlp", episodes_per_update=256)
    found = [lab.simulate(policy, 8192, seed_of(seed, run)).rewards.mean() for run, policy in enumerate(policies)]
    return np.array(found, np.float64)
