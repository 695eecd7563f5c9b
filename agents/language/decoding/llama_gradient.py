"""The derivative of Llama's forward pass, written out.

A pass over few words has small arrays: autograd spends more on what stands between operations than on them, and so does
torch on what it notes of tensors outside of inference. Attention is two products of matrices here, whose weights are
kept; torch's own, which keeps none, takes twice as long backwards.
"""

import math
from typing import Any, NamedTuple

import torch
from torch.nn import functional

_aten = torch.ops.aten


def normed(rows: torch.Tensor, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale rows (..., numbers) to length 1, shorter ones than a least length () to less; return them and divisors."""
    lengths = torch.hypot(torch.linalg.vector_norm(rows, dim=-1, keepdim=True), least)
    return rows / lengths, lengths


def _normed_back(gradient: torch.Tensor, units: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return the gradient at the rows of `normed`, of one at what it returned."""
    along = torch.linalg.vecdot(units, gradient).unsqueeze(-1)
    return torch.addcmul(gradient, units, along, value=-1).div_(lengths)


class _Attended(NamedTuple):
    """What attention keeps of a layer; b = n * heads."""

    read: tuple[torch.Tensor, torch.Tensor]  # `normed` of what was read, (rows, width) and (rows, 1)
    heads: tuple[torch.Tensor, torch.Tensor] | None  # Qwen's of queries and keys, (n, words, 2, heads, size)
    asked: torch.Tensor  # queries, keys and values, (3, b, words, size)
    weights: torch.Tensor  # (b, words, words)
    mixed: torch.Tensor  # (rows, width)


class Thought(NamedTuple):
    """What the perceptron keeps of a layer."""

    read: tuple[torch.Tensor, torch.Tensor]  # `normed` of what was read
    gate: torch.Tensor  # (rows, units)
    up: torch.Tensor  # (rows, units)
    opened: torch.Tensor  # (rows, units), the gate's silu
    units: torch.Tensor  # (rows, units)


class Reading(torch.autograd.Function):
    """Reads words; gradients go to the weights."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        words: torch.Tensor,
        turns: torch.Tensor,
        seen: torch.Tensor,
        leasts: tuple[torch.Tensor, torch.Tensor],
        vectors: torch.Tensor,
        last: torch.Tensor,
        *stacked: torch.Tensor,
    ) -> torch.Tensor:
        """Return the last hidden states, (n, words, width).

        Args:
            ctx: keeps what the derivative needs.
            words: int64 (n, words).
            turns: complex (n, words, 3 * width / 2), of each word's queries, keys and values.
            seen: (n * heads, words, words), what is added to the weights of attention: 0 or minus infinity.
            leasts: of `normed`, for rows and for heads.
            vectors: of words, (vocabulary, width).
            last: of the last norm, (width,).
            stacked: of layers, as `LlamaDecoder.prepare` returns them.
        """
        kept = []
        with torch.inference_mode():
            hidden = torch.embedding(vectors, words).flatten(0, 1)
            for own in zip(*(part.unbind() for part in stacked), strict=True):
                attended, hidden = _attend(own, hidden, turns, seen, leasts)
                thought, hidden = think(own, hidden, leasts[0])
                kept.append((own, attended, thought))
        ctx.read, ctx.kept, ctx.given = normed(hidden, leasts[0]), kept, (words, turns, vectors, last, stacked)
        return (ctx.read[0] * last).view(*words.shape, -1)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[misc, untyped-decorator]
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        """Return the gradients at vectors, last and stacked weights, of one at the hidden states."""
        words, turns, vectors, last, stacked = ctx.given
        gradient, read = gradient.flatten(0, 1), ctx.read
        for_last = (gradient * read[0]).sum(0)
        gradient = _normed_back(gradient * last, *read)
        found = [torch.empty_like(part) for part in stacked]
        turns = turns.conj().resolve_conj()
        layers = list(zip(ctx.kept, zip(*(part.unbind() for part in found), strict=True), strict=True))
        with torch.inference_mode():
            for (own, attended, thought), into in reversed(layers):
                gradient = _think_back(own, gradient, thought, into)
                gradient = _attend_back(own, gradient, attended, turns, into)
        for_words = _aten.embedding_dense_backward(gradient.view(*words.shape, -1), words, len(vectors), -1, False)
        return None, None, None, None, for_words, for_last, *found


def _attend(
    own: tuple[torch.Tensor, ...],
    hidden: torch.Tensor,
    turns: torch.Tensor,
    seen: torch.Tensor,
    leasts: tuple[torch.Tensor, torch.Tensor],
) -> tuple[_Attended, torch.Tensor]:
    """Add the attention's output to hidden states (rows, width)."""
    (n, new, _), (_, width), b = turns.shape, hidden.shape, len(seen)
    shape, read, heads = (n, new, 3, b // n, width * n // b), normed(hidden, leasts[0]), None
    asked = torch.mm(read[0], own[0])
    if len(own) > 4:
        rows = asked.view(shape)
        heads = normed(rows[:, :, :2], leasts[1])
        asked = torch.cat([heads[0] * own[4], rows[:, :, 2:]], dim=2)
    pairs = torch.view_as_complex(asked.view(*shape[:-1], -1, 2)).permute(2, 0, 3, 1, 4)
    turned = torch.empty(pairs.shape, dtype=pairs.dtype)
    torch.mul(pairs, turns.view(*shape[:-1], -1).permute(2, 0, 3, 1, 4), out=turned)
    asked = torch.view_as_real(turned).view(3, b, new, -1)
    queries, keys, values = asked.unbind()
    weights = torch.softmax(torch.baddbmm(seen, queries, keys.mT, alpha=1 / math.sqrt(shape[-1])), dim=-1)
    mixed = torch.bmm(values.mT, weights.mT).view(n, width, new).mT.reshape(n * new, width)
    return _Attended(read, heads, asked, weights, mixed), torch.addmm(hidden, mixed, own[1])


def _attend_back(
    own: tuple[torch.Tensor, ...],
    gradient: torch.Tensor,
    kept: _Attended,
    turns: torch.Tensor,
    into: tuple[torch.Tensor, ...],
) -> torch.Tensor:
    """Return the gradient at hidden states before attention; write those at its weights."""
    (_, b, new, size), (n, _, _), width = kept.asked.shape, turns.shape, gradient.shape[1]
    queries, keys, values = kept.asked.unbind()
    torch.mm(kept.mixed.t(), gradient, out=into[1])
    mixed = torch.mm(gradient, own[1].t()).view(n, new, width).mT.reshape(b, size, new)
    scores = torch._softmax_backward_data(torch.bmm(mixed.mT, values.mT), kept.weights, -1, mixed.dtype)
    scores.mul_(1 / math.sqrt(size))
    # Products with few columns are slow: numbers of heads stand in rows here.
    turned = torch.empty(3, b, size, new)
    for_queries, for_keys, for_values = turned.unbind()
    torch.bmm(keys.mT, scores.mT, out=for_queries)
    torch.bmm(queries.mT, scores, out=for_keys)
    torch.bmm(mixed, kept.weights, out=for_values)
    pairs = torch.view_as_complex(turned.view(3, n, width, new).permute(1, 3, 0, 2).contiguous().view(n, new, -1, 2))
    asked = torch.view_as_real(pairs.mul_(turns)).view(n, new, 3, -1, size)
    if kept.heads is not None:
        both = asked[:, :, :2]
        torch.sum(both * kept.heads[0], dim=(0, 1, 3), out=into[4].squeeze(1))
        asked[:, :, :2] = _normed_back(both * own[4], *kept.heads)
    rows = asked.view(n * new, -1)
    torch.mm(kept.read[0].t(), rows, out=into[0])
    return _normed_back(torch.mm(rows, own[0].t()), *kept.read).add_(gradient)


def think(own: tuple[torch.Tensor, ...], hidden: torch.Tensor, least: torch.Tensor) -> tuple[Thought, torch.Tensor]:
    """Add the perceptron's output to hidden states (rows, width); return what its derivative needs beside them."""
    read = normed(hidden, least)
    both = torch.mm(read[0], own[2])
    gate, up = both.narrow(1, 0, both.shape[1] // 2), both.narrow(1, both.shape[1] // 2, both.shape[1] // 2)
    opened = functional.silu(gate)
    units = opened * up
    return Thought(read, gate, up, opened, units), torch.addmm(hidden, units, own[3])


def _think_back(
    own: tuple[torch.Tensor, ...], gradient: torch.Tensor, kept: Thought, into: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """Return the gradient at hidden states before the perceptron; write those at its weights."""
    torch.mm(kept.units.t(), gradient, out=into[3])
    units = torch.mm(gradient, own[3].t())
    rows, count = units.shape
    both = torch.empty(rows, 2 * count)
    torch.mul(units, kept.opened, out=both.narrow(1, count, count))
    _aten.silu_backward.grad_input(units.mul_(kept.up), kept.gate, grad_input=both.narrow(1, 0, count))
    torch.mm(kept.read[0].t(), both, out=into[2])
    return _normed_back(torch.mm(both, own[2].t()), *kept.read).add_(gradient)
