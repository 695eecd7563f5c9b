"""Exact Bradley-Terry fits of linear margins, many runs at once: the solver inside linear-softmax DPO.

DPO over pi_theta(y|x) ~ pi_ref(y|x) exp(theta . phi(x, y)) has the margin
beta (ln pi/pi_ref (y) - ln pi/pi_ref (y')) = beta theta . (phi - phi'), so its loss is convex in theta and can be
solved to the end instead of descended.
"""

import numpy as np

from theorybench.agents.training.box_newton import move, newton_direction
from theorybench.envs.core.errors import ParameterError


def fit_bradley_terry(
    differences: np.ndarray,
    labels: np.ndarray,
    start: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    ridge: float = 1e-6,
    beta: float = 1.0,
    steps: int = 100,
    box: float = 20.0,
) -> np.ndarray:
    """Minimise sum_j w_j [softplus(m_j) - y_j m_j] + ridge/2 ||theta - start||^2 over |theta_i| <= box.

    m_j = beta theta . (phi_j - phi'_j). The loss is a sum over pairs, not a mean. The ridge pulls to `start`, not to 0:
    a direction without information stays where it is.

    Damped Newton with the step of generalised self-concordant functions (Sun and Tran-Dinh, Mathematical Programming
    2019, nu = 2). Along a direction v put D = max_j |beta v . (phi_j - phi'_j)|. Each logistic term has
    |f'''| <= D f'', hence with decrement l^2 = v^T H v

        f(theta + t v) <= f(theta) - t l^2 + l^2 (e^{tD} - tD - 1) / D^2,

    least at t = ln(1 + D) / D: every step descends, whatever the start, and t -> 1 near the optimum (quadratic
    convergence). Steps are cut where they meet the box; a coordinate on its face that would leave is
    kept out of the system. A run whose step is below 1e-10 stands still.

    Args:
        differences: phi - phi' of each pair, (R, n, d), or (n, d) shared by all runs.
        labels: the share of wins of the first response, in [0, 1], (R, n).
        start: theta of each run before the fit, (R, d), inside the box.
        weights: how often each pair counts, (R, n); default 1. See `LinearSoftmax.pairs`.
        ridge: > 0, in units of the summed loss.
        beta: KL coefficient, > 0.
        steps: most Newton steps; about 20 suffice unless a direction is separated.
        box: bound on every coordinate.

    Returns:
        theta, float64 (R, d).

    Raises:
        ParameterError: ridge or beta is not positive, a label lies outside of [0, 1], or start outside of the box.
    """
    _check(labels, start, ridge, beta, box)
    rows = beta * np.asarray(differences, np.float64)
    labels, start = np.asarray(labels, np.float64), np.asarray(start, np.float64)
    weights = np.ones_like(labels) if weights is None else np.asarray(weights, np.float64)
    counted, theta = weights > 0, start.copy()
    moving = np.ones(len(theta), bool)
    for _ in range(steps):
        gradient, hessian = _derivatives(rows, labels, weights, theta)
        gradient += ridge * (theta - start)
        direction = newton_direction(theta, gradient, hessian + ridge * np.eye(theta.shape[1]), box)
        reach = np.max(np.abs(rows @ direction[:, :, None])[:, :, 0] * counted, axis=1, initial=0.0)
        length = np.where(reach > 1e-8, np.log1p(reach) / np.maximum(reach, 1e-8), 1.0)
        target = np.where(moving[:, None], move(theta, length[:, None] * direction, box), theta)
        moving, theta = np.max(np.abs(target - theta), axis=1) > 1e-10, target
        if not moving.any():
            break
    return theta


def _derivatives(
    rows: np.ndarray, labels: np.ndarray, weights: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient (R, d) and Hessian (R, d, d) of the summed loss, without the ridge."""
    margins = (rows @ theta[:, :, None])[:, :, 0]
    small = np.exp(-np.abs(margins))
    lose, win = np.where(margins > 0, small, 1.0) / (1 + small), np.where(margins > 0, 1.0, small) / (1 + small)
    residual = weights * ((1 - labels) * win - labels * lose)
    columns = np.swapaxes(rows, -1, -2)
    gradient = (columns @ residual[:, :, None])[:, :, 0]
    return gradient, columns @ ((weights * win * lose)[:, :, None] * rows)


def _check(labels: np.ndarray, start: np.ndarray, ridge: float, beta: float, box: float) -> None:
    for field, value in (("ridge", ridge), ("beta", beta), ("box", box)):
        if not value > 0:
            raise ParameterError(field, value, "a number > 0")
    if not np.all((np.asarray(labels) >= 0) & (np.asarray(labels) <= 1)):
        raise ParameterError("labels", labels, "numbers in [0, 1]", "A reward of +1/2 or -1/2 becomes reward + 1/2.")
    if not np.all(np.abs(start) <= box):
        raise ParameterError("start", start, f"coordinates in [-{box:g}, {box:g}]")
