"""Exact least squares of linear margins, many runs at once: the solver inside linear-softmax IPO and distillation."""

import numpy as np

from theorybench.agents.training.box_newton import move, newton_direction
from theorybench.envs.core.errors import ParameterError


def fit_least_squares(
    rows: np.ndarray,
    targets: np.ndarray,
    start: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    ridge: float = 1e-6,
    steps: int = 100,
    box: float = 20.0,
) -> np.ndarray:
    """Minimise sum_j w_j (theta . x_j - t_j)^2 + ridge/2 ||theta - start||^2 over |theta_i| <= box.

    The ridge pulls to `start`, not to 0: a direction without information stays where it is. Each step goes to the
    minimum over the coordinates that are free to move, or to the face of the box that it meets first; inside the box
    one step is the whole solution.

    Args:
        rows: x_j, (R, n, d), or (n, d) shared by all runs.
        targets: t_j, (R, n).
        start: theta of each run before the fit, (R, d), inside the box.
        weights: w_j >= 0, (R, n); default 1.
        ridge: > 0, in units of the summed loss.
        steps: most steps; at most a few for each face that is met.
        box: bound on every coordinate.

    Returns:
        theta, float64 (R, d).

    Raises:
        ParameterError: ridge or box is not positive, a target is not finite, or start lies outside of the box.
    """
    rows, targets, start = (np.asarray(array, np.float64) for array in (rows, targets, start))
    _check(targets, start, ridge, box)
    weights = np.ones_like(targets) if weights is None else np.asarray(weights, np.float64)
    columns = np.swapaxes(rows, -1, -2)
    hessian = 2 * (columns @ (weights[:, :, None] * rows)) + ridge * np.eye(start.shape[1])
    pull = 2 * (columns @ (weights * targets)[:, :, None])[:, :, 0] + ridge * start
    theta, moving = start.copy(), np.ones(len(start), bool)
    for _ in range(steps):
        gradient = (hessian @ theta[:, :, None])[:, :, 0] - pull
        target = move(theta, newton_direction(theta, gradient, hessian, box), box)
        target = np.where(moving[:, None], target, theta)
        moving, theta = np.max(np.abs(target - theta), axis=1) > 1e-10, target
        if not moving.any():
            break
    return theta


def _check(targets: np.ndarray, start: np.ndarray, ridge: float, box: float) -> None:
    for field, value in (("ridge", ridge), ("box", box)):
        if not value > 0:
            raise ParameterError(field, value, "a number > 0")
    if not np.isfinite(targets).all():
        raise ParameterError("targets", targets, "finite numbers")
    if not np.all(np.abs(start) <= box):
        raise ParameterError("start", start, f"coordinates in [-{box:g}, {box:g}]")
