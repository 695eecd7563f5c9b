"""Interpretation of command-line arguments: suites, policies, values."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from theorybench.agents.api.harness import train
from theorybench.agents.api.loading import list_agents, make_agent
from theorybench.envs.core.errors import AgentError, ConfigurationError, UnknownNameError
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.registry import load_module, lookup, resolve_env
from theorybench.leaderboard.running.config import AgentEntry, Suite, load_suite, make_suite, named_suite

#: The default suite.
DEFAULT_SUITE = "starter"


def choose_suite(
    config: Path | None = None,
    suite: str | None = None,
    *,
    environments: Sequence[str] = (),
    agents: Sequence[str] = (),
    **overrides: Any,
) -> Suite:
    """Return the suite that a command asks for.

    Args:
        config: a TOML file, or None.
        suite: the name of a suite that ships, or None.
        environments: leave out all others of the suite; without a file or suite, these with their default parameters.
        agents: run these instead of the suite's. A label of the suite is that entry; the name of an agent is the
            suite's plain entry of it, or else all of its entries, with their hyper-parameters.
        overrides: fields of `Suite` to replace; None leaves one as it is.

    Raises:
        ConfigurationError: both a file and a suite, or values that no suite can have.
        UnknownNameError: no such suite or environment; the closest are suggested.
    """
    if config is not None and suite is not None:
        raise ConfigurationError(f"give a configuration ({config}) or --suite {suite}, not both")
    if config is None and suite is None and environments:
        chosen = make_suite(
            {"name": "custom", "environments": [{"id": id} for id in environments], "agents": list_agents()}
        )
    else:
        chosen = load_suite(config) if config is not None else named_suite(suite or DEFAULT_SUITE)
        chosen = _only(chosen, environments)
    entries = [entry for reference in agents for entry in _entries(chosen, reference)] or chosen.agents
    values = chosen.model_copy(update={"agents": entries}).model_dump()
    replaced = {name: value for name, value in overrides.items() if value is not None}
    if "budget" in replaced:
        values["environments"] = [{**entry, "budget": None} for entry in values["environments"]]
    return make_suite({**values, **replaced}, "command line")


def _entries(suite: Suite, reference: str) -> list[AgentEntry]:
    """Return what a suite runs under a label or the name of an agent; the agent itself where it is not of the suite."""
    labelled = [entry for entry in suite.agents if entry.label == reference]
    named = [entry for entry in suite.agents if entry.agent == reference]
    plain = [entry for entry in named if entry.label is None and not entry.hyperparameters]
    return labelled or plain or named or [AgentEntry(agent=reference)]


def _only(suite: Suite, environments: Sequence[str]) -> Suite:
    """Leave out environments that are not asked for, by label or by id."""
    if not environments:
        return suite
    ids = [resolve_env(entry.id) for entry in suite.environments]
    labels = [entry.label for entry in suite.environments]
    wanted: set[int] = set()
    for name in environments:
        found = {i for i, label in enumerate(labels) if label == name}
        found = found or {i for i, id in enumerate(ids) if id == resolve_env(name)}
        if not found:
            raise UnknownNameError(f"environment of the suite {suite.name}", name, {*ids, *filter(None, labels)})
        wanted |= found
    return suite.model_copy(update={"environments": [suite.environments[i] for i in sorted(wanted)]})


def split_list(text: str | None) -> list[str]:
    """Split "a,b[x=1,y=2]" at the commas outside of brackets."""
    return [part.strip() for part in re.split(r",(?![^\[]*\])", text or "") if part.strip()]


def parse_parameters(pairs: Sequence[str]) -> dict[str, Any]:
    """Read "name=value" pairs; values are JSON where they can be, else text.

    Raises:
        ConfigurationError: a pair without "=".
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ConfigurationError(f"--param {pair}: expected name=value, such as --param pass_k=4")
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def find_policy(reference: str, env_id: str, parameters: dict[str, Any]) -> Any:
    """Return a policy by name.

    Args:
        reference: a file that `Policy.save` wrote; "module:Name" or "file.py:Name" of a policy or of a class that makes
            one without arguments; "initial"; or an agent that learns from nothing, such as "optimal".
        env_id: a registered id.
        parameters: of the setting.

    Raises:
        PolicyError: a file that holds no policy.
        ConfigurationError: a module or file that cannot be imported, or what it names is no policy.
        AgentError: an agent that has to be trained.
        UnknownNameError: nothing has this name; the closest are suggested.
    """
    if Path(reference).is_file():
        return Policy.load(reference)
    module, colon, name = reference.rpartition(":")
    if colon:
        found = getattr(load_module(module), name, None)
        policy = found() if isinstance(found, type) else found
        if not callable(getattr(policy, "probs", None)):
            raise ConfigurationError(f"{module} holds no policy {name}: expected an object with probs(observations)")
        return policy
    entry = lookup(env_id)
    if reference == "initial":
        return entry.oracle(entry.make_setting(parameters)).initial_policy
    try:
        agent = make_agent(reference)
    except UnknownNameError as error:
        raise UnknownNameError("policy or file", reference, {"initial", *error.known}) from error
    if getattr(agent, "feedback", "reward") != "none":
        call = f"train(tb.make_agent({reference!r}), {env_id!r}, {{}}, [0], {entry.budget})"
        fix = f"theorybench.agents.api.harness.{call}[0].policy.save('policy.npz')"
        raise AgentError(f"{reference} has to be trained first: {fix}")
    return train(agent, env_id, parameters, [0], entry.budget)[0].policy
