"""Base class of the agents that are TRL's trainers: what is common to their hyper-parameters."""

import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from theorybench.agents.api.agent import ConfiguredAgent, Log
from theorybench.agents.api.budget import Budget
from theorybench.agents.policies.softmax import SHAPES, SIZES
from theorybench.agents.training.gradient import settled
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.validation import choice, integer, real

if TYPE_CHECKING:
    from theorybench.agents.external.trl import Session


@dataclasses.dataclass(frozen=True, kw_only=True)
class TRLAgent(ConfiguredAgent):
    """A trainer of TRL on a tiny language model that begins as the base model of the setting.

    Attributes:
        turns: whether it trains on episodes that are more than one prompt and one completion.
    """

    turns: ClassVar[bool] = False

    shape: str = choice("llama", SHAPES, "architecture of the model")
    size: str = choice("tiny", tuple(SIZES), "of the model: 50 thousand to 5 million weights")
    learning_rate: float = real(1e-3, 0.0, 10.0, "AdamW's step size", open_low=True)
    schedule: str = choice("constant", ("constant", "linear", "cosine"), "of the step size")
    max_gradient_norm: float = real(1.0, 0.0, 1e12, "clip the gradient to this norm", open_low=True)
    episodes_per_update: int = integer(64, 1, 4096, "episodes of each update")

    @property
    def num_envs(self) -> int:  # type: ignore[override]
        """One environment for each episode of an update."""
        return self.episodes_per_update

    def train(self, envs: Any, budget: Budget, *, seed: int, log: Log) -> Policy:
        """Train until the budget is spent."""
        from theorybench.agents.external.trl import Session  # TRL takes seconds to import

        session = Session(self, envs, seed, log)
        return settled(self, session.task.setting).learn(session, budget.total)

    @abstractmethod
    def learn(self, session: "Session", episodes: int) -> Policy:
        """Say what the trainer is and what it trains on.

        Args:
            session: of the run.
            episodes: of its budget.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class TRLGroupAgent(TRLAgent):
    """A trainer of TRL that compares several completions of each prompt."""

    group_size: int = integer(8, 2, 4096, "completions of each prompt")

    def compare(self, session: "Session", trainer: str, episodes: int, **settings: Any) -> Policy:
        """Train on groups of completions until the budget is spent; `settings` are the configuration's."""
        from theorybench.agents.language.turns import rows_of_episode

        setting, steps = session.task.setting, episodes // self.episodes_per_update
        prompts = session.prompts(max(1, steps) * self.episodes_per_update // self.group_size)
        per_episode = rows_of_episode(setting)
        played: dict[str, Any] = {"reward_funcs": session.reward}
        if session.turns:
            played = {"reward_funcs": session.earned, "rollout_func": session.play}
        return session.train(
            trainer,
            prompts.repeat(per_episode),
            steps=steps,
            batch=self.episodes_per_update * per_episode,
            num_generations=self.group_size,
            max_completion_length=1 if setting.state_in_prompt else setting.horizon,
            **played,
            **settings,
        )
