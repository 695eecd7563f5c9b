"""Fixtures: a corridor that is logged, as `OffPolicyValue`'s story tells it."""

import numpy as np
import pytest

from theorybench.agents.evaluation.transitions import Transitions


@pytest.fixture
def corridor():
    """Log a corridor: corridor(rng, each=64, slip=.4) -> Transitions of the policy that always goes forward."""

    def logged(rng, each=64, slip=0.4, length=5, discount=0.9):
        rows, actions = (np.repeat(np.arange(2 * length), each) // 2, np.repeat(np.arange(2 * length), each) % 2)
        forward = np.where(rng.random(len(rows)) < slip / 2, 1 - actions, actions)
        after = np.where(forward == 1, rows + 1, np.maximum(rows - 1, 0))
        policy = np.tile([0.0, 1.0], (length, 1))
        rewards = (after == length).astype(float)
        return Transitions(
            rows, actions, rewards, np.where(after == length, -1, after), policy, np.array([0]), discount
        )

    return logged
