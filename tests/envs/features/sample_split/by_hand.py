"""Splits of samples from their story alone: outliers by bisection, a recursion on tuples, and episodes."""

import functools
import itertools
import math

import numpy as np

C0, Z = math.sqrt(2 / math.pi), 0.6744897501960817
K0 = 4 * Z * math.exp(-Z * Z / 2) / math.sqrt(2 * math.pi)


def overlap(q, gamma):
    """Return the residue of the resolvent along a spike at its pole outside of the bulk, 0 if there is none."""

    def energy(g):
        return 1 / g + gamma * g / (1 - (gamma * g) ** 2)

    def inverse(g):
        return energy(g) - (q + gamma * g) / (1 - (gamma * g) ** 2)

    def bisected(function, low, high):
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if function(middle) > 0 else (low, middle)
        return (low + high) / 2

    # The bulk's edge, where dE/dg = 0: beyond it E falls in g.
    most = bisected(lambda g: 1 / g**2 - gamma * (1 + (gamma * g) ** 2) / (1 - (gamma * g) ** 2) ** 2, 1e-9, 1 / gamma)
    if inverse(most) >= 0:
        return 0.0
    g = bisected(inverse, 1e-9, most)
    step = 1e-5 * min(g, most - g)
    rise = (energy(g + step) - energy(g - step)) / (inverse(g + step) - inverse(g - step))
    return max(0.0, rise)


class Story:
    """The numbers of a setting, and what follows from them."""

    def __init__(self, setting):
        self.single, self.r = setting.mode == "single", 1 if setting.mode == "single" else 2
        self.D = setting.d * (setting.d + 1) // 2
        self.budget, self.T, self.K = setting.budget, setting.chunks, setting.downstream
        rng, self.worlds = np.random.default_rng([231113774, setting.instance]), []
        for _ in range(setting.types):
            u, order = rng.random(3), rng.permutation(3)
            if self.single:
                base = [((0.45 + 0.3 * u[0],), (0.2,)), ((0.1 + 0.15 * u[1],), (0.5,)), ((0,), (0.6 + 0.3 * u[2],))]
            else:
                third = (0.35 + 0.13 * u[2], 0.48 - 0.13 * u[2])
                base = [((0.45 + 0.3 * u[0], 0), (0, 0.2)), ((0, 0.45 + 0.3 * u[1]), (0.2, 0)), ((0, 0), third)]
            self.worlds.append([base[place] for place in order])

    @functools.cache  # noqa: B019
    def recovered(self, world, counts):
        found = []
        for j in range(self.r):
            snr = 0.0
            for (alpha, beta), count in zip(self.worlds[world], counts, strict=True):
                n = count * self.budget / self.T
                snr += n * (alpha[j] * C0) ** 2
                if n and beta[j] and not self.single:
                    o = overlap(beta[j] * K0, 1 / n)
                    snr += o / (1 - o)
            found.append(snr / (1 + snr))
        return tuple(found)

    def explained(self, alpha, beta, rho):
        return sum((a * C0) ** 2 * x + (b * K0) ** 2 * x * x / 2 for a, b, x in zip(alpha, beta, rho, strict=True))

    @functools.cache  # noqa: B019
    def reading(self, world, counts, source):
        """Return the lower level, and the probability of the next one."""
        z = round(min(6.0, 6 * self.explained(*self.worlds[world][source], self.recovered(world, counts))), 6)
        level = min(math.floor(z), 5)
        return level, z - level

    @functools.cache  # noqa: B019
    def worth(self, world, counts, K):
        left, P = (self.T - sum(counts)) * self.budget * self.D / self.T / K, 2 * self.r + 1
        if left <= P + 1:
            return 0.0
        task = (0.5 / self.r,) * self.r, (0.4 / self.r,) * self.r
        best = self.explained(*task, self.recovered(world, counts))
        return max(0.0, best - P * (1 - best) / (left - P - 1)) / self.explained(*task, (1,) * self.r)

    def solve(self, K):
        """Return the optimum with K downstream tasks, by recursion over what may be read."""
        seen = {}

        def best(counts, weights):
            """Return the best value times the total of unnormalised weights of worlds."""
            total = sum(weights)
            key = counts, tuple(round(weight / total, 9) for weight in weights)
            if key in seen:
                return seen[key] * total
            options = [sum(weight * self.worth(world, counts, K) for world, weight in enumerate(weights))]
            for source in range(3):
                more = tuple(count + (place == source) for place, count in enumerate(counts))
                if sum(more) > self.T:
                    break
                if sum(more) == self.T:
                    options.append(sum(weight * self.worth(world, more, K) for world, weight in enumerate(weights)))
                    continue
                after = {}
                for world, weight in enumerate(weights):
                    level, up = self.reading(world, more, source)
                    for number, chance in ((level, 1 - up), (level + 1, up)):
                        if weight * chance > 0:
                            after.setdefault(number, [0.0] * len(weights))[world] = weight * chance
                options.append(sum(best(more, own) for own in after.values()))
            seen[key] = max(options) / total
            return max(options)

        return best((0, 0, 0), [1 / len(self.worlds)] * len(self.worlds))

    def plans(self, K):
        """Return what each split earns in each world: (splits, worlds)."""
        splits = [own for own in itertools.product(range(self.T + 1), repeat=3) if sum(own) <= self.T]
        return np.array([[self.worth(world, own, K) for world in range(len(self.worlds))] for own in splits])

    def play(self, policy, prompts, rng):
        """Play episodes; return rewards and the chunks that were spent on sources."""
        n, H = len(prompts), len(self.worlds)
        shown = np.zeros((n, 1 + 2 * self.T), np.int64)
        shown[:, 0] = 12 + prompts // H
        counts, over = [[0, 0, 0] for _ in range(n)], np.zeros(n, bool)
        for t in range(self.T):
            probs = policy.probs(shown)
            actions = (rng.random((n, 1)) >= probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
            for place in np.flatnonzero(~over).tolist():
                action = int(actions[place])
                if action == 0:
                    over[place] = True
                    continue
                counts[place][action - 1] += 1
                level, up = self.reading(int(prompts[place]) % H, tuple(counts[place]), action - 1)
                read = level + int(rng.random() < up)
                shown[place, 2 * t + 1 : 2 * t + 3] = 1 + action, 5 + read
        rewards = [
            self.worth(int(prompt) % H, tuple(own), self.K[int(prompt) // H])
            for prompt, own in zip(prompts, counts, strict=True)
        ]
        return np.array(rewards), np.array(counts).sum(axis=1)
