"""Questions that the easy CoTs of the first task do not solve: rare CoTs do.

A question holds each valid CoT o independently with probability acc(o). Given that it holds no easy CoT, the hard ones
are in it as before, so with p_o the policy's probabilities and X_o ~ Bernoulli(acc(o)),

    pass@K given that no easy CoT is in the question = 1 - E (1 - sum over hard o of X_o p_o)^K.

It does not depend on P(easy), and grows with every p_o, for every K and every such question. So a policy that has
moved mass from every hard CoT to the easy one is behind the reference at every K; all mass on the easy one gives 0.

Source: arXiv 2511.07368 (rare CoTs solve hard questions).
"""

import dataclasses
from typing import Any

import numpy as np

from theorybench.envs.core.evidence.claim import Claim
from theorybench.envs.core.evidence.interval import Interval, mean_interval
from theorybench.envs.core.evidence.lab import Lab, run_seeds
from theorybench.envs.tree.markov_chain.experiments import Training, first_task_claim
from theorybench.envs.tree.markov_chain.metrics.cots import cot_probabilities
from theorybench.envs.tree.markov_chain.oracle import MarkovChainOracle
from theorybench.envs.tree.markov_chain.questions import Question
from theorybench.envs.tree.markov_chain.setting import TreeMarkovChain

#: The largest number of tries.
TRIES = 128


def valid_cots(setting: TreeMarkovChain, task: int) -> tuple[np.ndarray, np.ndarray]:
    """List the valid CoTs of a task.

    Returns:
        States int64 (M^(L-2), L), in lexicographic order, and whether each is easy, bool (M^(L-2),).
    """
    L, M = setting.L, setting.M
    states = np.empty((M ** (L - 2), L), np.int64)
    states[:, 0], states[:, -1] = setting.tree.starts[task], setting.tree.targets[task]
    states[:, 1:-1] = np.arange(len(states))[:, None] // M ** np.arange(L - 3, -1, -1) % M
    nodes = states[:, :-1] + [setting.shape.layer(position).start for position in range(L - 1)]
    return states, setting.tree.high[nodes, states[:, 1:]].all(axis=1)


def hard_question_passes(oracle: MarkovChainOracle, policy: Any, task: int, ks: list[int]) -> np.ndarray:
    """Give pass@K of a policy on questions of a task that hold no easy CoT, float64 (ks,).

    Args:
        oracle: of the tree.
        policy: any object with `probs`.
        task: index of the task.
        ks: the K, 1..512.
    """
    states, easy = valid_cots(oracle.setting, task)
    base, masses = (cot_probabilities(oracle, p, states[~easy]) for p in (oracle.reference_policy, policy))
    question = Question(base / oracle.setting.valid_mass[task])
    return np.array(question.pass_at(ks, masses, np.arange(len(masses))))


def draw_hard_questions(setting: TreeMarkovChain, count: int, seed: int) -> np.ndarray:
    """Draw fresh questions; give the prompts, int64 (n,), of those in which the environment rewards no easy CoT."""
    prompts = np.random.default_rng([6, seed]).integers(2**53, size=count)
    states, easy = valid_cots(setting, 0)
    for cot in states[easy]:
        prompts = prompts[setting.judge(prompts, np.tile(cot[1:] + 1, (len(prompts), 1))) == 0]
    return prompts


def counted_passes(lab: Lab, policy: Any, prompts: np.ndarray, ks: list[int], seed: int) -> np.ndarray:
    """Roll out `TRIES` CoTs for each prompt; estimate the mean pass@K without bias, float64 (ks,).

    With f of G tries failed, C(f, K) / C(G, K) is the share of K-subsets of the tries that all failed.
    """
    played = lab.simulate(policy, len(prompts) * TRIES, seed, prompts=prompts, group_size=TRIES)
    failed = (played.rewards.reshape(-1, TRIES) == 0).sum(axis=1, keepdims=True)
    drawn = np.arange(TRIES)
    missed = np.cumprod(np.maximum(failed - drawn, 0) / (TRIES - drawn), axis=1).mean(axis=0)
    return 1.0 - missed[np.array(ks) - 1]


@dataclasses.dataclass(frozen=True)
class ReferencePass:
    """pass@K of the reference on hard questions of the first task.

    Attributes:
        k: the K.
        blocks: independent simulations, for the interval.
        questions: drawn in each, before the easy ones are left out.
    """

    k: int
    blocks: int = 16
    questions: int = 2000

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """The exact value."""
        return float(hard_question_passes(oracle, oracle.reference_policy, 0, [self.k])[0])

    def measure(self, lab: Lab, seed: int) -> Interval:
        """Mean over simulations, and its interval."""
        seeds = run_seeds(seed, self.blocks)
        drawn = [draw_hard_questions(lab.setting, self.questions, s) for s in seeds]
        pairs = zip(drawn, seeds, strict=True)
        return mean_interval(
            np.array([counted_passes(lab, lab.oracle.reference_policy, p, [self.k], s)[0] for p, s in pairs])
        )


@dataclasses.dataclass(frozen=True)
class LeastLead:
    """The least lead of the reference's pass@K over a trained policy's on hard questions of the first task, over K.

    Attributes:
        training: how to train.
        ks: the K.
        questions: drawn for each run, before the easy ones are left out.
    """

    training: Training
    ks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    questions: int = 1000

    def predicted(self, oracle: MarkovChainOracle) -> float:
        """The lead over the flow: positive where it is ahead for every K."""
        oracle, ks = oracle, list(self.ks)
        policies = (oracle.reference_policy, self.training.flow(oracle.setting))
        return float(np.subtract(*(hard_question_passes(oracle, policy, 0, ks) for policy in policies)).min())

    def measure(self, lab: Lab, seed: int) -> Interval:
        """The least over K of the mean over runs and of its interval's ends; both policies face the same questions."""
        leads = []
        for run, policy in enumerate(self.training.policies(lab, seed), seed * self.training.seeds):
            prompts = draw_hard_questions(lab.setting, self.questions, run)
            both = (counted_passes(lab, p, prompts, list(self.ks), run) for p in (lab.oracle.reference_policy, policy))
            leads.append(np.subtract(*both))
        value, low, high = np.min([mean_interval(lead) for lead in np.transpose(leads)], axis=0)
        return Interval(value, low, high)


CLAIMS: tuple[Claim, ...] = (
    first_task_claim(
        "hard-questions",
        ReferencePass(32),
        source="rare CoTs solve hard questions",
        statement="Questions without the easy CoT are solved by rare ones: pass@32 of the reference on these",
        falsified_by="a verifier for whom the most common CoT alone is right",
        formula="1 - E (1 - sum over hard o of X_o pi(o))^32, X_o ~ Bernoulli(acc(o))",
    ),
    first_task_claim(
        "hard-questions-lead",
        LeastLead(Training(seeds=16)),
        source="rare CoTs solve hard questions",
        statement="On questions without the easy CoT the reference is ahead of the squeezed policy for every K "
        "from 1 to 128: "
        "its least lead in pass@K",
        falsified_by="training that leaves the hard CoTs their mass, such as reject-easy",
        formula="min over K of E (1 - sum of X_o p_o)^K - E (1 - sum of X_o pi(o))^K, o hard, p the flow",
        tolerance=0.0005,
        tolerance_reason="the mean of runs at a finite step size, as for squeezing",
    ),
)
