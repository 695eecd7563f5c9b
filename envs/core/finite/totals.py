"""What a policy's weights on the points of a graph amount to: totals and divergence, by context."""

import itertools

import numpy as np

from theorybench.envs.core.finite.graph import DecisionGraph


def met(reach: np.ndarray, surprise: np.ndarray, graph: DecisionGraph) -> np.ndarray:
    """Return the divergence that contexts meet, float64 (C,): weights (P, k) of points, and their own (P,)."""
    endless, found = np.isinf(surprise), np.zeros(len(graph.roots))
    finite = np.where(endless, 0.0, surprise) if endless.any() else surprise
    for context, part in itertools.chain(*graph.parts):
        found[context] += finite[part] @ reach[part]
        if finite is not surprise:  # behind what never happens it is none
            found[context] += np.where((reach[part] > 0)[endless[part]].any(axis=0), np.inf, 0.0)
    return found


def earned(taken: np.ndarray, graph: DecisionGraph) -> np.ndarray:
    """Return what contexts earn, float64 (C, totals), where actions have these weights, float64 (P, A, k)."""
    problem, beginnings = graph.problem, taken.shape[2]
    certain = {total: table for total, table in problem.certain.items() if total not in problem.varying}
    found = np.zeros((len(graph.roots), len(problem.totals)))
    actions = np.zeros((len(graph.roots), problem.num_actions))
    for level, gain, own in zip(graph.depths, graph.gains, graph.parts, strict=True):
        for context, part in own:
            here, weight = gain[:, part.start - level.start : part.stop - level.start], taken[part]
            found[context, problem.varying] += (here.reshape(len(gain), -1) @ weight.reshape(-1, beginnings)).T
            if not certain:
                continue
            lawful = weight if problem.all_legal else np.where(graph.legal[part, :, None], weight, 0.0)
            whole = np.ones(len(lawful)) @ lawful.reshape(len(lawful), -1)
            actions[context] += whole.reshape(-1, beginnings).T
            for total, table in certain.items():
                if len(table) > 1:
                    found[context, total] += np.einsum("pak,pa->k", lawful, table[graph.node[part]])
    for total, table in certain.items():
        if len(table) == 1:
            found[:, total] = actions @ table[0]
    return found
