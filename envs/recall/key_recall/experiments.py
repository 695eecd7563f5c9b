"""Experiments about keys: what the end of a key is worth, and how the attention of trained heads tells keys apart."""

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.recall.experiments import NETWORK, SEEDS
from theorybench.envs.recall.key_recall.policies import SuffixPolicy

#: Episodes of a run, and how a step of training is made: its size falls to 0, so that no noise of the last ones stays.
BUDGET = 65_536
DECAY: dict[str, Any] = {"decay": "linear"}


def key_columns(setting: Any, observations: np.ndarray) -> np.ndarray:
    """Return where the value stands that is asked for: bool (n, prompt_length)."""
    right = np.zeros((len(observations), setting.prompt_length), bool)
    right[:, setting.k : setting.n * (setting.k + 1) : setting.k + 1] = setting.matches(observations, setting.k)
    return right


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ending(Sampled):
    """What a policy earns on fresh prompts of the full length that matches the end of the key alone."""

    matched: int  # symbols
    most_frequent: bool = False  # whether it answers the most frequent value alone
    episodes: int = 40_000

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play; return the rewards, float64 (episodes,)."""
        fresh = lab.at(trained=0)
        policy = SuffixPolicy(fresh.setting, self.matched, most_frequent=self.most_frequent)
        return np.asarray(fresh.simulate(policy, self.episodes, seed_of(seed, 7)).rewards)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Heads(Sampled):
    """A number of the attention of the heads that some runs of context matching end with, of the order of a key."""

    budget: int = BUDGET
    seeds: int = SEEDS
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the number of each run, float64 (seeds,)."""
        options = {**NETWORK, **DECAY, "policy": "kgram", "order": lab.setting.k, **self.hyperparameters}
        policies = lab.train("grpo", run_seeds(seed, self.seeds), self.budget, **options)
        return np.array([self.number(lab, policy) for policy in policies])

    @abstractmethod
    def number(self, lab: Lab, policy: Any) -> float:
        """Return the number of one run."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MassOnValue(Heads):
    """The attention to the value that is asked for, averaged over the scoring pool."""

    def number(self, lab: Lab, policy: Any) -> float:
        """Sum the attention."""
        seen = lab.oracle.pool().observations
        (layer,) = policy.attention(seen)
        attention = np.asarray(layer.weights)[:, 0, : lab.setting.prompt_length]
        return float((attention * key_columns(lab.setting, seen)).sum(axis=1).mean())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cosines(Heads):
    """A number of the cosines of contexts with that of the question, as attention shows them.

    The prompt has the keys `words`, of letters a and b, and asks for b...b. The log attention of the value behind a key
    is beta (cosine - 1) up to a constant, and the cosine is 0 for a...a and 1 for b...b: beta need not be known.
    """

    words: tuple[str, ...]
    of: Callable[[np.ndarray], float]  # the cosines, float64 (words,)

    def number(self, lab: Lab, policy: Any) -> float:
        """Read off the cosines."""
        setting, alike, different = lab.setting, "b" * lab.setting.k, "a" * lab.setting.k
        words = [different, *self.words, different, alike]  # one in front, so that something stands before all others
        keys = 1 + setting.V + np.array([[ord(letter) - ord("a") for letter in word] for word in words])
        pairs = np.concatenate([keys, np.ones((len(words), 1), np.int64)], axis=1)
        (layer,) = policy.attention(setting.observations(np.concatenate([pairs.ravel(), keys[-1]])[None]))
        columns = setting.prompt_length - setting.k - 1 - (setting.k + 1) * np.arange(len(words) - 1)[::-1]
        logs = np.log(np.asarray(layer.weights)[0, 0, columns])
        return float(self.of((logs[:-2] - logs[-2]) / (logs[-1] - logs[-2])))
