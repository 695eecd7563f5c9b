"""Metrics of any policy on a tree whose prefixes can be enumerated, with one call of `probs` per layer."""

import functools
from collections.abc import Callable

import numpy as np

from theorybench.envs.core.finite.walks import blocks
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain
from theorybench.envs.tree.markov_chain.trees import words

#: Prefixes of which a policy is asked at a time.
HELD = 2**14


class Enumeration:
    """All prefixes of all tasks of a tree, task by task, in lexicographic order."""

    def __init__(self, setting: TreeMarkovChain) -> None:
        self.setting = setting

    def observations(self, position: int) -> np.ndarray:
        """Return the prefixes of 1 + position states, (num_tasks * M^position, L)."""
        setting = self.setting
        prefixes = np.zeros((setting.num_tasks, setting.M**position, setting.L), setting.observation_dtype)
        prefixes[:, :, 0] = setting.tree.starts[:, None] + 1
        prefixes[:, :, 1 : position + 1] = words(setting.M, position) + 1
        return prefixes.reshape(-1, setting.L)

    @functools.cached_property
    def _observations(self) -> list[np.ndarray]:
        return [self.observations(position) for position in range(self.setting.L - 1)]

    @functools.cached_property
    def codes(self) -> np.ndarray:
        """Codes of the valid CoTs, int64 (num_tasks, M^(L-2))."""
        setting, steps = self.setting, self.setting.code.steps
        codes = np.zeros((setting.num_tasks, 1, 1), np.int64)
        for position in range(setting.L - 2):
            codes = (codes[..., None] + self._by_state(steps, position)).reshape(setting.num_tasks, -1, setting.M)
        last = self._by_state(steps, setting.L - 2)
        return np.stack(
            [
                (codes[task] + last[min(task, len(last) - 1), ..., target]).ravel()
                for task, target in enumerate(setting.tree.targets)
            ]
        )

    @functools.cached_property
    def _levels(self) -> np.ndarray:
        return np.stack([c.level_of[codes] for c, codes in zip(self.setting.classes, self.codes, strict=True)])

    @functools.cached_property
    def _easy(self) -> list[np.ndarray]:
        pairs = zip(self.setting.classes, self.codes, strict=True)
        return [np.flatnonzero((c.easy > 0)[codes]) for c, codes in pairs]

    @functools.cached_property
    def _order(self) -> np.ndarray:
        """The valid CoTs of each task by level, int64 (num_tasks, M^(L-2)): levels are then summed in one go."""
        return np.argsort(self._levels, axis=1, kind="stable")

    def _by_state(self, table: np.ndarray, position: int) -> np.ndarray:
        """Shape a table (nodes, M) to broadcast against (tasks, prefixes before the last state, last state, M)."""
        rows = table[self.setting.shape.layer(position)]
        return rows[self.setting.tree.starts][:, None, None] if position == 0 else rows[None, None]

    def measure(self, probs: Callable[[np.ndarray], np.ndarray], ks: list[int]) -> list[dict[str, float]]:
        """Compute metrics of a policy on each task: "valid", "easy", "entropy", "kl" and pass@K for each K in ks.

        Args:
            probs: maps observations (n, L) to checked probabilities (n, M).
            ks: the K of pass@K.
        """
        setting, M = self.setting, self.setting.M
        starts, targets = setting.tree.starts, setting.tree.targets
        logs, mass, kl = np.log(setting.chain), np.ones(setting.num_tasks), np.zeros(setting.num_tasks)
        for position, observations in enumerate(self._observations):
            usual, last = logs[setting.shape.layer(position)], position == setting.L - 2
            usual = usual if position else usual[starts]  # in the order of the rows, again and again
            goal, surprise = np.repeat(targets, len(mass) // len(targets)), np.empty(len(mass))
            after = np.empty((len(mass), 1 if last else M))
            for block in blocks(len(mass), HELD // M * M if position else len(mass)):  # what caches hold
                rows, own = probs(observations[block]), mass[block]
                ratio = np.log(np.maximum(rows, 1e-300)).reshape(-1, *usual.shape)
                ratio -= usual
                surprise[block] = own * np.einsum("na,na->n", rows, ratio.reshape(rows.shape))
                taken = np.take_along_axis(rows, goal[block, None], axis=1) if last else rows
                np.multiply(own[:, None], taken, out=after[block])
            kl += surprise.reshape(len(kl), -1).sum(axis=1)
            mass = after.ravel()
        results = []
        for task, (paths, order) in enumerate(zip(mass.reshape(len(kl), -1), self._order, strict=True)):
            valid = float(paths.sum())
            logged = float(paths @ np.log(np.maximum(paths, 1e-300)))
            values = {
                "valid": valid,
                "easy": float(paths[self._easy[task]].sum()),
                "entropy": max(0.0, np.log(valid) - logged / valid) if valid > 0 else 0.0,
                "kl": float(kl[task]),
            }
            passes = setting.questions[task].pass_at(ks, paths[order], self._levels[task][order])
            results.append(values | {f"pass@{k}": value for k, value in zip(ks, passes, strict=True)})
        return results
