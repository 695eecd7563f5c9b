"""The one registry: every id, its setting, oracle, claims, studies and default budget; and files of users by name."""

import dataclasses
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from theorybench.envs.core.environments.render import RENDERERS, Renderer
from theorybench.envs.core.errors import (
    ConfigurationError,
    ParameterError,
    UnknownKeywordError,
    UnknownNameError,
    closest,
    require_integer,
)
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.validation import document

if TYPE_CHECKING:
    from theorybench.envs.core.evidence.claim import Claim
    from theorybench.envs.core.evidence.difficulty import Difficulty
    from theorybench.envs.core.evidence.study import Study
    from theorybench.envs.core.oracle import Oracle

_ENTRIES: dict[str, "Entry"] = {}


@dataclasses.dataclass(frozen=True)
class Entry:
    """What the registry knows of one id."""

    id: str  # such as "TheoryBench/TreeMarkovChain-v0"
    setting: type[Setting]  # the Setting class
    oracle: "Callable[[Any], Oracle]"  # makes the oracle of a setting
    claims: "Callable[[], Sequence[Claim]]"  # makes the claims; called when they are asked for
    budget: int  # default number of episodes of a run, the same for all agents
    studies: "Callable[[], Sequence[Study]]"  # makes the studies; called when they are asked for
    difficulties: "tuple[Difficulty, ...]" = ()  # ladders of ever harder settings

    def make_setting(self, parameters: dict[str, Any]) -> Setting:
        """Build the setting.

        Raises:
            UnknownKeywordError: a parameter that the setting does not have (a TypeError, as for any unknown keyword).
            ParameterError: a value outside of its range.
        """
        known = {field.name for field in dataclasses.fields(self.setting)}
        for name in parameters:
            if name not in known:
                raise UnknownKeywordError(name, parameters[name], f"a parameter of {self.id}", known)
        return self.setting(**parameters)

    def difficulty(self, parameter: str) -> "Difficulty":
        """Return the ladder along a parameter.

        Raises:
            UnknownNameError: no such ladder; those that there are are named.
        """
        known = {difficulty.parameter: difficulty for difficulty in self.difficulties}
        if parameter not in known:
            raise UnknownNameError(f"ladder of {self.id}", parameter, known)
        return known[parameter]


def register(
    id: str,
    setting: type[Setting],
    oracle: "Callable[[Any], Oracle]",
    claims: "str | Sequence[Claim] | Callable[[], Sequence[Claim]]" = (),
    budget: int = 10_000,
    studies: "str | Sequence[Study] | Callable[[], Sequence[Study]]" = (),
    difficulties: "Sequence[Difficulty]" = (),
    renderer: Renderer | None = None,
) -> None:
    """Register a setting: `gym.make(id)`, `gym.make_vec(id)`, the command line and the leaderboard then know it.

    Args:
        id: "Namespace/Name-vN".
        setting: a Setting class.
        oracle: an Oracle class, or a function from a setting to its oracle.
        claims: the claims, or a function that makes them, or "package.module:NAME", imported when they are asked for.
        budget: default number of episodes of a run.
        studies: the studies, likewise.
        difficulties: ladders of ever harder settings, for suites that measure how the cost of learning grows.
        renderer: draws environments, and policies; None for their tokens.

    Raises:
        ParameterError: a malformed id, a class that is no Setting, a version that differs, a budget below 1, or an id
            that is registered for another setting. Registering the same setting again does nothing.
    """
    try:
        namespace, _, version = gym.envs.registration.parse_env_id(id)
    except (gym.error.Error, TypeError):
        namespace = version = None
    if namespace is None or version is None:
        raise ParameterError("id", id, "Namespace/Name-vN", "For example MyLab/Bandit-v0.")
    if not (isinstance(setting, type) and issubclass(setting, Setting)):
        raise ParameterError("setting", setting, "a subclass of theorybench.Setting")
    if version != setting.version:
        raise ParameterError("id", id, f"version v{setting.version}, as {setting.__name__}.version says")
    if not callable(oracle):
        raise ParameterError("oracle", oracle, "a subclass of theorybench.Oracle")
    require_integer("budget", budget, 1)
    held = _ENTRIES.get(id)
    if held is not None and held.setting.__qualname__ != setting.__qualname__:
        raise ParameterError("id", id, f"an id that is free: {held.setting.__name__} has it", "Choose another name.")
    known = {field.name for field in dataclasses.fields(setting)}
    for name in (name for difficulty in difficulties for name in difficulty.levels()[0]):
        if name not in known:
            raise ParameterError("difficulties", name, f"parameters of {setting.__name__}", closest(name, known))
    document(setting)
    if renderer is not None:
        RENDERERS[setting] = renderer
    _ENTRIES[id] = Entry(
        id, setting, oracle, _maker("claims", claims), budget, _maker("studies", studies), tuple(difficulties)
    )
    if id not in gym.registry:
        gym.register(
            id,
            entry_point="theorybench.envs.core.environments.single:Environment",
            vector_entry_point="theorybench.envs.core.environments.vector:VectorEnvironment",
            kwargs={"env_id": id},
        )


def _maker(field: str, given: Any) -> Callable[[], Any]:
    """Return a function that gives claims or studies: `import theorybench` pays for none of them."""
    if isinstance(given, str):
        module, colon, name = given.partition(":")
        if not colon:
            raise ParameterError(field, given, "package.module:NAME", "For example my_lab.claims:CLAIMS.")
        return lambda: getattr(importlib.import_module(module), name)
    return given if callable(given) else lambda: given


def lookup(id: str) -> Entry:
    """Return the entry of an id.

    Raises:
        UnknownNameError: no such id; the closest are suggested.
    """
    if id not in _ENTRIES:
        raise UnknownNameError("environment", id, _ENTRIES)
    return _ENTRIES[id]


def discover(package: str) -> None:
    """Import every folder of settings `<package>.<family>.<setting>`: each registers its own in its `__init__.py`."""
    families = importlib.import_module(package).__path__
    for family in pkgutil.iter_modules(families, f"{package}."):
        if family.ispkg and family.name != "theorybench.envs.core":
            for setting in pkgutil.iter_modules(importlib.import_module(family.name).__path__, f"{family.name}."):
                if setting.ispkg:
                    importlib.import_module(setting.name)


def list_envs() -> list[str]:
    """Return the registered ids, sorted."""
    return sorted(_ENTRIES)


def load_module(name: str) -> ModuleType:
    """Import a module by dotted name, or a Python file by path (once for each path).

    Raises:
        ConfigurationError: there is no such module or file, or it fails to import.
    """
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        path = Path(name).resolve()
        alias = f"theorybench_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
        if alias in sys.modules:
            return sys.modules[alias]
        spec = importlib.util.spec_from_file_location(alias, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise ConfigurationError(f"there is no Python file {name}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[alias]
            raise
        return module
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"cannot import {name}: {type(error).__name__}: {error}") from error


def resolve_env(reference: str) -> str:
    """Return the id that a reference names, importing what it names.

    Args:
        reference: an id, its short form ("TreeMarkovChain"), "module:ID" or "path/to/file.py:ID".

    Raises:
        ConfigurationError: the module or file cannot be imported.
        UnknownNameError: no such id; the closest are suggested.
    """
    module, colon, id = reference.rpartition(":")
    if colon:
        load_module(module)
        reference = id
    # Where a short form names several ids, it is ours: a setting of that name elsewhere changes nothing.
    ids = sorted(list_envs(), key=lambda id: not id.startswith("TheoryBench/"))
    short = [id for id in ids if reference in (id.split("/")[1], id.split("/")[1].rpartition("-v")[0])]
    return lookup(short[0] if short else reference).id
