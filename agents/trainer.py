"""The shared trainer: an algorithm written for one run, trained for many at once.

Parameters carry a leading axis of runs; the loss of one run is mapped over it (`torch.func.vmap`) and the sum of the
losses is differentiated, which gives each run its own gradient. Random numbers come from counter streams keyed by the
run, so that a run is the same, bit for bit, whether it is trained alone or with others.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from theorybench.agents.agent import Log
from theorybench.agents.budget import Budget, batch_of
from theorybench.agents.rollout import Episodes, collect, sample
from theorybench.agents.softmax import SoftmaxClass
from theorybench.envs.core.errors import BudgetExhausted
from theorybench.envs.core.policy import Policy, SettingPolicy, checked_probs
from theorybench.envs.core.streams import PROMPT_LIMIT, combine, root_key, uniforms

#: Observations whose reference probabilities are held at a time.
_PART = 2**16
#: Actions up to which sampling passes over all of them.
_SEARCHED = 16


class Samples(NamedTuple):
    """What the loss of one run sees of N episodes; with a leading axis of runs wherever the trainer holds it.

    Attributes:
        rows: int64 (N, T), rows of the policy class.
        actions: int64 (N, T), or (N, T, 2) for pairs.
        legal: bool (N, T, A), legal actions.
        taken: float64 (N, T), 1 for steps that were taken, 0 for padding.
        reference: float64, shaped like actions: log-probabilities under the reference, 0 in padding.
        rewards: float64 (N,).
        values: float64 (N,): a number of the algorithm's own for each episode, such as V-hat; 0 unless set.
    """

    rows: torch.Tensor
    actions: torch.Tensor
    legal: torch.Tensor
    taken: torch.Tensor
    reference: torch.Tensor
    rewards: torch.Tensor
    values: torch.Tensor


def _softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


#: (log-probabilities of the taken actions, Samples) of one run -> scalar.
Loss = Callable[[torch.Tensor, Samples], torch.Tensor]


class Trainer:
    """R runs of one algorithm on one setting, in lockstep.

    Args:
        envs: R consecutive blocks of environments, metered.
        budgets: one for each run.
        seeds: one for each run.
        logs: one for each run.
        policy: name of the policy class: "auto", "linear" or a view.
        start: "initial" or "reference": the policy that training begins from.
        optimizer: "adam" or "sgd".
        learning_rate: step size.
        max_gradient_norm: clip each run's gradient to this norm; infinity for none.

    Attributes:
        setting: the setting.
        parameters: float64 tensor (R, ...).
        softmax: the policy class.
    """

    def __init__(
        self,
        envs: Any,
        budgets: Sequence[Budget],
        seeds: Sequence[int],
        logs: Sequence[Log],
        *,
        policy: str,
        start: str,
        optimizer: str,
        learning_rate: float,
        max_gradient_norm: float,
    ) -> None:
        self._batch = batch_of(envs)
        self.setting = self._batch.setting
        self.runs, self._budgets, self._logs = len(seeds), budgets, logs
        self._batch.seed(list(seeds) if self.runs > 1 else seeds[0])
        self._keys = np.array([root_key(s, "trainer", self.setting.fingerprint) for s in seeds], np.int64)
        self._draws = 0
        self.softmax = SoftmaxClass.of(self.setting, policy)
        self.reference = SettingPolicy(self.setting, "reference")
        first = self.softmax.start(SettingPolicy(self.setting, start))
        stacked = np.broadcast_to(first, (self.runs, *first.shape)).copy()
        self.parameters = torch.from_numpy(stacked).requires_grad_()
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        self._optimizer = kinds[optimizer]([self.parameters], lr=learning_rate)
        self._max_norm = max_gradient_norm

    # Data.

    @property
    def remaining(self) -> int:
        """Episodes that every run has left."""
        return min(budget.remaining for budget in self._budgets)

    def uniforms(self, count: int) -> np.ndarray:
        """Draw from [0, 1): float64 (R, count), from each run's own stream."""
        self._draws += 1
        return uniforms(combine(self._keys, np.full(self.runs, self._draws)), count)

    def draw_prompts(self, count: int) -> np.ndarray:
        """Draw prompt indices of each run, int64 (R, count)."""
        return (self.uniforms(count) * (self.setting.num_prompts or PROMPT_LIMIT)).astype(np.int64)

    def collect(
        self,
        episodes: int,
        *,
        group_size: int = 1,
        prompts: np.ndarray | None = None,
        stage: int | None = None,
        hint: int | None = None,
        policy: Policy | None = None,
    ) -> Episodes:
        """Roll out `episodes` episodes of each run.

        Args:
            episodes: for each run, a multiple of `group_size`.
            group_size: consecutive episodes that share a prompt.
            prompts: int64 (R, episodes / group_size), or None to draw them.
            stage: rung of the ladder, or None for what was set before.
            hint: given tokens, or None for what was set before.
            policy: a fixed policy to sample from; None for each run's own.

        Returns:
            Episodes (R * episodes), run by run.

        Raises:
            BudgetExhausted: some run has fewer episodes left; nothing has moved.
        """
        if episodes > self.remaining:
            raise BudgetExhausted(f"{episodes} episodes are asked for and {self.remaining} are left")
        if prompts is None and group_size > 1:
            prompts = self.draw_prompts(episodes // group_size)
        if prompts is not None:
            prompts = np.repeat(prompts, group_size, axis=1).ravel()
        pairs = 2 if self._batch.pairs else 1
        drawn = self.uniforms(episodes * self.setting.horizon * pairs)
        drawn = drawn.reshape(self.runs * episodes, self.setting.horizon, pairs)
        parameters = self.parameters.detach()

        def choose(
            observed: np.ndarray, legal: np.ndarray | None, numbers: np.ndarray, step: int
        ) -> tuple[np.ndarray, np.ndarray]:
            if policy is None:
                probs, rows = self._probs(parameters, observed, legal, numbers // episodes)
            else:
                probs, rows = self._fixed_probs(policy, observed)
            return sample(probs, drawn[numbers, step] if pairs == 2 else drawn[numbers, step, 0], rows)

        return collect(self._batch, choose, episodes, prompts=prompts, stage=stage, hint=hint, runs=self.runs)

    def _probs(
        self, parameters: Any, observed: np.ndarray, legal: np.ndarray | None, run: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return each run's probabilities at its observations, as `sample` takes them: (m, A) and rows."""
        index, view = self.softmax.view.index(observed), self.softmax.view
        table = torch.func.vmap(self.softmax.rows, in_dims=(0, None))(parameters, slice(None)).numpy()
        if legal is None and self._many(view.rows * self.runs, observed):
            return _softmax(table.reshape(-1, table.shape[-1])), run * view.rows + index
        logits = table[run, index]
        return _softmax(logits if legal is None else np.where(legal, logits, -np.inf)), None

    def _fixed_probs(self, policy: Policy, observed: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The same of one policy: in one-step settings few prompts stand behind many observations."""
        view, actions = self.softmax.view, self.setting.num_actions
        if self.setting.horizon == 1 and view.name == "prompt" and self._many(view.rows, observed):
            return checked_probs(policy, view.observations(self.setting.observation_dtype), actions), view.index(
                observed
            )
        return checked_probs(policy, observed, actions), None

    def _many(self, rows: int, observed: np.ndarray) -> bool:
        """Whether a table of rows pays: not for few actions, where a pass over them is as quick as a search."""
        return self.setting.num_actions > _SEARCHED and rows <= len(observed)

    def samples(self, episodes: Episodes, *, values: np.ndarray | None = None) -> Samples:
        """Turn episodes into what the loss sees, with a leading axis of runs.

        Args:
            episodes: what `collect` returned.
            values: float64, one for each episode, or None for zeros.
        """
        total, horizon = episodes.observations.shape[:2]
        taken = np.arange(horizon) < episodes.lengths[:, None]
        flat = episodes.observations[taken]
        rows = np.zeros((total, horizon), np.int64)
        rows[taken] = self.softmax.view.index(flat)
        reference = np.zeros(episodes.actions.shape)
        reference[taken] = self._reference_log_probs(flat, episodes.actions[taken])
        lead = (self.runs, total // self.runs)

        def by_run(array: np.ndarray) -> torch.Tensor:
            return torch.from_numpy(np.ascontiguousarray(array).reshape(*lead, *array.shape[1:]))

        if episodes.action_mask.strides == (0, 0, 0):  # a view of one element
            legal = torch.ones((), dtype=torch.bool).expand(*lead, horizon, self.setting.num_actions)
        else:
            legal = by_run(episodes.action_mask)
        return Samples(
            rows=by_run(rows),
            actions=by_run(episodes.actions),
            legal=legal,
            taken=by_run(taken.astype(np.float64)),
            reference=by_run(reference),
            rewards=by_run(episodes.rewards),
            values=by_run(np.zeros(total) if values is None else values),
        )

    def _reference_log_probs(self, observations: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return ln pi_ref of actions (m,) or (m, 2), a part at a time to bound memory."""
        logs = np.empty(actions.shape)
        for start in range(0, len(actions), _PART):
            part = slice(start, start + _PART)
            probs, rows = self._fixed_probs(self.reference, observations[part])
            rows = np.arange(len(probs)) if rows is None else rows
            chosen = probs[rows if actions.ndim == 1 else rows[:, None], actions[part]]
            logs[part] = np.log(np.maximum(chosen, 1e-300))
        return logs

    # Learning.

    def log_probs(self, parameters: torch.Tensor, data: Samples) -> torch.Tensor:
        """Return one run's log-probabilities of the taken actions, shaped like them, 0 in padding."""
        logits = self.softmax.rows(parameters, data.rows)
        logits = torch.where(data.legal, logits, -torch.inf)
        logs = torch.log_softmax(logits, dim=-1)
        pair = data.actions.ndim == data.rows.ndim + 1
        chosen = data.actions if pair else data.actions[..., None]
        picked = torch.gather(logs, -1, chosen) * data.taken[..., None]
        return picked if pair else picked[..., 0]

    def update(self, loss: Loss, data: Samples, *, log: bool = True, **scalars: np.ndarray) -> None:
        """Take one step down each run's own gradient, then report the policies that are due.

        Args:
            loss: the loss of one run.
            data: with a leading axis of runs.
            log: whether to report.
            scalars: numbers to report, (R,) each.
        """

        def one(parameters: torch.Tensor, part: Samples) -> torch.Tensor:
            return loss(self.log_probs(parameters, part), part)

        self._optimizer.zero_grad()
        torch.func.vmap(one)(self.parameters, data).sum().backward()
        gradient = self.parameters.grad
        if gradient is not None and np.isfinite(self._max_norm):
            norms = torch.linalg.vector_norm(gradient.flatten(1), dim=1)
            factor = torch.clamp(self._max_norm / (norms + 1e-12), max=1.0)
            gradient.mul_(factor.reshape(-1, *(1,) * (gradient.ndim - 1)))
        self._optimizer.step()
        if log:
            self.report(**scalars)

    def set_parameters(self, values: np.ndarray) -> None:
        """Replace the parameters of all runs: (R, ...); for algorithms with an exact solver."""
        with torch.no_grad():
            self.parameters.copy_(torch.from_numpy(np.ascontiguousarray(values)))

    def report(self, **scalars: np.ndarray) -> None:
        """Log the policies of the runs whose next fraction of the budget has been passed."""
        for run, log in enumerate(self._logs):
            if log.due:
                log(self.policy(run), **{name: float(value[run]) for name, value in scalars.items()})

    def policy(self, run: int) -> Policy:
        """Return the current policy of a run."""
        return self.softmax.snapshot(self.parameters[run].detach().numpy().copy())
