"""The move of one environment as a plain Python function, derived from the setting's own code."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from theorybench.envs.core.compiled.graph import Graph
from theorybench.envs.core.compiled.plain.elements import UNROLLED
from theorybench.envs.core.compiled.plain.function import Plain
from theorybench.envs.core.compiled.symbolic import Array
from theorybench.envs.core.compiled.trace import _check, _sample
from theorybench.envs.core.dynamics import Dynamics
from theorybench.envs.core.streams import Stream


class Moves(NamedTuple):
    """How one environment of a setting moves.

    Attributes:
        state: the type of the setting's State.
        move: state, action, key of the episode and number of the step, to the next state, reward, whether the episode
            ends, observation and legal actions, the last two new arrays; legal actions are None where all are.
        fields: shape and type of each field.
    """

    state: type
    move: Callable[[Any, Any, int, int], tuple[Any, float, bool, np.ndarray, np.ndarray | None]]
    fields: tuple[tuple[tuple[int, ...], np.dtype], ...]

    def plain(self, state: Any) -> list[tuple[Any, ...]]:
        """Return the states of n environments, each as `move` takes it: numbers, tuples of them or arrays."""
        columns: list[Any] = []
        for column, (shape, _) in zip(state, self.fields, strict=True):
            size = int(np.prod(shape, dtype=np.int64))
            if shape and size <= UNROLLED:
                columns.append(list(map(tuple, column.reshape(len(column), size).tolist())))
            else:
                columns.append(list(column) if shape else column.tolist())
        return list(zip(*columns, strict=True))

    def batch(self, state: tuple[Any, ...]) -> Any:
        """Return the state of an environment as that of a batch of one."""
        fields = zip(state, self.fields, strict=True)
        return self.state(*(np.array(value, dtype).reshape(1, *shape) for value, (shape, dtype) in fields))


def moves_of(setting: Dynamics) -> Moves | None:
    """Return how one environment of a setting moves, or None where its code does what the tracer does not know."""
    held = setting.__dict__
    if "_moves" not in held:
        try:
            held["_moves"] = _moves_of(setting)
        except Exception:  # the dynamics are anybody's code: whatever stops them here runs in NumPy
            held["_moves"] = None
    return held["_moves"]  # type: ignore[no-any-return]


def _moves_of(setting: Dynamics) -> Moves:
    graph = Graph()

    def held(name: str, shape: tuple[int, ...] = (), dtype: Any = np.int64) -> Array:
        return Array(graph, graph.node("input", (), name, shape, dtype), True)

    sample = _sample(setting, False, False)
    kind = type(sample)
    state = kind(*(held(f"state{i}", field.shape[1:], field.dtype) for i, field in enumerate(sample)))
    actions = held("action", (2,) if setting.feedback == "preference" else ())
    world: Any = Array(graph, graph.const(setting.world, (), np.int64), False)
    stream = Stream(held("key"), held("step"), world, actions.__array_namespace__())
    moved, rewards, terminated = setting.transition(state, actions, stream)
    for array, known in zip(moved, state, strict=True):
        _check(array, known.node.shape, known.dtype)
    _check(rewards, (), np.float64)
    _check(terminated, (), np.bool_)
    seen, mask = setting.observe(moved), setting.action_mask(moved)
    _check(seen, (setting.prompt_length + setting.response_length,), setting.observation_dtype)
    if mask is not None:
        _check(mask, (setting.num_actions,), np.bool_)
    plain = Plain(graph)
    plain.line(f"{', '.join(f'state{i}' for i in range(len(sample)))}, = state")
    parts = ["(" + "".join(f"{plain.held(array.node)}, " for array in moved) + ")"]
    parts += [plain.exact(rewards.node).text, plain.exact(terminated.node).text, plain.fresh(seen.node)]
    parts.append("None" if mask is None else plain.fresh(mask.node))
    move = plain.compiled("move(state, action, key, step", ", ".join(parts))
    fields = tuple((field.shape[1:], field.dtype) for field in sample)
    return Moves(kind, move, fields)
