"""A critic: the value function of each run, over what the policy class sees, with an optimiser of its own."""

import numpy as np
import torch

from theorybench.agents.descent import Descent
from theorybench.agents.samples import Samples
from theorybench.agents.softmax import RowSoftmax, SoftmaxClass


class Critic:
    """Values of R runs: a number for each row of a view, or a network beside the policy's.

    Args:
        softmax: the policy class, whose encoded observations it reads.
        keys: int64 (R,), of the runs.
        learning_rate: Adam's step size.
    """

    def __init__(self, softmax: SoftmaxClass, keys: np.ndarray, learning_rate: float) -> None:
        self.softmax = softmax
        start = np.stack([softmax.value_start(int(key)) for key in keys])
        self._descent = Descent(start, "adam", learning_rate, float("inf"))

    def _of_one(self, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
        return self.softmax.values(parameters, data.encoded) * data.taken

    def values(self, data: Samples) -> torch.Tensor:
        """Return the value of the state before each action, float64 (R, N, T), 0 in padding."""
        with torch.no_grad():
            return torch.func.vmap(self._of_one)(self._descent.parameters, data)

    def loss(self, values: torch.Tensor, data: Samples) -> torch.Tensor:
        """Half the mean squared distance of one run's values (N, T) to `data.returns`, over the steps taken."""
        return 0.5 * ((values - data.returns) ** 2 * data.taken).sum() / data.taken.sum()

    def update(self, data: Samples) -> None:
        """Take one step down the squared error."""
        self._descent.step(lambda parameters, part: self.loss(self._of_one(parameters, part), part), data)

    def fit(self, data: Samples, steps: int) -> None:
        """Minimise the squared error: tables exactly, by the mean return of each row (0 where none was seen).

        Args:
            data: with a leading axis of runs.
            steps: of networks.
        """
        if not isinstance(self.softmax, RowSoftmax):
            for _ in range(steps):
                self.update(data)
            return
        rows, taken = data.encoded.flatten(1), data.taken.flatten(1)
        sums = torch.zeros_like(self._descent.parameters).detach()
        visits = sums.clone()
        sums.scatter_add_(1, rows, data.returns.flatten(1) * taken)
        visits.scatter_add_(1, rows, taken)
        self._descent.assign((sums / visits.clamp(min=1.0)).numpy())
