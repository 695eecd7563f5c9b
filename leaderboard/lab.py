"""Claims bound to their settings, and the laboratory in which they are measured."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from theorybench.agents.harness import train
from theorybench.agents.loading import make_agent
from theorybench.agents.rollout import Episodes, rollout
from theorybench.envs.core.claim import Claim
from theorybench.envs.core.plugins import resolve_env
from theorybench.envs.core.registry import lookup
from theorybench.envs.core.setting import Setting

#: Environments that a simulation steps together.
SIMULATED_TOGETHER = 4096
#: Runs that are trained together: more saves no time and costs memory.
TRAINED_TOGETHER = 64


def claims(env_id: str) -> list[Claim]:
    """Return the claims of an environment, ready to be checked.

    Args:
        env_id: a registered id, its short form, "module:ID" or "path/to/file.py:ID".

    Returns:
        Claims whose `check(seed=0)` trains or simulates on the setting with the claim's own parameters.

    Raises:
        UnknownNameError: no such id; the closest are suggested.
        ParameterError: a claim whose parameters its setting refuses.
    """
    id = resolve_env(env_id)
    entry = lookup(id)
    make_lab = functools.partial(TrainingLab, id)
    return [
        dataclasses.replace(claim, setting=entry.make_setting(dict(claim.parameters)), make_lab=make_lab)
        for claim in entry.claims()
    ]


class TrainingLab:
    """Trains registered agents and simulates policies on one setting: the `Lab` of `theorybench.envs.core.claim`.

    Args:
        env_id: a registered id.
        setting: one of that id's settings.
    """

    def __init__(self, env_id: str, setting: Setting) -> None:
        self._id, self.setting = env_id, setting

    @functools.cached_property
    def oracle(self) -> Any:
        """The oracle of the setting."""
        return lookup(self._id).oracle(self.setting)

    def train(self, agent_name: str, seeds: Sequence[int], budget: int, **hyperparameters: Any) -> list[Any]:
        """Train an agent once for each seed with `budget` episodes, together where it can; return its policies.

        Raises:
            UnknownNameError: no such agent.
            ParameterError: a hyper-parameter that the agent does not have, or out of its range.
            AgentError: the agent cannot learn from the setting's feedback.
        """
        agent = make_agent(agent_name, **hyperparameters)
        parts = [seeds[i : i + TRAINED_TOGETHER] for i in range(0, len(seeds), TRAINED_TOGETHER)]
        parameters = self.setting.parameters
        return [run.policy for part in parts for run in train(agent, self._id, parameters, part, budget)]

    def simulate(self, policy: Any, episodes: int, seed: int, **options: Any) -> Episodes:
        """Roll out `episodes` episodes of a policy.

        Args:
            policy: any object with `probs`.
            episodes: how many.
            seed: keys the environments and the policy's own draws.
            options: `group_size`, `prompts`, `stage` and `hint` of `theorybench.rollout`.
        """
        envs = gym.make_vec(self._id, num_envs=min(episodes, SIMULATED_TOGETHER), **self.setting.parameters)
        try:
            envs.reset(seed=seed)
            return rollout(envs, policy, episodes=episodes, rng=np.random.default_rng([seed, 1]), **options)
        finally:
            envs.close()

    def at(self, **parameters: Any) -> "TrainingLab":
        """Return the lab of the same id with other parameters."""
        return TrainingLab(self._id, lookup(self._id).make_setting({**self.setting.parameters, **parameters}))
