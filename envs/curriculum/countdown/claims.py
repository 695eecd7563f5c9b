"""What theory says of search and learning on Countdown, as tests that run.

The solver's dynamic programming knows p(s), the base model's success from every state. What follows from it is checked
by roll-outs. Intervals are three standard errors wide on each side.
"""

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.curriculum.countdown.experiments import (
    BETA,
    BestOf,
    HintsAreStages,
    LearntByStages,
    SearchCost,
    SimulatedSuccess,
)

claim = ClaimMaker("countdown")
_SOLVER = "dynamic programming over multisets"
_SEARCH = "arXiv 2511.07372, search by stages"
#: Few prompts whose solutions are rare: the direct search is long, the one by stages short.
_RARE = {"prompts": 16, "candidates": 4}

CLAIMS: tuple[Claim, ...] = (
    claim(
        "base-success",
        SimulatedSuccess(2**18, tilted=False),
        source=_SOLVER,
        statement="Uniform legal moves win with the probability that the solver finds, sums and products counting "
        "twice",
        falsified_by="moves that are drawn otherwise, such as sums and products counted once",
        formula="mean of p(s)",
    ),
    claim(
        "tilt",
        SimulatedSuccess(2**17, tilted=True),
        source="A*-PO (arXiv 2505.20686), the optimum of the KL-penalised objective",
        statement="Moves re-weighted by V*(s') win as often as roll-outs weighted by exp(reward / beta), "
        f"beta = {BETA}",
        falsified_by="a policy of another temperature",
        formula="mean of p e^(1/beta) / (1 + p (e^(1/beta) - 1))",
    ),
    claim(
        "best-of",
        BestOf(16, 128),
        source=_SOLVER,
        statement="Of 16 roll-outs of a prompt one or more wins in the share of prompts that independent ones of "
        "chance p give",
        falsified_by="roll-outs of a prompt that depend on each other",
        formula="mean of 1 - (1 - p)^16",
    ),
    claim(
        "direct-search",
        SearchCost(staged=False, trials=64),
        source=_SOLVER,
        statement="A search on the full task takes 1/p roll-outs of the base model",
        falsified_by="games in which moves are given away",
        formula="mean of 1/p",
        parameters=_RARE,
    ),
    claim(
        "staged-search",
        SearchCost(staged=True, trials=256),
        source=_SEARCH,
        statement="A search from the last move to the first, with a memory of the stages below, takes the sum of "
        "1/q_k roll-outs",
        falsified_by="a memory that skips stages",
        formula="mean of sum_k 1/q_k",
        parameters=_RARE,
    ),
    claim(
        "hints",
        HintsAreStages(2**16),
        source=_SEARCH,
        statement="A hint of all moves but the last two and stage 2 begin in the same states",
        falsified_by="hints that give one move more than they say",
        formula="1",
    ),
    claim(
        "learning",
        LearntByStages(4, 16),
        source="arXiv 2511.07372",
        statement="Sixteen times the episodes that theory asks for by stages teach all prompts, where as many "
        "uniform roll-outs of the full task leave one prompt in three unsolved",
        falsified_by="stages that are ignored",
        formula="1",
        tolerance=0.05,
        tolerance_reason="softmax policies stay short of 1",
        parameters={"numbers": 5, "prompts": 4, "candidates": 8, "min_target": 1000, "max_target": 9999},
    ),
)
