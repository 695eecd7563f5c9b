"""The tree from its definitions, one chain of thought at a time: what its tests compare with."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from theorybench.envs.core.policy import Policy
from theorybench.envs.core.registry import load_module
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

Hashed = load_module(str(Path(__file__).parents[1] / "hashed_policy.py")).Hashed


class Opaque(Policy):
    """A policy that does not tell what it depends on."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def probs(self, observations: np.ndarray) -> np.ndarray:
        return self.policy.probs(observations)


class Cots(NamedTuple):
    """All CoTs from a task's start, in lexicographic order: states (n, L), nodes and actions (n, L - 1), the rest (n,).

    Kinds are 0 easy, 1 hard, 2 invalid.
    """

    states: np.ndarray
    nodes: np.ndarray
    actions: np.ndarray
    base: np.ndarray
    acc: np.ndarray
    kind: np.ndarray

    def shares(self, mass: np.ndarray) -> np.ndarray:
        """Mass of each kind, (3,)."""
        return np.bincount(self.kind, mass, 3)


def cots(setting: TreeMarkovChain, task: int) -> Cots:
    """List the CoTs of a task."""
    tails = itertools.product(range(setting.M), repeat=setting.L - 1)
    states = np.array([(int(setting.tree.starts[task]), *tail) for tail in tails])
    first = [0] + [setting.M0 + t * setting.M for t in range(setting.L - 2)]
    nodes, actions = states[:, :-1] + first, states[:, 1:]
    base, valid = setting.chain[nodes, actions].prod(axis=1), states[:, -1] == setting.tree.targets[task]
    easy = setting.tree.high[nodes, actions].all(axis=1)
    acc = np.where(valid, base, 0.0) / base[valid].sum()
    return Cots(states, nodes, actions, base, acc, np.where(valid, np.where(easy, 0, 1), 2))


def mass(setting: TreeMarkovChain, policy: Any, states: np.ndarray) -> np.ndarray:
    """Probability of CoTs (n, L) under a policy, given their start: (n,)."""
    value = np.ones(len(states))
    for t in range(1, setting.L):
        seen = np.where(np.arange(setting.L) < t, states + 1, 0).astype(np.int8)
        value *= policy.probs(seen)[np.arange(len(states)), states[:, t]]
    return value


def pass_at(k: int, correctness: np.ndarray, masses: np.ndarray) -> float:
    """pass@k over all questions: CoTs of these probabilities, each in the question with its correctness."""
    miss = 0.0
    for question in itertools.product((False, True), repeat=len(masses)):
        held = np.array(question, bool)
        miss += np.prod(np.where(held, correctness, 1 - correctness)) * max(0.0, 1 - masses[held].sum()) ** k
    return 1 - miss


@st.composite
def trees(draw: st.DrawFn, L: int = 4, M0: int = 3, M: int = 3, **others: Any) -> TreeMarkovChain:
    """Random trees of at most these sizes; other parameters are drawn from the strategies given."""
    sizes = {"L": draw(st.integers(2, L)), "M0": draw(st.integers(1, M0)), "M": draw(st.integers(2, M))}
    return TreeMarkovChain(
        **sizes,
        C=draw(st.integers(1, sizes["M"])),
        num_tasks=draw(st.integers(1, sizes["M0"])),
        low_weight=draw(st.sampled_from([0.01, 0.03, 0.1, 0.5, 1.0])),
        instance=draw(st.integers(0, 10**6)),
        **{name: draw(strategy) for name, strategy in others.items()},
    )
