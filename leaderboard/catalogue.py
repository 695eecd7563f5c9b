"""What there is: environments, agents, suites, claims and studies, as rows for the command line."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from theorybench.agents.loading import agent_class, list_agents
from theorybench.envs.core.claim import Claim, Experiment
from theorybench.envs.core.errors import TheoryBenchError, UnknownNameError
from theorybench.envs.core.plugins import resolve_env
from theorybench.envs.core.registry import list_envs, lookup
from theorybench.envs.core.study import Study
from theorybench.leaderboard.config import list_suites, named_suite
from theorybench.leaderboard.lab import claims, studies
from theorybench.leaderboard.labels import short_name

Rows = dict[str, list[dict[str, Any]]]


def environments() -> Rows:
    """Return the registered environments: id, track, feedback, default budget, claims, studies, one line."""
    rows = []
    for id in list_envs():
        entry = lookup(id)
        rows.append(
            {
                "id": id,
                "description": _first_line(entry.setting.__doc__),
                "track": entry.setting.track,
                "feedback": entry.setting.feedback,
                "budget": entry.budget,
                "claims": len(entry.claims()),
                "studies": [study.id for study in entry.studies()],
            }
        )
    return {"environments": rows}


def agents() -> Rows:
    """Return the registered agents: name, what they learn from, one line."""
    rows = []
    for name in list_agents():
        try:
            cls = agent_class(name)
        except TheoryBenchError as error:
            rows.append({"name": name, "description": str(error), "feedback": "unknown"})
            continue
        text = sys.modules[cls.__module__].__doc__ or cls.__doc__
        rows.append({"name": name, "description": _first_line(text), "feedback": getattr(cls, "feedback", "reward")})
    return {"agents": rows}


def suites() -> Rows:
    """Return the suites that ship, and what they run."""
    rows = []
    for name in list_suites():
        suite = named_suite(name)
        rows.append(
            {
                "name": name,
                "description": suite.description,
                "environments": [entry.label or short_name(entry.id) for entry in suite.environments],
                "agents": [entry.label or entry.agent for entry in suite.agents],
                "seeds": len(suite.seeds),
            }
        )
    return {"suites": rows}


def find_claims(names: Sequence[str]) -> list[Claim]:
    """Return claims by their own ids or by those of environments; all where nothing is named.

    Raises:
        UnknownNameError: neither; the closest are suggested.
    """
    return _find(names, claims, "claim")


def find_studies(names: Sequence[str]) -> list[Study]:
    """Return studies by their own ids or by those of environments; all where nothing is named.

    Raises:
        UnknownNameError: neither; the closest are suggested.
    """
    return _find(names, studies, "study")


E = TypeVar("E", bound=Experiment)


def _find(names: Sequence[str], of: Callable[[str], list[E]], kind: str) -> list[E]:
    known = {experiment.id: experiment for id in list_envs() for experiment in of(id)}
    found: dict[str, E] = {} if names else known
    for name in names:
        if name in known:
            found[name] = known[name]
            continue
        try:
            id = resolve_env(name)
        except UnknownNameError as error:
            raise UnknownNameError(f"environment or {kind}", name, [*list_envs(), *known]) from error
        found |= {experiment.id: experiment for experiment in of(id)}
    return list(found.values())


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
