"""Log-probabilities of the actions of samples, for one run: what losses are functions of."""

import torch

from theorybench.agents.policies.softmax import RowSoftmax, SoftmaxClass, TabularSoftmax
from theorybench.agents.training.samples import Samples

#: Actions that are few, not more than a vector of any processor holds: sums of longer rows have another order.
_FEW = 4
#: Numbers of the largest vector: what is left over at the end of an array rounds differently.
_VECTOR = 8


def log_probs(softmax: SoftmaxClass, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
    """Return log-probabilities of the taken actions, shaped like them, 0 in padding."""
    if few_rows(softmax, data):
        return by_row(softmax, parameters, data)
    return by_step(softmax, parameters, data)


def few_rows(softmax: SoftmaxClass, data: Samples) -> bool:
    """Whether a softmax of each row of a table takes less than one of each step of a run's data, (N, T)."""
    table = isinstance(softmax, RowSoftmax) and not softmax.setting.has_action_mask
    return table and softmax.view.rows <= data.taken.numel()


def by_row(softmax: RowSoftmax, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
    """Return the same bits as `by_step`. Gradients are summed over a row before they go through its softmax."""
    logs, taken = torch.log_softmax(softmax.table(parameters), dim=-1), data.taken
    first = data.encoded * logs.shape[-1]
    if data.actions.ndim > taken.ndim:
        first, taken = first[..., None], taken[..., None]
    places = first + data.actions
    return logs.flatten().gather(0, places.flatten()).reshape(places.shape) * taken


def by_step(softmax: SoftmaxClass, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
    """Return those of any policy class, step by step."""
    logits = softmax.step_logits(parameters, data.encoded)
    pair, free = data.actions.ndim == data.taken.ndim + 1, not softmax.setting.has_action_mask
    small = logits.shape[-1] <= _FEW and data.taken.numel() % _VECTOR == 0
    if free and small and not pair and isinstance(softmax, TabularSoftmax):
        # A pass over each action takes a third of one over short rows, and gives the same bits.
        logs = torch.log_softmax(logits.movedim(-1, 0).contiguous(), dim=0)
        return torch.gather(logs, 0, data.actions[None])[0] * data.taken
    if not (free and isinstance(softmax, RowSoftmax)):  # for networks it also decides how gradients lie in memory
        logits = torch.where(data.legal, logits, -torch.inf)
    logs = torch.log_softmax(logits, dim=-1)
    chosen = data.actions if pair else data.actions[..., None]
    picked = torch.gather(logs, -1, chosen) * data.taken[..., None]
    return picked if pair else picked[..., 0]
