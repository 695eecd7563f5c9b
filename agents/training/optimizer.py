"""Descent of many runs at once: each run's parameters follow its own gradient, independently of the others."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from theorybench.agents.training.samples import Samples

#: (parameters, samples) of one run -> tensor.
Function = Callable[[torch.Tensor, Samples], torch.Tensor]
#: Stock optimisers, all elementwise, so that runs do not mix.
OPTIMIZERS: dict[str, Any] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class Descent(ABC):
    """Parameters of R runs, and how they go down a loss.

    Args:
        start: floating (R, ...).
        mapped: whether losses can be mapped over the runs; else they are computed one after another.
        device: where parameters live; None for the CPU.

    Attributes:
        parameters: tensor (R, ...) of the type of `start`.
    """

    def __init__(self, start: np.ndarray, *, mapped: bool = True, device: torch.device | None = None) -> None:
        self.parameters = torch.from_numpy(np.array(start)).to(device)
        self._mapped = mapped
        self._data: Samples | None = None  # that `each` saw last
        self._parts: list[Samples] = []  # of its runs: several steps may be taken on the same data

    @abstractmethod
    def step(self, loss: Function, data: Samples, rate: float = 1.0) -> None:
        """Take one step.

        Args:
            loss: a scalar for each run.
            data: of all runs.
            rate: of the learning rate, the part that this step takes.
        """

    def each(self, function: Function, data: Samples) -> torch.Tensor:
        """Apply a function of the parameters and the data of one run to every run, (R, ...)."""
        if self._mapped and len(self.parameters) > 1:  # mapping a single run takes most of the time of a small one
            return torch.func.vmap(function)(self.parameters, data)
        if self._data is not data:
            self._data, self._parts = data, [data.of(run) for run in range(len(self.parameters))]
        return torch.stack([function(own, part) for own, part in zip(self.parameters, self._parts, strict=True)])


class BatchedOptimizer(Descent):
    """Descent by a stock optimiser on the gradients of autograd.

    Args:
        start: floating (R, ...).
        optimizer: "adam" or "sgd".
        learning_rate: step size.
        max_norm: clip each run's gradient to this norm; infinity for none.
        mapped: as for `Descent`.
        device: likewise.
    """

    def __init__(
        self,
        start: np.ndarray,
        optimizer: str,
        learning_rate: float,
        max_norm: float,
        *,
        mapped: bool = True,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(start, mapped=mapped, device=device)
        self.parameters.requires_grad_()
        # Of one tensor. The many parameters of a language model, one run alone, are passed over once, not ten times:
        # where runs lie side by side that would round differently at the end of an array.
        alone = self.parameters.dtype == torch.float32
        self._stock = OPTIMIZERS[optimizer]([self.parameters], lr=learning_rate, foreach=False, fused=alone)
        self._learning_rate, self._max_norm = learning_rate, max_norm

    def step(self, loss: Function, data: Samples, rate: float = 1.0) -> None:
        """Take one step along the clipped gradient."""
        for group in self._stock.param_groups:
            group["lr"] = rate * self._learning_rate
        self._stock.zero_grad()
        self.each(loss, data).sum().backward()
        gradient = self.parameters.grad
        if gradient is not None and self._max_norm < math.inf:
            norms = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
            factor = torch.clamp(self._max_norm / (norms + 1e-12), max=1.0)
            gradient.mul_(factor.reshape(-1, *(1,) * (gradient.ndim - 1)))
        self._stock.step()
