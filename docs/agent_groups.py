"""Agents by kind, read off their classes: no list is kept by hand."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import theorybench as tb
from theorybench.agents.api.loading import agent_class
from theorybench.agents.policies.catalogue import NETWORKS
from theorybench.agents.reward_guided import RewardGuidedAgent
from theorybench.agents.rule import Rule
from theorybench.agents.training.gradient import TrainedAgent
from theorybench.baselines.dpo_on_policy import DPOOnPolicy
from theorybench.baselines.grpo import GRPO
from theorybench.baselines.rlvr import RLVR
from theorybench.baselines.sppo import SPPO

#: As many learning curves as one panel holds.
FEW = 8
#: Kinds in the order in which they are shown, and what each is.
KINDS = {
    "References": "they learn nothing, or are told the answers, and fix the scale",
    "Rules": "what people do or a paper advises on one setting; they learn nothing",
    "Policy gradient": "they learn from rewards, by gradient steps on a policy",
    "Search": "they count what each action led to, and take no gradient steps",
    "Curricula": "they ask for easier tasks first, where a setting has a ladder of them",
    "Preferences": "they learn from comparisons, or from labels good and bad",
    "Test time": "the base model stays as it is, and a reward model guides what it answers",
    "External": "what other libraries ship, on our environments",
}


def shipped_agents() -> list[str]:
    """Return the names of the agents of this package."""
    return [name for name in tb.list_agents() if agent_class(name).__module__.startswith("theorybench.")]


def kind(name: str) -> str:
    """Return the kind of an agent, one of KINDS."""
    cls = agent_class(name)
    feedback = getattr(cls, "feedback", "reward")
    if feedback == "none":
        return "Rules" if issubclass(cls, Rule) else "References"
    if dataclasses.is_dataclass(cls) and "curriculum" in {field.name for field in dataclasses.fields(cls)}:
        return "Curricula"
    if issubclass(cls, RewardGuidedAgent):
        return "Test time"
    if not issubclass(cls, TrainedAgent):
        return "External" if getattr(cls, "requires", ()) else "Search"
    return "Policy gradient" if feedback == "reward" else "Preferences"


def curve_group(name: str, hyperparameters: Mapping[str, Any]) -> str:
    """Return the row of a picture of curves that an agent belongs to: kinds, the larger ones split."""
    if kind(name) == "External" or hyperparameters.get("policy") in NETWORKS:
        return "Networks"
    if kind(name) == "Policy gradient":
        return "REINFORCE" if issubclass(agent_class(name), RLVR) else "Policy gradient"
    if kind(name) == "Preferences":
        cls = agent_class(name)
        if getattr(cls, "feedback", "") == "label":
            return "Labels"
        if issubclass(cls, SPPO | GRPO):
            return "Games"
        return "DPO" if issubclass(cls, DPOOnPolicy) else "Regression on pairs"
    return kind(name)


def curve_groups(agents: Iterable[tuple[str, str, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Group labels for a picture of curves; a few agents need one group alone.

    Args:
        agents: label, name and hyper-parameters of each; those that learn nothing are left out: they have no curve.
    """
    groups: dict[str, list[str]] = {}
    for label, name, hyperparameters in agents:
        if kind(name) not in ("References", "Rules"):
            groups.setdefault(curve_group(name, hyperparameters), []).append(label)
    if "REINFORCE" in groups and len(groups["REINFORCE"]) + len(groups.get("Policy gradient", ())) <= FEW:
        groups["Policy gradient"] = groups.pop("REINFORCE") + groups.get("Policy gradient", [])
    if sum(map(len, groups.values())) <= FEW:
        return {"Agents": [label for labels in groups.values() for label in labels]}
    order = ["REINFORCE", "Policy gradient", "Curricula", "Labels", "DPO", "Regression on pairs", "Games"]
    order += ["Networks", "Search", "Test time"]
    return {title: groups[title] for title in order if title in groups}
