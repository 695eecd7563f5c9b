"""What theory says of sparse parity, as tests that run.

Intervals are three standard errors wide on each side.
"""

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.core.evidence.experiments import SolvedShare
from theorybench.envs.curriculum.learning import learnt
from theorybench.envs.curriculum.parity.experiments import Along, Leaning, Product, StageSearch, outcome_gradient

claim = ClaimMaker("parity")
_OURS, _GRADIENTS = "product form of tables", "arXiv 1703.07950, gradients of parities"

CLAIMS: tuple[Claim, ...] = (
    claim(
        "product",
        Product(),
        source=_OURS,
        statement="The reward of a local table is 1/2 and half the product of how much each position leans to "
        "the right claim",
        falsified_by="a verifier that also judges the claims on the way, which makes it a product of chances",
        formula="1/2 + 1/2 m_1 ... m_k",
    ),
    claim(
        "no-gradient",
        outcome_gradient(0),
        source=_OURS,
        statement="At the uniform policy the gradient of the full task's outcome in a local table's logits is zero",
        falsified_by="a verifier that pays for a claim on the way",
        formula="0",
    ),
    claim(
        "first-stage",
        outcome_gradient(1),
        source=_OURS,
        statement="At stage 1 the gradient at the uniform policy has the squared norm 1/16",
        falsified_by="a first stage that asks for more than one bit",
        formula="1/16",
    ),
    claim(
        "along-parity",
        Along(0),
        source=_GRADIENTS,
        statement="Without a chain of thought the gradient along the parity of the secret bits is 1/4",
        falsified_by="rewards that do not depend on all secret bits",
        formula="1/4",
        parameters={"chain_of_thought": False},
    ),
    claim(
        "blind",
        Along(1),
        source=_GRADIENTS,
        statement="Along the parity of all secret bits but one it is zero, as along all that ignores one",
        falsified_by="a verifier that asks for fewer bits",
        formula="0",
        parameters={"chain_of_thought": False},
    ),
    claim(
        "leaning",
        Leaning(),
        source=_OURS,
        statement="Random deterministic tables earn sqrt(2) 2^-k above or below guessing, root mean square, so "
        "that 4^k episodes are needed to see which (2 J - 1 squared, k = 3)",
        falsified_by="a verifier that pays for a claim on the way",
        formula="2 * 4^-k",
        parameters={"k": 3},
    ),
    claim(
        "stages",
        StageSearch(),
        source="search by stages",
        statement="Learning one claim a stage takes a coupon collector's time over its rows: linear in k",
        falsified_by="stages that are skipped: what is learnt is wrong",
        formula="3 + (k - 1) 25/3",
        parameters={"k": 8, "d": 12},
    ),
    claim(
        "learners",
        SolvedShare(
            agents=("curriculum-rlvr", "rlvr"),
            solved=learnt,
            prediction=lambda oracle: 1.0,
            budget=12_800,
            seeds=10,
        ),
        source="stages against direct training",
        statement="REINFORCE learns 8 bits by stages within a budget in which the outcome alone teaches it nothing",
        falsified_by="stages that are all the full task",
        formula="1",
        tolerance=0.1,
        tolerance_reason="one run in ten may differ",
        parameters={"k": 8, "d": 12},
    ),
)
