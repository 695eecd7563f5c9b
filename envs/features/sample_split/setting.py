"""How to split labels between the tasks that teach features and the heads that use them."""

import dataclasses
import functools
import itertools
import math
from typing import ClassVar

import numpy as np

from theorybench.envs.core.validation import choice, instance, integer, integers
from theorybench.envs.features.run import STOP, HiddenRun, Run
from theorybench.envs.features.sample_split.law import explained, fitted, gradient_snr, hessian_snr, recovered
from theorybench.envs.features.tables import rounded

SOURCES = 3
#: The largest reading: it shows the explained share in sixths.
TOP = 6
#: Shares of a downstream label that are of features: of their signs, and of the signs of their squares less z^2.
ALPHA, BETA = 0.5, 0.4
#: Labels that `paper-split` keeps for each coefficient of a head.
LABELS = 30


@dataclasses.dataclass(frozen=True, kw_only=True)
class SampleSplit(HiddenRun):
    """PLACEHOLDER.

    ## Arguments
    """

    question: ClassVar[str] = "how should labels be split between tasks that teach features and heads that use them?"
    rule_names: ClassVar[tuple[str, ...]] = ("half-half", "each-once-then-best", "paper-split")
    lower: ClassVar[str] = "chunks"

    mode: str = choice(
        "multiple", ("multiple", "single"), "two features, learnt by gradient and Hessian, or one, by gradient alone"
    )
    dimension: int = integer(24, 8, 100, "of the inputs, d; there are D = d (d + 1)/2 Hermite features")
    budget: int = integer(24, 4, 64, "labels in all, in units of D")
    chunks: int = integer(6, 3, 7, "equal parts of the budget, of which each decision spends one")
    downstream: tuple[int, ...] = integers(
        (4, 24), 1, 1000, "downstream tasks, K; one of these numbers is shown", none=False, most=3
    )
    types: int = integer(6, 2, 12, "hidden problems, equally likely")
    instance: int = instance(0, "what the sources of the hidden problems are")

    def most_rows(self) -> int:
        """Return a bound: sequences of sources, and at most two readings that each problem leaves possible at each."""
        problems, readings = self.types, TOP + 1
        return len(self.downstream) * sum(SOURCES**t * min(readings**t, problems * 2**t) for t in range(self.chunks))

    # The instance and its mathematics.

    @property
    def num_features(self) -> int:
        """How many hidden features there are."""
        return 2 if self.mode == "multiple" else 1

    @property
    def hermite(self) -> int:
        """How many Hermite features of second degree there are, D."""
        return self.dimension * (self.dimension + 1) // 2

    @property
    def coefficients(self) -> int:
        """The number of coefficients of a head, P: a constant, each feature and its square."""
        return 2 * self.num_features + 1

    @functools.cached_property
    def sources(self) -> np.ndarray:
        """What source labels are of: float64 (types, 3 sources, 2, features), shares alpha, then shares beta."""
        rng, found = np.random.default_rng([231113774, self.instance]), []
        for _ in range(self.types):
            u, order = rng.random(SOURCES), rng.permutation(SOURCES)
            if self.mode == "single":
                base = [[[0.45 + 0.3 * u[0]], [0.2]], [[0.1 + 0.15 * u[1]], [0.5]], [[0.0], [0.6 + 0.3 * u[2]]]]
            else:
                first, second = 0.45 + 0.3 * u[0], 0.45 + 0.3 * u[1]
                shared = [0.35 + 0.13 * u[2], 0.48 - 0.13 * u[2]]
                base = [[[first, 0.0], [0.0, 0.2]], [[0.0, second], [0.2, 0.0]], [[0.0, 0.0], shared]]
            found.append(np.array(base)[order])
        return np.array(found)

    @functools.cached_property
    def splits(self) -> np.ndarray:
        """Chunks of each source that may have been spent: int64 (splits, 3)."""
        counts = itertools.product(range(self.chunks + 1), repeat=SOURCES)
        return np.array([own for own in counts if sum(own) <= self.chunks])

    @functools.cached_property
    def stages(self) -> np.ndarray:
        """How far training may have come: int64 (stages, 2), place in `splits` and last source, 0 before any."""
        found = [[0, 0]]
        splits = enumerate(self.splits)
        found += [[number, 1 + int(source)] for number, own in splits for source in np.flatnonzero(own)]
        return np.array(found)

    @functools.cached_property
    def recovery(self) -> np.ndarray:
        """How much of each feature was learnt, rho^2: float64 (types, splits, features)."""
        samples = (self.splits * (self.budget / self.chunks))[:, :, None]  # (splits, sources, 1), in units of D
        alpha, beta = self.sources[:, None, :, 0], self.sources[:, None, :, 1]  # (types, 1, sources, features)
        snr = gradient_snr(samples, alpha)
        if self.mode == "multiple":
            snr = snr + hessian_snr(samples, beta)
        return recovered(snr.sum(axis=2))

    @property
    def samples_a_head(self) -> np.ndarray:
        """Labels that each head gets after each split: float64 (contexts, splits)."""
        left = (self.chunks - self.splits.sum(axis=1)) * (self.budget * self.hermite / self.chunks)
        return np.asarray(left / np.array(self.downstream)[:, None])

    @functools.cached_property
    def worth(self) -> np.ndarray:
        """What heads explain, as a share of what they would with all features: float64 (contexts, types, splits)."""
        shares = np.full((2, self.num_features), 1 / self.num_features)
        task = ALPHA * shares[0], BETA * shares[1]
        best, whole = explained(*task, self.recovery), explained(*task, np.ones(self.num_features))
        P, samples = self.coefficients, self.samples_a_head[:, None]
        enough = samples > P + 1
        value = fitted(best, np.where(enough, samples, P + 2.0), P)
        return np.where(enough, np.maximum(0, value), 0.0) / whole

    @functools.cached_property
    def run(self) -> Run:
        """The tables: hidden state (context * types + world) * stages + stage."""
        shape = len(self.downstream), self.types, len(self.stages)
        state, (split, last) = np.arange(math.prod(shape)).reshape(shape), self.stages.T
        place = {
            (*own, source): n for n, (own, source) in enumerate(zip(self.splits[split].tolist(), last, strict=True))
        }
        jump = [state]
        for source in range(1, SOURCES + 1):
            more = self.splits[split] + (np.arange(1, SOURCES + 1) == source)
            after = [place.get((*own, source), stage) for stage, own in enumerate(more.tolist())]
            jump.append(state[:, :, after])
        # What the last source's own head explains, (types, stages).
        task = self.sources[:, np.maximum(last, 1) - 1]
        own = np.where(last > 0, explained(task[:, :, 0], task[:, :, 1], self.recovery[:, split]), 0.0)

        def spread(values: np.ndarray) -> np.ndarray:
            """Return values, broadcast to (contexts, types, stages), for each state: (X,)."""
            return np.broadcast_to(values, shape).ravel()

        return Run(
            horizon=self.chunks,
            begin=state[:, :, 0],
            jump=np.array(jump).reshape(SOURCES + 1, -1, 1),
            measured=spread(TOP * own),
            top=TOP,
            pay=spread(self.worth[:, :, split]),
            habit=np.where(np.arange(self.chunks) < self.chunks // 2, 1 + np.arange(self.chunks) % SOURCES, STOP),
            ends=np.arange(SOURCES + 1) == STOP,
            outcomes={
                "chunks": spread(self.splits.sum(axis=1)[split]),
                "samples_a_head": spread(rounded(self.samples_a_head)[:, None, split]),
                **{f"recovered_{1 + j}": spread(rounded(self.recovery[:, split, j])) for j in range(self.num_features)},
            },
        )

    # Rules.

    def choose(self, name: str, context: np.ndarray, actions: np.ndarray, readings: np.ndarray) -> np.ndarray:
        """Return what a rule does after some dialogues."""
        taken = actions.shape[1]
        if name == "half-half":
            return np.asarray(1 if taken < self.chunks // 2 else STOP)
        if name == "paper-split":
            chunk = self.budget * self.hermite / self.chunks
            kept = np.ceil(LABELS * self.coefficients * np.array(self.downstream) / chunk)
            return np.where(taken < self.chunks - kept[context], 1 + taken % SOURCES, STOP)
        if taken >= math.ceil(2 * self.chunks / 3):
            return np.asarray(STOP)
        return 1 + (readings[:, :SOURCES].argmax(axis=1) if taken >= SOURCES else np.asarray(taken))

    # Names.

    def action_name(self, action: int) -> str:
        """Name an action."""
        return "STOP" if action == STOP else f"source {action}"

    def shown_name(self, context: int) -> str:
        """Say what the prompt shows."""
        return f"K = {self.downstream[context]}"

    def hidden(self, state: int) -> dict[str, str]:
        """Describe the sources, and how much of each feature was learnt."""
        rest, stage = divmod(state, len(self.stages))
        world, split = rest % self.types, self.stages[stage, 0]

        def told(numbers: np.ndarray) -> str:
            return " ".join(f"{x:.2f}".removeprefix("0") for x in numbers)

        return {
            "alpha": "; ".join(told(alpha) for alpha in self.sources[world, :, 0]),
            "beta": "; ".join(told(beta) for beta in self.sources[world, :, 1]),
            "rho^2": told(self.recovery[world, split]),
        }
