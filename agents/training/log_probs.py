"""Log-probabilities of the actions of samples, for one run: what losses are functions of."""

import functools

import torch

from theorybench.agents.policies.softmax import RowSoftmax, SoftmaxClass, TabularSoftmax
from theorybench.agents.training.optimizer import Function
from theorybench.agents.training.samples import Samples

#: Actions that are few, not more than a vector of any processor holds: sums of longer rows have another order.
_FEW = 4
#: Numbers of the largest vector: what is left over at the end of an array rounds differently.
_VECTOR = 8


def log_probs(softmax: SoftmaxClass, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
    """Return log-probabilities of the taken actions, shaped like them, 0 in padding."""
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


def of_fixed(softmax: SoftmaxClass, data: Samples) -> Function | None:
    """Return what takes less than `log_probs` of data that many steps are taken on, or None where nothing does.

    The same bits come from a softmax of each row of a table, where rows are few beside the steps that read them. Their
    gradient is summed over a row before it goes through the softmax, and so rounded in another order.
    """
    if not isinstance(softmax, RowSoftmax) or softmax.setting.has_action_mask:
        return None
    return functools.partial(_by_row, softmax) if softmax.view.rows <= data.taken[0].numel() else None


def _by_row(softmax: RowSoftmax, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
    logs, taken = torch.log_softmax(softmax.table(parameters), dim=-1), data.taken
    first = data.encoded * logs.shape[-1]
    if data.actions.ndim > taken.ndim:
        first, taken = first[..., None], taken[..., None]
    places = first + data.actions
    return logs.flatten().gather(0, places.flatten()).reshape(places.shape) * taken
