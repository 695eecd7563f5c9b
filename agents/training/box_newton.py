"""Newton steps inside a box |theta_i| <= box, many runs at once: what the exact solvers share."""

import numpy as np


def newton_direction(theta: np.ndarray, gradient: np.ndarray, hessian: np.ndarray, box: float) -> np.ndarray:
    """Solve H v = -g over the coordinates that do not leave the box; the others stay.

    Args:
        theta: inside the box, (R, d).
        gradient: (R, d).
        hessian: positive definite, (R, d, d).
        box: bound on every coordinate.

    Returns:
        v, (R, d).
    """
    identity = np.eye(theta.shape[1])
    free = ~(((theta >= box) & (gradient < 0)) | ((theta <= -box) & (gradient > 0)))
    while True:
        system = np.where(free[:, :, None] & free[:, None, :], hessian, identity)
        direction = -np.linalg.solve(system, np.where(free, gradient, 0.0)[:, :, None])[:, :, 0]
        leaving = ((theta >= box) & (direction > 0)) | ((theta <= -box) & (direction < 0))
        if not leaving.any():
            return direction
        free &= ~leaving


def move(theta: np.ndarray, step: np.ndarray, box: float) -> np.ndarray:
    """Go from theta along step, (R, d), as far as the first face of the box that is met."""
    room = np.where(step > 0, box - theta, box + theta)
    share = np.divide(room, np.abs(step), out=np.ones_like(room), where=np.abs(step) > room).min(axis=1)
    target = theta + share[:, None] * step
    return np.where(np.abs(target) > box * (1 - 1e-12), np.sign(target) * box, target)  # on the face, not beside it
