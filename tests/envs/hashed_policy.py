"""Policies without tables, for tests of all families."""

import numpy as np

from theorybench.envs.core.policy import Policy
from theorybench.envs.core.views import View


class Hashed(Policy):
    """Random probabilities for each thing it sees, zeros included, without a table.

    It declares that it depends on `depends_on` and sees that, unless `sees` names something else.
    """

    def __init__(self, setting, depends_on="prefix", sharpness=2.0, sees=None):
        self.depends_on, self.sharpness, self.actions = depends_on, sharpness, np.arange(setting.num_actions)
        seen = sees or depends_on
        self.view = None if seen == "prefix" else View.of(setting, {"state": "markov"}.get(seen, seen))

    def probs(self, observations):
        if self.view is None:
            key = observations.astype(np.int64) @ (1_000_003 ** np.arange(observations.shape[1]) % 2_147_483_647)
        else:
            key = self.view.index(observations)
        noise = np.sin(key[:, None] * 0.7345 + 1.234 * self.actions)
        weights = np.exp(self.sharpness * noise) * (noise > -0.9)
        weights[weights.sum(axis=1) == 0] = 1
        return weights / weights.sum(axis=1, keepdims=True)
