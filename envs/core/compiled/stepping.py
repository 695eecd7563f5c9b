"""Steps of a batch by a compiled function: chosen where it pays, and the same bits as in NumPy."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.compiled.graph import Untraceable
from theorybench.envs.core.compiled.program import Program, has_numba, program
from theorybench.envs.core.dynamics import Dynamics
from theorybench.envs.core.errors import ConfigurationError, ParameterError, require_integer

#: With `compiled=None` fewer environments never take the compiled path: calling it costs what it saves.
FEWEST = 256
#: With `compiled=None` an environment compiles after this many transitions in NumPy, which take about as long (some
#: seconds) as compiling does. One that another environment of the process has compiled is taken at once.
PATIENCE = 2**23

_POOLS: dict[int, ThreadPoolExecutor] = {}  # by process: threads do not survive a fork


class Shown(NamedTuple):
    """What environments show; arrays of n rows."""

    observations: np.ndarray  # (n, tokens) of the observation's type
    prompts: np.ndarray  # int64 (n,)
    masks: np.ndarray  # bool (n, num_actions)


class Stepped(NamedTuple):
    """What a step of all environments gives; fresh arrays."""

    rewards: np.ndarray  # float64 (n,)
    terminated: np.ndarray  # bool (n,)
    invalid: np.ndarray  # bool (n,)
    final: Shown | None  # after the action; None where no episode ended
    shown: Shown  # after the beginning of the next episodes


class Columns(NamedTuple):
    """What a step reads and writes: arrays of n rows, contiguous."""

    state: Any  # a State
    mixed: np.ndarray  # int64 (n,), see `Streams`
    episodes: np.ndarray  # int64 (n,)
    keys: np.ndarray  # int64 (n,)
    steps: np.ndarray  # int64 (n,)
    stage: np.ndarray | None  # int64 (n,)
    hint: np.ndarray | None  # int64 (n,)


class Choice:
    """Which path the steps of a vector environment take.

    Args:
        setting: the setting.
        n: number of environments.
        wanted: True, False, or None to choose.
        threads: how many threads share a step.
        hindered: why no step of this environment can be compiled (its back end, its mode); "" for nothing.

    Raises:
        ConfigurationError: numba is wanted and not installed.
        ParameterError: the path is wanted, and the environment or the setting cannot take it.
    """

    def __init__(self, setting: Dynamics, n: int, wanted: bool | None, threads: int, hindered: str) -> None:
        if wanted not in (True, False, None):
            raise ParameterError("compiled", wanted, "True, False, or None to choose")
        require_integer("threads", threads, 1)
        self.threads, self._n, self._wanted, self._left = int(threads), n, wanted, PATIENCE
        self._possible = wanted is not False and not hindered and has_numba()
        if not wanted:
            self._possible = self._possible and n >= FEWEST
            return
        if hindered:
            raise ParameterError("compiled", True, "None or False", hindered)
        if not has_numba():
            raise ConfigurationError("compiled=True needs numba: pip install 'theorybench[fast]'")
        try:
            program(setting)
        except Untraceable as error:
            what = f"{setting.name} does what is not compiled: {error}"
            raise ParameterError("compiled", True, "None or False for this setting", what) from error

    def find(self, setting: Dynamics, stage: bool, hint: bool) -> Program | None:
        """Return what the next step is to be done by; None for NumPy."""
        if not self._possible:
            return None
        try:
            found = program(setting, stage, hint)
        except Untraceable:
            return None
        return found if self._wanted or self._left <= 0 or found.loaded else None

    def waited(self) -> None:
        """Count a step in NumPy."""
        self._left -= self._n


def move(done_by: Program, setting: Dynamics, columns: Columns, actions: np.ndarray, threads: int) -> Stepped:
    """Move all environments by one checked action each, and begin again those that end.

    Args:
        done_by: the setting's program for these columns.
        setting: the setting.
        columns: written in place.
        actions: int64 (n,) or (n, 2).
        threads: how many threads share the environments.
    """
    n, empty = len(columns.steps), np.zeros(0, np.int64)

    def shown() -> Shown:
        tokens = np.empty((n, setting.prompt_length + setting.response_length), setting.observation_dtype)
        masks = (np.empty if done_by.masked else np.ones)((n, setting.num_actions), np.bool_)
        return Shown(tokens, np.empty(n, np.int64), masks)

    before, after = shown(), shown()
    rewards, terminated, invalid = np.empty(n), np.empty(n, np.bool_), np.zeros(n, np.bool_)
    arguments = {f"state{i}": field.reshape(-1) for i, field in enumerate(columns.state)}
    arguments |= {name: getattr(columns, name) for name in ("mixed", "episodes", "keys", "steps")}
    arguments |= {name: empty if x is None else x for name, x in (("stage", columns.stage), ("hint", columns.hint))}
    arguments |= {"world": setting.world, "actions": np.ascontiguousarray(actions).reshape(-1)}
    arguments |= {"rewards": rewards, "terminated": terminated, "invalid": invalid}
    for prefix, part in (("", after), ("final_", before)):
        arguments |= {f"{prefix}{name}": array.reshape(-1) for name, array in part._asdict().items()}
    bounds = [n * part // threads for part in range(threads + 1)]
    if threads == 1:
        ended = [done_by.run(start=0, stop=n, **arguments)]
    else:
        done_by.run(start=0, stop=0, **arguments)  # compiled once, not by each thread
        parts = zip(bounds[1:-1], bounds[2:], strict=True)
        others = [_pool(threads).submit(done_by.run, start=a, stop=b, **arguments) for a, b in parts]
        ended = [done_by.run(start=0, stop=bounds[1], **arguments), *(other.result() for other in others)]
    if not any(ended):
        return Stepped(rewards, terminated, invalid, None, after)
    for over, start, stop in zip(ended, bounds, bounds[1:], strict=False):
        if not over:
            for old, new in zip(before, after, strict=True):
                old[start:stop] = new[start:stop]
    return Stepped(rewards, terminated, invalid, before, after)


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return this process's threads, at least so many."""
    process = os.getpid()
    if process not in _POOLS or _POOLS[process]._max_workers < threads - 1:
        _POOLS[process] = ThreadPoolExecutor(threads - 1, thread_name_prefix="theorybench")
    return _POOLS[process]
