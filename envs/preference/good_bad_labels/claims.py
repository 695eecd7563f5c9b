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


_claim = ClaimMaker("labels")


_NOISE = "tolerance .006: what 40,000 labels leave is .004"
_MIXTURE = "responses or labels of another mixture weight than the reference has, or a share t that is wrong"
_SCORES = "labels by scores and not by the two laws, such as the better half of the responses"
_SHARE = "a learner that uses the true t, or labels of another mixture weight"
_MOVED = "a learner that moves the reference to where responses come from, or labels of another mixture weight"

CLAIMS: tuple[Claim, ...] = (
    _claim(
        "ddro",
        f"{PAPER}, consistency; {_NOISE}",
        "DDRO's loss is least at p+, the law of good responses",
        _MIXTURE,
        Plateau(ddro("ratio")),
        0.006,
        "TV = 0",
        SMALL,
    ),
    _claim(
        "two-term",
        f"{RELATIVE}; {_NOISE}",
        "The two-term loss is least at p+ as well",
        _MIXTURE,
        Plateau(ddro("two-term")),
        0.006,
        "TV = 0",
        SMALL,
    ),
    _claim(
        "cyclic",
        f"{PAPER}, no model of preferences is needed; {_NOISE}",
        "DDRO learns p+ of labels that no scores explain: good is what beats a hidden response in a circle",
        _SCORES,
        Plateau(ddro("ratio")),
        0.006,
        "TV = 0",
        CYCLIC,
    ),
    _claim(
        "rate",
        f"{PAPER}, rate; tolerance: 5 %, the next order in 1/n",
        "n E[TV^2] of DDRO tends to a constant, six responses",
        "labels of another mixture weight, or fewer labels than are charged",
        Rate(ddro("ratio")),
        0.035,
        "1/(2 pi) sum_ij s_i s_j (sqrt(1 - r_ij^2) + r_ij arcsin r_ij), s and r of D^-1 Cov(gradient) D^-1",
        SMALL,
    ),
    _claim(
        "rate-two-term",
        f"{RELATIVE}; tolerance: 5 %, the next order in 1/n",
        "n E[TV^2] of the two-term variant tends to a constant, six responses in two contexts, t = .3 given",
        "labels of another mixture weight, or fewer labels than are charged",
        Rate(ddro("two-term", 0.3)),
        0.12,
        "the same with the derivatives of the two-term loss, over X^2",
        {**SMALL, "num_contexts": 2, "good_share": 0.3},
    ),
    _claim(
        "dpo",
        "minimiser of the logistic loss; tolerance .015: what 40,000 labels leave",
        "DPO on pairs of a good and a bad response ends at pi_ref (p+/p-)^(1/beta) / Z, far from p+",
        "labels of which some are turned round, or another beta; not labels of another mixture weight",
        Plateau(DPO),
        0.015,
        "TV(p+, pi_ref (p+/p-)^(1/beta) / Z)",
        SMALL,
    ),
    _claim(
        "dpo-cyclic",
        "minimiser of the logistic loss; tolerance .015: what 40,000 labels leave",
        "DPO on cyclic labels ends where the same formula says",
        _SCORES,
        Plateau(DPO),
        0.015,
        "TV(p+, pi_ref (p+/p-)^(1/beta) / Z)",
        CYCLIC,
    ),
    *(
        _claim(
            f"dpo-{responses}",
            "minimiser of the logistic loss, on average over laws (computed, nothing is trained)",
            f"On average DPO's limit is as far from p+ as Dirichlet(1) laws of {responses} responses say",
            "another beta, another share t, or laws of another concentration",
            AverageLimit(DPO),
            0.0,
            "E TV(p+, q / Z), q = (p+/2 + p-/2) p+/p-, p+ and p- Dirichlet(1)",
            {"num_responses": responses, "num_contexts": 1},
        )
        for responses in SIZES
    ),
    _claim(
        "kto",
        f"{KTO_PAPER}, eq. 7; tolerance .015: what 40,000 labels and 500 steps leave",
        "KTO with beta = 1 ends at a water-filling over the responses that are good more often than bad",
        "a loss without saturation, such as DDRO's, or labels of another mixture weight",
        Plateau(KTO),
        0.015,
        "TV(p+, pi_ref max(0, sqrt(w / (m pi_ref)) - 1)), w = t p+ - (1-t) p-",
        SMALL,
    ),
    _claim(
        "kto-empties",
        f"{KTO_PAPER}, eq. 7; tolerance .01: logits are finite",
        "KTO leaves nothing to responses that are bad more often than good, though good responses are among them",
        "a loss without saturation, such as DDRO's",
        Emptied(KTO),
        0.01,
        "0",
        SMALL,
    ),
    _claim(
        "wrong-share",
        "minimiser under a wrong share; tolerance .006: what 40,000 labels leave",
        f"DDRO that believes in t = {WRONG:g} where it is 1/2 ends off p+ by a computed amount",
        _SHARE,
        Plateau(ddro("ratio", WRONG)),
        0.006,
        "TV(p+, argmin (p+ + p-) ln(1 + (1-2t) u) - p+ ln u - p- ln(1 - t u) under sum pi_ref u = 1)",
        SMALL,
    ),
    _claim(
        "wrong-share-two-term",
        "minimiser under a wrong share; tolerance .006: what 40,000 labels leave",
        f"The two-term variant that believes in t = {WRONG:g} where it is 1/2 ends off p+ by a computed amount",
        _SHARE,
        Plateau(ddro("two-term", WRONG)),
        0.006,
        "TV(p+, argmin ((1+t) p+ + (1-t) p-) ln(1 + u) - p+ ln u under sum pi_ref u = 1)",
        SMALL,
    ),
    _claim(
        "wrong-reference",
        "minimiser under a reference that is no mixture; tolerance .006: what 40,000 labels leave",
        "With a reference that is 40 % uniform, DDRO ends off p+ by a computed amount",
        _MOVED,
        Plateau(ddro("ratio")),
        0.006,
        "TV(p+, argmin (p+ + p-) ln(1 + (1-2t) u) - p+ ln u - p- ln(1 - t u) under sum pi_ref u = 1)",
        CONTAMINATED,
    ),
    _claim(
        "wrong-reference-two-term",
        "minimiser under a reference that is no mixture; tolerance .006: what 40,000 labels leave",
        "With a reference that is 40 % uniform, the two-term variant ends off p+ by a computed amount",
        _MOVED,
        Plateau(ddro("two-term")),
        0.006,
        "TV(p+, argmin ((1+t) p+ + (1-t) p-) ln(1 + u) - p+ ln u under sum pi_ref u = 1)",
        CONTAMINATED,
    ),
)
