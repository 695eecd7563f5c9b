"""The identity of a run, known before it is run, and its key."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from theorybench.agents.api.loading import AgentSpec
from theorybench.envs.core.setting import Setting
from theorybench.leaderboard.records.record import KEY_FIELDS, json_value, record_key


@dataclasses.dataclass(frozen=True, kw_only=True)
class Identity:
    """The fields of a record that are known before the run; see `Record` for what each means."""

    env_id: str
    parameters: dict[str, Any]
    fingerprint: str
    split: str
    track: str
    env_label: str | None
    agent: str
    agent_label: str | None
    agent_digest: str
    hyperparameters: dict[str, Any]
    feedback: str
    privileged: bool
    seed: int
    budget: int
    rung: dict[str, Any] | None = None

    @functools.cached_property
    def key(self) -> str:
        """The record's key."""
        return record_key(**{name: getattr(self, name) for name in KEY_FIELDS})

    @property
    def fields(self) -> dict[str, Any]:
        """All fields by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def with_seed(self, seed: int) -> "Identity":
        """Return the identity of the same run with another seed."""
        return dataclasses.replace(self, seed=seed)


def identify(
    env_id: str,
    setting: Setting,
    agent: AgentSpec,
    *,
    seed: int,
    budget: int,
    env_label: str | None = None,
    agent_label: str | None = None,
    rung: dict[str, Any] | None = None,
) -> Identity:
    """Return the identity of a run.

    Args:
        env_id: a registered id.
        setting: with its parameters.
        agent: that trains.
        seed: of the run.
        budget: episodes.
        env_label: how boards call the environment; None to let them make a name.
        agent_label: how boards call the agent; None for its name and what is not at its default.
        rung: of a ladder of difficulty, or None.
    """
    return Identity(
        env_id=env_id,
        parameters=setting.parameters,
        fingerprint=setting.fingerprint,
        split=setting.split,
        track=setting.track,
        env_label=env_label,
        agent=agent.name,
        agent_label=agent_label or (with_values(agent.name, agent.changed) if agent.changed else None),
        agent_digest=agent.digest,
        hyperparameters=_json(agent.hyperparameters),
        feedback="none" if agent.feedback == "none" else setting.feedback,
        privileged=agent.privileged,
        seed=seed,
        budget=budget,
        rung=rung,
    )


def with_values(name: str, values: Mapping[str, Any]) -> str:
    """Return a name with the values that were given, such as "TreeMarkovChain[pass_k=4]"."""
    given = ", ".join(f"{key}={value}" for key, value in values.items())
    return f"{name}[{given}]" if given else name


def _json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as JSON holds them; what it cannot hold by its printed form."""

    def one(value: Any) -> Any:
        try:
            return json_value(value)
        except ValueError:
            return repr(value)

    return {name: one(value) for name, value in values.items()}
