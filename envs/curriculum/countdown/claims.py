"""Theory of search and learning on Countdown, as executable claims.

Predictions follow from p(s), the base model's success from every state by the solver's dynamic programming; they are
measured by rollouts. Intervals are three standard errors wide on each side.
"""

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.experiments import SampleMean
from theorybench.envs.curriculum.countdown.experiments import (
    BETA,
    BestOf,
    HintsAreStages,
    SearchCost,
    SimulatedSuccess,
    learnt_by_stages,
)

claim = ClaimMaker("countdown")
_SOLVER = "dynamic programming over multisets"
_SEARCH = "arXiv 2511.07372, search by stages"
#: Few prompts whose solutions are rare: direct search is long, search by stages short.
_RARE = {"prompts": 16, "candidates": 4}

CLAIMS: tuple[Claim, ...] = (
    claim(
        "base-success",
        SimulatedSuccess(2**18, tilted=False),
        source=_SOLVER,
        statement="Uniform legal moves win with the probability that the solver computes, with sums and products "
        "counted twice",
        falsified_by="moves drawn otherwise, such as with sums and products counted once",
        formula="mean of p(s)",
    ),
    claim(
        "tilt",
        SimulatedSuccess(2**17, tilted=True),
        source="A*-PO (arXiv 2505.20686), the optimum of the KL-penalised objective",
        statement=f"Moves re-weighted by V*(s') win as often as rollouts weighted by exp(reward / beta), beta = {BETA}",
        falsified_by="a policy of another temperature",
        formula="mean of p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
    ),
    claim(
        "best-of",
        BestOf(16, 128),
        source=_SOLVER,
        statement="The share of prompts with at least one win in 16 rollouts is that of independent rollouts with "
        "success probability p",
        falsified_by="dependent rollouts of a prompt",
        formula="mean of 1 - (1 - p)^16",
    ),
    claim(
        "direct-search",
        SearchCost(staged=False, trials=64),
        source=_SOLVER,
        statement="A search on the full task takes 1/p rollouts of the base model",
        falsified_by="games that begin after some moves of the solution",
        formula="mean of 1/p",
        parameters=_RARE,
    ),
    claim(
        "staged-search",
        SearchCost(staged=True, trials=256),
        source=_SEARCH,
        statement="A search from the last move to the first that remembers the earlier stages takes the sum of "
        "1/q_k rollouts",
        falsified_by="a memory that lacks some stages",
        formula="mean of sum_k 1/q_k",
        parameters=_RARE,
    ),
    claim(
        "hints",
        HintsAreStages(2**16),
        source=_SEARCH,
        statement="A hint of all moves but the last two and stage 2 begin in the same states",
        falsified_by="hints that give one move too many",
        formula="1",
    ),
    claim(
        "learning",
        SampleMean(prediction=lambda oracle: 1.0, sample=learnt_by_stages),
        source="arXiv 2511.07372",
        statement="Training by stages with sixteen times the episodes that theory predicts solves all prompts, while "
        "the same number of uniform rollouts of the full task leaves one prompt in three unsolved",
        falsified_by="ignoring the stages",
        formula="1",
        tolerance=0.05,
        tolerance_reason="softmax policies stay below 1",
        parameters={"numbers": 5, "prompts": 4, "candidates": 8, "min_target": 1000, "max_target": 9999},
    ),
)
