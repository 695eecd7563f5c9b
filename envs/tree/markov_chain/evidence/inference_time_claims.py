"""What arXiv 2511.07368 says of outcome and process rewards on TreeMarkovChain, as tests that run.

Predictions are exact laws under the expected correctness itself (`metrics.inference_time`). Measurements know
the rewards of roll-outs alone: registered agents learn their reward model on the first task, or answers of the base
chain are drawn, scored and selected here. Intervals are three standard errors wide on each side.
"""

import dataclasses
import itertools
from functools import partial
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.experiments import Prediction, TrainedMetric
from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab
from theorybench.envs.core.selection import best_of_n, tilt
from theorybench.envs.tree.markov_chain.markov_class import node_policy
from theorybench.envs.tree.markov_chain.metrics.inference_time import outcome_shares, process_rows
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle

#: Answers of which one is kept in the claim about P(easy).
SAMPLES = 4
#: Strength of the tilt in the claim about the Doob transform.
INVERSE_TEMPERATURE = 1.0


def _trained(
    metric: str, agent: str, prediction: Prediction, budget: int = 100_000, **hyperparameters: Any
) -> TrainedMetric:
    """A metric of an agent that learns rewards from roll-outs and leaves the base chain as it is."""
    return TrainedMetric(
        agent=agent,
        metric=metric,
        prediction=prediction,
        budget=budget,
        seeds=8,
        hyperparameters=hyperparameters,
    )


@dataclasses.dataclass(frozen=True)
class HardShare:
    """By how much the share of hard CoTs among the valid ones falls, at least, when best-of-N doubles its answers.

    Attributes:
        sizes: the N, each twice the one before.
        scored: roll-outs from which the score of each CoT is learned.
        questions: groups of as many answers as the largest N.
        batches: parts of the groups, for the interval.
    """

    sizes: tuple[int, ...] = (1, 2, 4, 8)
    scored: int = 2**18
    questions: int = 2**17
    batches: int = 16

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """The largest ratio of the share to that of half as many answers; below 1 it falls with every doubling."""
        shares = [outcome_shares(oracle, 0, partial(best_of_n, samples=n)).hard_of_valid for n in self.sizes]
        return max(after / before for before, after in itertools.pairwise(shares))

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Score the base chain's CoTs by their mean reward, keep the best of its answers, count the hard ones."""
        setting = lab.setting
        reference, numbers = lab.oracle.reference_policy, setting.M ** np.arange(setting.L - 1)
        scored = lab.simulate(reference, self.scored, 2 * seed)
        paths = scored.actions @ numbers
        visits = np.bincount(paths, minlength=setting.M ** (setting.L - 1))
        scores = np.bincount(paths, scored.rewards, len(visits)) / np.maximum(visits, 1)
        answers = lab.simulate(reference, self.questions * self.sizes[-1], 2 * seed + 1)
        nodes = setting.nodes(answers.observations.reshape(-1, setting.L)).reshape(answers.actions.shape)
        easy = setting.tree.high[nodes, answers.actions].all(axis=1).reshape(self.questions, -1)
        valid = (answers.actions[:, -1] == setting.tree.targets[0]).reshape(self.questions, -1)
        each, score = np.arange(self.questions), scores[answers.actions @ numbers].reshape(self.questions, -1)
        shares = []
        for size in self.sizes:
            kept = each, score[:, :size].argmax(axis=1)
            hard, right = (x[kept].reshape(self.batches, -1).sum(axis=1) for x in (valid & ~easy, valid))
            shares.append(hard / right)
        ratios = np.stack([after / before for before, after in itertools.pairwise(shares)])
        return mean_interval(ratios[ratios.mean(axis=1).argmax()])


def _best_of_n_easy(oracle: MarkovChainOracle) -> float:
    return outcome_shares(oracle, 0, partial(best_of_n, samples=SAMPLES)).easy


def _greedy_pass(oracle: MarkovChainOracle) -> float:
    policy = node_policy(oracle.setting, process_rows(oracle.setting, 0, greedy=True))
    return oracle.evaluate(policy, ["task_0/pass@128"])["task_0/pass@128"]


def _tilted_retention(oracle: MarkovChainOracle) -> float:
    tilted, base = (
        outcome_shares(oracle, 0, partial(tilt, inverse_temperature=value)) for value in (INVERSE_TEMPERATURE, 0.0)
    )
    return tilted.hard / base.hard


claim = ClaimMaker("tree", "arXiv 2511.07368", parameters={"train_tasks": [0]})


CLAIMS: tuple[Claim, ...] = (
    claim(
        "best-of-n",
        _trained("task_0/easy", "best-of-n", _best_of_n_easy, samples=SAMPLES),
        source="outcome rewards",
        statement="Best of 4 by expected correctness keeps the easy CoT whenever one of the answers is it",
        falsified_by="a judge of accuracy, for whom all valid CoTs are equally right",
        formula="1 - (1 - P(easy))^4",
        tolerance=1e-9,
        tolerance_reason="rounding, since the law needs the order of the scores alone",
    ),
    claim(
        "best-of-n-hard-share",
        HardShare(),
        source="outcome rewards",
        statement="With every doubling of N from 1 to 8, best-of-N lowers the share of the hard CoTs among the "
        "valid ones: the "
        "largest ratio of two such shares",
        falsified_by="a judge of accuracy, for whom all valid CoTs are equally right",
        formula="max over N of s(2N) / s(N), s = P(hard) / P(valid), P(o) = pi(o) (F_l^N - F_{l-1}^N) / q_l",
        tolerance=0.005,
        tolerance_reason="CoTs with equal scores in theory are ordered by chance",
    ),
    claim(
        "prm-greedy",
        _trained("task_0/pass@128", "prm-greedy", _greedy_pass, budget=20_000),
        source="process rewards",
        statement="Greedy search by process rewards answers with the most common CoT alone: with 128 tries it "
        "solves no more "
        "questions than with one",
        falsified_by="a judge of accuracy: the steps that most often lead to the target are others",
        formula="acc(easy)",
        tolerance=1e-9,
        tolerance_reason="rounding",
    ),
    claim(
        "dprm-sample",
        _trained("task_0/retention", "dprm-sample", _tilted_retention, inverse_temperature=INVERSE_TEMPERATURE),
        source="Doob h-transform",
        statement="Sampling by the Doob transform at lambda = 1 keeps the hard CoTs that the tilted base chain "
        "has, the limit of "
        "training with a KL penalty of weight 1: their mass over the base chain's",
        falsified_by="a judge of accuracy, or sampling by the process rewards themselves",
        formula="sum over hard o of pi(o) exp(acc(o)) / (Z P(hard)), Z = E[exp(acc)]",
        tolerance=0.001,
        tolerance_reason="bias of exp(score) at the scores' learning error",
    ),
)
