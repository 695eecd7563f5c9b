"""Experiments of the claims about MetastableChain: what they predict and what they measure.

Predictions solve (I - P) h = 1. Measurements step the setting's own dynamics under its reference policy and count steps
until a reward, with a horizon that truncates no walk; only unfinished walks are kept in memory. The statements are
about small eps / M; at finite size the prediction is the slope of the exact hitting times between the same points.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.evidence.experiments import SampleMean
from theorybench.envs.core.evidence.interval import Interval, ratio_of_means, slope_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.numerics import standard_error
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.core.policy import inverse_cdf
from theorybench.envs.core.streams import Streams, environment_keys
from theorybench.envs.tree.metastable_chain.oracle import MetastableChainOracle
from theorybench.envs.tree.metastable_chain.setting import MAX_HORIZON, MetastableChain

#: Horizon of a simulation in mean hitting times, at most `MAX_HORIZON`: a fraction e^-20 of the walks exceed it.
PATIENCE = 20


class Walks(NamedTuple):
    """n walks of the reference."""

    times: np.ndarray  # float64 (n,), steps to the target; NaN for a walk that did not reach it
    jumps: np.ndarray  # int64 (n, K, K), how often a walk went from one cluster to another


def simulate(lab: Lab, episodes: int, seed: int, patience: float = PATIENCE) -> Walks:
    """Simulate walks of the reference policy until they reach the target, or for `patience` mean hitting times."""
    horizon = min(MAX_HORIZON, math.ceil(patience * _exact(lab.setting)))
    setting: MetastableChain = lab.at(H=horizon).setting
    streams = Streams(environment_keys(seed, episodes, "walks", setting.fingerprint), setting.world, np)
    state = setting.initial(streams.begin(slice(None)), episodes)
    times, running = np.full(episodes, math.nan), np.arange(episodes)
    jumps = np.zeros((episodes, setting.K, setting.K), np.int64)
    for step in range(1, setting.horizon + 1):
        rng = streams.step(running, np.full(len(running), step))
        actions = inverse_cdf(setting.reference_probs(setting.observe(state)), rng.uniform(0))
        moved, rewards, terminated = setting.transition(state, actions, rng)
        times[running[rewards > 0]] = step
        jumped = moved.cluster != state.cluster
        jumps[running[jumped], state.cluster[jumped], moved.cluster[jumped]] += 1
        running, state = running[~terminated], type(moved)(*(field[~terminated] for field in moved))
        if not len(running):
            break
    return Walks(times, jumps)


@functools.lru_cache(maxsize=64)
def _exact(setting: MetastableChain) -> float:
    return MetastableChainOracle(setting).mean_hitting_time()


@dataclasses.dataclass(frozen=True)
class Slope:
    """Slope of ln(mean hitting time) against the logarithm of a parameter; for K that of the number of hops K - 1."""

    name: str  # the parameter
    values: tuple[float, ...]  # its values
    episodes: int = 4000  # number of walks at each value
    patience: float = PATIENCE  # the horizon of a walk, in mean hitting times

    @property
    def points(self) -> list[dict[str, Any]]:
        """The parameters at each value; the horizon is the longest."""
        return [{self.name: value, "H": MAX_HORIZON} for value in self.values]

    @property
    def logs(self) -> np.ndarray:
        """Logarithms of the values, of the number of hops for K, float64 (points,)."""
        return np.log(np.array(self.values) - (self.name == "K"))

    def predicted(self, oracle: Oracle[MetastableChain]) -> float:
        """Fit the slope of exact hitting times."""
        times = [_exact(dataclasses.replace(oracle.setting, **point)) for point in self.points]
        return slope_interval(self.logs, np.log(times).tolist(), [0.0] * len(times)).value

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the slope of simulated hitting times."""
        walks = [simulate(lab.at(**point), self.episodes, seed, self.patience).times for point in self.points]
        errors = [standard_error(times) / times.mean() for times in walks]
        return slope_interval(self.logs, [math.log(times.mean()) for times in walks], errors)


@dataclasses.dataclass(frozen=True)
class Raised:
    """Ratio of the hitting time to that with leaps raised to eps_max, in units of eps_max / eps."""

    eps_max: float = 0.5  # the raised probability
    finite: bool = False  # predict the ratio of exact hitting times instead of 1
    episodes: int = 8000  # number of walks with each probability

    def predicted(self, oracle: Oracle[MetastableChain]) -> float:
        """Return 1, or ((K-1) M + (K-2) eps) / ((K-1) M + (K-2) eps_max)."""
        if not self.finite:
            return 1.0
        setting = oracle.setting
        hops, between = (setting.K - 1) * setting.M, setting.K - 2
        return (hops + between * setting.eps) / (hops + between * self.eps_max)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Divide the means of simulated walks; the interval is symmetric in the logarithm."""
        slow, fast = (simulate(at, self.episodes, seed).times for at in (lab, lab.at(eps=self.eps_max)))
        return Interval(*(end * lab.setting.eps / self.eps_max for end in ratio_of_means(slow, fast)))


def _reversals(oracle: Oracle[MetastableChain]) -> float:
    """Return n + n (n - 1) (1 + eps) / (1 - eps) with n = K - 1 hops; n where hard steps cannot be taken back.

    A walk that has come to an entry steps back at once with probability eps; otherwise its next place is uniform, and
    it leaves by either edge with probability 1/2: it turns round with probability r = (1 + eps) / 2. Such a walk,
    reflected at 0, takes n + n (n - 1) r / (1 - r) jumps to n.
    """
    hops, eps = oracle.setting.K - 1, oracle.setting.eps
    return hops + hops * (hops - 1) * (1 + eps) / (1 - eps)


def distilled(batches: int = 20, walks: int = 200) -> SampleMean:
    """Mean jumps to the target of macro-chains, whose rows are the shares of jumps between clusters.

    Every batch of walks of the reference gives one macro-chain.
    """

    def sample(lab: Lab, seed: int) -> np.ndarray:
        jumps = simulate(lab, batches * walks, seed).jumps
        counts = jumps.reshape(batches, walks, *jumps.shape[1:]).sum(axis=1)[:, :-1]
        chains = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)
        size = counts.shape[1]
        return np.asarray(np.linalg.solve(np.eye(size) - chains[:, :, :size], np.ones((batches, size, 1)))[:, 0, 0])

    return SampleMean(sample=sample, prediction=_reversals)
