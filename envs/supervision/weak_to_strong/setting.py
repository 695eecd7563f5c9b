"""Several weak models can label data for next to nothing: whose labels should a strong model learn from?"""

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.finite.problem import Problem
from theorybench.envs.core.validation import instance, integer, real
from theorybench.envs.supervision.purchases import PurchaseSetting, practice, priced
from theorybench.envs.supervision.weak_to_strong.situations import Situations, list_situations
from theorybench.envs.supervision.weak_to_strong.teachers import (
    DECIMALS,
    READINGS,
    SURPLUS,
    Laws,
    kappa,
    laws,
    share,
)

TRUE = 0
#: How many overlaps a teacher may have.
OVERLAPS = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class WeakToStrong(PurchaseSetting):
    """Whose labels a strong model should learn from, if weak teachers are cheap and true labels are dear.

    ## Description

    ## Version History
    - v0: first version.
    """

    question: ClassVar[str] = "whose labels should a strong model learn from, if several weak ones are cheap?"
    lower: ClassVar[str] = "budget"
    rule_names: ClassVar[tuple[str, ...]] = ("accurate", "true", "round-robin", "agree", "disagree", "theory")

    teachers: int = integer(3, 1, 4, "weak models that one may buy labels from")
    budget: int = integer(6, 1, 8, "largest number of purchases")
    batch: int = integer(48, 10, 1024, "labels in a purchase, at least student + 8")
    student: int = integer(16, 2, 64, "features of the student")
    teacher: int = integer(12, 2, 64, "features of a teacher, at most those of the student")
    true_price: float = real(0.05, 0.0, 1.0, "of a batch of true labels")
    weak_price: float = real(0.01, 0.0, 1.0, "of a batch of a teacher's labels")
    signal: float = real(1.0, 0.0, 10.0, "what is earned where the student makes no error")
    profiles: int = integer(8, 1, 16, "rows of teachers that may be shown")
    instance: int = instance(0, "which rows are shown")

    def validate(self) -> None:
        """Check that a batch suffices for a fit, and that teachers have no more features than the student.

        Raises:
            ParameterError: names `batch` or `teacher`.
        """
        if self.batch < self.student + 8:
            raise ParameterError("batch", self.batch, f"at least student + 8 = {self.student + 8}")
        if self.teacher > self.student:
            raise ParameterError("teacher", self.teacher, f"at most student = {self.student}")
        super().validate()

    def most_rows(self) -> int:
        """Return the number of situations, if all rows differ."""
        some = range(self.teachers + 1)
        return self.profiles * sum(
            math.comb(self.teachers, k) * READINGS**k * math.comb(self.budget, k + 1) for k in some
        )

    # The instance and its mathematics.

    @functools.cached_property
    def rows_shown(self) -> np.ndarray:
        """The teachers' accuracies, int64 (profiles, teachers): places in `SURPLUS`, larger ones more accurate."""
        rng = np.random.default_rng([250205075, self.instance])
        return rng.integers(0, len(SURPLUS), size=(self.profiles, self.teachers))

    @functools.cached_property
    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The different rows in the order in which they come first, and which of them each profile shows."""
        _, first, which = np.unique(self.rows_shown, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return self.rows_shown[first[order]], np.argsort(order)[which.ravel()]

    @property
    def labels(self) -> tuple[int, ...]:
        """Labels that a teacher was trained on, by accuracy."""
        return tuple(self.teacher + surplus for surplus in SURPLUS)

    @property
    def overlaps(self) -> tuple[int, ...]:
        """How many of a teacher's features may be the student's."""
        d = self.teacher
        return 1, -(-d // 3), -(-2 * d // 3), d

    @functools.cached_property
    def laws(self) -> Laws:
        """Readings of teachers, and what they tell."""
        return laws(self.teacher, self.overlaps, self.student, self.batch)

    @functools.cached_property
    def posterior(self) -> np.ndarray:
        """P(overlap | labels, reading): float64 (4, 4, 4), in the order of `laws`; 0 where a reading does not occur."""
        whole = self.laws.law.sum(axis=1, keepdims=True)
        return np.asarray(self.laws.law / np.where(whole > 0, whole, 1.0))

    @functools.cached_property
    def situations(self) -> Situations:
        """What may have been bought and read, for one row of teachers."""
        return list_situations(self.teachers, self.budget)

    @property
    def worlds(self) -> np.ndarray:
        """The overlaps of the teachers in each world, int64 (4^teachers, teachers): places in `overlaps`."""
        place = OVERLAPS ** np.arange(self.teachers - 1, -1, -1)
        return np.arange(OVERLAPS**self.teachers)[:, None] // place % OVERLAPS

    @functools.cached_property
    def risks(self) -> np.ndarray:
        """What a teacher's labels add to the student's risk: float64 (4, 4, 4, T + 1, T + 1).

        By labels, overlap, reading - 1, batches of the teacher and batches in all.
        """
        bought = np.arange(self.budget + 1)
        own, total = bought[:, None], np.maximum(bought, 1)
        inherited = share(self.batch * np.minimum(own, total), self.batch * total, self.student)
        left = np.minimum(own, total) / total * kappa(self.batch * total, self.student)
        parts = self.laws.inherit[..., None, None] * inherited + self.laws.noise[..., None, None] * left
        return np.round(np.where(own > 0, parts, 0.0), DECIMALS)

    # The problem.

    @functools.cached_property
    def problem(self) -> Problem:
        """A node for each row and situation before the last purchase, an ending for each row and situation."""
        listed, (rows, which), K = self.situations, self.distinct, self.teachers
        nodes, endings = len(listed.after), len(listed.total)
        shape = len(rows), nodes
        # Columns: true labels, each teacher with each reading, STOP.
        over, row = listed.after >= nodes, np.arange(len(rows))[:, None, None]
        bought = np.where(over, len(rows) * nodes + row * endings + listed.after, row * nodes + listed.after)
        stopped = len(rows) * nodes + row * endings + np.arange(nodes)[:, None]
        cell = np.zeros((K + 2, READINGS + 1), np.int64)
        cell[1:-1, 1:] = 1 + np.arange(K * READINGS).reshape(K, READINGS)
        cell[1:-1, 0] = cell[1:-1, 1]
        cell[-1] = 1 + K * READINGS
        known = listed.readings[:nodes]
        situation = np.full((*shape, K + 2), -1)
        fresh = len(SURPLUS) * np.arange(K) + rows[:, None]
        situation[:, :, 1:-1] = np.where(known > 0, len(SURPLUS) * K + known - 1, fresh)
        prices = np.array([self.true_price, *[self.weak_price] * K, 0.0])
        return Problem(
            horizon=self.budget,
            num_actions=K + 2,
            child=np.concatenate([bought, stopped], axis=2).reshape(-1, 2 + K * READINGS),
            cell=cell,
            law=self._reading_law(self.laws.law[:, self.worlds].transpose(2, 0, 1, 3)),
            situation=situation.reshape(-1, K + 2),
            pay=self._pay(self.risks[:, self.worlds].transpose(2, 0, 3, 4, 5, 1)),
            terms=self._terms,
            start=which * nodes,
            shown=self.rows_shown,
            **priced(prices, cell),
            **practice(np.repeat(1 + rows.argmax(axis=1), nodes), np.ones((1, K + 2), bool)),
        )

    @functools.cached_property
    def listed(self) -> Problem:
        """The same problem as one sees it who knows the laws: readings and risks as likely as what was read says.

        Overlaps are independent, so that a teacher's reading tells nothing of the others: nothing is hidden in it.
        """
        K, problem = self.teachers, self.problem
        law = np.broadcast_to(self.laws.law.mean(axis=1)[:, None], (K, len(SURPLUS), 1, READINGS))
        mean = (self.posterior[..., None, None] * self.risks).sum(axis=1)
        return dataclasses.replace(
            problem,
            law=self._reading_law(law),
            pay=self._pay(np.broadcast_to(mean[..., None], (K, *mean.shape, 1))),
            prior=problem.prior.sum(axis=1, keepdims=True),
            begin=None,
            jump=None,
            move=None,
        )

    def _reading_law(self, fresh: np.ndarray) -> np.ndarray:
        """Return the laws of the first reading, (K, 4, X, 4), and of repeated ones: float64 (4 K + 4, X, 5)."""
        K, states = self.teachers, fresh.shape[2]
        law = np.zeros((len(SURPLUS) * K + READINGS, states, READINGS + 1))
        law[:-READINGS, :, 1:] = fresh.reshape(-1, states, READINGS)
        law[-READINGS:, :, 1:] = np.eye(READINGS)[:, None]
        return law

    def _pay(self, risks: np.ndarray) -> np.ndarray:
        """Return what endings add up: the signal less what true labels leave, then what each teacher costs.

        Args:
            risks: float64 (K, 4, 4, T + 1, T + 1, X), by teacher, labels, reading - 1 and batches.

        Returns:
            float64 (rows, X); row 0 is 0, for nothing bought.
        """
        T, states = self.budget, risks.shape[-1]
        total, true = np.arange(T + 1)[:, None], np.arange(T + 1)
        left = true / np.maximum(total, 1) * kappa(self.batch * np.maximum(total, 1), self.student)
        own = np.where(total > 0, np.round(self.signal - left, DECIMALS), 0.0)
        return np.concatenate([np.repeat(own.reshape(-1, 1), states, axis=1), 0.0 - risks.reshape(-1, states)])

    @property
    def _terms(self) -> np.ndarray:
        """The rows of `_pay` that each ending sums: int64 (E, 1 + teachers)."""
        counts, readings, total, _ = self.situations
        T, (rows, _), teacher = self.budget, self.distinct, np.arange(self.teachers)
        kind = ((teacher * len(SURPLUS) + rows)[:, None] * READINGS + readings - 1) * (T + 1) + counts[:, 1:]
        own = np.where(readings > 0, (T + 1) ** 2 + kind * (T + 1) + total[:, None], 0)
        first = np.broadcast_to(total * (T + 1) + counts[:, 0], own.shape[:2])
        return np.concatenate([first[:, :, None], own], axis=2).reshape(-1, 1 + self.teachers)

    # Rules.

    def _rule(self, name: str) -> np.ndarray:
        _, readings, total, after = self.situations
        (rows, _), nodes = self.distinct, len(after)
        shape = len(rows), nodes
        if name in ("accurate", "true"):
            usual = 1 + rows.argmax(axis=1) if name == "accurate" else np.zeros(len(rows), np.int64)
            return np.repeat(usual, nodes)
        if name == "round-robin":
            return np.broadcast_to(1 + total[:nodes] % self.teachers, shape).ravel()
        unread, reading = readings[:nodes] == 0, np.maximum(readings[:nodes], 1)
        if name == "theory":
            half = max(self.batch * self.budget / 2, self.batch)
            risk = self.laws.inherit + kappa(half, self.student) * self.laws.noise
            badness = (self.posterior * risk).sum(axis=1)[rows[:, None], reading - 1]
        else:
            sign = 1 if name == "agree" else -1
            badness = sign * len(SURPLUS) * reading - rows[:, None]
        chosen = np.where(unread.any(axis=1), unread.argmax(axis=1), badness.argmin(axis=2))
        return np.asarray(1 + chosen.ravel())

    # Names.

    def action_name(self, action: int) -> str:
        """Name an action: true labels, a teacher, or STOP."""
        return "true" if action == TRUE else "STOP" if action > self.teachers else f"teacher {action}"

    def symbol_name(self, symbol: int) -> str:
        """Name a symbol in renderings: an action, a reading where there are fewer actions, or a number of labels."""
        first = self.prompt_symbols[0]
        if symbol >= first:
            return f"n={self.labels[symbol - first]}"
        return self.action_name(symbol) if symbol < self.num_actions else str(symbol)
