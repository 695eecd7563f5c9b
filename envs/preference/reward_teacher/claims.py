"""What arXiv 2503.15477 says of RewardTeacher, as tests that run."""

import math
from typing import Any

from theorybench.envs.core.evidence.claim import Claim, ClaimMaker
from theorybench.envs.preference.reward_teacher.experiments import (
    SAMPLES,
    BestOfN,
    BoundHolds,
    BoundRatio,
    Exponent,
    GainTime,
    GradientHolds,
    GradientShare,
    Race,
)
from theorybench.envs.preference.reward_teacher.training import Lesson

#: A variance so small that gradient ascent would take 10^4 times as long.
NO_VARIANCE = 2e-10


_claim = ClaimMaker("teacher", "arXiv 2503.15477")


#: Step and batch of training leave the flow by the next order; single runs scatter around it.
_NEXT_ORDER = "tolerance: 3 %, the next order in step and batch"
#: Breaks every prediction of the flow.
_OTHER_CLOCK = "rewards divided by their deviation, as GRPO does, which undo a scale; or a sampler that stays"
#: The even start and the widest rewards at which the bounds are sharp.
_EVEN: dict[str, Any] = {"num_responses": 2, "num_contexts": 1, "accuracy": 1.0, "variance": 1.0, "tilt": 0.0}
#: Two responses with gap 1 of which the better begins at .01.
_RARE: dict[str, Any] = {**_EVEN, "variance": 0.0099, "tilt": math.log(0.01 / 0.99) / 2}
_ACCURATE, _COIN = (("accuracy", 1.0),), (("accuracy", 0.5),)
_FLIP = "Which of two models teaches faster depends on the initial policy: "


def _flip(id: str, statement: str, lesson: Lesson, tolerance: float, tilt: float) -> Claim:
    race = Race(_ACCURATE, _COIN, lesson, full_range=True)
    return _claim(
        f"flip-{id}",
        "other policies need other reward models; tolerance: 4 %, the next order in step and batch",
        _FLIP + statement,
        "a sampler that stays, or pay by the ground truth instead of the model",
        race,
        tolerance,
        "T_flow(accuracy 1) / T_flow(accuracy 1/2), the same two tables of rewards in both flips",
        num_responses=4,
        num_contexts=1,
        accuracy=1.0,
        tilt=tilt,
        instance=1,
    )


_TWO = GainTime(Lesson(gain=1.0, learning_rate=0.25))
_MANY = GainTime(Lesson(gain=0.5, learning_rate=0.5))
_SHARP = BoundRatio(Lesson(gain=0.1, learning_rate=0.004, episodes=4096))
_EXPONENT = Exponent((0.1, 0.01, 0.001), Lesson(gain=0.5, learning_rate=1.0))
_RACE = Race(
    (("accuracy", 1.0), ("variance", 0.001)),
    (("accuracy", 0.75), ("variance", 0.02)),
    Lesson(gain=0.5, learning_rate=1.0),
)
_RANGE = Race(_ACCURATE, (("accuracy", 2 / 3),), Lesson(gain=0.3, learning_rate=0.05), full_range=True)

CLAIMS: tuple[Claim, ...] = (
    _claim(
        "two-responses",
        f"two responses in closed form; {_NEXT_ORDER}",
        "From probability .01, two responses with gap 1 take a time of 54.17 to reach .51",
        _OTHER_CLOCK,
        _TWO,
        1.6,
        "(F(p1) - F(p0)) / (2 D), F = -1/p + 1/(1-p) + 2 ln(p/(1-p))",
        **_RARE,
    ),
    _claim(
        "flow",
        f"gradient flow; {_NEXT_ORDER}",
        "An inaccurate model of many responses in two contexts raises E r_G by 1/2 in the time of the exact flow",
        _OTHER_CLOCK,
        _MANY,
        2.0,
        "T_flow, from d theta / dt = pi (r_M - E r_M) / X",
        num_contexts=2,
        variance=0.1,
        tilt=-1.0,
    ),
    _claim(
        "bound",
        "low variance is a flat landscape, for tabular softmax",
        "E r_G never gains gamma before the time 2 (1 - e^-gamma) / sqrt(variance), whatever the accuracy",
        "steps a quarter larger than is charged",
        BoundHolds(),
        0.0,
        "t >= 2 (1 - e^-gamma) variance^(-1/2), in every setting",
    ),
    _claim(
        "bound-sharp",
        "low variance is a flat landscape, for tabular softmax; tolerance: 2 %, the next order in step and batch",
        "Two even responses with rewards -1 and +1 gain 1/10 in 1.06 times the least time: the constant 2 is sharp",
        "steps of another size than is charged",
        _SHARP,
        0.02,
        "T(1/2 -> .55) / (2 (1 - e^-.1))",
        **_EVEN,
    ),
    _claim(
        "exponent",
        "low variance is a flat landscape (exponent -1/3 for general policies); tolerance: the next order in the step",
        "With the ranking fixed, the time to a gain goes as variance^(-1/2), exactly",
        _OTHER_CLOCK,
        _EXPONENT,
        0.01,
        "-1/2",
        num_contexts=1,
        tilt=-1.0,
    ),
    _claim(
        "accuracy-is-not-enough",
        f"more accurate models are not always better teachers; {_NEXT_ORDER}",
        "A perfectly accurate model of variance .001 is 4.2 times slower than one of accuracy .75 and variance .02",
        _OTHER_CLOCK,
        _RACE,
        0.13,
        "T_flow(accuracy 1, variance .001) / T_flow(accuracy .75, variance .02)",
        num_contexts=1,
    ),
    _claim(
        "equal-range",
        f"more accurate models are not always better teachers; {_NEXT_ORDER}",
        "With rewards from -1 to 1 in both, a model of accuracy 2/3 teaches 2.2 times faster than a perfect one",
        "a sampler that stays, or pay by the ground truth instead of the model",
        _RANGE,
        0.07,
        "T_flow(accuracy 1) / T_flow(accuracy 2/3), both of full range",
        num_responses=4,
        num_contexts=1,
        accuracy=1.0,
        tilt=-2.0,
    ),
    _flip("rare", "the accurate one, where good responses are rare", Lesson(0.1, 0.02), 0.01, -0.5),
    _flip("common", "one of accuracy 1/2, where they are common", Lesson(0.1, 0.02), 0.05, 1.0),
    _claim(
        "gradient",
        "low variance is a flat landscape",
        "|grad E r_M|^2 / variance of eight responses is as computed, below 1/2",
        "noise on the rewards, or responses of another policy than the one whose scores weigh them",
        GradientShare(),
        0.0,
        "sum pi^2 (r_M - E r_M)^2 / Var r_M",
        num_contexts=1,
    ),
    _claim(
        "gradient-sharp",
        "low variance is a flat landscape",
        "Two even responses have |grad E r_M|^2 = variance / 2",
        "noise on the rewards, or responses of another policy than the one whose scores weigh them",
        GradientShare(),
        0.001,
        "1/2",
        **{**_EVEN, "variance": 0.25},
    ),
    _claim(
        "gradient-bound",
        "low variance is a flat landscape",
        "|grad E r_M|^2 never exceeds variance / 2",
        "responses of another policy than the one whose scores weigh them",
        GradientHolds(),
        0.0,
        "|grad E r_M|^2 <= Var r_M / 2, in every setting",
    ),
    _claim(
        "best-of-n",
        "best-of-N",
        f"E r_G of the best of {SAMPLES} by a model of variance 2e-10 follows from the model's ranking",
        "noise on the rewards, however small beside rewards of order 1",
        BestOfN(),
        0.0,
        "sum_m r_G(m) (F_m^N - F_{m-1}^N), m = ranks by r_M",
        variance=NO_VARIANCE,
    ),
    _claim(
        "best-of-n-variance",
        "best-of-N",
        "Variance does not matter to best-of-N: at .02 and at 2e-10 it is the same",
        "noise on the rewards, however small beside rewards of order 1",
        BestOfN((("variance", 0.02),), (("variance", NO_VARIANCE),)),
        0.0,
        "0",
    ),
    _claim(
        "best-of-n-accuracy",
        "best-of-N",
        "Accuracy matters to best-of-N: a perfect model beats one of accuracy .75",
        "noise on the rewards",
        BestOfN(_ACCURATE, (("accuracy", 0.75),)),
        0.0,
        "difference of sum_m r_G(m) (F_m^N - F_{m-1}^N)",
        variance=NO_VARIANCE,
    ),
)
