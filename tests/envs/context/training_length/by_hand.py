"""TrainingLength from its story, one string position, one coin and one board at a time; no code of the package."""

import functools
import math

import numpy as np

FREQUENCIES, PERIODS, MARGINS = (2, 8, 32), (1, 2), ((1, 2), (2, 3), (1, 1))
TASKS = [(w, d, g) for w in FREQUENCIES for d in PERIODS for g in MARGINS]
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.4)


def attention(task, length, bits):
    """Return the share of attention of each position."""
    _, period, (num, den) = task
    soft = length**num < 2 ** (bits * den)  # N^-margin > 2^-bits
    weights = [1.0 if i % period == 0 else (length ** (-num / den) if soft else 0.0) for i in range(length)]
    return [weight / math.fsum(weights) for weight in weights]


@functools.cache
def labels(task, length, bits):
    """Return mean and variance of the label at each share of ones, by the law of the number of ones elsewhere."""
    frequency, period, _ = task
    given, n = attention(task, length, bits), length // period
    right, others = given[0], length - n
    wrong = given[1] if others else 0.0
    chance = np.array([math.comb(others, k) / 2**others for k in range(others + 1)])
    values = np.sin(frequency * (right * np.arange(n + 1)[:, None] + wrong * np.arange(others + 1)))
    mean = values @ chance
    return mean, (values - mean[:, None]) ** 2 @ chance


def nearest(share, n):
    """Return the place of the nearest multiple of 1/n, the larger of two."""
    return np.floor(share * n + 0.5).astype(int)


def error(task, length, bits):
    mean, share = labels(task, length, bits)[0], np.arange(4097) / 4096
    return np.abs(np.sin(task[0] * share) - mean[nearest(share, len(mean) - 1)]).max()


def jump(task, last, length, bits):
    mean = labels(task, length, bits)[0]
    if last is None:
        return np.abs(mean).mean()
    known = labels(task, last, bits)[0]
    return np.abs(mean - known[nearest(np.arange(len(mean)) / (len(mean) - 1), len(known) - 1)]).mean()


class Story:
    """A setting from its story."""

    def __init__(self, num_lengths=6, bits=4, tolerance=0.1, price=0.8, power=1.0, noise=0.05, instance=0):
        drawn = np.random.default_rng([251027015, instance]).random(18)
        self.prior, self.noise = drawn / drawn.sum(), noise
        self.lengths = [16 * 2**j for j in range(num_lengths)]
        self.cost = [price * (length / 512) ** power for length in self.lengths]
        self.right = np.array([[error(task, n, bits) <= tolerance for n in self.lengths] for task in TASKS], float)
        self.bits = bits
        self.level, self.law = functools.cache(self._level), functools.cache(self._law)

    def _level(self, last, run):
        """Return the level of the jump in each task."""
        before = None if last < 0 else self.lengths[last]
        return [sum(jump(t, before, self.lengths[run], self.bits) > x for x in THRESHOLDS) for t in TASKS]

    def _law(self, last, run):
        """Return how likely each level is read in each task."""
        law = np.zeros((18, 6))
        for task, level in enumerate(self.level(last, run)):
            for near, chance in ((level, 1 - self.noise), (level - 1, self.noise / 2), (level + 1, self.noise / 2)):
                law[task, min(max(near, 0), 5)] += chance
        return law

    def value(self, decide, last=-1, joint=None, read=()):
        """Return what is earned from a board on.

        Args:
            decide: (last run, joint probabilities of task and readings, readings) -> probabilities of actions, or None
                for the best one.
        """
        joint = self.prior if joint is None else joint
        worth = {len(self.lengths): joint @ self.right[:, last] if last >= 0 else 0.0}
        rows = decide(last, joint, read) if decide else None
        for run in range(last + 1, len(self.lengths)):
            if rows is not None and rows[run] == 0:
                continue
            worth[run] = -self.cost[run] * joint.sum()
            for level, chance in enumerate(self.law(last, run).T):
                if chance.any():
                    worth[run] += self.value(decide, run, joint * chance, (*read, (run, level)))
        return max(worth.values()) if rows is None else sum(rows[action] * own for action, own in worth.items())

    def play(self, probs, episodes, rng):
        """Draw tasks, choose by rows of probs (boards (n, num_lengths) -> (n, A)), read jumps: rewards (episodes,)."""
        runs = len(self.lengths)
        levels = np.zeros((runs + 1, runs, 18), int)
        for run in range(runs):
            for last in range(-1, run):
                levels[last + 1, run] = self.level(last, run)
        task, boards = rng.choice(18, episodes, p=self.prior), np.zeros((episodes, runs), int)
        last, rewards, on = np.full(episodes, -1), np.zeros(episodes), np.arange(episodes)
        while len(on):
            rows = probs(boards[on])
            action = (rng.random((len(rows), 1)) > rows.cumsum(axis=1)).sum(axis=1)
            ends, on, run = on[action == runs], on[action < runs], action[action < runs]
            rewards[ends] += np.where(last[ends] >= 0, self.right[task[ends], last[ends]], 0.0)
            off = rng.random(len(on))
            read = levels[last[on] + 1, run, task[on]] - (off < self.noise / 2) + (off > 1 - self.noise / 2)
            rewards[on] -= np.array(self.cost)[run]
            boards[on, run], last[on] = 1 + read.clip(0, 5), run
        return rewards
