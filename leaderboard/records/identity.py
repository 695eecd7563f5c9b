"""What is known of a run before it is run, and the key that follows from it."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from theorybench.agents.api.agent import hyperparameters
from theorybench.agents.api.loading import agent_digest, display_name, registered_name
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
    agent: Any,
    *,
    seed: int,
    budget: int,
    reference: str | None = None,
    env_label: str | None = None,
    agent_label: str | None = None,
    rung: dict[str, Any] | None = None,
) -> Identity:
    """Say which run this is.

    Args:
        env_id: a registered id.
        setting: with its parameters.
        agent: the object that trains.
        seed: of the run.
        budget: episodes.
        reference: how the agent was named; None where an object was given: then its registered name, or its class's.
        env_label: how boards call the environment; None to let them make a name.
        agent_label: how boards call the agent; None for its name and what is not at its default.
        rung: of a ladder of difficulty, or None.
    """
    name = display_name(reference) if reference else registered_name(type(agent)) or type(agent).__qualname__
    values = _json(hyperparameters(agent))
    fields = dataclasses.fields(agent) if dataclasses.is_dataclass(agent) else ()
    defaults = _json({field.name: field.default for field in fields})
    changed = {key: value for key, value in values.items() if key not in defaults or value != defaults[key]}
    return Identity(
        env_id=env_id,
        parameters=setting.parameters,
        fingerprint=setting.fingerprint,
        split=setting.split,
        track=setting.track,
        env_label=env_label,
        agent=name,
        agent_label=agent_label or (given_name(name, changed) if changed else None),
        agent_digest=agent_digest(agent),
        hyperparameters=values,
        feedback="none" if getattr(agent, "feedback", "reward") == "none" else setting.feedback,
        privileged=bool(getattr(agent, "privileged", False)),
        seed=seed,
        budget=budget,
        rung=rung,
    )


def given_name(name: str, values: Mapping[str, Any]) -> str:
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
