"""Presets: hyper-parameters that were tuned for each setting, `grpo[preset=tuned]`.

They stand in a file `presets.toml` beside the module of the agent, under the names of its class, of the preset and of
the setting, each with the record of the search it came from, as `theorybench tune --preset` writes it:

    [GRPO.tuned.OptimalAdvantage-v0]
    hyperparameters = { learning_rate = 0.02 }
    search = { suite = "preference", trials = 16, confirmed_default = 0.1, confirmed_best = 0.6 }

An agent that is made with a preset carries its name; when training begins, `configured` puts the values of the setting
in the place of defaults. What was given beside the preset stays.
"""

import dataclasses
import functools
import inspect
import tomllib
from pathlib import Path
from typing import Any

from theorybench.envs.core.errors import ConfigurationError, ParameterError
from theorybench.envs.core.setting import Setting

#: The file beside the module of an agent.
FILE = "presets.toml"
#: The key in brackets that names a preset and is no hyper-parameter; and the attribute of an agent that was made so.
PRESET = "preset"


def presets_file(cls: type[Any]) -> Path | None:
    """Return where the presets of a class stand, whether there are any or not; None for a class without a file."""
    try:
        source = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        return None
    return Path(source).with_name(FILE) if source else None


def presets(cls: type[Any]) -> dict[str, dict[str, Any]]:
    """Return the presets of a class of agents: name -> setting -> {"hyperparameters": ..., "search": ...}.

    Raises:
        ConfigurationError: a file that cannot be read.
    """
    path = presets_file(cls)
    if path is None or not path.is_file():
        return {}
    return dict(_read(path, path.stat().st_mtime_ns).get(cls.__name__, {}))


def configured(agent: Any, setting: Setting) -> Any:
    """Return an agent with the values that its preset has for a setting; the agent itself if it was made without one.

    Raises:
        ParameterError: the preset has no values for the setting.
    """
    name = getattr(agent, PRESET, None)
    if name is None:
        return agent
    known = presets(type(agent)).get(name, {})
    if setting.name not in known:
        allowed = f"a preset with values for {setting.name}; this one has some for {', '.join(sorted(known)) or 'none'}"
        raise ParameterError(PRESET, name, allowed, f"Search them: theorybench tune AGENT --suite S --preset {name}.")
    values = {**known[setting.name]["hyperparameters"], **agent.made_with}
    made = type(agent)(**values)
    if not dataclasses.is_dataclass(made):
        made.made_with = values
    return made


@functools.lru_cache(maxsize=32)
def _read(path: Path, modified: int) -> dict[str, dict[str, Any]]:
    """Read a file of presets, once for each time it was written."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"cannot read the presets in {path}: {error}") from error
