"""What arXiv 2505.07558 and arXiv 2402.01306 say of GoodBadLabels, as tests that run."""

from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.good_bad_labels.experiments import DPO, KTO, AverageLimit, Emptied, Plateau, Rate, ddro

PAPER, KTO_PAPER = "arXiv 2505.07558", "arXiv 2402.01306"
RELATIVE = "the bounded ratio p+/mixture of arXiv 2604.04410, derived here"
#: Numbers of responses K for which limits are averaged over laws.
SIZES = (6, 20, 100)
#: Six responses in one context: 40,000 labels leave a total variation of .004.
SMALL: dict[str, Any] = {"num_responses": 6, "num_contexts": 1, "instance": 3}
CYCLIC: dict[str, Any] = {**SMALL, "labels": "cyclic", "instance": 2}
CONTAMINATED: dict[str, Any] = {**SMALL, "contamination": 0.4}
#: A share that is believed where the true one is 1/2.
WRONG = 0.35


claim = ClaimMaker("labels")


_MIXTURE = "responses or labels of another mixture weight than the reference has, or a share t that is wrong"
_SCORES = "labels by scores and not by the two laws, such as the better half of the responses"
_SHARE = "a learner that uses the true t, or labels of another mixture weight"
_MOVED = "a learner that moves the reference to where responses come from, or labels of another mixture weight"

CLAIMS: tuple[Claim, ...] = (
    claim(
        "ddro",
        Plateau(ddro("ratio")),
        source="arXiv 2505.07558, consistency",
        statement="DDRO's loss is least at p+, the law of good responses",
        falsified_by=_MIXTURE,
        formula="TV = 0",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave is .004",
        parameters=SMALL,
    ),
    claim(
        "two-term",
        Plateau(ddro("two-term")),
        source="the bounded ratio p+/mixture of arXiv 2604.04410, derived here",
        statement="The two-term loss is least at p+ as well",
        falsified_by=_MIXTURE,
        formula="TV = 0",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave is .004",
        parameters=SMALL,
    ),
    claim(
        "cyclic",
        Plateau(ddro("ratio")),
        source="arXiv 2505.07558, no model of preferences is needed",
        statement="DDRO learns p+ of labels that no scores explain: good is what beats a hidden response in a circle",
        falsified_by=_SCORES,
        formula="TV = 0",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave is .004",
        parameters=CYCLIC,
    ),
    claim(
        "rate",
        Rate(ddro("ratio")),
        source="arXiv 2505.07558, rate",
        statement="n E[TV^2] of DDRO tends to a constant, six responses",
        falsified_by="labels of another mixture weight, or fewer labels than are charged",
        formula="1/(2 pi) sum_ij s_i s_j (sqrt(1 - r_ij^2) + r_ij arcsin r_ij), s and r of D^-1 Cov(gradient) D^-1",
        tolerance=0.035,
        tolerance_reason="5 %, the next order in 1/n",
        parameters=SMALL,
    ),
    claim(
        "rate-two-term",
        Rate(ddro("two-term", 0.3)),
        source="the bounded ratio p+/mixture of arXiv 2604.04410, derived here",
        statement="n E[TV^2] of the two-term variant tends to a constant, six responses in two contexts, t = .3 given",
        falsified_by="labels of another mixture weight, or fewer labels than are charged",
        formula="the same with the derivatives of the two-term loss, over X^2",
        tolerance=0.12,
        tolerance_reason="5 %, the next order in 1/n",
        parameters={**SMALL, "num_contexts": 2, "good_share": 0.3},
    ),
    claim(
        "dpo",
        Plateau(DPO),
        source="minimiser of the logistic loss",
        statement="DPO on pairs of a good and a bad response ends at pi_ref (p+/p-)^(1/beta) / Z, far from p+",
        falsified_by="labels of which some are turned round, or another beta; not labels of another mixture weight",
        formula="TV(p+, pi_ref (p+/p-)^(1/beta) / Z)",
        tolerance=0.015,
        tolerance_reason="what 40,000 labels leave",
        parameters=SMALL,
    ),
    claim(
        "dpo-cyclic",
        Plateau(DPO),
        source="minimiser of the logistic loss",
        statement="DPO on cyclic labels ends where the same formula says",
        falsified_by=_SCORES,
        formula="TV(p+, pi_ref (p+/p-)^(1/beta) / Z)",
        tolerance=0.015,
        tolerance_reason="what 40,000 labels leave",
        parameters=CYCLIC,
    ),
    *(
        claim(
            f"dpo-{responses}",
            AverageLimit(DPO),
            source="minimiser of the logistic loss, on average over laws (computed, nothing is trained)",
            statement=f"On average DPO's limit is as far from p+ as Dirichlet(1) laws of {responses} responses say",
            falsified_by="another beta, another share t, or laws of another concentration",
            formula="E TV(p+, q / Z), q = (p+/2 + p-/2) p+/p-, p+ and p- Dirichlet(1)",
            parameters={"num_responses": responses, "num_contexts": 1},
        )
        for responses in SIZES
    ),
    claim(
        "kto",
        Plateau(KTO),
        source="arXiv 2402.01306, eq. 7",
        statement="KTO with beta = 1 ends at a water-filling over the responses that are good more often than bad",
        falsified_by="a loss without saturation, such as DDRO's, or labels of another mixture weight",
        formula="TV(p+, pi_ref max(0, sqrt(w / (m pi_ref)) - 1)), w = t p+ - (1-t) p-",
        tolerance=0.015,
        tolerance_reason="what 40,000 labels and 500 steps leave",
        parameters=SMALL,
    ),
    claim(
        "kto-empties",
        Emptied(KTO),
        source="arXiv 2402.01306, eq. 7",
        statement="KTO leaves nothing to responses that are bad more often than good, though good responses are "
        "among them",
        falsified_by="a loss without saturation, such as DDRO's",
        formula="0",
        tolerance=0.01,
        tolerance_reason="logits are finite",
        parameters=SMALL,
    ),
    claim(
        "wrong-share",
        Plateau(ddro("ratio", WRONG)),
        source="minimiser under a wrong share",
        statement=f"DDRO that believes in t = {WRONG:g} where it is 1/2 ends off p+ by a computed amount",
        falsified_by=_SHARE,
        formula="TV(p+, argmin (p+ + p-) ln(1 + (1-2t) u) - p+ ln u - p- ln(1 - t u) under sum pi_ref u = 1)",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave",
        parameters=SMALL,
    ),
    claim(
        "wrong-share-two-term",
        Plateau(ddro("two-term", WRONG)),
        source="minimiser under a wrong share",
        statement=f"The two-term variant that believes in t = {WRONG:g} where it is 1/2 ends off p+ by a computed "
        f"amount",
        falsified_by=_SHARE,
        formula="TV(p+, argmin ((1+t) p+ + (1-t) p-) ln(1 + u) - p+ ln u under sum pi_ref u = 1)",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave",
        parameters=SMALL,
    ),
    claim(
        "wrong-reference",
        Plateau(ddro("ratio")),
        source="minimiser under a reference that is no mixture",
        statement="With a reference that is 40 % uniform, DDRO ends off p+ by a computed amount",
        falsified_by=_MOVED,
        formula="TV(p+, argmin (p+ + p-) ln(1 + (1-2t) u) - p+ ln u - p- ln(1 - t u) under sum pi_ref u = 1)",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave",
        parameters=CONTAMINATED,
    ),
    claim(
        "wrong-reference-two-term",
        Plateau(ddro("two-term")),
        source="minimiser under a reference that is no mixture",
        statement="With a reference that is 40 % uniform, the two-term variant ends off p+ by a computed amount",
        falsified_by=_MOVED,
        formula="TV(p+, argmin ((1+t) p+ + (1-t) p-) ln(1 + u) - p+ ln u under sum pi_ref u = 1)",
        tolerance=0.006,
        tolerance_reason="what 40,000 labels leave",
        parameters=CONTAMINATED,
    ),
)
