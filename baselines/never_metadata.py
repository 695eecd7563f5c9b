"""Never-metadata: writes at once, each symbol for the best chance of a text of the grammar. On Metadata alone.

It knows the grammar and what the prompt says of its labels, and buys and reads nothing. Unlike the language model it
does not draw likely symbols: it writes the text that is grammatical under the labels of most posterior weight together.
It spends and logs nothing.
"""

from typing import Any

import numpy as np

from theorybench.baselines.mixture_lm import MixtureLM
from theorybench.envs.core.setting import Setting


class NeverMetadata(MixtureLM):
    """The text that is most often grammatical; spends nothing."""

    def sees(self, setting: Setting) -> str:
        """Return "secret": it knows the rules of the instance's grammar."""
        return "secret"

    def rows(self, setting: Any) -> np.ndarray:
        """Write the best symbol at each board."""
        return np.eye(setting.num_actions)[setting.best_writing]
