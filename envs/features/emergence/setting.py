"""How wide a network should be and how large its steps, for a given compute, and what cheap pilot runs say about it."""

import dataclasses
import functools
from typing import ClassVar, NamedTuple

import numpy as np

from theorybench.envs.core.validation import instance, integer, integers
from theorybench.envs.features.emergence.law import found_by, strengths, train
from theorybench.envs.features.run import HiddenRun, Run

#: What may be committed to: widths m, and step sizes etahat as powers of 2.
WIDTHS, EXPONENTS = (8, 32, 128, 512), (0.0, -1.5, -3.0, -4.5, -6.0)
STEPS = tuple(2.0**exponent for exponent in EXPONENTS)
#: Pilots, the first actions: their widths, and the places of their step sizes. The others commit.
PILOTS = ((8, 0), (8, 2), (8, 4), (32, 3))
COMMITMENTS = len(WIDTHS) * len(STEPS)
#: The largest reading, -3 log2 of a loss of 2^-8, and a loss that counts as none.
TOP, NO_LOSS = 24, 1e-12
#: What a commitment has learnt: names of outcomes.
LEARNT = ("skills", "rank", "next_skill")
#: Pilots of rules that copy a step: those of the first width.
COPIED = (0, 1, 2)
#: By how many places the step of the best pilot is made smaller by rules that commit to the widest network.
SMALLER = {"pilot-best": 0, "pilot-smaller": 1, "pilot-smallest": 2}


class World(NamedTuple):
    """What is hidden."""

    beta: float  # exponent of the skills' strengths
    variance: float  # V, of the gradient noise


@dataclasses.dataclass(frozen=True, kw_only=True)
class Emergence(HiddenRun):
    """X"""

    question: ClassVar[str] = "how wide should a network be, and how large its steps, if pilots are small and noisy?"
    rule_names: ClassVar[tuple[str, ...]] = (*SMALLER, "pilot-rescaled")

    log_compute: tuple[int, ...] = integers(
        (12, 18), 6, 24, "log2 of the compute C = m n, one a context", none=False, most=3
    )
    pilot: int = integer(64, 4, 256, "the compute over that of a pilot")
    types: int = integer(6, 2, 12, "worlds")
    horizon: int = integer(4, 2, 5, "the largest number of decisions, the last of which should commit")
    skills: int = integer(1024, 64, 8192, "skills P of the teacher")
    instance: int = instance(0, "exponents and noises of the worlds")

    def most_rows(self) -> int:
        """Return how many dialogues there are: in each world a pilot has two possible readings."""
        return len(self.log_compute) * self.types * sum((2 * len(PILOTS)) ** done for done in range(self.horizon))

    # What is hidden.

    @functools.cached_property
    def worlds(self) -> tuple[World, ...]:
        """Exponents that rise from world to world, and noises of all sizes in some other order."""
        rng = np.random.default_rng([250419983, self.instance])
        place, order = rng.random((self.types, 2)), rng.permutation(self.types)
        beta = 0.65 + 0.1 * (np.arange(self.types) + place[:, 0])
        variance = 2.0 ** (10 * (order + place[:, 1]) / self.types - 6)
        return tuple(World(*own) for own in zip(beta.tolist(), variance.tolist(), strict=True))

    @property
    def _block(self) -> int:
        """How many hidden states a context and world have: the beginning, pilots, and commitments."""
        return 1 + self.horizon * (len(PILOTS) + COMMITMENTS)

    def _trained(self, width: np.ndarray, step: np.ndarray, share: np.ndarray) -> np.ndarray:
        """Train networks in every context and world.

        Args:
            width: m of each of k networks, (k,); likewise the rest.
            step: etahat.
            share: of the compute.

        Returns:
            The loss, then the outcomes of `LEARNT`: float64 (4, contexts, worlds, k).
        """
        beta, variance = np.array(self.worlds).T
        compute = 2.0 ** np.array(self.log_compute, np.float64)
        shape = len(compute), self.types, len(width)
        context, world, network = (part.ravel() for part in np.indices(shape))
        strength, noise = strengths(beta, self.skills)[world], variance[world]
        m, eta = width[network], step[network]
        n = compute[context] * share[network] / m
        loss, left, _ = train(strength, noise, m, eta, n)
        largest = np.where(left <= 0.5, np.arange(1, self.skills + 1), 0).max(axis=1)
        ahead = found_by(strength / (eta * noise)[:, None], eta**2 * noise * n) < 0.5
        following = np.where(ahead.any(axis=1), ahead.argmax(axis=1) + 1, self.skills)
        return np.array([loss, (1 - left).sum(axis=1), largest, following]).reshape(4, *shape)

    @functools.cached_property
    def run(self) -> Run:
        """The tables: one draw moves each state, since nothing is left to chance but the world.

        In the block of a context and world come the beginning; then, by the number of pilots so far, each pilot as the
        last one; then, by that number, each commitment.
        """
        T, kinds, block = self.horizon, len(PILOTS), self._block
        done = np.concatenate([[0], np.repeat(np.arange(1, T + 1), kinds), np.repeat(np.arange(T), COMMITMENTS)])
        last = 1 + T * kinds  # where commitments begin
        actions, place = np.arange(kinds + COMMITMENTS)[:, None], np.arange(block)
        after = np.where(actions < kinds, 1 + kinds * done + actions, last + COMMITMENTS * done + actions - kinds)
        after = np.where((place < last) & (done < T), after, place)
        blocks = block * np.arange(len(self.log_compute) * self.types)
        pilots, committed = np.array(PILOTS), np.arange(T * COMMITMENTS) % COMMITMENTS
        width = np.array(WIDTHS, np.float64)[committed // len(STEPS)]
        step = np.array(STEPS)[committed % len(STEPS)]
        small = self._trained(
            pilots[:, 0].astype(np.float64), np.array(STEPS)[pilots[:, 1]], np.full(kinds, 1 / self.pilot)
        )[0]
        large = self._trained(width, step, 1 - done[last:] / self.pilot)
        columns = np.zeros((2 + len(LEARNT) + 3, len(self.log_compute), self.types, block))
        columns[0, :, :, 1:last] = np.tile(-3 * np.log2(small), T)
        columns[1, :, :, last:] = -np.log10(np.maximum(large[0], NO_LOSS))
        columns[2:-3, :, :, last:] = large[1:]
        columns[-3, :, :, last:], columns[-2, :, :, last:], columns[-1] = width, step, done
        measured, pay, *outcomes = columns.reshape(len(columns), -1)
        return Run(
            horizon=T,
            begin=blocks.reshape(len(self.log_compute), -1),
            jump=(blocks[:, None] + after[:, None]).reshape(len(actions), -1, 1),
            measured=measured,
            top=TOP,
            pay=pay,
            habit=np.full(T, commitment(len(WIDTHS) - 1, 2)),
            ends=actions[:, 0] >= kinds,
            outcomes=dict(zip((*LEARNT, "width", "step", "pilots"), outcomes, strict=True)),
        )

    # Rules.

    def choose(self, name: str, context: np.ndarray, actions: np.ndarray, readings: np.ndarray) -> np.ndarray:
        """Return what a rule does after dialogues: pilots first, then it commits."""
        taken = actions.shape[1]
        if taken < min(len(COPIED), self.horizon - 1):
            return np.full(len(actions), COPIED[taken])
        return self.copied(readings, len(WIDTHS) - 1, SMALLER[name])

    def copied(self, readings: np.ndarray, width: int, smaller: int) -> np.ndarray:
        """Return the commitment to a width and to the step of the best-read pilot, or one some places smaller.

        Args:
            readings: int64 (n, t), of the pilots `COPIED`; of equals the first is best.
            width: its place in `WIDTHS`.
            smaller: how many places in `STEPS`.

        Returns:
            int64 (n,).
        """
        places = np.array([PILOTS[pilot][1] for pilot in COPIED])
        return commitment(width, np.minimum(places[readings.argmax(axis=1)] + smaller, len(STEPS) - 1))

    # Names.

    def action_name(self, action: int) -> str:
        """Name an action in renderings."""
        if action < len(PILOTS):
            width, step = PILOTS[action]
            return f"pilot {width}, {_power(step)}"
        width, step = divmod(action - len(PILOTS), len(STEPS))
        return f"commit {WIDTHS[width]}, {_power(step)}"

    def shown_name(self, context: int) -> str:
        """Say the compute."""
        return f"C = 2^{self.log_compute[context]}"

    def hidden(self, state: int) -> dict[str, str]:
        """Describe a hidden state: the world, and what has been trained."""
        number, place = divmod(state, self._block)
        world = self.worlds[number % self.types]
        outcomes = {name: float(values[state]) for name, values in self.run.outcomes.items()}
        learnt = "nothing is committed yet"
        if outcomes["width"]:
            learnt = f"{outcomes['skills']:.1f} of {self.skills}, all up to rank {outcomes['rank']:.0f} likely"
        return {
            "strengths": f"p^-{world.beta:.3f}",
            "noise": f"V = {world.variance:.3f}",
            "pilots": f"{outcomes['pilots']:.0f}, {outcomes['pilots'] / self.pilot:.1%} of the compute",
            "skills": learnt,
        }


def commitment(width: int, step: np.ndarray | int) -> np.ndarray:
    """Return the action that commits to a width and a step, by their places in `WIDTHS` and `STEPS`."""
    return np.asarray(len(PILOTS) + len(STEPS) * width + step)


def _power(step: int) -> str:
    """Name a step size."""
    return f"2^{EXPONENTS[step]:g}"
