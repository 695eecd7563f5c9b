"""What theory says of CyclicPreference (arXiv 2312.00886, 2405.00675, 2310.12036), as tests that run."""

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.cyclic.experiments import (
    BordaFavourite,
    Course,
    FavouriteMargin,
    Learnt,
    NashWinRate,
    Threshold,
)

#: What each paper is about.
NASH = "arXiv 2312.00886 (Nash learning)"
SELF_PLAY = "arXiv 2405.00675 (SPPO)"
IDENTITY = "arXiv 2310.12036 (IPO)"
_FIT = f"{NASH}, what reward models cannot express"
_ROUNDING = "tolerance: preferences have 36 bits"
#: Scores so far apart that 10^5 labels tell Borda scores apart.
_APART = {"scale": 4.0}
_OTHER_PAIRS = "a fit to pairs that are not uniform"


_claim = ClaimMaker("cyclic")


def _equilibrium(id: str, beta: float, tolerance: float, budget: int, rounds: int) -> Claim:
    return _claim(
        id,
        f"{NASH}, Theorem 1; tolerance: the best response to a policy is also the one that its noise favours",
        f"With beta = {beta:g} Nash-MD ends as exploitable as the fixed point pi ~ pi_ref exp(P(. > pi) / beta), below "
        "beta max ln(1 / pi_ref): exploitability falls to 0 with beta",
        "a reference that moves, or a mixture whose weight is not eta tau",
        Learnt("nash-md", "optimum", "exploitability", budget, options={"rounds": rounds}),
        tolerance,
        "1/2 - min_y P(pi* > y)",
        beta=beta,
    )


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "borda",
        _FIT,
        "The favourite of a Bradley-Terry fit to uniform pairs is the Borda winner, in a ring",
        _OTHER_PAIRS,
        BordaFavourite(),
        0.0,
        "1, of all contexts: sum_j P(i > j) = sum_j sigma(r_i - r_j) rises with r_i",
        **_APART,
    ),
    _claim(
        "borda-rival",
        _FIT,
        "It is the Borda winner even where another response beats everyone (a Condorcet winner)",
        _OTHER_PAIRS,
        BordaFavourite(),
        0.0,
        "1, of all contexts",
        structure="rival",
        **_APART,
    ),
    _claim(
        "below-threshold",
        f"{_FIT}; {_ROUNDING}",
        "Below c* that favourite cannot be exploited",
        _OTHER_PAIRS,
        FavouriteMargin(0.8),
        1e-9,
        "0 at c = .8 c*",
        **_APART,
    ),
    _claim(
        "above-threshold",
        f"{_FIT}; {_ROUNDING}",
        "Above c* the best response against the favourite wins the oracle's margin: the fit does not see the ring",
        _OTHER_PAIRS,
        FavouriteMargin(1.3),
        1e-9,
        "c a - (1 - c) (sigma(d) - 1/2), d the score above the first response that beats it",
        **_APART,
    ),
    _claim(
        "above-threshold-rival",
        f"{_FIT}; {_ROUNDING}",
        "The same where the rival of the best response is the Condorcet winner",
        _OTHER_PAIRS,
        FavouriteMargin(1.3),
        1e-9,
        "c a - (1 - c) (sigma(d) - 1/2), d the score above the rival",
        structure="rival",
        **_APART,
    ),
    _claim(
        "threshold",
        _FIT,
        "By bisection, the favourite of a fit to labels can be exploited from c* on",
        _OTHER_PAIRS,
        Threshold(),
        0.0,
        "min over contexts of (sigma(d) - 1/2) / (sigma(d) - 1/2 + a)",
        **_APART,
    ),
    _claim(
        "win-rate",
        f"{NASH}, von Neumann winners",
        "Nash beats the exploitable favourite in half of the labels: it is in the support",
        "labels of another table of preferences",
        NashWinRate(),
        0.0,
        "1/2, by complementary slackness",
        **_APART,
    ),
    _claim(
        "win-rate-outside",
        f"{NASH}, von Neumann winners",
        "Outside of the support the favourite loses to Nash more often: the rival beats it",
        "labels of another table of preferences",
        NashWinRate(),
        0.0,
        "P(rival > best) = 1 - (1 - c) sigma(d) - c (1/2 - a)",
        structure="rival",
        **_APART,
    ),
    _claim(
        "dpo-margin",
        f"{IDENTITY}, Bradley-Terry is an assumption; tolerance: gradients end near the minimum",
        "With uniform pairs and a small beta, DPO ends as exploitable as the Borda winner",
        "pairs that are not uniform; a learner of win rates",
        Learnt(
            "dpo-offline", "margin", "exploitability", 60_000, options={"learning_rate": 0.5, "gradient_steps": 400}
        ),
        0.003,
        "the oracle's margin",
        beta=0.02,
        tilt=0.0,
        **_APART,
    ),
    _claim(
        "dpo-limit",
        f"{IDENTITY}, Bradley-Terry is an assumption; tolerance: gradients end near the minimum",
        "Offline DPO goes to pi_ref exp(r / beta), r the Bradley-Terry fit to pairs of the reference",
        "pairs that are not the reference's; a learner of win rates",
        Learnt("dpo-offline", "dpo-limit", "exploitability", 60_000, options={"gradient_steps": 600}),
        0.005,
        "1/2 - min_y P(pi_ref e^(r / beta) > y)",
        beta=0.5,
    ),
    _claim(
        "nash-md",
        f"{NASH}, Theorem 1; tolerance: 1 %, the noise of 200,000 labels",
        "Nash-MD reaches the optimum of the regularised game, J* = 1/2",
        "a reference that moves, or a mixture whose weight is not eta tau",
        Learnt("nash-md", "optimum", "score", 200_000),
        0.01,
        "1",
        beta=0.2,
    ),
    _equilibrium("nash-md-large-beta", 0.4, 0.0015, 200_000, 100),
    _equilibrium("nash-md-small-beta", 0.05, 0.01, 400_000, 400),
    _claim(
        "nash-md-mixture",
        f"{NASH}, Section 5; tolerance: the noise of 400,000 labels",
        "With a weight of 1/2 in every round the opponent stays near the reference, and J below its optimum",
        "a weight that falls, as in Theorem 1",
        Course("nash-md", "score", weight=0.5, step=2.5, rounds=16, budget=400_000),
        0.02,
        "score of the limit of pi_{t+1} ~ pi^m exp(eta P(. > pi^m)), pi^m ~ (pi_t pi_ref)^(1/2)",
        beta=0.2,
    ),
    _claim(
        "ipo-on-policy",
        f"{IDENTITY}, Theorem 1 against oneself; tolerance: labels of the last round, and gradients near the minimum",
        "On-policy IPO with tau = beta has the fixed point of the game: it reaches J* = 1/2",
        "pairs that stay the reference's, or a reference that moves",
        Learnt("ipo", "optimum", "score", 60_000, options={"tau": 0.5, "rounds": 12, "gradient_steps": 400}),
        0.03,
        "1",
        beta=0.5,
    ),
    _claim(
        "sppo-last",
        f"{SELF_PLAY}, exponential weights; tolerance: the noise of 200,000 labels",
        "Self-play without a KL term circles in a ring: its last policy stays exploitable",
        "an opponent that is mixed with the reference",
        Course("sppo", "last", weight=0.0, step=0.5, rounds=64, budget=200_000),
        0.01,
        "1/2 - min_y P(pi_T > y) of pi_{t+1} ~ pi_t exp(eta P(. > pi_t))",
        cyclicity=1.0,
    ),
    _claim(
        "sppo-distance",
        f"{SELF_PLAY}, exponential weights; tolerance: the noise of 200,000 labels",
        "It even moves away from the von Neumann winner, each round by ln E_{pi_t} exp(eta (P(y > pi_t) - 1/2)) > 0",
        "an opponent that is mixed with the reference",
        Course("sppo", "distance", weight=0.0, step=0.5, rounds=64, budget=200_000),
        0.02,
        "KL(Nash || pi_T) = KL(Nash || pi_ref) + sum_t ln E_{pi_t} exp(eta (P(y > pi_t) - 1/2))",
        cyclicity=1.0,
    ),
    _claim(
        "sppo-mean",
        f"{SELF_PLAY}, Theorem 4.1; tolerance: the noise of 200,000 labels",
        "The mean of its policies, of which the theorem speaks, loses a seventh of what the last loses",
        "an opponent that is mixed with the reference",
        Course("sppo", "mean", weight=0.0, step=0.5, rounds=64, budget=200_000),
        0.005,
        "1/2 - min_y P(mean_t pi_t > y), at most ln(1 / min pi_ref) / (eta T) + eta / 8",
        cyclicity=1.0,
    ),
)
