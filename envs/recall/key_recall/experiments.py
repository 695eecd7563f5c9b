"""Experiments about keys: policies that match part of them, and how far apart a head's attention keeps contexts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import Sampled
from theorybench.envs.core.evidence.lab import Lab, run_seeds, seed_of
from theorybench.envs.recall.experiments import NETWORK
from theorybench.envs.recall.key_recall.policies import SuffixPolicy
from theorybench.envs.recall.key_recall.setting import KeyRecall


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ending(Sampled):
    """What a policy earns on fresh prompts of the full length that matches the end of the key alone."""

    matched: int  # symbols
    episodes: int = 40_000

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Play; return the rewards, float64 (episodes,)."""
        fresh = lab.at(trained=0)
        policy = SuffixPolicy(fresh.setting, self.matched)
        return np.asarray(fresh.simulate(policy, self.episodes, seed_of(seed, 7)).rewards)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadGeometry(Sampled):
    """A number of the cosines of contexts with that of the question, as the attention of a trained head shows them.

    The prompt has the keys `words`, of letters a and b, and asks for b...b. The log attention of the value behind a key
    is beta (cosine - 1) up to a constant, and the cosine is 0 for a...a and 1 for b...b, so that beta need not be known.
    """

    words: tuple[str, ...]  # whose cosines count
    number: Any  # of these cosines, float (words,) -> float
    budget: int  # episodes of training; less than an update for the head at the start
    seeds: int = 5
    hyperparameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def values(self, lab: Lab, seed: int) -> np.ndarray:
        """Train; return the number of each run, float64 (seeds,)."""
        setting = lab.setting
        options = {**NETWORK, "policy": "kgram", "order": setting.k, **self.hyperparameters}
        policies = lab.train("grpo", run_seeds(seed, self.seeds), self.budget, **options)
        return np.array([self.number(self.cosines(setting, policy)) for policy in policies])

    def cosines(self, setting: KeyRecall, policy: Any) -> np.ndarray:
        """Read off the cosines of `words` with b...b, float64 (words,)."""
        words = ["a" * setting.k, "b" * setting.k, *self.words]
        letters = np.array([[ord(letter) - ord("a") for letter in word] for word in words])
        keys = 1 + setting.V + letters
        pairs = np.concatenate([keys, np.ones((len(words), 1), int)], axis=1)
        prompt = np.concatenate([pairs.ravel(), keys[1]])[None]
        (layer,) = policy.attention(setting.observations(prompt))
        columns = setting.prompt_length - setting.k - 1 - (setting.k + 1) * np.arange(len(words))[::-1]
        logs = np.log(np.asarray(layer.weights)[0, 0, columns])
        return np.asarray((logs[2:] - logs[0]) / (logs[1] - logs[0]))
