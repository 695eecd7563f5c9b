"""Optimal policies of the tree: equal mass for CoTs of equal correctness, without listing CoTs."""

import numpy as np

from theorybench.envs.core.policy import Policy
from theorybench.envs.tree.markov_chain.questions import EqualMass
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.envs.tree.markov_chain.trees import CoTClasses


class EqualMassPolicy(Policy):
    """Return each valid CoT of a task a mass that depends only on its correctness.

    The completions of a prefix depend on its node and on the code of its edges (see `EdgeCode`): with V(node, code)
    the total mass of all completions, the next state a has probability V(child, code + step) / V(node, code). Outside
    the support of the CoTs, and for starts that belong to no task, the policy is the base chain.

    Args:
        setting: the tree.
        masses: for each task, float64 (G,): the mass of each correctness level.
    """

    def __init__(self, setting: TreeMarkovChain, masses: list[np.ndarray]) -> None:
        self.fingerprint = setting.fingerprint
        self.masses = np.zeros((len(masses), max(map(len, masses))))
        for row, task in zip(self.masses, masses, strict=True):
            row[: len(task)] = task
        self.M0, self.M, self.steps, self.chain = setting.M0, setting.M, setting.code.steps, setting.chain
        self.task_of_start = np.full(setting.M0, -1)
        self.task_of_start[setting.tree.starts] = np.arange(setting.num_tasks)
        parts = zip(setting.tree.targets, setting.classes, masses, strict=True)
        self.values = np.stack([completion_values(setting, t, c, x / c.counts) for t, c, x in parts])

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Return float64 (n, M) for observations (n, L)."""
        states = observations.astype(np.int64) - 1
        position = np.minimum(np.count_nonzero(observations[:, 1:], axis=1), observations.shape[1] - 2)
        node, code = states[:, 0], np.zeros(len(states), np.int64)
        for column in range(1, int(position.max(initial=0)) + 1):
            taken, child = column <= position, states[:, column]
            code = code + np.where(taken, self.steps[node, child], 0)
            node = np.where(taken, self.M0 + (column - 1) * self.M + child, node)
        task = self.task_of_start[states[:, 0]]
        children = (self.M0 + position * self.M)[:, None] + np.arange(self.M)
        weights = self.values[task[:, None], children, code[:, None] + self.steps[node]]
        total = weights.sum(axis=1, keepdims=True)
        known = (total > 0) & (task >= 0)[:, None]
        return np.where(known, weights / np.where(known, total, 1.0), self.chain[node])


def measure_classes(classes: CoTClasses, masses: np.ndarray, ks: list[int]) -> dict[str, float]:
    """Compute metrics of level masses (G,) on one task: "valid", "easy", "entropy", "kl", pass@K for each K in ks.

    All sums are over correctness levels and codes, so they are exact for a tree of any size.
    """
    each = masses / classes.counts
    codes = np.flatnonzero((classes.level_of >= 0) & (each[classes.level_of] > 0))
    mass, number = each[classes.level_of[codes]], classes.per_code[codes]
    solver = EqualMass(classes.levels, classes.counts)
    return {
        "valid": float(number @ mass),
        "easy": float(classes.easy[codes] @ mass),
        "entropy": max(0.0, -float(number @ (mass * np.log(mass)))),
        "kl": float(number @ (mass * np.log(mass / classes.probability[codes]))),
        **{f"pass@{k}": solver.value(k, masses) for k in ks},
    }


def completion_values(setting: TreeMarkovChain, target: int, classes: CoTClasses, each: np.ndarray) -> np.ndarray:
    """Return V, float64 (nodes + M, codes and a margin of zeros), by backward induction.

    Args:
        setting: the tree.
        target: where valid CoTs end.
        classes: the CoT classes of the task.
        each: float64 (G,), the mass of one CoT of each level.
    """
    shape, code = setting.shape, setting.code
    margin = int(code.steps.max())
    last = np.zeros((shape.M, code.size + margin))
    last[target, : code.size] = np.where(classes.level_of >= 0, each[classes.level_of], 0.0)
    codes, children = np.arange(code.size), np.arange(shape.M)[:, None]

    def completed(nodes: slice, rest: np.ndarray) -> np.ndarray:
        mass = rest[children, codes + code.steps[nodes][:, :, None]].sum(axis=1)
        return np.pad(mass, [(0, 0), (0, margin)])

    return shape.backward(last, completed)
