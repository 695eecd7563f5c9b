"""Evaluation of any policy on Countdown: over all relevant states or prefixes, or along sampled episodes."""

from typing import NamedTuple

import numpy as np

from theorybench.envs.core.finite.walks import Probs, blocks
from theorybench.envs.core.numerics import divergence
from theorybench.envs.core.policy import inverse_cdf
from theorybench.envs.curriculum.countdown.moves import after, keys
from theorybench.envs.curriculum.countdown.setting import Countdown

#: Maximum number of observations per call of a policy.
HELD = 2**16
#: Probabilities of illegal actions up to this are treated as 0: softmax tables cannot represent zero.
NEGLIGIBLE = 1e-12


class _Nodes(NamedTuple):
    """S states or prefixes of episodes with the same number of moves."""

    game: np.ndarray  # int64 (S,), which of the games that are followed
    numbers: np.ndarray  # int32 (S, n)
    response: np.ndarray  # (S, n - 1)
    mass: np.ndarray  # float64 (S,), probability given the game


def _ask(setting: Countdown, probs: Probs, targets: np.ndarray, nodes: _Nodes) -> tuple[np.ndarray, ...]:
    """Return a policy's rows (S, A), the results of actions (S, A), and each row's KL divergence (S,)."""
    made = setting.results(nodes.numbers)
    rows = np.empty(made.shape)
    for part in blocks(len(rows), HELD):
        rows[part] = probs(setting.show(targets[part], nodes.numbers[part], nodes.response[part]))
    legal = made > 0
    kl = divergence(np.where(legal, rows, 0.0), legal / np.maximum(legal.sum(axis=1, keepdims=True), 1))
    stray = (np.where(legal, 0.0, rows) > NEGLIGIBLE).any(axis=1)
    return rows, made, np.where(stray, np.inf, kl)


def follow(
    setting: Countdown,
    probs: Probs,
    stage: int,
    prompts: np.ndarray,
    *,
    winnable: bool = False,
    merged: bool = False,
    rng: np.random.Generator | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Follow a policy from the initial states of some prompts.

    Args:
        setting: the setting.
        probs: the policy.
        stage: the stage at which games begin.
        prompts: int64 (m,), one prompt for each game.
        winnable: whether to leave out states from which the target cannot be reached.
        merged: whether to merge moves that lead to the same numbers, since the policy sees no more.
        rng: None to visit all that the policy can reach; else samples one episode of each game.

    Returns:
        Success, float64 (m,), and KL divergence to the reference in nats, float64 (m,): of winnable states alone if
        others are left out, and of a sampled episode the sum of the divergences of its rows.
    """
    games, moves = setting.winnable, setting.num_stages
    success, kl = np.zeros(len(prompts)), np.zeros(len(prompts))
    response = np.zeros((len(prompts), moves), setting.observation_dtype)
    nodes = _Nodes(np.arange(len(prompts)), setting.pool.numbers[prompts, moves - stage], response, 1.0 + success)
    for move in range(stage):
        targets = setting.pool.targets[prompts[nodes.game]]
        rows, made, divergences = _ask(setting, probs, targets, nodes)
        np.add.at(kl, nodes.game, nodes.mass * divergences)
        if rng is not None:
            rows = np.eye(setting.num_actions)[inverse_cdf(rows, rng.random(len(rows)))]
        won = (made > 0) & (made == targets[:, None])
        np.add.at(success, nodes.game, nodes.mass * np.where(won, rows, 0.0).sum(axis=1))
        state, action = np.nonzero((made > 0) & ~won & (rows > 0))
        if move == stage - 1 or not len(state):
            break
        numbers = np.zeros_like(nodes.numbers[state])
        numbers[:, :-1] = after(nodes.numbers[state], setting.slots.column[action], made[state, action])
        mass = nodes.mass[state] * rows[state, action]
        if winnable:
            keep = games.find(targets[state], numbers) < len(games)
            state, action, numbers, mass = state[keep], action[keep], numbers[keep], mass[keep]
        response = nodes.response[state]
        response[:, move] = action + 1
        nodes = _Nodes(nodes.game[state], numbers, response, mass)
        if merged:
            _, first, same = np.unique(keys(nodes.game, numbers), return_index=True, return_inverse=True)
            total = np.bincount(same, mass, len(first))
            nodes = _Nodes(nodes.game[first], numbers[first], response[first], total)
    return success, kl
