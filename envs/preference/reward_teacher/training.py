"""How claims and studies about RewardTeacher measure: training from pay, and roll-outs of the initial policy.

Training is plain REINFORCE without a baseline ("rlvr", stochastic gradient ascent): with large batches and small steps
it follows the gradient flow, an update of learning rate eta taking a time eta. What a trained policy is worth is exact.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.selection import Candidates, best_of_n
from theorybench.envs.preference.reward_teacher.oracle import RewardTeacherOracle
from theorybench.envs.preference.reward_teacher.setting import RewardTeacher

#: Plain stochastic gradient ascent from the initial policy.
PLAIN: dict[str, Any] = {
    "policy": "prompt",
    "start": "initial",
    "optimizer": "sgd",
    "baseline": "none",
}
#: A variance that every setting reaches, to ask it for its largest.
TINY = 1e-12
#: Keys of the streams of random settings, and of those with two nearly even responses.
RANDOM, EVEN = 2503, 2504
#: Parts of the roll-outs for a gradient, whose spread gives the interval.
PARTS = 32


@dataclasses.dataclass(frozen=True)
class Lesson:
    """Training until E r_G has gained something.

    Attributes:
        gain: gamma, of E r_G.
        learning_rate: eta.
        episodes: of each update.
        seeds: number of runs.
        patience: how long runs are watched, in exact gain times.
        points: policies that are looked at.
    """

    gain: float
    learning_rate: float
    episodes: int = 512
    seeds: int = 16
    patience: float = 1.3
    points: int = 100

    def exact(self, setting: RewardTeacher) -> float:
        """Time of the gradient flow."""
        return RewardTeacherOracle(setting).gain_time(self.gain)

    def times(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; give the time of each run, float64 (seeds,), infinite where it did not get there."""
        updates = math.ceil(self.patience * self.exact(lab.setting) / self.learning_rate)
        moments, gains = self.gains(lab, seed, updates)
        return np.array([_crossing(moments, run, self.gain) for run in gains])

    def gains(self, lab: Lab, seed: int, updates: int) -> tuple[np.ndarray, np.ndarray]:
        """Train; give times (points,) and gains of E r_G (seeds, points), the start included."""
        numbers = run_seeds(seed, self.seeds)
        budget, rate, size = updates * self.episodes, self.learning_rate, self.episodes
        points = min(self.points, updates)
        runs = lab.trace("rlvr", numbers, budget, points=points, learning_rate=rate, episodes_per_update=size, **PLAIN)
        before = lab.oracle.reference_value
        gains = [[0.0, *(_objective(lab, policy) - before for _, policy in run)] for run in runs]
        moments = [0.0, *(rate * episodes / size for episodes, _ in runs[0])]
        return np.array(moments), np.array(gains)


def _objective(lab: Lab, policy: Any) -> float:
    return float(lab.oracle.evaluate(policy, ["objective"])["objective"])


def _crossing(times: np.ndarray, gains: np.ndarray, gain: float) -> float:
    """Give the time at which a line through points first reaches a gain; infinite where it does not."""
    reached = np.flatnonzero(gains >= gain)
    if not len(reached):
        return math.inf
    after = reached[0]
    share = (gain - gains[after - 1]) / (gains[after] - gains[after - 1])
    return float(times[after - 1] + share * (times[after] - times[after - 1]))


def finite_mean(times: np.ndarray) -> Interval:
    """Give the mean of times (n,) and its interval; infinite throughout where some run did not get there."""
    return mean_interval(times) if np.isfinite(times).all() else point(math.inf)


# Settings to compare.


def widest(setting: RewardTeacher) -> RewardTeacher:
    """Give the setting whose reward model uses all of [-1, 1] in the context that allows the least variance."""
    narrow = dataclasses.replace(setting, variance=TINY)
    return dataclasses.replace(narrow, variance=narrow.largest_variance)


def random_settings(seed: int, count: int) -> list[RewardTeacher]:
    """Draw settings with one context: responses, tilt, accuracy, variance and instance."""
    rng, drawn = np.random.default_rng([RANDOM, seed]), []
    for _ in range(count):
        responses = int(rng.choice([2, 3, 4, 8]))
        pairs = responses * (responses - 1) // 2
        setting = RewardTeacher(
            num_responses=responses,
            num_contexts=1,
            accuracy=rng.integers(pairs // 2, pairs + 1) / pairs,
            variance=TINY,
            tilt=rng.uniform(-1.5, 1.0),
            instance=int(rng.integers(10_000)),
        )
        drawn.append(dataclasses.replace(setting, variance=setting.largest_variance * rng.uniform(0.01, 1.0)))
    return drawn


def nearly_even_settings(seed: int, count: int) -> list[RewardTeacher]:
    """Draw settings of two nearly even responses, in which gains of .1 to .2 take 1.05 to 1.16 times their bound."""
    tilts = np.random.default_rng([EVEN, seed]).uniform(-0.05, 0.05, count)
    return [
        widest(RewardTeacher(num_responses=2, num_contexts=1, accuracy=1.0, variance=TINY, tilt=tilt)) for tilt in tilts
    ]


# Roll-outs of the initial policy.


def squared_gradient(lab: Lab, episodes: int, seed: int) -> np.ndarray:
    """Estimate |grad E r_M|^2 / variance of r_M from roll-outs of the initial policy in one context: (parts,).

    Two halves of a part give independent estimates of the gradient, mean r (e_y - pi); the product of them has the
    square as its mean. The variance is that of all rewards.
    """
    played = lab.simulate(lab.oracle.initial_policy, episodes * PARTS, seed)
    policy = lab.oracle.table(lab.oracle.initial_policy)
    chosen = np.eye(lab.setting.num_responses)[played.actions[:, 0]] - policy
    halves = (played.rewards[:, None] * chosen).reshape(PARTS, 2, episodes // 2, -1).mean(axis=2)
    return (halves[:, 0] * halves[:, 1]).sum(axis=1) / played.rewards.var()


def exact_best_of_n(setting: RewardTeacher, samples: int) -> float:
    """Give E r_G of the best of N responses of the initial policy by r_M: sum r_G (F_m^N - F_{m-1}^N)."""
    model, truth = setting.tables
    contexts = np.repeat(np.arange(len(model)), model.shape[1])
    mass = setting.start.ravel()
    weights = best_of_n(Candidates(mass, model.ravel(), contexts), samples)
    return float((weights * mass * truth.ravel()).sum() / len(model))


def sampled_best_of_n(lab: Lab, samples: int, groups: int, seed: int) -> np.ndarray:
    """Roll out groups of N responses of the initial policy and keep the best paid: r_G of the kept, (groups,)."""
    played = lab.simulate(lab.oracle.initial_policy, groups * samples, seed, group_size=samples)
    truth = lab.setting.tables.truth[played.prompts, played.actions[:, 0]].reshape(groups, samples)
    kept = played.rewards.reshape(groups, samples).argmax(axis=1)
    return truth[np.arange(groups), kept]


def spread(values: Sequence[np.ndarray]) -> float:
    """Give the standard error of a sum or difference of means of independent samples."""
    return math.sqrt(sum(sample.var(ddof=1) / len(sample) for sample in values))
