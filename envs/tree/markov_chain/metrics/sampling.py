"""Seeded estimates, with standard errors, for policies on whole prefixes of trees too large to enumerate."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from theorybench.envs.core.numerics import divergence
from theorybench.envs.core.policy import inverse_cdf
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

#: CoTs sampled for each task.
SAMPLES = 2**14


def sampled_steps(
    setting: TreeMarkovChain, task: int, probs: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Sample `SAMPLES` CoTs of a task, step by step.

    Yields:
        The policy's rows float64 (n, M), their nodes int64 (n,), and the sampled actions int64 (n,).
    """
    seen = np.zeros((SAMPLES, setting.L), setting.observation_dtype)
    seen[:, 0] = setting.tree.starts[task] + 1
    for column in range(1, setting.L):
        rows = probs(seen)
        action = inverse_cdf(rows, rng.random(SAMPLES))
        yield rows, setting.nodes(seen), action
        seen[:, column] = action + 1


def estimate(
    setting: TreeMarkovChain, probs: Callable[[np.ndarray], np.ndarray], ks: list[int]
) -> list[dict[str, float]]:
    """Estimate "valid", "easy", "hard", "entropy", "kl" and pass@K on each task from 16,384 CoTs, with `<key>_se`.

    pass@K = 1 - E prod (1 - acc(o)) over the distinct CoTs o of a group of K independent ones, since given the group
    the question contains each independently; groups of K consecutive samples give independent unbiased terms. The
    entropy is the plug-in estimate log V - A / V with V = P(valid), A = E[1(valid) ln p(o)]; its standard error comes
    from the delta method.
    """
    rng = np.random.default_rng(np.random.SeedSequence([0x5EED, int(setting.fingerprint, 16)]))
    results = []
    for task, (target, classes) in enumerate(zip(setting.tree.targets, setting.classes, strict=True)):
        codes, kl, surprise, steps = np.zeros(SAMPLES, np.int64), np.zeros(SAMPLES), np.zeros(SAMPLES), []
        for rows, node, action in sampled_steps(setting, task, probs, rng):
            kl += divergence(rows, setting.chain[node])
            surprise += np.log(rows[np.arange(SAMPLES), action])
            codes += setting.code.steps[node, action]
            steps.append(action)
        valid, paths = action == target, np.stack(steps, axis=1)
        easy = valid & (classes.easy[codes] > 0)
        values = _means({"valid": valid, "easy": easy, "hard": valid & ~easy, "kl": kl})
        share = values["valid"]
        values |= {"entropy": 0.0, "entropy_se": 0.0}
        if share > 0:
            mean = float(np.mean(valid * surprise))
            influence = valid * surprise / share - valid * (mean / share**2 + 1 / share)
            values["entropy"] = max(0.0, math.log(share) - mean / share)
            values["entropy_se"] = float(influence.std() / math.sqrt(SAMPLES))
        correctness = np.where(valid, classes.levels[classes.level_of[codes]], 0.0)
        results.append(values | _means({f"pass@{k}": _solved(paths, correctness, k) for k in ks}))
    return results


def _solved(paths: np.ndarray, correctness: np.ndarray, k: int) -> np.ndarray:
    """Return the probability that each group of k consecutive CoTs solves its question, float64 (groups,)."""
    groups = len(paths) // k
    group = np.repeat(np.arange(groups), k)
    keys = np.column_stack([group, paths[: groups * k]])
    order = np.lexsort(keys.T[::-1])
    ranked = keys[order]
    fresh = np.concatenate([[True], (ranked[1:] != ranked[:-1]).any(axis=1)])
    miss = np.empty(groups * k)
    miss[order] = np.where(fresh, 1.0 - correctness[: groups * k][order], 1.0)
    return 1.0 - miss.reshape(groups, k).prod(axis=1)


def _means(samples: dict[str, np.ndarray]) -> dict[str, float]:
    values = {name: float(np.mean(sample)) for name, sample in samples.items()}
    return values | {f"{name}_se": float(np.std(s) / math.sqrt(len(s))) for name, s in samples.items()}
