"""What theory says of semiautomata, as tests that run.

Intervals are three standard errors wide on each side; agreement is counted in episodes of machines that run as
policies, never taken from the oracle's pair matrix.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.core.views import View
from theorybench.envs.curriculum.semiautomaton.pairs import factorial_length
from theorybench.envs.curriculum.semiautomaton.setting import Semiautomaton

#: Score that counts as learnt.
LEARNT = 0.9


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
    """Estimate from the mean over machines, its interval by leaving out one after the other.

    The half of its letters on which a machine differs from the hidden one is not exactly a half, which moves all of its
    lengths together: machines are what is sampled, more than episodes.

    Args:
        estimate: of means by length, float64 (lengths,).
        above: float64 (machines, lengths).

    Returns:
        Value, low and high; not a number where a mean is not above chance.
    """
    total, machines = above.sum(axis=0), len(above)
    without = (total - above) / (machines - 1)
    if (without <= 0).any():
        return point(math.nan)
    left_out = np.array([estimate(row) for row in without])
    return interval(estimate(total / machines), math.sqrt((machines - 1) * left_out.var()))


@dataclasses.dataclass(frozen=True)
class Decay:
    """Slope in T of the logarithm of agreement above chance.

    Attributes:
        lengths: words' lengths.
        twins: other machines.
        episodes: of each machine and length.
    """

    lengths: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    twins: int = 32
    episodes: int = 5_000

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
    """Agreement above chance at the word length where it should be 1/N!, on the line through two lengths around it.

    Attributes:
        lengths: one below and one above.
        twins: other machines.
        episodes: of each machine and length.
    """

    lengths: tuple[int, int] = (6, 8)
    twins: int = 32
    episodes: int = 10_000

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


@dataclasses.dataclass(frozen=True)
class Slope:
    """Squared norm of the outcome's gradient in the table's logits at the uniform policy.

    Two independent halves of a sample are multiplied, so that the estimate has no bias.

    Attributes:
        length: of the words.
        blocks: pairs of halves.
        episodes: of each half.
    """

    length: int
    blocks: int = 16
    episodes: int = 16_384

    def predicted(self, oracle: Oracle[Semiautomaton]) -> float:
        """(1/N^2)(1 - 1/N) / (m N) on one letter: m N rows, each met with probability 1/(m N); 0 on longer words."""
        setting = oracle.setting
        rows = setting.m * setting.N
        return (1 - 1 / setting.N) / (setting.N**2 * rows) if self.length == 1 else 0.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over blocks of the product of two halves' score-function estimates."""
        setting = lab.setting
        view = View.of(setting, "local")
        policy = TablePolicy(view, np.full((view.rows, setting.N), 1 / setting.N))
        played = lab.simulate(policy, 2 * self.blocks * self.episodes, seed, stage=self.length)
        half = np.arange(len(played.rewards)) // self.episodes
        centred = (played.rewards - played.rewards.mean()) / self.episodes
        gradients = np.zeros((2 * self.blocks, view.rows, setting.N))
        for position in range(self.length):
            rows = view.index(played.observations[:, position])
            np.add.at(gradients, (half, rows, played.actions[:, position]), centred)
            met = np.zeros((2 * self.blocks, view.rows))
            np.add.at(met, (half, rows), centred)
            gradients -= met[:, :, None] / setting.N
        flat = gradients.reshape(self.blocks, 2, -1)
        return mean_interval((flat[:, 0] * flat[:, 1]).sum(axis=1))


@dataclasses.dataclass(frozen=True)
class LearnersApart:
    """Share of runs that learn the task: of `curriculum-rlvr`, less that of `rlvr` with the same budget.

    Attributes:
        budget: episodes of a run.
        seeds: runs of each.
        learner: hyper-parameters of both.
    """

    budget: int
    seeds: int
    learner: tuple[tuple[str, Any], ...] = ()

    def predicted(self, oracle: Oracle[Semiautomaton]) -> float:
        """One: short words teach, and the outcome of long ones does not."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Difference of shares; with every run alike the interval is a point."""
        setting = lab.setting
        numbers, shares = run_seeds(seed, self.seeds), []
        goal = 1 / setting.N + LEARNT * (1 - 1 / setting.N)
        for agent in ("curriculum-rlvr", "rlvr"):
            policies = lab.train(agent, numbers, self.budget, **dict(self.learner))
            learnt = [lab.simulate(policy, 4096, seed).rewards.mean() >= goal for policy in policies]
            shares.append(float(np.mean(learnt)))
        variance = sum(share * (1 - share) / self.seeds for share in shares)
        return interval(shares[0] - shares[1], math.sqrt(variance))


@dataclasses.dataclass(frozen=True)
class NetworkBlind:
    """Reward of networks (`policy="mlp"`) that were trained on the outcome of the full task.

    Attributes:
        budget: episodes of a run.
        seeds: runs.
        episodes: of the simulation of each.
    """

    budget: int = 16_000
    seeds: int = 3
    episodes: int = 4096

    def predicted(self, oracle: Oracle[Semiautomaton]) -> float:
        """Chance."""
        return 1 / oracle.setting.N

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean reward over runs."""
        numbers = run_seeds(seed, self.seeds)
        policies = lab.train("rlvr", numbers, self.budget, policy="mlp", episodes_per_update=256)
        return mean_interval(np.concatenate([lab.simulate(policy, self.episodes, seed).rewards for policy in policies]))


claim = ClaimMaker("semiautomaton", "arXiv 2510.04115")


_REPEATS = "for one of 4096 letters comes back now and then"

CLAIMS: tuple[Claim, ...] = (
    claim(
        "decay",
        Decay(),
        source="agreement of two shuffles",
        statement="The agreement of two machines above chance falls by the factor 1 - 1/(N-1) a letter when "
        "letters are fresh",
        falsified_by="a small alphabet, in which letters come back, or another family",
        formula="ln(1 - 1/(N-1))",
        tolerance=0.0005,
        tolerance_reason=".0005, for one of 4096 letters comes back now and then",
        parameters={"N": 6, "m": 4096, "family": "shuffle"},
    ),
    claim(
        "factorial",
        FactorialLength(),
        source="statistical queries",
        statement="Agreement is 1/N! above chance at a word length of order N^2 ln N (N = 4)",
        falsified_by="a small alphabet, in which letters come back, or another family",
        formula="1/N! at T = (ln N! + ln(1 - 1/N)) / -ln(1 - 1/(N-1))",
        tolerance=0.0002,
        tolerance_reason=".0002, for one of 4096 letters comes back now and then",
        parameters={"N": 4, "m": 4096, "family": "shuffle"},
    ),
    claim(
        "first-letter",
        Slope(1),
        source="gradients of tables",
        statement="On words of one letter the gradient of a table at the uniform policy has the squared norm it should",
        falsified_by="a ladder whose first rung has longer words",
        formula="(1 - 1/N) / (m N^3)",
        parameters={"N": 5, "m": 4},
    ),
    claim(
        "no-gradient",
        Slope(2),
        source="gradients of tables",
        statement="From two letters on it is zero",
        falsified_by="a verifier that pays for a claim on the way, or claims that are corrected before they are "
        "fed back",
        formula="0",
        parameters={"N": 5, "m": 4},
    ),
    claim(
        "learners",
        LearnersApart(12_000, 10),
        source="outcomes against word lengths",
        statement="REINFORCE learns the machine from ever longer words within a budget in which long words alone "
        "teach nothing",
        falsified_by="a ladder whose rungs are all the full task",
        formula="1",
        tolerance=0.1,
        tolerance_reason="one run in ten may differ",
        parameters={"N": 5, "m": 4, "T": 5},
    ),
    claim(
        "network",
        NetworkBlind(),
        source="outcomes and networks",
        statement="A network that sees the whole prompt is no better than chance after training on the outcomes "
        "of 8 letters",
        falsified_by="short words, whose few prompts it memorises",
        formula="1/N",
        tolerance=0.02,
        tolerance_reason=".02, for three networks memorise a few words differently",
        parameters={"N": 3},
    ),
)
