"""What arXiv 2505.23683 says of k-fold composition, as tests that run.

Learners see what any agent sees; only policies that are built on purpose, to look around the base model, know the
hidden permutations. Intervals are three standard errors wide on each side.
"""

import dataclasses
import math

import numpy as np

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.interval import Interval, interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.core.oracle import Oracle
from theorybench.envs.curriculum.k_fold.oracle import KFoldOracle
from theorybench.envs.curriculum.k_fold.setting import KFoldComposition
from theorybench.envs.curriculum.k_fold.training import Ascent, Gradient, Search, accuracy, key, staircase, tilted

#: Accuracy that counts as learnt.
ACCURACY = 0.9


@dataclasses.dataclass(frozen=True)
class Order:
    """The order at which J leaves the base model: the slope of ln(J - 1/N) in ln(tilt), all hops being tilted.

    Attributes:
        tilts: how far towards the right tables.
        episodes: at each.
    """

    tilts: tuple[float, ...] = (0.5, 0.7, 1.0)
    episodes: int = 60_000

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """K: each hop's factor (fix_j - 1)/(N - 1) is the tilt."""
        return float(oracle.setting.k)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the simulated gains."""
        setting = lab.setting
        x = np.log(self.tilts) - np.mean(np.log(self.tilts))
        weights, logs, errors = x / (x @ x), [], []
        for number, tilt in enumerate(self.tilts):
            share = accuracy(lab, tilted(lab, tilt), setting.k, key(seed, number), self.episodes)
            gain = share - 1 / setting.N
            logs.append(math.log(gain) if gain > 0 else -math.inf)
            errors.append(math.sqrt(share * (1 - share) / self.episodes) / max(gain, 1e-9))
        return interval(float(weights @ logs), float(np.sqrt(np.square(weights * errors).sum())))


@dataclasses.dataclass(frozen=True)
class OneMissing:
    """Accuracy on the full task with all hops known but one, which is uniform; averaged over which.

    Attributes:
        episodes: for each missing hop.
    """

    episodes: int = 40_000

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """1/N: the mixed derivatives of order k - 1 and all lower ones are 0."""
        return 1 / oracle.setting.N

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Simulate."""
        setting = lab.setting
        rewards = [
            lab.simulate(tilted(lab, np.arange(setting.k) != hop), self.episodes, key(seed, hop), stage=setting.k)
            for hop in range(setting.k)
        ]
        return mean_interval(np.concatenate([played.rewards for played in rewards]))


@dataclasses.dataclass(frozen=True)
class Decay:
    """Slope in k of the logarithm of a gradient's norm per visit, of policies that see x and the response.

    Attributes:
        gradient: how the norm is measured.
        hops: the k.
    """

    gradient: Gradient
    hops: tuple[int, ...] = (1, 2, 3, 4)

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """-ln(N - 1) / 2.

        Given the response, the chance that both chains agree is off 1/N by a factor that each look-up multiplies by 1,
        with probability 1/N, or by -1/(N - 1): by 1/(N - 1) in mean square.
        """
        return -math.log(oracle.setting.N - 1) / 2

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Fit the estimates."""
        x = np.array(self.hops) - np.mean(self.hops)
        weights, logs, errors = x / (x @ x), [], []
        for k in self.hops:
            squares = self.gradient.squares(lab.at(k=k), key(seed, k))
            mean = max(float(squares.mean()), 1e-12)
            logs.append(math.log(mean) / 2)
            errors.append(squares.std(ddof=1) / math.sqrt(len(squares)) / mean / 2)
        return interval(float(weights @ logs), float(np.sqrt(np.square(weights * errors).sum())))


@dataclasses.dataclass(frozen=True)
class Norm:
    """The gradient's norm per visit, squared.

    Attributes:
        gradient: of which policies.
    """

    gradient: Gradient

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """(1 - 1/N) / N^2 for tables on the whole prompt; 0 for tables q_j(v | u) of two hops or more."""
        setting = oracle.setting
        return 0.0 if self.gradient.sees == "table" else (1 - 1 / setting.N) / setting.N**2

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Average the estimates."""
        return mean_interval(self.gradient.squares(lab, seed))


@dataclasses.dataclass(frozen=True)
class SingleHops:
    """Mean score of a search on the full task, after k N^2 ln(1 / (1 - .9^(1/k))) episodes of single hops each.

    Attributes:
        search: which.
    """

    search: Search

    def predicted(self, oracle: KFoldOracle) -> float:
        """Give the probability that k given pairs, one of each hop, have been found.

        A score is prod_j (share found of hop j), whose mean that is; by inclusion and exclusion over the pairs, of
        which an episode finds each with probability 1/(k N^2). It is .9 but for their dependence.
        """
        setting = oracle.setting

        easy, k = round(oracle.curriculum_queries(ACCURACY)), setting.k
        chance = 1 / (k * setting.N**2)
        return sum((-1) ** m * math.comb(k, m) * (1 - m * chance) ** easy for m in range(k + 1))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Simulate searches, and then what they found."""
        return mean_interval(self.search.scores(lab, round(lab.oracle.curriculum_queries(ACCURACY)), seed))


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Score of REINFORCE on the full task with a share of its episodes on rung 1.

    Attributes:
        ascent: the learner.
        runs: how many.
    """

    ascent: Ascent
    runs: int = 4

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """1 with single hops among its episodes, 0 without."""
        return float(self.ascent.share > 0)

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train."""
        return mean_interval(np.array([self.ascent.train(lab, key(seed, run))[-1] for run in range(self.runs)]))


@dataclasses.dataclass(frozen=True)
class Staircase:
    """Mean over rungs r < k of accuracy on r hops less that on r + 1, after `curriculum-rlvr` has climbed rung r.

    Attributes:
        budget: episodes of a run.
        seeds: runs.
    """

    budget: int = 24_000
    seeds: int = 4

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """1 - 1/N: a rung teaches its last hop, and the next one is uniform."""
        return 1 - 1 / oracle.setting.N

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Train, and simulate all rungs after each."""
        runs = run_seeds(seed, self.seeds)
        found = staircase(lab, "curriculum-rlvr", runs, self.budget, episodes_per_update=200)
        below = np.arange(lab.setting.k - 1)
        return mean_interval((found[:, below, below] - found[:, below, below + 1]).mean(axis=1))


@dataclasses.dataclass(frozen=True)
class LearnersApart:
    """Share of runs that reach 90 % accuracy: of `curriculum-rlvr`, less that of `rlvr` with the same budget.

    Attributes:
        budget: episodes of a run.
        seeds: runs of each.
    """

    budget: int = 20_000
    seeds: int = 5

    def predicted(self, oracle: Oracle[KFoldComposition]) -> float:
        """One: `rlvr` has no gradient to begin with."""
        return 1.0

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Difference of shares; with every run alike the interval is a point."""
        numbers, shares = run_seeds(seed, self.seeds), []
        for agent in ("curriculum-rlvr", "rlvr"):
            policies = lab.train(agent, numbers, self.budget, episodes_per_update=200)
            reached = [
                accuracy(lab, policy, lab.setting.k, key(seed, run)) >= ACCURACY for run, policy in enumerate(policies)
            ]
            shares.append(float(np.mean(reached)))
        variance = sum(share * (1 - share) / self.seeds for share in shares)
        return interval(shares[0] - shares[1], math.sqrt(variance))


claim = ClaimMaker("k-fold", "arXiv 2505.23683")


PARTS = "a verifier that pays for the last hop alone"
CLAIMS: tuple[Claim, ...] = (
    claim(
        "order",
        Order(),
        source="lower bound",
        statement="With all k tables tilted towards the right ones J leaves 1/N as the k-th power of the tilt",
        falsified_by=PARTS,
        formula="k",
        parameters={"N": 4, "k": 3},
    ),
    claim(
        "order-answers",
        Order(),
        source="lower bound",
        statement="The same without chain of thought, for a policy that composes the tables in its head",
        falsified_by=PARTS,
        formula="k",
        parameters={"N": 4, "k": 3, "chain_of_thought": False},
    ),
    claim(
        "one-missing",
        OneMissing(),
        source="lower bound",
        statement="A policy that knows all hops but one is as often right as the base model",
        falsified_by=PARTS,
        formula="1/N",
    ),
    claim(
        "table-gradient",
        Norm(Gradient("table")),
        source="lower bound",
        statement="At the base model a table of hop and entry has no gradient on chains of two hops",
        falsified_by=PARTS,
        formula="0",
        parameters={"N": 4, "k": 2},
    ),
    claim(
        "one-hop-gradient",
        Norm(Gradient("response")),
        source="easy data",
        statement="On one hop it has one: the squared norm per visit is that of a bandit",
        falsified_by="a verifier that pays every tenth episode, whatever was done",
        formula="(1 - 1/N) / N^2",
        parameters={"N": 4, "k": 1},
    ),
    claim(
        "response-gradient",
        Decay(Gradient("response")),
        source="lower bound",
        statement="For policies that see x and the response the gradient's norm per visit falls geometrically in k",
        falsified_by=PARTS,
        formula="-ln(N - 1) / 2, the slope of its logarithm in k",
        parameters={"N": 3},
    ),
    claim(
        "prompt-gradient",
        Norm(Gradient("prompt")),
        source="lower bound, and what it does not say",
        statement="A table on whole prompts has the gradient of one hop at any k: what it cannot do is generalise",
        falsified_by="a verifier that pays every tenth episode, whatever was done",
        formula="(1 - 1/N) / N^2, its squared norm per visit",
        parameters={"N": 3, "k": 4},
    ),
    claim(
        "single-hops",
        SingleHops(Search()),
        source="upper bound with easy data",
        statement="About k N^2 ln(10 k) episodes of single hops, from uniform starts, teach the full task to a "
        "score of .9",
        falsified_by="single hops that all begin at the first",
        formula="sum_m (-1)^m C(k, m) (1 - m/(k N^2))^n, n = k N^2 ln(1/(1 - .9^(1/k)))",
        parameters={"N": 4, "k": 3},
    ),
    claim(
        "easy",
        Mixture(Ascent(1.0)),
        source="upper bound with easy data",
        statement="REINFORCE on single hops from uniform starts learns the full task",
        falsified_by="single hops that all begin at the first",
        formula="1",
        tolerance=0.05,
        tolerance_reason=".05, for a softmax of finite logits is not certain",
        parameters={"N": 6},
    ),
    claim(
        "mixture",
        Mixture(Ascent(0.5)),
        source="upper bound with a mixture",
        statement="Within the same budget it learns from a mixture of single hops and full tasks",
        falsified_by="single hops that all begin at the first",
        formula="1",
        tolerance=0.05,
        tolerance_reason=".05, for a softmax of finite logits is not certain",
        parameters={"N": 6},
    ),
    claim(
        "hard",
        Mixture(Ascent(0.0)),
        source="lower bound",
        statement="Within the same budget it learns nothing from full tasks alone",
        falsified_by="a verifier that pays for each right look-up",
        formula="0",
        tolerance=0.01,
        tolerance_reason=".01, for noise moves tables a little",
        parameters={"N": 6},
    ),
    claim(
        "learners",
        LearnersApart(),
        source="easy-to-hard data against hard data alone",
        statement="Over the ladder of rungs REINFORCE learns the full task to 90 % accuracy, on the full task "
        "alone it does not",
        falsified_by="a ladder whose rungs are all the full task, or climbing in both",
        formula="1",
        tolerance=0.2,
        tolerance_reason="one run in five may differ",
        parameters={"N": 6},
    ),
    claim(
        "staircase",
        Staircase(),
        source="curriculum",
        statement="With starts at the first hop rung r teaches hop r alone: accuracy is 1 up to r hops and 1/N beyond",
        falsified_by="starts at all hops: the first rung then teaches all",
        formula="1 - 1/N",
        tolerance=0.05,
        tolerance_reason=".05, for runs stop short of certainty",
        parameters={"N": 6, "k": 4, "starts": "first"},
    ),
)
