"""Two dialogues as tables: how long to think, and two gauges that answer at once."""

import dataclasses
import functools
import itertools

import numpy as np

from theorybench.envs.core.finite.problem import Problem, softened
from theorybench.envs.core.finite.setting import FiniteSetting
from theorybench.envs.core.validation import instance, integer, real


@dataclasses.dataclass(frozen=True, kw_only=True)
class Thinking(FiniteSetting):
    """Gradient descent on a hidden least-squares task: choose each step size, see the residual, stop in time."""

    rows = "histories"

    thoughts: int = integer(5, 1, 6, "actions")
    instance: int = instance(0, "the tasks")

    @functools.cached_property
    def problem(self):
        sizes, d, examples, tasks = np.array([0.3, 0.5, 0.65, 0.8, 2.0]), 10, (12, 16, 24, 40), 24
        rng, spectra = np.random.default_rng([250221212, self.instance]), []
        for n in np.repeat(examples, tasks):
            inputs, task = rng.standard_normal((n, d)), rng.standard_normal(d)
            value, vector = np.linalg.eigh(inputs.T @ inputs / n)
            spectra.append((value.clip(0), (vector.T @ task) ** 2))
        value, size = (np.array(part) for part in zip(*spectra, strict=True))  # (worlds, d)
        counts = [c for c in itertools.product(range(self.thoughts + 1), repeat=5) if sum(c) <= self.thoughts]
        counts = sorted(counts, key=sum)
        number = {c: i for i, c in enumerate(counts)}
        nodes = sum(sum(c) < self.thoughts for c in counts)
        shrink = np.array(
            [np.prod((1 - sizes[:, None, None] * value) ** (8 * np.array(c)[:, None, None]), axis=0) for c in counts]
        )
        error = (shrink * size).sum(axis=2) / size.sum(axis=1)
        left = (shrink * size * value).sum(axis=2) / (size * value).sum(axis=1)
        after = np.array(
            [[number[tuple(np.add(c, np.eye(5, dtype=int)[a]))] for a in range(5)] for c in counts[:nodes]]
        )
        # STOP leads to the ending of its own node; the endings of all count vectors follow the deciding nodes.
        child = np.column_stack([np.where(after < nodes, after, nodes + after), nodes + np.arange(nodes)])
        level = (left[:, :, None] >= np.array([0.001, 0.01, 0.1, 1.0])).sum(axis=2)
        pay = np.clip(-np.log10(error) / 3, -1, 1) - 0.02 * np.array(counts).sum(axis=1)[:, None]
        context = np.arange(4)
        # Contexts share their nodes but not their habits: one copy of the nodes for each.
        usual = [np.abs(sizes - n / (n + d + 1)).argmin() for n in examples]
        copies = np.concatenate([np.where(child < nodes, child + c * nodes, child + 3 * nodes) for c in context])
        return Problem(
            horizon=self.thoughts,
            num_actions=6,
            child=copies,
            cell=np.tile(np.arange(6)[:, None], (1, 5)),
            law=np.eye(5)[level],
            situation=np.tile(np.column_stack([after, np.arange(nodes)]), (4, 1)),
            pay=pay,
            start=context * nodes,
            begin=np.arange(96).reshape(4, 24),
            shown=context[:, None],
            reference=softened(np.repeat(usual, nodes), np.ones((1, 6), bool), 0.01),
            outcomes={"diverged": error > 1, "solved": error <= 1e-3},
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TwoGauges(FiniteSetting):
    """Look, and two gauges answer at once; then name the world."""

    rows, own_readings = "histories", True

    noise: float = real(0.2, 0.0, 0.5, "how often a gauge is wrong")

    @functools.cached_property
    def problem(self):
        right = np.array([[1 - self.noise, self.noise], [self.noise, 1 - self.noise]])
        both = (right[:, :, None] * right[:, None]).reshape(2, 4)
        return Problem(
            horizon=3,
            num_actions=3,
            child=np.array([[1, 3, 4], [2, 3, 4], [3, 3, 4]]),
            cell=np.arange(3)[:, None].repeat(4, axis=1),
            legal=np.array([[True] * 3, [True] * 3, [False, True, True]]),
            law=both[None],
            situation=np.array([[0, -1, -1]]),
            gain=np.array([[-0.01, 0.0, 0.0]]),
            pay=np.eye(2),
            replies=np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
        )
