"""What a search leaves behind: a suite that `theorybench run` reads, the record of the search, and a preset."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from theorybench.agents.api.loading import agent_class
from theorybench.agents.api.presets import presets_file
from theorybench.envs.core.errors import ConfigurationError
from theorybench.leaderboard.records.identity import with_values
from theorybench.leaderboard.records.store import atomic_write
from theorybench.leaderboard.running.config import Suite
from theorybench.leaderboard.tuning.search import Tuned

#: First lines of a file of presets.
HEADER = """\
# Tuned hyper-parameters by class and preset: `theorybench run --agents NAME[preset=PRESET]`. Written by
# `theorybench tune NAME --suite SUITE --preset PRESET`. Scores are means over the environments of the suite, on
# instances for tuning; confirmed ones are of other seeds and other instances than the search saw.
"""


def write_configuration(found: Tuned, suite: Suite, trials: list[dict[str, Any]], folder: Path) -> Path:
    """Write `suite.toml`, which runs default and tuned side by side, and `search.json`; return the former's path.

    Args:
        found: the outcome of the search.
        suite: whose environments it was for; their own instances are written.
        trials: what each trial tried.
        folder: of the search.
    """
    record = {"agent": found.agent, "given": found.given, **found.record, "trials": trials}
    with atomic_write(folder / "search.json") as file:
        file.write(json.dumps(record, indent=1) + "\n")
    plain = with_values(found.agent, found.given)
    agents = [{"agent": found.agent, "label": plain, "hyperparameters": found.given}]
    if found.hyperparameters:
        tuned = {**found.given, **found.hyperparameters}
        agents.append({"agent": found.agent, "label": f"{plain}, tuned", "hyperparameters": tuned})
    lines = [
        f"# {line}"
        for line in (
            f"Written by `theorybench tune`: {found.record['trials']} trials, {found.record['pruned']} of them pruned.",
            f"Mean score on tuning instances, default and best trial: {found.record['default_score']} and "
            f"{found.record['best_score']};",
            f"with other seeds on other tuning instances: {found.record['confirmed_default']} and "
            f"{found.record['confirmed_best']}.",
            "Everything else about the search stands in search.json. Run it: theorybench run suite.toml",
        )
    ]
    plain_agent = re.sub(r"[^A-Za-z0-9_.-]+", "-", found.agent).strip("-")
    lines += ["", f"name = {toml(f'{suite.name}-tuned-{plain_agent}')}", "agents = ["]
    lines += [f"    {toml(agent)}," for agent in agents]
    lines.append("]")
    for entry in suite.environments:
        lines += ["", "[[environments]]"]
        lines += [f"{name} = {toml(value)}" for name, value in entry.model_dump(exclude_none=True).items()]
    path = folder / "suite.toml"
    with atomic_write(path) as file:
        file.write("\n".join(lines) + "\n")
    return path


def write_preset(found: Tuned, name: str) -> Path:
    """Write a preset into the file beside the agent's module, atomically; return its path.

    Raises:
        ConfigurationError: a name that no table can have, values that TOML cannot hold, or an agent whose class stands
            in no file; nothing is written.
    """
    cls = agent_class(found.agent)
    path = presets_file(cls)
    if path is None:
        raise ConfigurationError(f"{found.agent} stands in no file beside which presets could stand")
    if not name.replace("-", "").replace("_", "").isalnum():
        raise ConfigurationError(f"--preset {name}: expected letters, digits, - and _")
    known = _parsed(path.read_text(encoding="utf-8"), path) if path.is_file() else {}
    values = {**found.given, **found.hyperparameters}
    known.setdefault(cls.__name__, {})[name] = {"hyperparameters": values, "search": found.record}
    lines = [HEADER]
    for owner in sorted(known):
        for preset in sorted(known[owner]):
            lines.append(f"[{owner}.{preset}]")
            lines += [f"{field} = {toml(value)}" for field, value in known[owner][preset].items() if field != "search"]
            lines.append(f"[{owner}.{preset}.search]")
            lines += [f"{field} = {toml(value)}" for field, value in known[owner][preset]["search"].items()]
            lines.append("")
    text = "\n".join(lines)
    if _parsed(text, path)[cls.__name__][name]["hyperparameters"] != values:
        raise ConfigurationError(f"a preset cannot hold the hyper-parameters {values}")
    with atomic_write(path.resolve()) as file:  # beside the file itself: a link of an editable installation stays one
        file.write(text)
    return path


def toml(value: Any) -> str:
    """Return a value as TOML on one line: tables are inline."""
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(name)} = {toml(entry)}" for name, entry in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if value is None:
        raise ConfigurationError("TOML has no null")
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else json.dumps(name)


def _parsed(text: str, path: Path) -> dict[str, dict[str, Any]]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} cannot hold presets such as these: {error}") from error
