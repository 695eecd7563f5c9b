"""Experiments of CyclicPreference: Bradley-Terry fits to labels, learners of the game, mirror descent without noise."""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.experiments import SampleMean, SampleShare, metric_of
from theorybench.envs.core.evidence.interval import MISS, Interval, interval, share_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.numerics import divergence, softmax
from theorybench.envs.core.policy import TablePolicy
from theorybench.envs.preference.cyclic import games
from theorybench.envs.preference.cyclic.oracle import CyclicPreferenceOracle
from theorybench.envs.preference.cyclic.setting import CyclicPreference

#: Number of uniform pairs to which Bradley-Terry scores are fitted.
PAIRS = 100_000


@dataclasses.dataclass(frozen=True)
class Tally:
    """Counts of the labels of pairs."""

    pairs: np.ndarray  # how often i and j were compared, float64 (X, K, K), symmetric
    wins: np.ndarray  # the share of them that i won, likewise; 1/2 where they were not compared

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
        """The response of highest Bradley-Terry score in each context, int64 (X,)."""
        return games.bradley_terry(self.wins, self.pairs).argmax(axis=1)

    def against(self, probs: np.ndarray, responses: np.ndarray) -> Interval:
        """Estimate how often a policy (X, K) beats one response of each context (X,), mean over contexts."""
        at = np.arange(len(responses))
        # A response ties with itself, without a label.
        rates, counts = self.wins[at, :, responses], np.maximum(self.pairs[at, :, responses], 1)
        noise = np.where(np.arange(probs.shape[1]) == responses[:, None], 0.0, rates * (1 - rates) / counts)
        value = float((probs * rates).sum(axis=1).mean())
        return interval(value, float(np.sqrt((probs**2 * noise).sum()) / len(probs)))


def favourite(lab: Lab, seed: int, count: int = PAIRS) -> TablePolicy:
    """Return the policy that always answers with the favourite of a Bradley-Terry fit to uniform pairs."""
    policy: TablePolicy = lab.oracle.pure(Tally.of(lab, seed, count).favourites)
    return policy


def _at_borda(lab: Lab, seed: int) -> np.ndarray:
    found: np.ndarray = Tally.of(lab, seed, PAIRS * lab.setting.num_contexts).favourites == lab.oracle.borda_winners
    return found


#: Share of contexts in which the favourite is the Borda winner.
BORDA_FAVOURITE = SampleShare(sample=_at_borda, prediction=lambda oracle: 1.0)


def reply_gains(setting: CyclicPreference) -> np.ndarray:
    """Return what the best reply to the best score wins beyond one half, c a - (1 - c) (sigma(d) - 1/2), float64 (X,).

    d is how far the best score is above the first response that the table S lets beat it: the best reply, unless c is
    small. Negative where the score counts for more than the table.
    """
    place = 1 if setting.structure == "rival" else setting.num_responses // 2 + 1
    scores = np.sort(setting.scores, axis=1)[:, ::-1]
    lead = 1 / (1 + np.exp(scores[:, place] - scores[:, 0])) - 0.5
    return setting.cyclicity * setting.strength - (1 - setting.cyclicity) * lead


def best_reply_wins(lab: Lab, seed: int, count: int = PAIRS) -> np.ndarray:
    """Fit a favourite to some labels, choose the reply by others, and let the two meet; True where the reply wins.

    Both are chosen by so many more labels than are counted that near ties between responses cost the mean less than
    its standard error.

    Returns:
        bool (n,), one for each of the about count / 2 comparisons of the two in a random context.
    """
    fit, choice, duel = run_seeds(seed, 3)
    favourites = Tally.of(lab, fit, 4 * count).favourites
    at = np.arange(len(favourites))
    rates = Tally.of(lab, choice, 8 * count).wins[at, :, favourites]
    rates[at, favourites] = -np.inf
    replies = rates.argmax(axis=1)
    each = np.eye(lab.setting.num_responses)
    episodes = lab.simulate(lab.oracle.policy((each[favourites] + each[replies]) / 2), count, duel)
    first, second = episodes.actions[:, 0].T
    reply, other = replies[episodes.prompts], favourites[episodes.prompts]
    won = episodes.rewards > 0
    ahead, behind = (first == reply) & (second == other), (first == other) & (second == reply)
    wins: np.ndarray = np.where(ahead, won, ~won)[ahead | behind]
    return wins


def best_reply(place: float) -> SampleMean:
    """Compare what the best reply to a favourite wins beyond one half, counted in labels, with its closed form.

    The cyclicity is `place` times c* if that is below 1, else the share `place` - 1 of the way from c* to 1.
    """

    def cyclicity(oracle: CyclicPreferenceOracle) -> float:
        least, most = oracle.thresholds.min(), oracle.thresholds.max()
        return float(place * least if place < 1 else most + (place - 1) * (1 - most))

    def predicted(oracle: CyclicPreferenceOracle) -> float:
        return float(reply_gains(dataclasses.replace(oracle.setting, cyclicity=cyclicity(oracle))).mean())

    def sample(lab: Lab, seed: int) -> np.ndarray:
        return best_reply_wins(lab.at(cyclicity=cyclicity(lab.oracle)), seed) - 0.5

    return SampleMean(sample=sample, prediction=predicted)


@dataclasses.dataclass(frozen=True)
class Threshold:
    """The cyclicity above which the best reply to the favourite wins most of its comparisons, by bisection."""

    rounds: int = 9  # of the bisection, at most

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """c*, where c a = (1 - c) (sigma(d) - 1/2)."""
        leads = -reply_gains(dataclasses.replace(oracle.setting, cyclicity=0.0))
        return float((leads / (leads + oracle.setting.strength)).min())

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Halve the interval until labels do not tell any more on which side c* is; decisions share the level."""
        low, high = 0.0, 1.0
        for run in run_seeds(seed, self.rounds):
            middle = 0.5 * (low + high)
            rate = share_interval(best_reply_wins(lab.at(cyclicity=middle), run), MISS / self.rounds)
            if rate.low <= 0.5 <= rate.high:
                break
            low, high = (low, middle) if rate.low > 0.5 else (middle, high)
        return Interval(0.5 * (low + high), low, high)


@dataclasses.dataclass(frozen=True)
class NashWinRate:
    """How often the von Neumann winner beats the favourite, counted in labels."""

    def predicted(self, oracle: CyclicPreferenceOracle) -> float:
        """1/2 where the Borda winner is in its support; else more."""
        return metric_of(oracle, oracle.pure(oracle.borda_winners), "nash_win_rate")

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit to some labels and count others, so that the favourite is not chosen for its luck."""
        favourites = Tally.of(lab, 2 * seed).favourites
        return Tally.of(lab, 2 * seed + 1).against(lab.oracle.nash_policy.table, favourites)


@dataclasses.dataclass(frozen=True)
class MirrorDescent:
    """The policies of an agent that runs rounds of mirror descent, and the same rounds without noise."""

    agent: str  # "sppo" or "nash-md"
    weight: float  # of the reference in the opponent; 0 for self-play
    step: float  # eta
    rounds: int  # number of rounds; a power of two, so that rounds end exactly at shares of the budget
    budget: int  # labels of a run
    seeds: int = 16  # number of runs

    def compared(self, metric: str) -> SampleMean:
        """Compare a `reading` of the policies of each run with that of the same rounds with exact win rates."""

        def predicted(oracle: CyclicPreferenceOracle) -> float:
            return reading(oracle, exact_rounds(oracle.setting, [(self.weight, self.step)] * self.rounds), metric)

        def sample(lab: Lab, seed: int) -> np.ndarray:
            return np.array([reading(lab.oracle, tables, metric) for tables in self.tables(lab, seed)])

        return SampleMean(sample=sample, prediction=predicted)

    def tables(self, lab: Lab, seed: int) -> list[np.ndarray]:
        """Train; return the policies after each round, float64 (T, X, K), of each run."""
        options: dict[str, Any] = {"rounds": self.rounds, "eta": self.step}
        if self.agent == "nash-md":
            options["mixture"] = self.weight
        traces = lab.trace(self.agent, run_seeds(seed, self.seeds), self.budget, points=self.rounds, **options)
        return [np.array([lab.oracle.table(policy) for _, policy in trace]) for trace in traces]


def reading(oracle: CyclicPreferenceOracle, tables: np.ndarray, metric: str) -> float:
    """Return a metric of the policies after each round, (T, X, K).

    "last" and "mean" are the exploitability of the last policy and of the mean of all; "distance" is
    KL(Nash || last policy), and "score" the score of the last.
    """
    if metric == "distance":
        return float(divergence(oracle.nash_policy.table, tables[-1]).mean())
    if metric == "score":
        return oracle.score(oracle.policy(tables[-1]))
    table = tables.mean(axis=0) if metric == "mean" else tables[-1]
    return float(games.exploitability(oracle.setting.tables.wins, table).mean())


def exact_rounds(setting: CyclicPreference, schedule: list[tuple[float, float]]) -> np.ndarray:
    """Return the policies of mirror descent with exact win rates, started at the reference, float64 (T, X, K).

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
