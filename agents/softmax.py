"""Softmax policies in torch, for many runs at once: a table behind a view, or linear in features.

Both are a map from parameters to logits of rows; an observation selects a row. Initial parameters reproduce a given
policy (the reference or the initial one).
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import LinearPolicy, Policy, TablePolicy, checked_probs
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.views import View

#: Log-probability that stands for a probability of zero.
SMALLEST_LOGIT = -40.0


class SoftmaxClass(ABC):
    """A parametric policy class pi(a | row) proportional to exp(logits(parameters)[row, a]).

    Attributes:
        view: how observations select rows.
    """

    view: View

    @staticmethod
    def of(setting: Setting, name: str) -> "SoftmaxClass":
        """Build a class by name: a view, "linear", or "auto" (linear where the setting has features, else its view)."""
        if name == "auto":
            name = setting.policy_view if type(setting).features is Setting.features else "linear"
        return LinearSoftmax(setting) if name == "linear" else TabularSoftmax(setting, View.of(setting, name))

    @abstractmethod
    def start(self, policy: Policy) -> np.ndarray:
        """Return the parameters (one run) at which this class equals a policy."""

    @abstractmethod
    def rows(self, parameters: Any, index: Any) -> Any:
        """Return the logits of rows: parameters of one run, index (...) -> (..., num_actions)."""

    @abstractmethod
    def snapshot(self, parameters: np.ndarray) -> Policy:
        """Return the policy of one run's parameters, as NumPy."""


class TabularSoftmax(SoftmaxClass):
    """One logit for each row of a view and each action; parameters (rows, num_actions)."""

    def __init__(self, setting: Setting, view: View) -> None:
        self.setting, self.view = setting, view

    def start(self, policy: Policy) -> np.ndarray:
        """Log-probabilities of the policy at one observation of each row."""
        probs = checked_probs(policy, self.view.observations(self.setting.observation_dtype), self.setting.num_actions)
        return np.log(np.maximum(probs, np.exp(SMALLEST_LOGIT)))

    def rows(self, parameters: Any, index: Any) -> Any:
        """Gather."""
        return parameters[index]

    def snapshot(self, parameters: np.ndarray) -> Policy:
        """Softmax of every row."""
        weights = np.exp(parameters - parameters.max(axis=1, keepdims=True))
        return TablePolicy(self.view, weights / weights.sum(axis=1, keepdims=True))


class LinearSoftmax(SoftmaxClass):
    """Logits theta . phi(x, y) with the setting's features; parameters (d,)."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.view = setting, View.of(setting, "prompt")
        self.features = setting.features(self.view.observations(setting.observation_dtype))
        self._features = torch.as_tensor(self.features)

    def start(self, policy: Policy) -> np.ndarray:
        """Least squares of centred log-probabilities on centred features.

        Raises:
            ParameterError: the policy is not in the class.
        """
        probs = checked_probs(policy, self.view.observations(self.setting.observation_dtype), self.setting.num_actions)
        logs = np.log(np.maximum(probs, 1e-300))
        flat = (self.features - self.features.mean(axis=1, keepdims=True)).reshape(-1, self.features.shape[-1])
        target = (logs - logs.mean(axis=1, keepdims=True)).ravel()
        theta = np.linalg.lstsq(flat, target, rcond=None)[0]
        if np.abs(flat @ theta - target).max() > 1e-6:
            raise ParameterError("policy", "linear", "a view: the initial policy is not linear in the features")
        return theta

    def rows(self, parameters: Any, index: Any) -> Any:
        """Scores of the rows' features."""
        return (self._features @ parameters)[index]

    def snapshot(self, parameters: np.ndarray) -> Policy:
        """Return the policy with these theta."""
        return LinearPolicy(self.setting, parameters)
