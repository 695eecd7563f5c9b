"""stable-baselines3 as an outside agent: our vector environments as its VecEnv, its policies as ours.

stable-baselines3 refuses Gymnasium's vector environments; `VectorBridge` gives it what it expects, without a Python
loop over environments where it allows that.
"""

import contextlib
import functools
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from theorybench.agents.agent import Log
from theorybench.agents.budget import Budget
from theorybench.agents.outside import global_generators_restored
from theorybench.envs.core.errors import BudgetExhausted, ConfigurationError
from theorybench.envs.core.policy import Policy

try:
    import stable_baselines3
    from stable_baselines3.common import base_class, callbacks, policies, vec_env
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ConfigurationError("stable-baselines3 is not installed: pip install 'theorybench[sb3]'") from error


class VectorBridge(vec_env.VecEnv):
    """Our native vector environment (auto-reset "SameStep") behind stable-baselines3's interface.

    Args:
        envs: vector environments of TheoryBench.
        seed: keys their streams.
    """

    def __init__(self, envs: Any, seed: int) -> None:
        self._envs, self._seed_once = envs, seed
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> np.ndarray:
        """Begin episodes in all environments."""
        observations, _ = self._envs.reset(seed=self._seed_once)
        return observations  # type: ignore[no-any-return]

    def step_async(self, actions: np.ndarray) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step; terminal observations stand in the infos, as stable-baselines3 wants them."""
        observations, rewards, terminated, _, info = self._envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated):
            infos[i] = {"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": False}
        return observations, rewards.astype(np.float32), terminated, infos

    def action_masks(self) -> np.ndarray:
        """Legal actions, bool (num_envs, num_actions)."""
        return self._envs.unwrapped.action_masks()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close nothing: the environments are the harness's."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, once for each environment asked for."""
        value = None if attr_name == "render_mode" else getattr(self._envs.unwrapped, attr_name)
        return [value] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: a setting is frozen."""
        raise AttributeError("settings are frozen: make another environment")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method of the vector environment; give each environment its row."""
        rows = getattr(self._envs.unwrapped, method_name)(*args, **kwargs)
        return [rows[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """No environment is wrapped on its own."""
        return [False] * len(list(self._get_indices(indices)))


class SB3Policy(Policy):
    """A snapshot of a model of stable-baselines3 with a discrete action distribution, as a Policy.

    Args:
        policy: an `ActorCriticPolicy` on MultiDiscrete observations; later training does not change the snapshot.
    """

    def __init__(self, policy: Any) -> None:
        self.weights = torch.nn.utils.parameters_to_vector(policy.parameters()).detach().numpy().copy()
        self.tokens, self.num_actions = policy.observation_space.nvec.tolist(), int(policy.action_space.n)
        self.layers, self.activation = policy.net_arch, policy.activation_fn.__name__

    @functools.cached_property
    def _network(self) -> Any:
        """The network with these weights."""
        with torch.random.fork_rng(devices=[]):
            network = policies.ActorCriticPolicy(
                gym.spaces.MultiDiscrete(self.tokens),
                gym.spaces.Discrete(self.num_actions),
                lambda _: 0.0,
                net_arch=self.layers,
                activation_fn=getattr(torch.nn, self.activation),
            )
        torch.nn.utils.vector_to_parameters(torch.from_numpy(self.weights.copy()), network.parameters())
        return network

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Probabilities of the categorical distribution, float64 (n, num_actions)."""
        with torch.no_grad():
            tensor, _ = self._network.obs_to_tensor(observations)
            table = self._network.get_distribution(tensor).distribution.probs.double()
        return (table / table.sum(dim=1, keepdim=True)).numpy()  # type: ignore[no-any-return]


class _Report(callbacks.BaseCallback):
    """Logs the policy whenever it is due."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def _on_rollout_start(self) -> None:
        if self._log.due:
            self._log(SB3Policy(self.model.policy))

    def _on_step(self) -> bool:
        return True


def train_sb3(algorithm: str, envs: Any, budget: Budget, *, seed: int, log: Log, **settings: Any) -> Policy:
    """Train a stable-baselines3 on-policy algorithm until the budget is spent.

    stable-baselines3 seeds the global generators of Python, NumPy and torch; they are put back afterwards.

    Args:
        algorithm: a class name of stable_baselines3, such as "PPO" or "A2C".
        envs: metered vector environments, auto-reset "SameStep".
        budget: how many episodes.
        seed: of everything.
        log: gets the policy at every roll-out at which it is due.
        settings: keyword arguments of the algorithm.

    Returns:
        The policy at the end.
    """
    with global_generators_restored():
        make = getattr(stable_baselines3, algorithm)
        bridge = VectorBridge(envs, seed)
        model: base_class.BaseAlgorithm = make("MlpPolicy", bridge, seed=seed % 2**32, device="cpu", **settings)
        with contextlib.suppress(BudgetExhausted):
            model.learn(total_timesteps=2**62, callback=_Report(log))
    policy = SB3Policy(model.policy)
    log(policy)
    return policy
