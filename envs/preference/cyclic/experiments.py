"""What claims and studies of CyclicPreference measure: fits to labels, learners of the game, rounds without noise."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval, point
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.preference.cyclic import games
from theorybench.envs.preference.cyclic.oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic.setting import CyclicPreference

#: Uniform pairs that a Bradley-Terry fit sees.
PAIRS = 100_000


@dataclasses.dataclass(frozen=True)
class Tally:
    """Labels of pairs, counted.

    Attributes:
        pairs: how often i and j were compared, float64 (X, K, K), symmetric.
        wins: the share in which i won, likewise; 1/2 where they were not compared.
    """

    pairs: np.ndarray
    wins: np.ndarray

    @classmethod
    def of(cls, lab: Lab, seed: int, count: int = PAIRS) -> "Tally":
        """Count the labels of uniform pairs."""
        contexts, responses = lab.setting.num_contexts, lab.setting.num_responses
        uniform = lab.oracle.policy(np.full((contexts, responses), 1 / responses))
        episodes = lab.simulate(uniform, count, seed)
        first, second = episodes.actions[:, 0].T
        cells, shape = (episodes.prompts * responses + first) * responses + second, (contexts, responses, responses)
        named = np.bincount(cells, minlength=np.prod(shape)).reshape(shape)
        won = np.bincount(cells, episodes.rewards + 0.5, np.prod(shape)).reshape(shape)
        pairs = named + np.swapaxes(named, 1, 2)
        wins = won + np.swapaxes(named - won, 1, 2)
        return cls(pairs.astype(np.float64), np.where(pairs > 0, wins / np.maximum(pairs, 1), 0.5))

    @property
    def favourites(self) -> np.ndarray:
        """The response that a Bradley-Terry fit to the labels likes best in each context, int64 (X,)."""
        return games.bradley_terry(self.wins, self.pairs).argmax(axis=1)

    def against(self, probs: np.ndarray, responses: np.ndarray) -> Interval:
        """Estimate how often a policy (X, K) beats one response of each context (X,), mean over contexts."""
        at = np.arange(len(responses))
        # A response ties with itself, without a label.
        rates, counts = self.wins[at, :, responses], np.maximum(self.pairs[at, :, responses], 1)
        noise = np.where(np.arange(probs.shape[1]) == responses[:, None], 0.0, rates * (1 - rates) / counts)
        value = float((probs * rates).sum(axis=1).mean())
        return interval(value, float(np.sqrt((probs**2 * noise).sum()) / len(probs)))


@dataclasses.dataclass(frozen=True)
class BordaFavourite:
    """Share of contexts in which a Bradley-Terry fit to uniform pairs likes the Borda winner best."""

    def predicted(self, oracle: Oracle[CyclicPreference]) -> float:
        """All."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit, compare."""
        share = float((Tally.of(lab, seed).favourites == lab.oracle.borda_winners).mean())
        return point(share)


@dataclasses.dataclass(frozen=True)
class FavouriteMargin:
    """Exploitability of that favourite.

    Attributes:
        place: cyclicity, as a share of the way from 0 to c* (below 1), or 1 + a share of the way from there to 1.
    """

    place: float

    def cyclicity(self, setting: CyclicPreference) -> float:
        """The cyclicity."""
        thresholds = CyclicPreferenceOracle(setting).thresholds
        least, most = thresholds.min(), thresholds.max()
        return float(self.place * least if self.place < 1 else most + (self.place - 1) * (1 - most))

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """The oracle's margin: 0 up to c*."""
        return oracle.margin(self.cyclicity(oracle.setting))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit to labels; what the best response against the favourite wins is exact."""
        there = lab.at(cyclicity=self.cyclicity(lab.setting))
        favourites = there.oracle.pure(Tally.of(there, seed).favourites)
        lost = there.oracle.evaluate(favourites, ["exploitability"])["exploitability"]
        return point(lost)


@dataclasses.dataclass(frozen=True)
class Threshold:
    """The cyclicity from which on the favourite can be exploited, by bisection.

    Attributes:
        halvings: of the interval from 0 to 1.
    """

    halvings: int = 9

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """c*."""
        return oracle.threshold

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit at each cyclicity that is asked for."""
        low, high = 0.0, 1.0
        for number in range(self.halvings):
            middle = 0.5 * (low + high)
            there = lab.at(cyclicity=middle)
            favourites = there.oracle.pure(Tally.of(there, seed * self.halvings + number).favourites)
            beaten = there.oracle.evaluate(favourites, ["exploitability"])["exploitability"] > 1e-9
            low, high = (low, middle) if beaten else (middle, high)
        return Interval(0.5 * (low + high), low, high)


@dataclasses.dataclass(frozen=True)
class NashWinRate:
    """How often the von Neumann winner beats that favourite, counted in labels."""

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """1/2 where the Borda winner is in its support; else more."""
        return oracle.evaluate(oracle.pure(oracle.borda_winners), ["nash_win_rate"])["nash_win_rate"]

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit to some labels, count others: the favourite is not chosen for its luck."""
        favourites = Tally.of(lab, 2 * seed).favourites
        return Tally.of(lab, 2 * seed + 1).against(lab.oracle.nash_policy.table, favourites)


@dataclasses.dataclass(frozen=True)
class Learnt:
    """A metric, or the score, of a learner.

    Attributes:
        agent: its name.
        target: whose value is predicted: "optimum" or "dpo-limit" of the oracle, "margin" of the Borda winner.
        metric: of the oracle, or "score".
        budget: labels of a run.
        seeds: number of runs.
        options: hyper-parameters.
    """

    agent: str
    target: str
    metric: str
    budget: int
    seeds: int = 4
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """The target's."""
        if self.target == "margin":
            return oracle.margin()
        return read(oracle, oracle.optimal_policy if self.target == "optimum" else oracle.dpo_limit, self.metric)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean of the runs."""
        policies = lab.train(self.agent, run_seeds(seed, self.seeds), self.budget, **self.options)
        return mean_interval(np.array([read(lab.oracle, policy, self.metric) for policy in policies]))


@dataclasses.dataclass(frozen=True)
class Course:
    """What becomes of mirror descent, compared with the same rounds without noise.

    Attributes:
        agent: "sppo" or "nash-md".
        metric: "last" or "mean": exploitability of the last policy, or of the mean of all; "distance":
            KL(Nash || last policy); or "score" of the last.
        weight: of the reference in the opponent; 0 for self-play.
        step: eta.
        rounds: how many; a power of two, whose shares of the budget are exact, so that none is missed.
        budget: labels of a run.
        seeds: number of runs.
    """

    agent: str
    metric: str
    weight: float
    step: float
    rounds: int
    budget: int
    seeds: int = 4

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """The same rounds with exact win rates."""
        tables = exact_rounds(oracle.setting, [(self.weight, self.step)] * self.rounds)
        return self.value(oracle, tables)

    def value(self, oracle: CyclicPreferenceOracle, tables: np.ndarray) -> float:
        """Read the metric of the policies after each round, (T, X, K)."""
        if self.metric == "distance":
            held = oracle.nash_policy.table
            return float((held * np.log(np.where(held > 0, held / tables[-1], 1.0))).sum(axis=1).mean())
        if self.metric == "score":
            return oracle.score(oracle.policy(tables[-1]))
        policy = oracle.policy(tables.mean(axis=0) if self.metric == "mean" else tables[-1])
        return read(oracle, policy, "exploitability")

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train, keeping the policies of all rounds."""
        options: dict[str, Any] = {"rounds": self.rounds, "eta": self.step}
        if self.agent == "nash-md":
            options["mixture"] = self.weight
        traces = lab.trace(self.agent, run_seeds(seed, self.seeds), self.budget, points=self.rounds, **options)
        tables = [np.array([lab.oracle.table(policy) for _, policy in trace]) for trace in traces]
        return mean_interval(np.array([self.value(lab.oracle, own) for own in tables]))


def exact_rounds(setting: CyclicPreference, schedule: list[tuple[float, float]]) -> np.ndarray:
    """Return the policies of mirror descent with exact win rates from the reference on, float64 (T, X, K).

    A round with the weight w and the step eta goes from pi_t to pi^m exp(eta P(. > pi^m)) / Z, where
    pi^m ~ pi_t^(1 - w) pi_ref^w.
    """
    wins, reference = setting.tables
    base = np.log(reference)
    logits, found = base, []
    for weight, step in schedule:
        mixed = (1 - weight) * logits + weight * base
        logits = mixed + step * games.win_rates(wins, softmax(mixed))
        found.append(softmax(logits))
    return np.array(found)


def read(oracle: CyclicPreferenceOracle, policy: Any, metric: str) -> float:
    """Return a metric of a policy, or its "score"."""
    return oracle.score(policy) if metric == "score" else oracle.evaluate(policy, [metric])[metric]
