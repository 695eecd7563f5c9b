"""RewardTeacher: training on a reward model of given accuracy and variance (arXiv 2503.15477)."""

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import portable
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.streams import Stream
from theorybench.envs.core.validation import instance, integer, real
from theorybench.envs.preference.contextual import ContextualBandit
from theorybench.envs.preference.reward_teacher.flow import variance

CANONICAL_SEED = 2503_15477
#: Largest difference between the requested accuracy and the one that can be built.
RESOLUTION = 0.05
#: Rounding tolerance of accuracies and, relatively, of variances: rewards are rounded to 36 bits.
ROUNDING = 1e-9


class TeacherTables(NamedTuple):
    """The instance; X contexts, K responses."""

    model: np.ndarray  # r_M, the reward of the agent, float64 (X, K)
    truth: np.ndarray  # r_G, the ground truth that is scored, float64 (X, K)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RewardTeacher(ContextualBandit):
    """A contextual bandit rewarded by a reward model, whose accuracy and variance determine how well it teaches.

    ## Description
    A context x is shown and the agent gives one response y. Policies are scored by the ground truth r_G(x, y), which
    the agent never sees; its reward is r_M(x, y), given by a reward model. Both rank the K responses of a context
    strictly, with equal spacing: r_G = -1, ..., +1 from worst to best, in a hidden order, and
    r_M = w(x) (2 m - K + 1) / (K - 1) for the response that the model ranks m-th (from 0). It has two parameters.

    `accuracy`: the share of unordered pairs of responses, equally weighted, that r_M ranks like r_G. The model's
    ranking is that of r_G after n random swaps of neighbours that were still in order, drawn by the instance; then
    exactly n pairs are wrong, and n = (1 - accuracy) K (K - 1) / 2 to the nearest integer. An accuracy farther than .05
    from every such share is refused; the error names the nearest ones.

    `variance`: the variance of r_M under the initial policy, which determines the width w(x) <= 1; it holds in every
    context to a relative 1e-9. A variance that needs rewards outside [-1, 1] is refused; the error names the largest.

    Learning starts at pi_ref ~ exp(tilt r_G): with a negative tilt good responses are rare. There is no KL term.

    ## Action Space
    `Discrete(K)`: the response.

    ## Observation Space
    `MultiDiscrete([K + X + 1] * 2)`: the token K + x + 1 of context x (X = `num_contexts`), then the response's.

    ## Starting State
    A prompt is a context: uniform over the X of them, or `options={"prompt": x}`.

    ## Reward
    r_M(x, y), without noise.

    ## Episode End
    After one response (`terminated`); never truncated.

    ## Arguments

    ## Optimum
    The best response of each context, J* = 1. A perfect optimiser of r_M converges to the oracle's `ceiling`, the r_G
    of the responses with the largest r_M: it is 1 if these are the best ones, as with accuracy 1.

    ## What theory predicts
    Gradient flow on E r_M of a tabular softmax policy takes a time t to raise E r_G by gamma (an update of plain
    gradient ascent with learning rate eta is a time eta).

    1. t >= 2 X (1 - e^-gamma) variance^(-1/2) for any accuracy: low variance makes the landscape flat. The same
       holds for a gain of E r_M. Scaling r_M by c divides t by c, so the exponent -1/2 is exact.
    2. A perfectly accurate model of tiny variance teaches more slowly than an inaccurate one of large variance.
    3. Which of two models teaches faster depends on the initial policy.
    4. |grad E r_M|^2 <= variance / 2 (X = 1), with equality for two equally likely responses.
    5. Best-of-N depends on r_M only through its ranking: accuracy matters and variance does not.

    Two responses with gap D take the time (F(p_1) - F(p_0)) / (2 D), F(p) = -1/p + 1/(1-p) + 2 ln(p / (1-p)), from p_0
    to p_1. Optimisers that divide by the size of the gradient (Adam) and rewards divided by their standard deviation
    (GRPO) undo a scale of r_M: 1 to 3 are about plain gradient ascent.

    ## References
    - arXiv 2503.15477: Razin et al., What makes a reward model a good teacher? An optimization perspective (2025).

    ## Version History
    - v0: first release.
    """

    question: ClassVar[str] = "what makes a reward model a good teacher: accuracy, or variance?"

    num_responses: int = integer(8, 2, 64, "number of responses K")
    num_contexts: int = integer(8, 1, 64, "number of contexts X")
    accuracy: float = real(0.75, 0.0, 1.0, "share of pairs of responses that the reward model ranks right")
    variance: float = real(0.02, 0.0, 1.0, "variance of the reward model r_M under the initial policy", open_low=True)
    tilt: float = real(-2.0, -10.0, 5.0, "the initial policy is proportional to exp(tilt r_G)")
    instance: int = instance(0, "hidden order of the responses, and which pairs are ranked wrong")

    def validate(self) -> None:
        """Check that a reward model of this accuracy and variance exists.

        Raises:
            ParameterError: no share of pairs is near the accuracy, or the rewards would leave [-1, 1].
        """
        pairs = self._pairs
        if abs(1 - self.wrong_pairs / pairs - self.accuracy) > RESOLUTION + ROUNDING:
            below = int(self.accuracy * pairs)
            allowed = (
                f"within {RESOLUTION} of a share of {pairs} pairs: {below / pairs:.4g} or {(below + 1) / pairs:.4g}"
            )
            raise ParameterError("accuracy", self.accuracy, allowed, "More responses give finer accuracies.")
        widest = self.largest_variance
        if self.variance > widest * (1 + ROUNDING):
            fix = "The widest rewards in [-1, 1] have this variance initially; a tilt nearer 0 allows more."
            raise ParameterError("variance", self.variance, f"a number in (0, {widest:.6g}]", fix)

    @property
    def _pairs(self) -> int:
        return self.num_responses * (self.num_responses - 1) // 2

    @property
    def wrong_pairs(self) -> int:
        """Number of pairs in each context that the reward model ranks wrong."""
        return round((1 - self.accuracy) * self._pairs)

    @functools.cached_property
    def _rankings(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw r_G and the reward model at width 1, float64 (X, K) each."""
        rng = np.random.default_rng([CANONICAL_SEED, self.instance])
        true = rng.permuted(np.tile(np.arange(self.num_responses), (self.num_contexts, 1)), axis=1)
        model = np.array([_wrong_ranking(self.num_responses, self.wrong_pairs, rng)[ranks] for ranks in true])
        truth, widest = ((2.0 * ranks - (self.num_responses - 1)) / (self.num_responses - 1) for ranks in (true, model))
        return truth, widest

    @functools.cached_property
    def reference(self) -> np.ndarray:
        """pi_ref ~ exp(tilt r_G), the initial policy, float64 (X, K)."""
        return softmax(self.tilt * self._rankings[0])

    @property
    def largest_variance(self) -> float:
        """The largest possible variance: that of rewards from -1 to 1, in the context where it is smallest."""
        return float(variance(self.reference, self._rankings[1]).min())

    @functools.cached_property
    def tables(self) -> TeacherTables:
        """Build both rewards; sizes as in `TeacherTables`."""
        truth, widest = self._rankings
        width = np.minimum(1.0, np.sqrt(self.variance / variance(self.reference, widest)))
        return TeacherTables(portable(width[:, None] * widest), truth)

    def judged(self, contexts: Any, actions: Any, rng: Stream) -> Any:
        """Return r_M of the responses, actions int64 (n,): float64 (n,)."""
        return self.on(actions).model[contexts, actions]


def _wrong_ranking(responses: int, wrong: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a permutation of the ranks 0..K-1 with exactly `wrong` inversions, int64 (K,).

    Every permutation with fewer than K (K - 1) / 2 inversions has two neighbours in order; swapping them adds one.
    """
    ranks = np.arange(responses)
    for _ in range(wrong):
        place = rng.choice(np.flatnonzero(np.diff(ranks) > 0))
        ranks[[place, place + 1]] = ranks[[place + 1, place]]
    return ranks
