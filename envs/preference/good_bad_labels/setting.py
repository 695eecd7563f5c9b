"""GoodBadLabels: single responses are labelled good or bad; the target is the law of good ones (arXiv 2505.07558)."""

import dataclasses
import functools
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import namespace, portable
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.streams import Stream
from theorybench.envs.core.validation import choice, instance, integer, real
from theorybench.envs.preference.contextual import ContextualBandit
from theorybench.envs.preference.good_bad_labels.limits import total_variation

CANONICAL_SEED = 2505_07558
#: The distance of a cyclic preference from 1/2: P(y beats y') is .05, 1/2 or .95.
CYCLE = 0.45
#: The least total variation between pi_ref and the target; below it there is little to learn.
LEAST_GAP = 1e-3


class LabelTables(NamedTuple):
    """The instance; X contexts, K responses."""

    good: np.ndarray  # p+, the law of good responses and the target, float64 (X, K)
    bad: np.ndarray  # p-, the law of bad responses, float64 (X, K)
    mixture: np.ndarray  # t p+ + (1-t) p-, the law of the responses that are labelled offline, float64 (X, K)
    chance: np.ndarray  # P(good | x, y) = t p+ / mixture, float64 (X, K)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoodBadLabels(ContextualBandit):
    """A contextual bandit that labels single responses good or bad; the target is the law of the good ones.

    ## Description
    A context x is shown, the agent gives one response y of K, and a label says whether it was good; there are no
    comparisons. Two laws define the labels: p+(y|x) of good and p-(y|x) of bad responses. A response of the initial
    policy is good with probability t, so this policy is exactly the mixture t p+ + (1-t) p-, and

        P(good | x, y) = t p+(y|x) / (t p+(y|x) + (1-t) p-(y|x)).

    The task is to *match* p+: not to give the response that is good most often, but to answer as good responses are
    distributed. The labels assume no Bradley-Terry or other model.

    With `labels="mixture"` p+ and p- are drawn from a Dirichlet distribution. With `labels="cyclic"` the initial policy
    is drawn instead, and y is good when it beats a hidden response y' of that policy under a cyclic preference: with
    the K responses in a hidden circular order, y beats the responses of the half circle after it with probability .95,
    those before it with .05, and the opposite one and itself with 1/2. Then t = 1/2 for every policy, and
    p+(y) = 2 pi(y) E P(y beats y'). No scores of single responses give such preferences.

    The reference pi_ref of the losses is the same mixture. With `contamination` c > 0 it is 1-c times the mixture plus
    c times the uniform distribution, while offline responses and labels are unchanged.

    ## Action Space
    `Discrete(K)`: the response.

    ## Observation Space
    `MultiDiscrete([K + X + 1] * 2)`: the token K + x + 1 of context x (X = `num_contexts`), then the response's.

    ## Starting State
    A prompt is a context: uniform over the X of them, or `options={"prompt": x}`.

    ## Reward
    +1/2 for a good label and -1/2 for a bad one; fresh noise in each episode.

    ## Episode End
    After one response (`terminated`); never truncated.

    ## Arguments

    ## Optimum
    pi = p+. The objective is -TV(p+, pi), mean over contexts, so that J* = 0. KL(p+ || pi) is reported, at most 50.

    ## What theory predicts
    1. The minimisers of direct density ratio optimisation (DDRO) and of its two-term variant are p+, and from n labels
       n E[TV^2] tends to a constant that the oracle computes: .09 to .12 times K-1 on average, for one context and
       t = 1/2.
    2. DPO on pairs of a good and a bad response converges to pi_ref (p+/p-)^(1/beta) / Z: for beta = 1 and t = 1/2 at a
       total variation of .28 for K = 6, .44 for 20 and .55 for 100, on average over Dirichlet(1) laws.
    3. KTO gives probability 0 to each response whose good labels weigh less than its bad ones, and distributes the rest
       by water-filling.
    4. A wrong t, or a pi_ref that is not the mixture, biases DDRO by an amount that the oracle computes.

    ## References
    - arXiv 2505.07558: Higuchi and Suzuki, Direct density ratio optimization: a statistically consistent approach to
      aligning large language models (2025).
    - arXiv 2402.01306: Ethayarajh et al., KTO: model alignment as prospect theoretic optimization (2024).

    ## Version History
    - v0: first release.
    """

    question: ClassVar[str] = "what can be learnt from thumbs up and down, without comparisons?"
    feedback: ClassVar[str] = "label"

    num_responses: int = integer(20, 2, 128, "number of responses K, from 3 if cyclic")
    num_contexts: int = integer(4, 1, 64, "number of contexts X")
    labels: str = choice(
        "mixture", ("mixture", "cyclic"), "mixture: p+ and p- are drawn; cyclic: good is what beats a hidden response"
    )
    good_share: float = real(0.5, 0.02, 0.98, "t, the share of good responses of the initial policy, 1/2 if cyclic")
    concentration: float = real(
        1.0, 0.2, 100.0, "of the Dirichlet distribution that draws the laws, which are nearly uniform if it is large"
    )
    contamination: float = real(0.0, 0.0, 0.5, "c, the share of the uniform distribution in pi_ref")
    instance: int = instance(0, "the laws of good and bad responses")

    def validate(self) -> None:
        """Check that cyclic labels have the share 1/2 and three responses or more, and that p+ is not the reference.

        Raises:
            ParameterError: cyclic labels have another share or two responses, or the reference is nearly the target.
        """
        if self.labels == "cyclic":
            if self.good_share != 0.5:
                raise ParameterError("good_share", self.good_share, "0.5 with cyclic labels", "A draw beats half.")
            if self.num_responses < 3:
                raise ParameterError("num_responses", self.num_responses, "an integer in 3..128 with cyclic labels")
        gap = total_variation(self.tables.good, self.reference)
        if gap < LEAST_GAP:
            allowed = f"laws whose reference is farther than {LEAST_GAP:g} from the target: this one is {gap:.2g}"
            raise ParameterError("concentration", self.concentration, allowed, "A smaller one makes laws differ more.")

    @functools.cached_property
    def tables(self) -> LabelTables:
        """Draw the laws; sizes as in `LabelTables`."""
        rng = np.random.default_rng([CANONICAL_SEED, self.instance])
        size = (self.num_contexts, self.num_responses)
        drawn = [_laws(rng.standard_gamma(self.concentration, size)) for _ in range(2)]
        good, bad = drawn
        if self.labels == "cyclic":
            start, beats = drawn[0], _circle(self.num_responses)
            order = rng.permuted(np.tile(np.arange(self.num_responses), (self.num_contexts, 1)), axis=1)
            wins = (beats[order[:, :, None], order[:, None]] * start[:, None]).sum(axis=2)
            good, bad = _laws(start * wins), _laws(start * (1 - wins))
        part = self.good_share * good
        mixture = part + (1 - self.good_share) * bad
        return LabelTables(good, bad, mixture, part / mixture)

    @functools.cached_property
    def reference(self) -> np.ndarray:
        """pi_ref, float64 (X, K)."""
        return (1 - self.contamination) * self.tables.mixture + self.contamination / self.num_responses

    def judged(self, contexts: Any, actions: Any, rng: Stream) -> Any:
        """Label the responses, actions int64 (n,): rewards +1/2 or -1/2, float64 (n,)."""
        xp = namespace(actions)
        good = rng.uniform(0) < self.on(actions).chance[contexts, actions]
        return xp.astype(good, xp.float64) - 0.5

    def initial_probs(self, observations: np.ndarray) -> np.ndarray:
        """The mixture of good and bad responses, float64 (n, K)."""
        return self.tables.mixture[self.contexts(observations)]


def _laws(weights: np.ndarray) -> np.ndarray:
    """Scale weights (X, K) to distributions; sums are exact, so that every machine gets the same bits."""
    rounded = portable(weights)
    return rounded / np.array([[math.fsum(row)] for row in rounded.tolist()])


def _circle(responses: int) -> np.ndarray:
    """Return P(y beats y') of responses in a circle, float64 (K, K)."""
    ahead = (np.arange(responses) - np.arange(responses)[:, None]) % responses
    wins: np.ndarray = 0.5 + CYCLE * np.sign(responses - 2 * ahead) * (ahead > 0)
    return wins
