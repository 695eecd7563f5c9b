"""The view of Countdown's tabular agents: states from which the target can be reached."""

from typing import TYPE_CHECKING

import numpy as np

from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.views import MAX_ROWS, View

if TYPE_CHECKING:
    from theorybench.envs.curriculum.countdown.setting import Countdown


class WinnableView(View):
    """The view "state" of Countdown: row w is the w-th winnable state, the last row stands for all other states.

    Nothing is lost by that: from a state of the last row no play earns anything, so that no learner can tell these
    states apart by rewards. Moves made do not count, only what is left.

    Args:
        setting: lists the states.

    Raises:
        ParameterError: a table of more than 4,194,304 rows.
    """

    def __init__(self, setting: "Countdown") -> None:
        self.name, self.num_actions, self.depends_on = "state", setting.num_actions, "prefix"
        self.prompt_length, self.response_length = setting.prompt_length, setting.response_length
        self.parameters = {"name": self.name}
        self._setting, self.rows = setting, len(setting.winnable) + 1
        if self.rows > MAX_ROWS:
            raise ParameterError("view", "state", f"a view of at most {MAX_ROWS} rows (this one has {self.rows})")

    def index(self, observations: np.ndarray) -> np.ndarray:
        """Return the row of each observation: int64 (n,)."""
        return self._setting.winnable.find(*self._setting.read(np.asarray(observations)))

    def observations(self, dtype: np.dtype) -> np.ndarray:
        """Return one observation of each row; for the last one an empty table, which no game shows."""
        setting, winnable = self._setting, self._setting.winnable
        shown = setting.show(winnable.targets, winnable.numbers, np.zeros((len(winnable), setting.num_stages), dtype))
        return np.append(shown, np.zeros_like(shown[:1]), axis=0)
