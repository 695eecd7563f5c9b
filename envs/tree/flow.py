"""Population policy gradient: what REINFORCE on the outcome does with infinitely many episodes an update."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from theorybench.envs.tree.markov_chain import TreeMarkovChain


def softmax(logits: np.ndarray) -> np.ndarray:
    """Turn logits (..., M) into distributions over the last axis."""
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def outcome_gradient(setting: "TreeMarkovChain", rows: np.ndarray, task: int) -> np.ndarray:
    """Give the gradient of E[reward] on a task in the logits of a Markov policy, float64 (nodes, M).

    E[R] = sum over valid o of pi(o) acc(o), and acc(o) = P(o) / Z is a product over the edges of o up to Z. With
    r = pi * P on edges, F the forward sums of products of r from the start and W the backward ones from the target,
    N(s, a) = F(s) r(s, a) W(child) / Z is E[R; the CoT takes the edge], and REINFORCE's
    E[R sum_t grad log pi(a_t | s_t)] at (s, a) is N(s, a) - pi(a | s) sum_b N(s, b).

    Args:
        setting: the tree.
        rows: float64 (nodes, M), the policy.
        task: index of the task.
    """
    shape, weights = setting.shape, rows * setting.chain
    forward, backward = np.zeros(shape.num_nodes), np.zeros(shape.num_nodes + shape.M)
    forward[setting.tree.starts[task]] = 1.0
    backward[shape.num_nodes + setting.tree.targets[task]] = 1.0
    for position in range(shape.L - 2):
        nodes = shape.layer(position)
        forward[shape.layer(position + 1)] = forward[nodes] @ weights[nodes]
    through = np.empty_like(rows)
    for position in range(shape.L - 2, -1, -1):
        nodes, following = shape.layer(position), backward[shape.layer(position + 1)]
        through[nodes] = forward[nodes, None] * weights[nodes] * following
        backward[nodes] = weights[nodes] @ following
    through /= setting.valid_mass[task]
    return through - rows * through.sum(axis=1, keepdims=True)


def population_flow(setting: "TreeMarkovChain", learning_rate: float, updates: int) -> np.ndarray:
    """Follow exact gradient ascent on E[reward] over the training tasks, from the base chain's logits.

    theta_0 = ln P; theta_{i+1} = theta_i + learning_rate * grad E[R], E over the tasks that training draws.

    Args:
        setting: the tree; its `train_tasks` are trained on.
        learning_rate: step size of plain gradient ascent.
        updates: number of steps.

    Returns:
        The Markov policy's rows, float64 (nodes, M).
    """
    tasks = range(setting.num_tasks) if setting.train_tasks is None else setting.train_tasks
    logits = np.log(setting.chain)
    for _ in range(updates):
        rows = softmax(logits)
        logits += learning_rate * np.mean([outcome_gradient(setting, rows, task) for task in tasks], axis=0)
    return softmax(logits)
