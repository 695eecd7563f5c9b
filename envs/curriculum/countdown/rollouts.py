"""Evaluation of any policy on Countdown: over all relevant states or prefixes, or from samples."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from theorybench.envs.core.policy import inverse_cdf
from theorybench.envs.curriculum.countdown.moves import after, keys
from theorybench.envs.curriculum.countdown.setting import Countdown

#: Maximum number of states or prefixes to enumerate.
MAX_NODES = 10**6
#: Maximum number of observations per call of a policy.
HELD = 2**16
#: Probabilities of illegal actions up to this are treated as 0: softmax tables cannot represent zero.
NONE = 1e-12

Probs = Callable[[np.ndarray], np.ndarray]


class Followed(NamedTuple):
    """The results of a policy; rows are prompts, or samples."""

    success: np.ndarray  # float64 (any,)
    #: float64 (any,), KL divergence to the reference in nats; of winnable episodes only if others are left out
    kl: np.ndarray
    sampled: bool  # whether rows are samples


class _Nodes(NamedTuple):
    """S states or prefixes of episodes with the same number of moves."""

    prompt: np.ndarray  # int64 (S,)
    numbers: np.ndarray  # int32 (S, n)
    response: np.ndarray  # (S, n - 1)
    mass: np.ndarray  # float64 (S,), probability given the prompt


def begin(setting: Countdown, stage: int, prompts: np.ndarray) -> _Nodes:
    """Return the initial states of some prompts at a stage."""
    numbers = setting.pool.numbers[prompts, setting.num_stages - stage]
    response = np.zeros((len(prompts), setting.num_stages), setting.observation_dtype)
    return _Nodes(prompts, numbers, response, np.ones(len(prompts)))


def _left(setting: Countdown, numbers: np.ndarray, actions: np.ndarray, made: np.ndarray) -> np.ndarray:
    left = np.zeros_like(numbers)
    left[:, :-1] = after(numbers, setting.slots.column[actions], made)
    return left


def _look(setting: Countdown, probs: Probs, nodes: _Nodes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a policy's rows (S, A), the results of actions (S, A), and each row's KL divergence (S,)."""
    targets, made = setting.pool.targets[nodes.prompt], setting.results(nodes.numbers)
    rows = np.empty(made.shape)
    for start in range(0, len(rows), HELD):
        part = slice(start, start + HELD)
        rows[part] = probs(setting.show(targets[part], nodes.numbers[part], nodes.response[part]))
    legal = made > 0
    some = legal & (rows > 0)
    terms = np.where(some, rows * np.log(np.where(some, rows, 1.0) * legal.sum(axis=1, keepdims=True)), 0.0)
    stray = (np.where(legal, 0.0, rows) > NONE).any(axis=1)
    return rows, made, np.where(stray, np.inf, terms.sum(axis=1))


def follow(setting: Countdown, probs: Probs, stage: int, *, winnable: bool, merged: bool) -> Followed:
    """Evaluate a policy over all states or prefixes that it can reach.

    Args:
        setting: the setting.
        probs: the policy.
        stage: the stage at which games begin.
        winnable: whether to leave out states from which the target cannot be reached.
        merged: whether to merge moves that lead to the same numbers, since the policy sees no more.
    """
    games, nodes = setting.winnable, begin(setting, stage, np.arange(setting.prompts))
    success, kl = np.zeros(setting.prompts), np.zeros(setting.prompts)
    for move in range(stage):
        rows, made, divergence = _look(setting, probs, nodes)
        targets = setting.pool.targets[nodes.prompt]
        won = (made > 0) & (made == targets[:, None])
        np.add.at(success, nodes.prompt, nodes.mass * np.where(won, rows, 0.0).sum(axis=1))
        np.add.at(kl, nodes.prompt, nodes.mass * divergence)
        state, action = np.nonzero((made > 0) & ~won & (rows > 0))
        if move == stage - 1 or not len(state):
            break
        numbers = _left(setting, nodes.numbers[state], action, made[state, action])
        mass = nodes.mass[state] * rows[state, action]
        keep = games.find(targets[state], numbers) < len(games) if winnable else np.ones(len(state), bool)
        state, action, numbers, mass = state[keep], action[keep], numbers[keep], mass[keep]
        response = nodes.response[state]
        response[:, move] = action + 1
        nodes = _Nodes(nodes.prompt[state], numbers, response, mass)
        if merged:
            _, first, same = np.unique(keys(nodes.prompt, numbers), return_index=True, return_inverse=True)
            total = np.bincount(same, mass, len(first))
            nodes = _Nodes(nodes.prompt[first], numbers[first], response[first], total)
    return Followed(success, kl, False)


def sample(setting: Countdown, probs: Probs, stage: int, count: int, rng: np.random.Generator) -> Followed:
    """Sample episodes of random prompts; the KL divergence of one is the sum of its rows' divergences.

    Args:
        setting: the setting.
        probs: the policy.
        stage: the stage at which games begin.
        count: number of games.
        rng: draws prompts and actions.
    """
    nodes = begin(setting, stage, rng.integers(setting.prompts, size=count))
    slot, success, kl = np.arange(count), np.zeros(count), np.zeros(count)
    for move in range(stage):
        rows, made, divergence = _look(setting, probs, nodes)
        kl[slot] += divergence
        actions = inverse_cdf(rows, rng.random(len(rows)))
        made = made[np.arange(len(rows)), actions]
        won = made == setting.pool.targets[nodes.prompt]
        success[slot[won]] = 1.0
        alive = np.flatnonzero((made > 0) & ~won)
        numbers = _left(setting, nodes.numbers[alive], actions[alive], made[alive])
        response = nodes.response[alive]
        response[:, move] = actions[alive] + 1
        slot, nodes = slot[alive], _Nodes(nodes.prompt[alive], numbers, response, nodes.mass[alive])
        if not len(slot):
            break
    return Followed(success, kl, True)
