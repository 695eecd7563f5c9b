"""Python files and modules of users, named on the command line or in a configuration."""

import hashlib
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from theorybench.envs.core.errors import ConfigurationError
from theorybench.envs.core.registry import list_envs, lookup


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
    short = [
        known for known in list_envs() if reference in (known.split("/")[1], known.split("/")[1].rpartition("-v")[0])
    ]
    return lookup(short[0] if short else reference).id
