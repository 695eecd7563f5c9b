"""Logarithms of ratios of probabilities: in NumPy, or compiled, where numba is installed and there are very many."""

import functools
import importlib.util
from typing import Any

import numpy as np

from theorybench.envs.core.numerics import SMALLEST

#: Numbers from which logarithms, 2 to 3 ms here, cost more over some calls than loading the compiled ones does once.
MANY = 2**19


def log_ratios(rows: np.ndarray, reference: np.ndarray, *, among: int) -> np.ndarray:
    """Return ln(rows / reference), finite where rows are 0, infinite where the reference alone is.

    Args:
        rows: float64 (n, A), probabilities.
        reference: float64 (n, A), likewise.
        among: how many such numbers there are in all: it alone decides whether they are compiled, so that the same
            question has the same answer to the last bit.

    Returns:
        float64 (n, A).
    """
    if among >= MANY and _has_numba():
        from theorybench.envs.core.finite.compiled_ratios import logs

        found = np.empty(rows.shape)
        logs(_flat(rows), _flat(reference), found.reshape(-1))
        return found
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = rows / reference
    if not rows.min(initial=1.0) > 0:
        np.fmax(ratio, SMALLEST, out=ratio)  # of 0 / 0, too
    np.log(ratio, out=ratio)
    return ratio


@functools.cache
def _has_numba() -> bool:
    return importlib.util.find_spec("numba") is not None


def _flat(rows: np.ndarray) -> Any:
    return np.ascontiguousarray(rows).reshape(-1)
