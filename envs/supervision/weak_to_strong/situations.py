"""All that may have been bought and read, whatever the order: situations, for one row of teachers."""

from typing import NamedTuple

import numpy as np

from theorybench.envs.supervision.weak_to_strong.teachers import READINGS


class Situations(NamedTuple):
    """What may have been bought, by number of purchases: those of fewer than all come first."""

    counts: np.ndarray  # int64 (M, 1 + teachers), batches of true labels and of each teacher
    readings: np.ndarray  # int64 (M, teachers), 1..4, 0 where nothing was bought of the teacher
    total: np.ndarray  # int64 (M,), batches
    #: int64 (decisions, 1 + 4 teachers), the situation after true labels, then after each teacher and reading
    after: np.ndarray


def list_situations(teachers: int, budget: int) -> Situations:
    """List all situations of at most `budget` purchases; in `after` a reading that is known already is repeated."""
    each = 1 + READINGS * budget  # what a teacher's state may be: nothing, or a number of batches and a reading
    count = np.append(0, np.repeat(np.arange(1, budget + 1), READINGS))
    code, total = np.arange(budget + 1), np.arange(budget + 1)
    for _ in range(teachers):
        whole = total[:, None] + count
        source, state = np.nonzero(whole <= budget)
        code, total = code[source] * each + state, whole[source, state]
    order = np.lexsort((code, total))
    code, total = code[order], total[order]
    place = each ** np.arange(teachers - 1, -1, -1)
    state = code[:, None] // place % each
    counts = np.column_stack([code // each**teachers, count[state]])
    readings = np.where(state > 0, (state - 1) % READINGS + 1, 0)
    here = total < budget
    seen = np.where(readings[here, :, None] > 0, readings[here, :, None], np.arange(1, READINGS + 1))
    added = np.where(state[here, :, None] > 0, READINGS, seen) * place[:, None]
    longer = code[here, None] + np.column_stack([np.full(here.sum(), each**teachers), added.reshape(here.sum(), -1)])
    by_code = np.argsort(code)
    return Situations(counts, readings, total, by_code[np.searchsorted(code[by_code], longer)])
