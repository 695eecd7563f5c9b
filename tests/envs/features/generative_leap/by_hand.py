"""GenerativeLeap told again from the text: circuits as dictionaries, episodes as recursions; shares no code with it."""

import functools
import itertools
import math

import numpy as np

SHAPES = ("0 01 012", "01 012", "0 012", "012", "01 2", "0 12", "0 01", "")
SEEN = {(1, 1): 2 / math.pi, (2, 2): 2 / math.pi**2, (3, 3): 8 / math.pi**3 / 3, (3, 1): 1 / math.pi / 3}


def overlap(k, e, n, d, cells):
    """Squared overlap; the symmetric matrix of degree 2 has a formula of its own."""
    if e <= 0:
        return 0.0
    if k == 2 and cells == 1:
        return max(0.0, 1 - d / (2 * n * e))
    p = {1: cells, 2: d * cells, 3: d * d * cells / 2}[k]
    t, c = e * n * k / p, d / p
    return 1 - c * (1 + t) / (t * (t + c)) if t * t > c else 0.0


class Story:
    """The game of one setting."""

    def __init__(self, setting):
        self.dims, self.horizon, self.budget, self.cost = setting.dims, setting.horizon, setting.budget, setting.cost
        small, large = setting.small, setting.large
        self.actions = [None, (1, small), (1, large), (2, small), (2, large), (3, large)]
        rng, self.circuits = np.random.default_rng([251020000, setting.instance]), []
        for shape in SHAPES:
            sets = shape.split()
            w, perm = 1 + rng.random(3), rng.permutation(3)
            total = w[: len(sets)].sum()
            shares = (0.9 * w[: len(sets)] / total).tolist()
            self.circuits.append([(x, {int(perm[int(i)]) for i in own}) for x, own in zip(shares, sets, strict=True)])

    def step(self, d, world, state, action):
        """Directions with squared overlaps and samples spent, before and after; and the reading."""
        known, spent = dict(state[0]), state[1]
        k, size = self.actions[action]
        if spent + size > self.budget:
            return state, 0
        found, weak = {}, False
        for i in {0, 1, 2} - known.keys():
            e = 0.0
            for weight, own in self.circuits[world]:
                if i in own:
                    for j in own & known.keys():
                        weight *= 2 / math.pi * math.asin(math.sqrt(known[j]))
                    e += weight**2 * SEEN.get((k, len(own - known.keys())), 0.0)
            o = overlap(k, e, size * d, d, 2 ** len(known))
            weak |= o > 0
            if o >= 0.5:
                found[i] = o
        return (tuple(sorted({**known, **found}.items())), spent + size), 1 + len(found) if found else int(weak)

    def pay(self, state):
        return round(sum(o for _, o in state[0]) / 3 - self.cost * state[1] / self.budget, 6)

    def value(self, d, policy, worlds=range(8)):
        """Mean payment of a policy: a function of the history, a tuple of (action, reading), to probabilities."""

        def ahead(groups, past):
            probs, total = policy(past), 0.0
            for action, chance in enumerate(probs):
                if not chance:
                    continue
                if action == 0:
                    total += chance * sum(self.pay(state) for _, state in groups)
                    continue
                after = {}
                for world, state in groups:
                    state, reading = self.step(d, world, state, action)
                    after.setdefault(reading, []).append((world, state))
                for reading, own in after.items():
                    last = len(past) == self.horizon - 1
                    paid = sum(self.pay(s) for _, s in own) if last else ahead(own, (*past, (action, reading)))
                    total += chance * paid
            return total

        start = [(world, ((), 0)) for world in worlds]
        return ahead(start, ()) / len(start)

    def optimum(self, d, worlds=range(8)):
        """The best that can be done where the worlds are not told apart."""

        @functools.cache
        def best(left, groups):
            found = sum(self.pay(state) for _, state in groups)
            for action in range(1, 6):
                after = {}
                for world, state in groups:
                    state, reading = self.step(d, world, state, action)
                    after.setdefault(reading, []).append((world, state))
                found = max(
                    found,
                    sum(
                        sum(self.pay(s) for _, s in own) if left == 1 else best(left - 1, tuple(own))
                        for own in after.values()
                    ),
                )
            return found

        start = tuple((world, ((), 0)) for world in worlds)
        return best(self.horizon, start) / len(start)

    def open_loop(self, d):
        """The best fixed sequence."""
        plans = itertools.product(range(6), repeat=self.horizon)
        return max(self.value(d, lambda past, own=own: np.eye(6)[own[len(past)]]) for own in plans)
