"""PreferenceBandit: pairs of responses, Bradley-Terry labels and a linear softmax class (arXiv 2601.08421)."""

import dataclasses
import functools
from typing import Any, ClassVar, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import namespace, portable
from theorybench.envs.core.dynamics import Sizes
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.streams import Stream
from theorybench.envs.core.validation import choice, instance, integer, real
from theorybench.envs.preference.contextual import ContextualBandit, bandit_sizes

GEOMETRIES = ("hypercube", "gaussian")
CANONICAL_SEED = 2601_08421


class BanditTables(NamedTuple):
    """The instance; X contexts, K responses, d features."""

    weights: np.ndarray  # exp(r(x, y) - max r(x, .)), float64 (X, K): y beats y' with probability w / (w + w')
    features: np.ndarray  # phi(x, y), float64 (X, K, d)
    theta: np.ndarray  # theta*, float64 (d,)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PreferenceBandit(ContextualBandit):
    """A contextual bandit with Bradley-Terry labels, in which coverage determines which algorithms learn.

    ## Description
    A context x is shown, the agent answers with two responses y and y', and a label says which is better:
    P(y wins) = sigma(r(x, y) - r(x, y')). The reward r = beta theta* . phi(x, y) is never seen. The goal is the policy
    with the largest J(pi) = E r - beta KL(pi || pi_ref), the objective of learning from human preferences, with pi_ref
    uniform. The optimum pi* = pi_{theta*} lies in the linear softmax class pi_theta(y|x) ~ exp(theta . phi(x, y)).

    `geometry="hypercube"`: responses are the sign vectors y of {-1, +1}^d (bit i of the index is 1 where y_i = -1), and
    phi(x, y) = s_x * y with a sign vector s_x for each context. Every pi_theta factorises over coordinates, with
    P(y_i = s_xi) = sigma(2 theta_i), and everything has a closed form. Learning starts at pi_{theta_init}, far from
    theta* and nearly deterministic: its pairs differ in a given coordinate only once in 2 cosh^2(theta_init) labels.

    `geometry="gaussian"`: `num_responses` responses with random features of norm 1. Here coverage is mild (C is about 4
    to 10) and pooled offline data wins.

    ## Action Space
    `MultiDiscrete([K, K])`: a pair of responses, K = 2^d or `num_responses`. A policy is over single responses, (n, K).

    ## Observation Space
    `MultiDiscrete([K + X + 1] * 2)`: the token K + x + 1 of context x (X = `num_contexts`), then 0.

    ## Starting State
    A prompt is a context: uniform over the X of them, or `options={"prompt": x}`.

    ## Reward
    The label centred on zero, the pay-off of the symmetric duelling game: +1/2 when the first response wins, -1/2 when
    it loses. Label noise is fresh in each episode.

    ## Episode End
    After one pair (`terminated`); never truncated.

    ## Arguments
    On the hypercube the oracle's numbers depend on the instance only through the signs of theta_init * theta*_i.

    ## Optimum
    pi* = pi_{theta*} and J* = beta E_x ln mean_y exp(theta* . phi), on the hypercube beta d ln cosh theta*: .2660 by
    default. J = 0 for the reference. With Sigma_pi = E_x Cov_pi phi the relative coverage of a policy is
    C(pi) = lambda_max(Sigma_pi^-1/2 Sigma_pi* Sigma_pi^-1/2), on the hypercube max_i cosh^2 theta_i / cosh^2 theta*_i:
    92.8 for the initial policy, 1 for the optimum, infinite for a policy that does not vary along some feature.
    From n labels the error E ||theta - theta*||^2 in the Sigma_pi* norm is at best tr(Sigma_pi* I(mu)^-1) / n, where
    I(mu) is the Fisher information of a pair from mu: 15.26 / n for mu = pi*, 1218.2 / n for the initial policy.

    ## What theory predicts
    Each round of on-policy DPO fits theta to n fresh pairs of its own policy, with the reference fixed.

    1. One round decides whether coverage improves: a coordinate whose informative pairs all agree (or that has none)
       is separated and its estimate diverges. P(C(pi_1) <= 10) follows 1 - P(some coordinate separated), with a
       threshold n* = 2 cosh^2(theta_init) ln(d / delta) / (1 - sigma(2 beta theta*)). P(C(pi_1) <= 2) is lower, and
       follows a binomial law.
    2. Above the threshold the error reaches the floor 15.26 / n within 2 to 3 rounds.
    3. At equal labels (T = 6 rounds) offline DPO is worse by the factor tr(Sigma* I(pi_init)^-1) / (6 x 15.26): 1.88,
       13.3 and 97.7 at theta_init 2, 3 and 4.
    4. Hybrid DPO, whose second responses follow a preferential G-optimal design, reaches its floor 14.63 / n in two
       rounds from any theta_init; the first round ends at 18.9 / n. With the same number of labels on-policy DPO fails
       if C is large.
    5. Apart from label noise, reward distillation is exact once its pairs span the features: M pairs of the initial
       policy do so with probability (1 - (1 - 1 / (2 cosh^2 theta_init))^M)^d, even if all labels are of one kind.

    The solver matters: it starts at the round's theta_t with a ridge of 1e-6 to theta_t. With a ridge to the reference
    a coordinate without information returns to 0, so the learner explores by itself and the transition disappears.

    ## References
    - arXiv 2601.08421: coverage improvement and fast convergence of on-policy preference learning (ICML 2026).
    - Rafailov et al., Direct preference optimization, NeurIPS 2023 (arXiv 2305.18290).

    ## Version History
    - v0: first release.
    """

    question: ClassVar[str] = "when does on-policy preference data beat offline data?"
    feedback: ClassVar[str] = "preference"
    reference_depends_on: ClassVar[str] = "position"

    geometry: str = choice("hypercube", GEOMETRIES, "responses and features")
    dimension: int = integer(6, 1, 12, "d, number of features (gaussian: from 2); the hypercube has K = 2^d responses")
    num_contexts: int = integer(8, 1, 64, "X, number of contexts")
    num_responses: int = integer(64, 2, 1024, "K of the gaussian geometry; unused by the hypercube")
    theta_star: float = real(0.3, 0.01, 3.0, "size of every coordinate of theta*")
    theta_init: float = real(3.0, -20.0, 20.0, "every coordinate of theta in the initial policy")
    beta: float = real(1.0, 0.0, 5.0, "weight of the KL term and scale of the reward", open_low=True)
    instance: int | str = instance(
        "canonical",
        "draws s_x (or the features) and the signs of theta*; canonical: theta* alternates +, -, ...",
        canonical=True,
    )

    def validate(self) -> None:
        """Check that theta can be identified from the features.

        Raises:
            ParameterError: gaussian features of one coordinate, or with fewer than `dimension` independent differences.
        """
        if self.geometry == "gaussian" and self.dimension == 1:
            fix = "In one dimension features of norm 1 are signs, which may all be equal: nothing would be learnt."
            raise ParameterError("dimension", 1, "at least 2 with geometry='gaussian'", fix)
        if self.geometry == "gaussian" and self.num_contexts * (self.num_responses - 1) < self.dimension:
            allowed = f"at least {1 + -(-self.dimension // self.num_contexts)} responses"
            fix = "num_contexts * (num_responses - 1) >= dimension makes theta identifiable."
            raise ParameterError("num_responses", self.num_responses, allowed, fix)

    @functools.cached_property
    def sizes(self) -> Sizes:
        """The sizes for X contexts with K responses each."""
        responses = 2**self.dimension if self.geometry == "hypercube" else self.num_responses
        return bandit_sizes(self.num_contexts, responses)

    @functools.cached_property
    def tables(self) -> BanditTables:
        """Draw the instance; sizes as in `BanditTables`."""
        number = 0 if self.instance == "canonical" else 1 + int(self.instance)
        rng = np.random.default_rng([CANONICAL_SEED, number])
        if self.geometry == "hypercube":
            signs = rng.choice([-1.0, 1.0], (self.num_contexts, 1, self.dimension))
            bits = np.arange(self.num_actions)[:, None] >> np.arange(self.dimension) & 1
            features = signs * (1.0 - 2.0 * bits)
        else:
            normal = rng.standard_normal((self.num_contexts, self.num_actions, self.dimension))
            features = portable(normal / np.sqrt((normal**2).sum(axis=2, keepdims=True)))
        alternating = 1.0 - 2.0 * (np.arange(self.dimension) % 2)
        directions = alternating if number == 0 else rng.choice([-1.0, 1.0], self.dimension)
        # Sum before scaling: agreements are counted as integers, so equal rewards are equal bit for bit.
        scores = self.beta * self.theta_star * (features * directions).sum(axis=2)
        weights = portable(np.exp(scores - scores.max(axis=1, keepdims=True)))
        return BanditTables(weights, features, self.theta_star * directions)

    @functools.cached_property
    def rewards(self) -> np.ndarray:
        """r(x, y) = beta theta* . phi(x, y), in nats, float64 (X, K)."""
        directions = np.sign(self.tables.theta)
        return self.beta * self.theta_star * (self.tables.features * directions).sum(axis=2)

    def judged(self, contexts: Any, actions: Any, rng: Stream) -> Any:
        """Label the pairs, actions int64 (n, 2): rewards +1/2 or -1/2, float64 (n,)."""
        xp = namespace(actions)
        weights = self.on(actions).weights
        first, second = weights[contexts, actions[:, 0]], weights[contexts, actions[:, 1]]
        wins = rng.uniform(0) < first / (first + second)
        return xp.astype(wins, xp.float64) - 0.5

    def initial_probs(self, observations: np.ndarray) -> np.ndarray:
        """pi_theta with every coordinate of theta at `theta_init`, float64 (n, K)."""
        return self.linear_probs(np.full(self.dimension, self.theta_init))[self.contexts(observations)]

    def linear_probs(self, theta: np.ndarray) -> np.ndarray:
        """pi_theta(y|x) ~ exp(theta . phi(x, y)) for theta (d,), float64 (X, K)."""
        return softmax(self.tables.features @ theta)

    def features(self, observations: np.ndarray) -> np.ndarray:
        """phi(x, y) of every response, float64 (n, K, d)."""
        return self.tables.features[self.contexts(observations)]
