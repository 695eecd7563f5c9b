"""Metrics of Markov policies, which see only layer and state, on a tree of any size, by dynamic programming.

Every metric except pass@K is a sum over edges. pass@K needs individual CoT probabilities p_o only where K p_o > .1,
which holds for at most 10 K CoTs; the others enter through power sums sum p_o^j for each correctness level (see
`theorybench.envs.tree.markov_chain.questions`), which are path sums of the j-th powers of the rows.
"""

import numpy as np

from theorybench.envs.core.numerics import SMALLEST, divergence
from theorybench.envs.tree.markov_chain.questions import SMALL, TERMS
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.envs.tree.markov_chain.trees import Shape, completion_mass


def visits(rows: np.ndarray, shape: Shape, start: int) -> np.ndarray:
    """Return the probability of visiting each node from a start, float64 (nodes + M,)."""
    mass = np.zeros(shape.num_nodes + shape.M)
    mass[start] = 1.0
    for position in range(shape.L - 1):
        nodes = shape.layer(position)
        mass[shape.layer(position + 1)] = mass[nodes] @ rows[nodes]
    return mass


def measure_chain(setting: TreeMarkovChain, rows: np.ndarray, ks: list[int]) -> list[dict[str, float]]:
    """Compute metrics of a Markov policy on each task: "valid", "easy", "entropy", "kl" and pass@K for each K in ks.

    Args:
        setting: the tree.
        rows: float64 (nodes, M), the policy's transition probabilities.
        ks: the K of pass@K.
    """
    shape, high = setting.shape, setting.tree.high
    logs, row_kl = np.log(np.maximum(rows, SMALLEST)), divergence(rows, setting.chain)
    results = []
    for task, (start, target) in enumerate(zip(setting.tree.starts, setting.tree.targets, strict=True)):
        mass, reach = visits(rows, shape, start), completion_mass(rows, shape, target)
        valid = float(reach[start])
        surprise = float((mass[: shape.num_nodes, None] * rows * logs * reach[shape.children]).sum())
        values = {
            "valid": valid,
            "easy": float(completion_mass(rows * high, shape, target)[start]),
            "entropy": max(0.0, np.log(valid) - surprise / valid) if valid > 0 else 0.0,
            "kl": float(mass[: shape.num_nodes] @ row_kl),
        }
        moments, masses, codes = _split(setting, rows, start, target, SMALL / max(ks))
        classes, question = setting.classes[task], setting.questions[task]
        exist = np.flatnonzero(classes.level_of >= 0)
        per_level = [np.bincount(classes.level_of[exist], row[exist], len(classes.levels)) for row in moments]
        passes = question.pass_from_moments(ks, np.stack(per_level), masses, classes.level_of[codes])
        results.append(values | {f"pass@{k}": value for k, value in zip(ks, passes, strict=True)})
    return results


def _split(
    setting: TreeMarkovChain, rows: np.ndarray, start: int, target: int, floor: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List the valid CoTs whose mass exceeds a floor and return the power sums of the others, by code.

    Prefixes that can still become such a CoT are listed, at most 1 / floor per layer. At the step where a prefix falls
    below the floor, the powers of its mass are added to sums over (state, code), which are then propagated together.

    Returns:
        Power sums float64 (TERMS, codes), masses float64 (m,) and codes int64 (m,) of the listed CoTs.
    """
    shape, code = setting.shape, setting.code
    best = shape.backward(np.eye(shape.M)[target], lambda nodes, rest: (rows[nodes] * rest).max(axis=1))
    powers = np.arange(1, TERMS + 1)[:, None, None]
    sums = np.zeros((TERMS, shape.M0, code.size))
    mass, node, codes = np.ones(1), np.array([start]), np.zeros(1, np.int64)
    for position in range(shape.L - 1):
        layer = shape.layer(position)
        following = np.zeros((TERMS, shape.M, code.size))
        for step in np.unique(code.steps[layer]):
            edges = np.where(code.steps[layer] == step, rows[layer], 0.0) ** powers
            following[:, :, step:] += np.swapaxes(edges, 1, 2) @ sums[:, :, : code.size - step]
        after, after_codes = mass[:, None] * rows[node], codes[:, None] + code.steps[node]
        children = np.arange(shape.M) + shape.layer(position + 1).start
        stay = after * best[children] > floor
        left, action = np.nonzero(~stay)
        place, power = action * code.size + after_codes[left, action], np.ones(len(left))
        for table in following:
            power = power * after[left, action]
            table += np.bincount(place, power, table.size).reshape(table.shape)
        prefix, action = np.nonzero(stay)
        mass, codes, node, sums = after[prefix, action], after_codes[prefix, action], children[action], following
    return sums[:, target], mass, codes
