"""Steps of a batch in torch without a word to the host: the expression graph of a setting, node by node, on a device.

The array namespaces that settings are written against look at data where that saves work (`nonzero` of what ended), and
so make a device wait. The traced step does not: both sides of a condition are worked out and one of them is taken. It
reads the same tables and integers, so that trajectories have the same bits. A roll-out can be captured as a CUDA graph,
and `torch.compile` can fuse it.
"""

from typing import Any, NamedTuple

import numpy as np
import torch

from theorybench.envs.core.compiled.graph import SIGNS, Node, Untraceable
from theorybench.envs.core.compiled.trace import trace
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.streams import mix

_DTYPES = {
    np.dtype(kind): getattr(torch, np.dtype(kind).name) for kind in (np.bool_, np.int8, np.int16, np.int32, np.int64)
} | {np.dtype(np.float64): torch.float64}
_SIGNED: dict[str, Any] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.true_divide,
    "floordiv": torch.floor_divide,
    "mod": torch.remainder,
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "lshift": torch.bitwise_left_shift,
    "rshift": torch.bitwise_right_shift,
}
_OTHERS: dict[str, Any] = {
    "where": torch.where,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
    "clip": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
    "neg": torch.neg,
    "invert": torch.bitwise_not,
    "not": torch.logical_not,
    "abs": torch.abs,
}
_FUNCTIONS = _SIGNED | _OTHERS
_REDUCED: dict[str, Any] = {"sum": torch.sum, "any": torch.any, "all": torch.all, "max": torch.amax, "min": torch.amin}
assert set(_SIGNED) == set(SIGNS)


class TensorStep(NamedTuple):
    """What a step of all environments gives, on the device."""

    observations: torch.Tensor  # (n, tokens)
    rewards: torch.Tensor  # float64 (n,)
    terminated: torch.Tensor  # bool (n,)
    masks: torch.Tensor | None  # bool (n, num_actions); None where all actions are legal


class TensorSteps:
    """The environments of a batch, which end and begin again in the same step, without waiting for the device.

    Args:
        batch: of the torch back end, reset, without stages or hints; it stays where it is.

    Attributes:
        columns: what is held of every environment, by the name of its input: tensors of n rows.

    Raises:
        Untraceable: the setting's dynamics do what the tracer does not know.
    """

    def __init__(self, batch: Batch) -> None:
        self._traced = trace(batch.setting, False, False)
        self.num_actions, self._n, self._device = batch.setting.num_actions, batch.n, batch.device
        self._world = torch.full((1,), batch.setting.world, device=self._device)
        mixed, episodes, keys = batch.streams.columns
        self._fields = [f"state{place}" for place in range(len(batch.state))]
        held = dict(zip(self._fields, batch.state, strict=True))
        held |= {"mixed": mixed, "episodes": episodes, "keys": keys, "steps": batch.steps}
        self.columns = {name: column.clone() for name, column in held.items()}
        self._tables = [torch.from_numpy(np.array(table)).to(self._device) for table in self._traced.graph.tables]
        self._kept: dict[int, torch.Tensor] = {}  # what is the same in every step

    def random_actions(self) -> torch.Tensor:
        """Return an action of every environment that its stream and step decide: int64 (n,)."""
        bits = mix(self.columns["keys"] ^ mix(self.columns["steps"] + 1))
        return (bits & 0x7FFFFFFFFFFFFFFF) % self.num_actions

    def step(self, actions: torch.Tensor) -> TensorStep:
        """Move every environment by one action of its space; those that end begin their next episode.

        Args:
            actions: int64 (n,), or (n, 2) for pairs, on the device; they are not checked.
        """
        traced, read = self._traced, _Reader(self, actions)
        rewards, terminated = read(traced.rewards), read(traced.terminated)
        if traced.legal is not None:
            legal = read(traced.legal)
            rewards, terminated = torch.where(legal, rewards, 0.0), terminated | ~legal
        terminated = terminated.expand(self._n)
        shown = [
            None if new is None or old is None else self._chosen(terminated, read(new), read(old))
            for new, old in zip(traced.before, traced.after, strict=True)
        ]
        new = {name: (read(a), read(b)) for name, a, b in zip(self._fields, traced.fresh, traced.moved, strict=True)}
        steps = self.columns["steps"] + 1
        new |= {"steps": (torch.zeros_like(steps), steps)}
        new |= {"keys": (read(traced.key), self.columns["keys"])}
        new |= {"episodes": (read(traced.episodes), self.columns["episodes"])}
        chosen = {name: self._chosen(terminated, *pair) for name, pair in new.items()}
        for name, column in chosen.items():
            self.columns[name].copy_(column)  # in place: a graph that is replayed reads and writes the same memory
        assert shown[0] is not None
        return TensorStep(shown[0], rewards.expand(self._n), terminated, shown[1])

    def _chosen(self, ended: torch.Tensor, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        """Return the rows of what begins where an episode ended, else those of what goes on."""
        whole = torch.where(ended.reshape(-1, *[1] * (new.ndim - 1)), new, old)
        return whole.expand(self._n, *whole.shape[1:])


class _Reader:
    """Works out nodes in one step: tensors whose first axis has n rows, or one where all environments share it."""

    def __init__(self, owner: TensorSteps, actions: torch.Tensor) -> None:
        self._owner, self._inputs = owner, {**owner.columns, "actions": actions}
        self._known: dict[int, torch.Tensor] = dict(owner._kept)

    def __call__(self, node: Node) -> torch.Tensor:
        """Return a node's values."""
        pending = [node]
        while pending:  # not by recursion: chains of operations are long
            last = pending[-1]
            waiting = [arg for arg in last.args if arg.serial not in self._known]
            if waiting and last.serial not in self._known:
                pending += waiting
                continue
            pending.pop()
            if last.serial not in self._known:
                self._known[last.serial] = made = self._made(last)
                if last.op in ("const", "table", "count"):
                    self._owner._kept[last.serial] = made
        return self._known[node.serial]

    def _made(self, node: Node) -> torch.Tensor:
        form = getattr(self, f"_{node.op}", None)
        return form(node, *(self._known[arg.serial] for arg in node.args)) if form else self._computed(node)

    # Leaves.

    def _input(self, node: Node) -> torch.Tensor:
        return self._inputs[node.attr]

    def _scalar(self, node: Node) -> torch.Tensor:
        return self._owner._world

    def _table(self, node: Node) -> torch.Tensor:
        return self._owner._tables[node.attr][None]

    def _const(self, node: Node) -> torch.Tensor:
        one = torch.full((1,), node.attr, dtype=_DTYPES[node.dtype], device=self._owner._device)
        return one.reshape([1] * (1 + len(node.shape))).expand(1, *node.shape)

    def _count(self, node: Node) -> torch.Tensor:
        numbers = torch.arange(node.shape[-1], dtype=_DTYPES[node.dtype], device=self._owner._device)
        return numbers.expand(1, *node.shape)

    def _row(self, node: Node) -> torch.Tensor:
        numbers = torch.arange(self._owner._n, device=self._owner._device)
        return numbers.reshape(-1, *[1] * len(node.shape)).expand(-1, *node.shape)

    # Structure.

    def _reshape(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], *node.shape)

    def _slice(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        for axis, (first, step, count) in enumerate(zip(*node.attr, node.shape, strict=True), 1):
            if step > 0:
                x = x.narrow(axis, first, (count - 1) * step + 1 if count else 0)
                x = x[(slice(None),) * axis + (slice(None, None, step),)]
            else:
                x = x.index_select(axis, first + step * torch.arange(count, device=x.device))
        return x

    def _spread(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        return _aligned(x, len(node.shape)).expand(-1, *node.shape)

    def _concat(self, node: Node, *parts: torch.Tensor) -> torch.Tensor:
        rows = max(part.shape[0] for part in parts)
        return torch.cat([part.expand(rows, *part.shape[1:]) for part in parts], node.attr + 1)

    def _gather(self, node: Node, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        axis, width = node.attr + 1, x.shape[node.attr + 1]
        flat = places.reshape(places.shape[0], -1)
        if x.shape[0] == 1:
            found = x[0].movedim(axis - 1, 0)[flat]  # (rows, places, what is before the axis, what is after it)
            found = found.movedim(1, axis)
        else:
            flat = torch.where(flat < 0, flat + width, flat)
            moved = x.movedim(axis, 1)
            own = flat.reshape(*flat.shape, *[1] * (moved.ndim - 2)).expand(x.shape[0], -1, *moved.shape[2:])
            found = torch.gather(moved, 1, own).movedim(1, axis)
        return found.reshape(found.shape[0], *node.shape)

    def _along(self, node: Node, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        rows = max(x.shape[0], places.shape[0])
        places = torch.where(places < 0, places + x.shape[-1], places)
        return torch.gather(x.expand(rows, *x.shape[1:]), -1, places.expand(rows, *node.shape))

    def _put(self, node: Node, x: torch.Tensor, value: torch.Tensor, *places: torch.Tensor) -> torch.Tensor:
        axes = len(node.shape)
        there = torch.ones([1] * (axes + 1), dtype=torch.bool, device=x.device)
        for axis, (place, width) in enumerate(zip(places, node.shape, strict=True), 1):
            at = torch.where(place < 0, place + width, place).reshape(-1, *[1] * axes)
            numbers = torch.arange(width, device=x.device).reshape([-1 if d == axis else 1 for d in range(axes + 1)])
            there = there & (at == numbers)
        return torch.where(there, value.reshape(-1, *[1] * axes), x)

    def _branch(self, node: Node, condition: torch.Tensor, new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
        condition, new, old = (_aligned(x, len(node.shape)) for x in (condition, new, old))
        return torch.where(condition, new, old)

    def _view(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        if node.dtype.kind == "b":
            return x.contiguous().view(torch.int8).reshape(x.shape[0], *node.shape) != 0
        return x.contiguous().view(_DTYPES[node.dtype]).reshape(x.shape[0], *node.shape)

    # Along the last axis.

    def _sort(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        ordered: torch.Tensor = torch.sort(x, dim=-1)[0]
        return ordered

    def _reduce(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = _REDUCED[node.attr](x, dim=-1)
        return found.to(_DTYPES[node.dtype])

    def _search(self, node: Node, table: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(table[0].contiguous(), x.contiguous(), side=node.attr)

    # Element by element.

    def _call(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self._owner._traced.graph.functions[node.attr](x)
        return found

    def _cast(self, node: Node, x: torch.Tensor) -> torch.Tensor:
        return x.to(_DTYPES[node.dtype])

    def _computed(self, node: Node) -> torch.Tensor:
        if node.op not in _FUNCTIONS:
            raise Untraceable(f"the operation {node.op}")
        values = (_aligned(self._known[arg.serial], len(node.shape)) for arg in node.args)
        found: torch.Tensor = _FUNCTIONS[node.op](*values)
        return found.to(_DTYPES[node.dtype])


def _aligned(x: torch.Tensor, axes: int) -> torch.Tensor:
    """Return a tensor with as many axes after the first as asked for: new ones come before the others."""
    return x.reshape(x.shape[0], *[1] * (axes - x.ndim + 1), *x.shape[1:])
