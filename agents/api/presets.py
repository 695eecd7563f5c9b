"""Named presets: hyper-parameters that were tuned for a family of settings, `grpo[preset=preference]`.

They stand in a file `presets.toml` beside the module of the agent, under the name of its class, each with the record of
the search it came from, as `theorybench tune --preset` writes it:

    [GRPO.preference]
    hyperparameters = { learning_rate = 0.02 }
    search = { suite = "preference", trials = 16, confirmed_default = 0.1, confirmed_best = 0.6 }
"""

import functools
import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from theorybench.envs.core.errors import ConfigurationError, UnknownNameError

#: The file beside the module of an agent.
FILE = "presets.toml"


def presets_file(cls: type[Any]) -> Path | None:
    """Return where the presets of a class stand, whether there are any or not; None for a class without a file."""
    try:
        source = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        return None
    return Path(source).with_name(FILE) if source else None


def presets(cls: type[Any]) -> dict[str, dict[str, Any]]:
    """Return the presets of a class of agents: name -> {"hyperparameters": ..., "search": ...}.

    Raises:
        ConfigurationError: a file that cannot be read.
    """
    path = presets_file(cls)
    if path is None or not path.is_file():
        return {}
    return dict(_read(path, path.stat().st_mtime_ns).get(cls.__name__, {}))


def preset_hyperparameters(cls: type[Any], agent: str, name: str) -> dict[str, Any]:
    """Return the hyper-parameters of a preset.

    Args:
        cls: of the agent.
        agent: how it was named, for errors.
        name: of the preset.

    Raises:
        UnknownNameError: no such preset; those that exist are named.
    """
    known = presets(cls)
    if name not in known:
        raise UnknownNameError(f"preset of {agent}", name, known)
    return dict(known[name]["hyperparameters"])


def preset_of(cls: type[Any], changed: Mapping[str, Any]) -> str | None:
    """Return the name of the preset that an agent's hyper-parameters are, however they were given; None for others.

    Args:
        cls: of the agent.
        changed: the hyper-parameters that are not at their defaults; where all are, it is no preset.
    """
    if not changed:
        return None
    return next((name for name, preset in presets(cls).items() if preset["hyperparameters"] == dict(changed)), None)


@functools.lru_cache(maxsize=32)
def _read(path: Path, modified: int) -> dict[str, dict[str, Any]]:
    """Read a file of presets, once for each time it was written."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"cannot read the presets in {path}: {error}") from error
