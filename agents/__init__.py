"""What an agent is: Agent, Policy, Budget, roll-outs, the trainer and adapters."""

if __name__ == "agents":
    raise ImportError(
        "import theorybench.agents, not agents: this folder is the source of a sub-package of theorybench"
    )

from theorybench.agents.agent import Agent, ConfiguredAgent, Log, hyperparameters
from theorybench.agents.budget import Budget
from theorybench.agents.gradient import GradientAgent
from theorybench.agents.harness import Trained, train
from theorybench.agents.loading import list_agents, make_agent
from theorybench.agents.rollout import Episodes, rollout
from theorybench.agents.samples import Samples
from theorybench.agents.steering import RewardModel, SteeredPolicy, SteeringAgent
from theorybench.agents.trainer import Trainer
from theorybench.envs.core.policy import LinearPolicy, Policy, TablePolicy
from theorybench.envs.core.views import View

__all__ = [
    "Agent",
    "Budget",
    "ConfiguredAgent",
    "Episodes",
    "GradientAgent",
    "LinearPolicy",
    "Log",
    "Policy",
    "RewardModel",
    "Samples",
    "SteeredPolicy",
    "SteeringAgent",
    "TablePolicy",
    "Trained",
    "Trainer",
    "View",
    "hyperparameters",
    "list_agents",
    "make_agent",
    "rollout",
    "train",
]
