"""Preference games: symmetric games of two policies whose pay-off is the probability to win a comparison.

Everything is batched over X contexts: wins (X, K, K) holds P(i > j) = 1 - P(j > i), probabilities are (X, K). The game
of a context is symmetric with value 1/2, since wins - 1/2 is skew.
"""

import numpy as np

from theorybench.envs.core.errors import NonFiniteError
from theorybench.envs.core.numerics import divergence, logsumexp, softmax

#: Largest 1/2 - J at which a policy is taken as the equilibrium of a regularised game.
CERTIFIED = 1e-12
#: How far below 1/2 rounding alone takes the win rate of a von Neumann winner.
ROUNDING = 1e-12


def win_rates(wins: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """Return P(y > pi) of every response y against a policy, (X, K)."""
    return (wins @ probs[:, :, None])[:, :, 0]


def exploitability(wins: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """Return 1/2 - min_y P(pi > y) = max_y P(y > pi) - 1/2 of each context, (X,), at least 0."""
    return win_rates(wins, probs).max(axis=1) - 0.5


def regularised_value(wins: np.ndarray, reference: np.ndarray, beta: float, probs: np.ndarray) -> np.ndarray:
    """Return J(pi) = min over pi' of P(pi > pi') + beta KL(pi' || ref) - beta KL(pi || ref) of each context, (X,).

    The minimum over pi' is that of a linear function plus beta KL: with Z = E_{y' ~ ref} exp(-P(pi > y') / beta) and
    pi'(y') = ref(y') exp(-P(pi > y') / beta) / Z every other policy q has the value

        P(pi > q) + beta KL(q || ref) = -beta ln Z + beta KL(q || pi') >= -beta ln Z.

    Hence J(pi) = -beta KL(pi || ref) - beta ln Z. It is a minimum of linear functions less beta KL, thus strictly
    concave. For pi' = pi it is at most P(pi > pi) = 1/2, and 1/2 where pi is its own best reply: `equilibrium`.
    """
    replies = np.log(reference) - (1.0 - win_rates(wins, probs)) / beta
    return np.asarray(-beta * (divergence(probs, reference) + logsumexp(replies)))


def best_reply(wins: np.ndarray, reference: np.ndarray, beta: float, probs: np.ndarray) -> np.ndarray:
    """Return ref(y) exp(P(y > pi) / beta) / Z, the regularised best reply to a policy, (X, K)."""
    return softmax(np.log(reference) + win_rates(wins, probs) / beta)


def equilibrium(wins: np.ndarray, reference: np.ndarray, beta: float) -> np.ndarray:
    """Solve pi ~ ref exp(P(. > pi) / beta): the maximum of `regularised_value`, where it is 1/2, float64 (X, K).

    Newton's method on the logits u = ln ref + P(. > pi_u) / beta. Its Jacobian is I - A D / beta with A = wins - 1/2
    skew and D = diag(pi) - pi pi^T positive semi-definite; A D has the eigenvalues of the skew D^1/2 A D^1/2, which are
    imaginary: the system can always be solved. Steps are halved until the residual falls, and beta falls by halves
    from a value at which the first step is nearly the solution.

    The certificate is the value itself: f(q) = P(q > pi*) - beta KL(q || ref) has its maximum at pi* and falls by
    beta KL(q || pi*) from there, so 1/2 - J(q) >= beta KL(q || pi*) for every q.

    Raises:
        NonFiniteError: the certificate was not reached, 1/2 - J > 1e-12.
    """
    skew, start = wins - 0.5, np.log(reference)
    logits, weights = start, [beta]
    while weights[-1] < 1.0:
        weights.append(2.0 * weights[-1])
    for weight in reversed(weights):
        logits = _newton(skew, start, weight, logits)
    probs = softmax(logits)
    # One further reply removes the residual's rounding from the logits.
    replied = best_reply(wins, reference, beta, probs)
    gaps = [0.5 - regularised_value(wins, reference, beta, found) for found in (probs, replied)]
    probs = np.where((gaps[1] < gaps[0])[:, None], replied, probs)
    if not np.minimum(*gaps).max() <= CERTIFIED:
        raise NonFiniteError(f"the equilibrium was not found: 1/2 - J is still {np.minimum(*gaps).max():.3g}")
    return probs


def _newton(skew: np.ndarray, start: np.ndarray, beta: float, logits: np.ndarray, steps: int = 100) -> np.ndarray:
    """Solve u = start + A pi_u / beta for u of each context, from `logits`."""
    identity = np.eye(skew.shape[1])

    def residual(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        probs = softmax(u)
        return u - start - win_rates(skew, probs) / beta, probs

    missed, probs = residual(logits)
    for _ in range(steps):
        size = np.abs(missed).max(axis=1)
        if size.max() < 1e-14 / beta:
            break
        spread = probs[:, :, None] * (identity - probs[:, None, :])
        step = np.linalg.solve(identity - skew @ spread / beta, missed[:, :, None])[:, :, 0]
        length = np.ones(len(logits))
        for _ in range(40):
            moved = logits - length[:, None] * step
            after, there = residual(moved)
            worse = np.abs(after).max(axis=1) > (1 - 0.25 * length) * size
            if not worse.any():
                break
            length = np.where(worse, 0.5 * length, length)
        # Where rounding keeps the residual from falling, the logits stay.
        logits, missed, probs = (
            np.where(worse[:, None], old, new) for old, new in ((logits, moved), (missed, after), (probs, there))
        )
        if worse.all():
            break
    return logits


def von_neumann_winner(wins: np.ndarray) -> np.ndarray:
    """Return a policy that loses to no response: max_p min_j P(p > j) = 1/2, by linear programmes, float64 (X, K).

    HiGHS solves to 1e-7; on the support that it finds, p is then the solution of the equations P(p > j) = 1/2, if that
    is a distribution that loses to no response.
    """
    return np.stack([_von_neumann_winner(own) for own in wins])


def _von_neumann_winner(wins: np.ndarray) -> np.ndarray:
    from scipy.optimize import linprog

    count = len(wins)
    solution = linprog(
        np.append(np.zeros(count), -1.0),
        A_ub=np.column_stack([-wins.T, np.ones(count)]),
        b_ub=np.zeros(count),
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * count + [(None, None)],
        method="highs",
    )
    found = np.maximum(solution.x[:-1], 0.0)
    found /= found.sum()
    held = found > 1e-7
    equations = np.vstack([wins[np.ix_(held, held)].T - 0.5, np.ones(held.sum())])
    exact = np.zeros(count)
    exact[held] = np.linalg.lstsq(equations, np.append(np.zeros(held.sum()), 1.0), rcond=None)[0]
    if exact.min() >= -ROUNDING and (exact @ wins).min() >= 0.5 - ROUNDING:
        exact = np.maximum(exact, 0.0)
        return exact / exact.sum()
    return found


def bradley_terry(wins: np.ndarray, pairs: np.ndarray, ridge: float = 1e-10, steps: int = 200) -> np.ndarray:
    """Fit scores r of mean 0: minimise -sum_ij w_ij P_ij ln sigma(r_i - r_j) + ridge/2 |r|^2, float64 (X, K).

    At the minimum sum_j w_ij P_ij = sum_j w_ij sigma(r_i - r_j). With equal weights the right side is an increasing
    function of r_i, the same for all i: the fit ranks responses by their Borda scores, whatever the preferences are.

    Args:
        wins: P(i > j), (X, K, K).
        pairs: w_ij >= 0, how often i is compared with j, symmetric, (X, K, K).
        ridge: > 0; keeps the scores finite of responses that always win or are never compared.
        steps: maximum number of Newton steps.
    """
    scores = np.zeros(wins.shape[:2])
    identity = np.eye(wins.shape[1])
    for _ in range(steps):
        margins = scores[:, :, None] - scores[:, None, :]
        expected = 0.5 * (1.0 + np.tanh(0.5 * margins))
        gradient = (pairs * (expected - wins)).sum(axis=2) + ridge * scores
        weights = pairs * expected * (1.0 - expected)
        hessian = weights.sum(axis=2)[:, :, None] * identity - weights + ridge * identity
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        # The length of `fit_bradley_terry`: each logistic term has |f'''| <= D f'' along the step, D its spread.
        reach = np.maximum(np.ptp(step, axis=1), 1e-12)
        scores = scores - (np.log1p(reach) / reach)[:, None] * step
        if reach.max() < 1e-11:
            break
    return scores - scores.mean(axis=1, keepdims=True)


def condorcet_threshold(scored: np.ndarray, cyclic: np.ndarray) -> np.ndarray:
    """Return c* of each context, (X,), the cyclicity up to which the Borda winner loses to no response; 1 at most.

    P(i > j) is (1 - c) scored + c cyclic, both (X, K, K). Borda scores and probabilities are linear in c, so the
    winner, and what beats it, change only where lines cross: the midpoint between two neighbouring crossings decides
    for all cyclicities between them.
    """
    return np.array([_threshold(*both) for both in zip(scored, cyclic, strict=True)])


def _threshold(scored: np.ndarray, cyclic: np.ndarray) -> float:
    borda = np.stack([scored.mean(axis=1), cyclic.mean(axis=1)])
    lines = np.concatenate(
        [(borda[:, :, None] - borda[:, None, :]).reshape(2, -1), np.stack([scored, cyclic]).reshape(2, -1) - 0.5],
        axis=1,
    )
    slopes = lines[0] - lines[1]
    crossings = np.divide(lines[0], slopes, where=np.abs(slopes) > ROUNDING, out=np.zeros_like(slopes))
    places = np.unique(np.append(crossings[(crossings > 0) & (crossings < 1)], [0.0, 1.0]))
    middles = 0.5 * (places[1:] + places[:-1])[:, None, None]
    mixed = (1 - middles) * scored + middles * cyclic
    winners = mixed.mean(axis=2).argmax(axis=1)
    beaten = mixed[np.arange(len(mixed)), winners].min(axis=1) < 0.5 - ROUNDING
    return float(places[:-1][beaten][0]) if beaten.any() else 1.0
