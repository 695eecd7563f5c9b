"""The steps of the first layer from their story alone: the law by root finding, a recursion, and episodes."""

import functools
import math

import numpy as np
from scipy import integrate, optimize, stats

GAINS = (0, 1, 3, 8)
NODES = 60


def strength():
    """E[sign(s^2 - z^2) s^2] by quadrature, z the upper quartile."""
    z = stats.norm.ppf(0.75)
    inside = integrate.quad(lambda s: s * s * stats.norm.pdf(s), -z, z)[0]
    return 1 - 2 * inside


def bulk_energy(g, gamma):
    """E(g), the inverse function of the bulk's transform: 1/g + R(g), R of the difference of two free Poisson laws."""
    return 1 / g + (1 / (1 - gamma * g) - 1 / (1 + gamma * g)) / 2


def along(q, g, gamma):
    """1/G_u(E(g)): E less half the sum over the labels of Z E[s^2 | Z] / (1 - gamma Z g)."""
    return bulk_energy(g, gamma) - ((1 + q) / (1 - gamma * g) - (1 - q) / (1 + gamma * g)) / 2


class Story:
    """One hidden problem on ratio d samples."""

    def __init__(self, components, ratio, dimension):
        self.gamma, self.d = 1 / ratio, dimension
        self.q = [strength() * own for own in components]
        gamma = self.gamma
        lowest = optimize.minimize_scalar(
            lambda g: bulk_energy(g, gamma),
            bounds=(1e-9, (1 - 1e-9) / gamma),
            method="bounded",
            options={"xatol": 1e-13},
        )
        self.g_edge, self.edge = lowest.x, lowest.fun
        self.spikes = []
        for place, q in enumerate(self.q):
            if along(q, self.g_edge, gamma) < 0:  # the pole is further out, at a smaller g
                g = optimize.brentq(lambda g, q=q: along(q, g, gamma), 1e-9, self.g_edge, xtol=1e-15)
                step = 1e-6 * g
                energies = [bulk_energy(g + side * step, gamma) for side in (-1, 1)]
                inverses = [along(q, g + side * step, gamma) for side in (-1, 1)]
                residue = (energies[1] - energies[0]) / (inverses[1] - inverses[0])
                self.spikes.append((place, bulk_energy(g, gamma), residue))
        angles = [(k + 0.5) * math.pi / NODES for k in range(NODES)]
        nodes = [self.edge * math.cos(angle) for angle in angles]
        inside = [self.solve(energy) for energy in nodes]
        weigh = [-g.imag * math.sin(a) for g, a in zip(inside, angles, strict=True)]
        self.energies = [energy for _, energy, _ in self.spikes] + nodes
        count = self.d - len(self.spikes)
        self.counts = [1.0] * len(self.spikes) + [count * w / sum(weigh) for w in weigh]
        self.weights = []
        for place, q in enumerate(self.q):
            own = [residue if spike == place else 0.0 for spike, _, residue in self.spikes]
            rest = [-(1 / along(q, g, gamma)).imag * math.sin(a) for g, a in zip(inside, angles, strict=True)]
            self.weights.append(own + [(1 - sum(own)) * w / sum(rest) for w in rest])

    def solve(self, energy):
        """g at a real energy within the bulk, by Newton's method from far above, coming down to the line."""
        g = 1 / (energy + 10j)
        for height in [10 * 0.8**k for k in range(120)] + [0.0]:
            for _ in range(60):  # Newton
                off = bulk_energy(g, self.gamma) - energy - 1j * height
                slope = (
                    -1 / g**2 + (self.gamma / (1 - self.gamma * g) ** 2 + self.gamma / (1 + self.gamma * g) ** 2) / 2
                )
                change = off / slope
                g -= change
                if abs(change) < 1e-14 * abs(g):
                    break
        assert g.imag < 0
        return g

    @functools.cache  # noqa: B019
    def after(self, steps, samples, ridge):
        """Effective dimension and R after some steps."""
        top = max(abs(e) for e in self.energies)
        grown = np.array([(abs(e) / top) ** (2 * steps) for e in self.energies])
        counts = np.array(self.counts)
        s = grown / (grown @ counts)
        modes = 2 * np.outer(s, s)

        def unordered(values):
            return (counts @ values @ counts + counts @ values.diagonal()) / 2

        def excess(log_k):
            k = math.exp(log_k)
            return unordered(modes / (modes + k)) + ridge / k - samples

        k = math.exp(optimize.brentq(excess, math.log(1e-13), math.log(20), xtol=1e-14))
        D = unordered((modes / (modes + k)) ** 2)
        kept = (k / (k + modes)) ** 2
        power = [q * q / 2 for q in self.q]
        bias = sum(f * np.array(w) @ kept @ np.array(w) for f, w in zip(power, self.weights, strict=True))
        error = (bias + (1 - sum(power)) * D / samples) / (1 - D / samples) / sum(power)
        return 1 / (s**2 @ counts), error


class Game:
    """The decision: what may be read and earned in each context."""

    def __init__(self, setting):
        self.setting, self.horizon = setting, setting.horizon
        rng, worlds = np.random.default_rng([251115120, setting.instance]), []
        for h in range(setting.types):
            total = 0.75 + 0.2 * rng.random()
            cut = sorted(rng.random(1 + h % 3), reverse=True)
            parts = [c + 0.35 for c in cut]
            worlds.append([total * part / sum(parts) for part in parts])
        self.worlds = worlds
        self.stories = [[Story(w, ratio, setting.d) for w in worlds] for ratio in setting.ratios]

    def found(self, context, world, steps):
        """Return log2 of the effective dimension and what the head is worth."""
        samples = self.setting.head_ratio * self.setting.d
        dimension, error = self.stories[context][world].after(steps, samples, self.setting.ridge)
        return min(max(math.log2(dimension), 0.0), 12.0), max(0.0, 1 - error)

    def law(self, context, world, steps):
        """The chances of readings."""
        z = self.found(context, world, steps)[0]
        low = min(math.floor(z), 11)
        return {low: 1 - (z - low), low + 1: z - low}

    def optimum(self, context):
        """The best expected worth: a recursion over dialogues with weights of the worlds."""

        def value(t, steps, weights):
            best = sum(w * self.found(context, h, steps)[1] for h, w in weights.items())
            for gain in GAINS[1:]:
                more = steps + gain
                if t == self.horizon - 1:
                    earned = sum(w * self.found(context, h, more)[1] for h, w in weights.items())
                else:
                    laws = {h: self.law(context, h, more) for h in weights}
                    earned = 0.0
                    for reading in {r for law in laws.values() for r in law}:
                        left = {h: w * laws[h].get(reading, 0.0) for h, w in weights.items()}
                        left = {h: w for h, w in left.items() if w > 0}
                        if left:
                            earned += value(t + 1, more, left)
                best = max(best, earned)
            return best

        count = len(self.worlds)
        return value(0, 0, dict.fromkeys(range(count), 1 / count))

    def best_plan(self, context):
        """The best worth of a number of steps that is chosen beforehand."""
        reached = {0}
        for _ in range(self.horizon):
            reached |= {steps + gain for steps in reached for gain in GAINS}
        worth = [np.mean([self.found(context, h, steps)[1] for h in range(len(self.worlds))]) for steps in reached]
        return max(worth)

    def shown(self, context):
        """The optimum of one who is shown the world."""
        reached = {0}
        for _ in range(self.horizon):
            reached |= {steps + gain for steps in reached for gain in GAINS}
        return np.mean([max(self.found(context, h, t)[1] for t in reached) for h in range(len(self.worlds))])

    def play(self, policy, rng, episodes):
        """Play episodes; return rewards and steps, (episodes,) each."""
        contexts, count = len(self.stories), len(self.worlds)
        longest = max(GAINS) * self.horizon
        known = np.array(
            [[[self.found(c, h, t) for t in range(longest + 1)] for h in range(count)] for c in range(contexts)]
        )
        context, world = rng.integers(contexts, size=episodes), rng.integers(count, size=episodes)
        steps, over = np.zeros(episodes, int), np.zeros(episodes, bool)
        seen = np.zeros((episodes, 1 + 2 * self.horizon), np.uint8)
        seen[:, 0] = 1 + 4 + 13 + context
        for t in range(self.horizon):
            rows = policy.probs(seen)
            action = np.minimum((rows.cumsum(axis=1) < rng.random(episodes)[:, None]).sum(axis=1), 3)
            steps = np.where(over, steps, steps + np.array(GAINS)[action])
            over |= action == 0
            z = known[context, world, steps, 0]
            read = np.where(over, 0, np.floor(z + rng.random(episodes))).astype(int)
            seen[:, 1 + 2 * t], seen[:, 2 + 2 * t] = action + 1, 1 + 4 + read
        return known[context, world, steps, 1], steps
