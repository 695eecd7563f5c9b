"""How much of a policy's probability travels along each edge of a tree, told apart by how the CoT ends.

A CoT of a task is easy, hard (valid with a low edge) or invalid. With pi the policy and e an edge,

    edge_mass[kind, e] = P(the CoT takes e and is of that kind),

so each kind is conserved at every node between start and target, and the three add up to P(the CoT takes e).
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.finite.walks import MAX_PREFIXES
from theorybench.envs.tree.markov_chain.metrics.dynamic_programming import visits
from theorybench.envs.tree.markov_chain.metrics.sampling import SAMPLES, sampled_steps
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.envs.tree.markov_chain.trees import completion_mass

#: How a CoT can end, in the order of the first axis of an edge mass.
KINDS = ("easy", "hard", "invalid")


class EdgeMass(NamedTuple):
    """The edge mass of a policy on all tasks.

    Attributes:
        edges: float64 (tasks, 3, nodes, M), by kind of CoT.
        exact: whether it is exact, or counted on sampled CoTs.
    """

    edges: np.ndarray
    exact: bool


def policy_edge_mass(oracle: MarkovChainOracle, policy: Any) -> EdgeMass:
    """Compute the edge mass of any policy, exactly where the oracle's metrics are exact.

    Args:
        oracle: the exact answers of the tree.
        policy: any object with `probs`.

    Raises:
        PolicyError: the policy's probabilities are no distributions, or depend on more than it declares.
    """
    setting, dependence = oracle.setting, getattr(policy, "depends_on", "prefix")
    if dependence in ("state", "position"):
        rows = oracle.node_rows(policy, dependence)
        return EdgeMass(np.stack([markov_edge_mass(setting, rows, task) for task in range(setting.num_tasks)]), True)
    if oracle.num_prefixes <= MAX_PREFIXES:
        return EdgeMass(_enumerated(oracle, policy), True)
    return EdgeMass(_sampled(oracle, policy), False)


def markov_edge_mass(setting: TreeMarkovChain, rows: np.ndarray, task: int) -> np.ndarray:
    """Compute the edge mass of one task for a policy that sees layer and state alone.

    F(s) r(s, a) W(child) with F the forward sums from the start and W the backward sums from the target counts valid
    CoTs; with r restricted to high edges it counts easy ones; F(s) r(s, a) counts all.

    Args:
        setting: the tree.
        rows: float64 (nodes, M), the policy; rows that sum to less than 1 stop there.
        task: index of the task.

    Returns:
        float64 (3, nodes, M).
    """
    shape, tree = setting.shape, setting.tree

    def through(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        taken = visits(weights, shape, int(tree.starts[task]))[: shape.num_nodes, None] * weights
        return taken, taken * completion_mass(weights, shape, int(tree.targets[task]))[shape.children]

    taken, valid = through(rows)
    easy = through(rows * tree.high)[1]
    return _by_kind(easy, valid, taken)


def _by_kind(easy: np.ndarray, valid: np.ndarray, taken: np.ndarray) -> np.ndarray:
    """Stack nested counts as kinds; differences below rounding are 0."""
    hard, invalid = valid - easy, taken - valid
    return np.stack([easy, np.where(hard > 1e-15, hard, 0.0), np.where(invalid > 1e-15, invalid, 0.0)])


def _enumerated(oracle: MarkovChainOracle, policy: Any) -> np.ndarray:
    """Compute the edge mass of a policy on prefixes, (tasks, 3, nodes, M): the same sums over the tree of prefixes."""
    setting = oracle.setting
    tasks, M, starts = setting.num_tasks, setting.M, setting.tree.starts
    rows, easy_rows = [], []
    for position in range(setting.L - 1):
        row = oracle.probs(policy, oracle.enumeration.observations(position)).reshape(tasks, -1, M)
        high = setting.tree.high[setting.shape.layer(position)]
        last = starts[:, None] if position == 0 else np.arange(M**position)[None] % M
        rows.append(row)
        easy_rows.append(row * high[last])
    taken, valid = _through_prefixes(setting, rows)
    easy = _through_prefixes(setting, easy_rows)[1]
    return np.stack([_by_kind(easy[task], valid[task], taken[task]) for task in range(tasks)])


def _through_prefixes(setting: TreeMarkovChain, weights: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sum over prefixes that end in the same node: what takes each edge, and what of it ends at the target.

    Args:
        setting: the tree.
        weights: for each position, float64 (tasks, prefixes, M).

    Returns:
        Two arrays (tasks, nodes, M).
    """
    tasks, M = setting.num_tasks, setting.M
    steps, reach = [], np.ones((tasks, 1))
    for weight in weights:
        steps.append(reach[:, :, None] * weight)
        reach = steps[-1].reshape(tasks, -1)
    edges = np.zeros((2, tasks, setting.shape.num_nodes, M))
    after = np.eye(M)[setting.tree.targets][:, None]
    for position in reversed(range(len(weights))):
        pair = np.stack([steps[position], steps[position] * after])
        if position == 0:
            edges[:, np.arange(tasks), setting.tree.starts] = pair[:, :, 0]
        else:
            edges[:, :, setting.shape.layer(position)] = pair.reshape(2, tasks, -1, M, M).sum(axis=2)
            after = (weights[position] * after).sum(axis=2).reshape(tasks, -1, M)
    return edges[0], edges[1]


def _sampled(oracle: MarkovChainOracle, policy: Any) -> np.ndarray:
    """Count the edges of 16,384 CoTs of each task, with a fixed seed: (tasks, 3, nodes, M)."""
    setting, tree = oracle.setting, oracle.setting.tree
    rng = np.random.default_rng(np.random.SeedSequence([0x7AFF, int(setting.fingerprint, 16)]))
    edges = np.zeros((setting.num_tasks, len(KINDS), setting.shape.num_nodes * setting.M))
    for task in range(setting.num_tasks):
        easy, taken = np.ones(SAMPLES, bool), []
        for _, node, action in sampled_steps(setting, task, functools.partial(oracle.probs, policy), rng):
            easy &= tree.high[node, action]
            taken.append(node * setting.M + action)
        kind = np.where(action != tree.targets[task], 2, np.where(easy, 0, 1))
        np.add.at(edges[task], (kind[None], np.stack(taken)), 1 / SAMPLES)
    return edges.reshape(setting.num_tasks, len(KINDS), -1, setting.M)
