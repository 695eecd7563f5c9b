"""The data that the loss of one run sees."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch


class Samples(NamedTuple):
    """N episodes of up to T steps of one run; with a leading axis of runs wherever the trainer holds them."""

    encoded: torch.Tensor  # observations as the policy class encodes them, int64 (N, T) rows or float64 (N, T, ...)
    actions: torch.Tensor  # int64 (N, T), or (N, T, 2) for pairs
    legal: torch.Tensor  # bool (N, T, A), legal actions
    taken: torch.Tensor  # float64 (N, T), 1 for steps that were taken, 0 for padding
    sampled: torch.Tensor  # float64, shaped like actions: log-probabilities under the policy that acted, 0 in padding
    reference: torch.Tensor  # the same under the reference
    rewards: torch.Tensor  # float64 (N,), total reward of each episode
    #: float64 (N,) or (N, T): a number of the algorithm's own for each episode or step, such as V-hat or an advantage;
    #: 0 unless set
    values: torch.Tensor
    returns: torch.Tensor  # float64 (N, T): what a critic is fitted to; 0 unless set
    #: float64, shaped like actions: log-probabilities at the parameters where a step begins, fixed within it; 0 unless
    #: the agent is `anchored`. What `.detach()` says to autograd this says to finite differences as well
    anchor: torch.Tensor

    def of(self, run: int) -> "Samples":
        """Return those of one run, without the leading axis."""
        return Samples(*(field[run] for field in self))

    def joined(self, others: "Samples") -> "Samples":
        """Return the episodes of each run, then those of `others`; fields have the leading axis of runs.

        What networks over tokens see of prompts that are shorter is padded in front.
        """
        width = max(self.encoded.shape[-1], others.encoded.shape[-1])
        both = (
            part._replace(encoded=torch.nn.functional.pad(part.encoded, (width - part.encoded.shape[-1], 0)))
            for part in (self, others)
        )
        return Samples(*(_after(*fields) for fields in zip(*both, strict=True)))

    def pick(self, index: torch.Tensor) -> "Samples":
        """Return some episodes of each run, int64 (R, M) numbers; fields have the leading axis of runs."""
        runs, each = self.rewards.shape[:2]
        rows = (index + each * torch.arange(runs, device=index.device)[:, None]).flatten()
        here = rows.device.type == "cpu"

        def part(field: torch.Tensor) -> torch.Tensor:
            if _constant(field):
                return field[:, : index.shape[1]]
            flat = field.flatten(0, 1)
            # NumPy copies a row as a whole, torch number by number.
            picked = torch.from_numpy(flat.numpy().take(rows.numpy(), axis=0)) if here else flat.index_select(0, rows)
            return picked.unflatten(0, index.shape)

        return Samples(*map(part, self))

    def split(self, size: int) -> "Iterator[Samples]":
        """Yield consecutive parts of `size` episodes of each run, views; fields have the leading axis of runs."""
        return (Samples(*fields) for fields in zip(*(field.split(size, dim=1) for field in self), strict=True))

    def scalars(self) -> dict[str, Any]:
        """Return the quantities to log as curves, a tensor (R,) each.

        `reward` is the mean reward, `length` the mean number of actions, and `log_ratio` the mean of ln pi / pi_ref of
        the responses, an unbiased estimate of KL(pi || pi_ref) where pi acted.
        """
        pairs = self.actions.ndim - self.taken.ndim
        ratio = (self.sampled - self.reference).flatten(2).sum(2) / (1 + pairs)
        return {"reward": self.rewards.mean(1), "length": self.taken.sum(2).mean(1), "log_ratio": ratio.mean(1)}


def _constant(field: torch.Tensor) -> bool:
    """Whether a field is a view of one number, as it may stay."""
    return not any(field.stride())


def _after(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Join two fields along the episodes."""
    if _constant(first) and _constant(second) and torch.equal(first[:1, :1], second[:1, :1]):
        return first[:, :1].expand(-1, first.shape[1] + second.shape[1], *first.shape[2:])
    return torch.cat([first, second], dim=1)


def padded(values: np.ndarray, taken: np.ndarray) -> torch.Tensor:
    """Return values (m, ...) of steps that were taken at their places among all, bool (E, T): (E, T, ...), else 0."""
    if len(values) == taken.size:
        return torch.from_numpy(np.ascontiguousarray(values).reshape(*taken.shape, *values.shape[1:]))
    filled = np.zeros((*taken.shape, *values.shape[1:]), values.dtype)
    filled[taken] = values
    return torch.from_numpy(filled)
