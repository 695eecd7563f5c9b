"""Base class of the agents that descend a loss: what is common to their hyper-parameters and their training."""

import dataclasses
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeVar

import torch

from theorybench.agents.api.agent import ConfiguredAgent, Log
from theorybench.agents.api.budget import Budget
from theorybench.agents.policies.catalogue import NETWORKS, PolicyOptions
from theorybench.agents.training.samples import Samples
from theorybench.agents.training.trainer import Trainer
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.validation import choice, integer, real

A = TypeVar("A", bound=ConfiguredAgent)

#: Stands for a number that the setting gives.
SETTING = "setting"


def kl_weight(otherwise: float, meaning: str, *, share: float = 1.0, open_low: bool = False) -> Any:
    """Declare a hyper-parameter that is "setting" by default: the weight `beta` of KL(pi || pi_ref) in its objective.

    Args:
        otherwise: its value where the objective has no KL term.
        meaning: what it is, one phrase.
        share: of beta, its value where there is one.
        open_low: whether 0 is refused.
    """
    meaning += f"; setting: {'' if share == 1 else f'{share:g} '}beta of its objective, {otherwise:g} where it has none"
    declared = real(SETTING, 0.0, 1000.0, meaning, open_low=open_low, names=(SETTING,))
    given = {"otherwise": otherwise, "share": share}
    return dataclasses.field(default=SETTING, metadata={**declared.metadata, SETTING: given})


def resolve_defaults(agent: A, setting: Setting) -> A:
    """Return an agent with a number for every hyper-parameter that is "setting".

    The parameter `beta` of a setting is the weight of KL(pi || pi_ref) in its objective.
    """
    beta = getattr(setting, "beta", None)
    values = {
        field.name: given["otherwise"] if beta is None else given["share"] * beta
        for field in dataclasses.fields(agent)
        if getattr(agent, field.name) == SETTING and (given := field.metadata.get(SETTING))
    }
    return dataclasses.replace(agent, **values)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientAgent(ConfiguredAgent, PolicyOptions):
    """An agent that is a plan of data and a pure loss of one run; many seeds train together.

    A subclass states `run`, which collects data and updates, and a `loss`, a pure function of (log-probabilities,
    Samples) for one run: no branch on data, 0/1 weights in place of filtering, no random call. Runs trained together
    are those trained alone bit for bit, unless the loss uses torch's softplus, sigmoid, logaddexp or std, which round
    differently at the end of an array: logsigmoid, exp, log, log1p and log_softmax do not.
    """

    optimizer: str = choice("adam", ("adam", "sgd"), "stock torch optimiser")
    learning_rate: float = real(0.1, 0.0, 1000.0, "step size of the optimiser", open_low=True)
    episodes_per_update: int = integer(64, 1, 1_000_000, "episodes of each gradient step")
    max_gradient_norm: float = real(1e6, 0.0, 1e12, "clip the gradient to this norm", open_low=True)

    @property
    def num_envs(self) -> int:  # type: ignore[override]
        """One environment for each episode of an update, up to 4,096."""
        return min(self.episodes_per_update, 4096)

    @property
    def batch_seeds(self) -> bool:
        """Whether runs are worth training together: not those of networks."""
        return self.policy not in NETWORKS

    def resolve_defaults(self, setting: Setting) -> Self:
        """Return this agent with a number for every hyper-parameter that is "setting"; see `resolve_defaults`."""
        return resolve_defaults(self, setting)

    @abstractmethod
    def run(self, trainer: Trainer) -> None:
        """Collect data and update until the budget is spent."""

    @abstractmethod
    def loss(self, log_probs: torch.Tensor, data: Samples) -> torch.Tensor:
        """Return the loss of one run, a scalar; `log_probs` is shaped like `data.actions`."""

    def train(self, envs: Any, budget: Budget, *, seed: int, log: Log) -> Policy:
        """Train one run."""
        return self.train_runs(envs, [budget], [seed], [log])[0]

    def train_runs(
        self, envs: Any, budgets: Sequence[Budget], seeds: Sequence[int], logs: Sequence[Log]
    ) -> list[Policy]:
        """Train one run for each seed, together: each is, bit for bit, the run that `train` gives alone.

        Args:
            envs: as many consecutive blocks of environments as there are seeds.
            budgets: one for each run, equal in total.
            seeds: one for each run.
            logs: one for each run.

        Returns:
            One policy for each run.
        """
        trainer = Trainer(
            envs,
            budgets,
            seeds,
            logs,
            self,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            max_gradient_norm=self.max_gradient_norm,
        )
        self.resolve_defaults(trainer.setting).run(trainer)
        return [trainer.policy(run) for run in range(trainer.runs)]
