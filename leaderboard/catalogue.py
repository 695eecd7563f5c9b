"""What there is: environments, agents, suites and claims, as rows for the command line."""

import sys
from collections.abc import Sequence
from typing import Any

from theorybench.agents.loading import agent_class, list_agents
from theorybench.envs.core.claim import Claim
from theorybench.envs.core.errors import TheoryBenchError, UnknownNameError
from theorybench.envs.core.plugins import resolve_env
from theorybench.envs.core.registry import list_envs, lookup
from theorybench.leaderboard.config import list_suites, named_suite
from theorybench.leaderboard.lab import claims
from theorybench.leaderboard.labels import short_name
from theorybench.leaderboard.runner import describe

Rows = dict[str, list[dict[str, Any]]]


def environments() -> Rows:
    """Return the registered environments: id, track, feedback, default budget, claims, one line."""
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
    known = {claim.id: claim for id in list_envs() for claim in claims(id)}
    found: dict[str, Claim] = {} if names else known
    for name in names:
        if name in known:
            found[name] = known[name]
            continue
        try:
            id = resolve_env(name)
        except UnknownNameError as error:
            raise UnknownNameError("environment or claim", name, [*list_envs(), *known]) from error
        found |= {claim.id: claim for claim in claims(id)}
    return list(found.values())


def check(claim: Claim, seed: int) -> dict[str, Any]:
    """Check a claim; one that cannot be measured does not hold, and says why."""
    row: dict[str, Any] = {
        "id": claim.id,
        "environment": claim.setting.name if claim.setting else "",
        "source": claim.source,
        "statement": claim.statement,
    }
    empty = dict.fromkeys(("predicted", "measured", "low", "high", "seconds"))
    try:
        result = claim.check(seed)
    except Exception as error:
        return {**row, **empty, "holds": False, "error": describe(error)}
    values = {name: getattr(result, name) for name in empty}
    return {**row, **values, "holds": bool(result.holds), "error": None}


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
