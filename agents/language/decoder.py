"""The forward pass of our language models as a pure function of their weights.

The same computation as in `transformers`, without its overhead: for models of this size modules, hooks and
configurations take several times as long as the arithmetic. Tests compare outputs and gradients. Matrices that multiply
the same numbers, and lie side by side among the parameters, are read as one: queries, keys and values, gates and units.

Keys and values may be kept from call to call, in memory that is taken ahead, and rows of them chosen: a common prefix
of several texts is read once. Where all texts of a call begin alike with half of their words or more, as short prompts
do in long columns, these are read once too. A row of words may hold several texts as a tree, see `packing`. Illegal
words are not masked here: the caller knows which words are actions.
"""

import math
import re
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch.nn import functional

#: Keys and values of words that were read, (n, heads, words, size) each, for every layer.
Pairs = list[tuple[torch.Tensor, torch.Tensor]]
#: Words whose reading takes about the time that another pass takes for nothing.
PASS = 256


class Tree(NamedTuple):
    """Where the words of rows stand, and what they see, if a row holds several texts."""

    places: torch.Tensor  # int64 (n, words), or (words,) of all rows: the place of each word in its text
    seen: torch.Tensor  # bool (n, 1, words, words), or (words, all words): which words each one sees


class Cache:
    """Keys and values of words that were read, in memory that is taken ahead.

    Args:
        kept: float32 (layers, 2, n, heads, room for words, size).
        words: that were read.
    """

    def __init__(self, kept: torch.Tensor, words: int = 0) -> None:
        self.kept, self.words = kept, words

    def room(self, new: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Count new words as read; return, for each layer, where their keys and values go, and those of all words.

        The former is (2, n, heads, new, size), the others are (n, heads, words, size) each.
        """
        begin, self.words = self.words, self.words + new
        if self.words > self.kept.shape[4]:
            self.kept = functional.pad(self.kept, (0, 0, 0, 2 * self.words - self.kept.shape[4]))
        keys, values = self.kept.narrow(4, 0, self.words).unbind(1)
        return list(zip(self.kept.narrow(4, begin, new).unbind(), keys.unbind(), values.unbind(), strict=True))

    def rows(self, rows: torch.Tensor) -> "Cache":
        """Return the cache of some rows, int64 (m,)."""
        return Cache(self.kept.index_select(2, rows), self.words)

    def branches(self, rows: torch.Tensor, numbers: torch.Tensor, count: int) -> "Cache":
        """Return the cache of some rows (m,) whose last words are so many branches: of each the branch of a number."""
        chosen = Cache(self.kept.index_select(2, rows), self.words - count + 1)
        branch = self.kept[:, :, rows, :, numbers + self.words - count]  # (m, layers, 2, heads, size)
        chosen.kept.select(4, chosen.words - 1).copy_(branch.permute(1, 2, 0, 3, 4))
        return chosen


def common_words(words: torch.Tensor) -> int:
    """Return with how many of its words, int64 (n, words), all rows begin, the last one apart; 0 for a single row."""
    if len(words) == 1 or words.shape[1] < 2:
        return 0
    return int((words[:, :-1] == words[0, :-1]).all(dim=0).cumprod(dim=0).sum())


class Head(NamedTuple):
    """The last layer, of the words that are actions."""

    rows: torch.Tensor  # (actions, width)
    bias: torch.Tensor  # (actions,), where a word of the response follows
    illegal: torch.Tensor | None  # (actions, actions), what an illegal action adds, where some may be


class DecoderWeights(NamedTuple):
    """The weights of a model as its decoder reads them."""

    words: Any  # what `embed` reads
    layers: list[Any]  # of each layer
    last: Any  # of the last norm
    head: Head


class Decoder(ABC):
    """The forward pass of a shape.

    Args:
        model: of `build`; gives sizes, and the names and shapes of its weights.
    """

    #: Matrices of neighbouring parameters that are one: the ends of their names, and that of all of them.
    joined: tuple[tuple[tuple[str, ...], str], ...] = ()

    def __init__(self, model: Any) -> None:
        config = model.config
        self.layers, self.heads, self.width = config.num_hidden_layers, config.num_attention_heads, config.hidden_size
        self.actions = config.task["num_actions"]
        inner: dict[str, list[int]] = {}  # shapes of the first layer, by name; all are alike, one after another
        outer: dict[str, list[int]] = {}
        before = 0
        for name, weight in model.named_parameters():
            own = re.search(r"\.(\d+)\.(.+)", name)
            before += weight.numel() if own is None and not inner else 0
            if own is None:
                outer[name] = list(weight.shape)
            elif own[1] == "0":
                whole = self._whole(own[2])
                if whole in inner:
                    inner[whole][0] += weight.shape[0]
                else:
                    inner[whole] = list(weight.shape)
        self._inner, self._outer = inner, outer
        self._inner_counts, self._outer_counts = (list(map(math.prod, part.values())) for part in (inner, outer))
        middle = self.layers * sum(self._inner_counts)
        self._counts = [before, middle, sum(self._outer_counts) - before]

    @staticmethod
    def of(model: Any) -> "Decoder":
        """Return the decoder of a model."""
        return GPT2Decoder(model) if model.config.model_type.endswith("gpt2") else LlamaDecoder(model)

    def weights(self, flat: torch.Tensor) -> DecoderWeights:
        """Return the weights as they are read, of a flat tensor (weights,) in the order of the model's parameters.

        Those of equal layers are taken together, so that it takes a few operations on all of them.
        """
        before, middle, after = flat.split(self._counts)
        parts = middle.view(self.layers, -1).split(self._inner_counts, dim=1)
        inner = {name: part.unflatten(1, shape) for (name, shape), part in zip(self._inner.items(), parts, strict=True)}
        counts, number = self._outer_counts, len(self._outer)
        while sum(counts[:number]) > self._counts[0]:
            number -= 1
        parts = before.split(counts[:number]) + after.split(counts[number:])
        outer = {name: part.view(shape) for (name, shape), part in zip(self._outer.items(), parts, strict=True)}
        last = outer["lm_head.weight"][1 : self.actions + 1]
        rows, marks = last.split([self.width, last.shape[1] - self.width], dim=1)
        head = Head(rows, marks[:, 0], marks[:, 2:] if marks.shape[1] > 2 else None)
        return DecoderWeights(*self.prepare(outer, inner), head)

    def cache(self, rows: int, words: int) -> Cache:
        """Return an empty cache for as many texts, with room for as many words of each."""
        return Cache(torch.empty(self.layers, 2, rows, self.heads, words, self.width // self.heads))

    def __call__(
        self,
        weights: DecoderWeights,
        words: torch.Tensor,
        cache: Cache | Pairs | None = None,
        tree: Tree | None = None,
        notes: list[torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, Pairs]:
        """Read words.

        Args:
            weights: of `weights`.
            words: int64 (n, words), those that follow what is in the cache.
            cache: keys and values of the words before, to which those of these words are added; or what the call
                before returned, through which gradients go; or None.
            tree: of rows that hold several texts.
            notes: where the attention of the last word is noted, (n, heads, words) for each layer, if anywhere.

        Returns:
            The last hidden states, (n, words, width), and the keys and values of all words.
        """
        before = cache.words if isinstance(cache, Cache) else cache[0][0].shape[2] if cache else 0
        n, new = words.shape
        if not before and tree is None and notes is None:
            common = common_words(words)
            if common * (n - 1) >= PASS and 2 * common >= new:
                return self._parted(weights, words, cache, common)
        places: torch.Tensor | slice = slice(before, before + new)
        seen = None
        if tree is not None:
            places, seen = tree.places, torch.where(tree.seen, 0.0, -torch.inf)  # once for all layers
        elif before and new > 1:
            seen = torch.ones(new, before + new, dtype=torch.bool).tril(before)
        causal, shape = seen is None and new > 1, (n, new, 3, self.heads, self.width // self.heads)
        hidden, turns, kept = self.embed(weights.words, words, places).flatten(0, 1), self.turns(places), []
        rooms = cache.room(new) if isinstance(cache, Cache) else None
        for layer, own in enumerate(weights.layers):
            asked = self.turn(own, self.project(own, hidden).view(n, new, -1), turns).view(shape).permute(2, 0, 3, 1, 4)
            queries, keys, values = asked.unbind()
            if rooms is not None:
                here, keys, values = rooms[layer]
                here.copy_(asked.narrow(0, 1, 2))
            elif cache:
                keys, values = (torch.cat(pair, dim=2) for pair in zip(cache[layer], (keys, values), strict=True))  # type: ignore[index]
            kept.append((keys, values))
            mixed = functional.scaled_dot_product_attention(queries, keys, values, seen, is_causal=causal)
            if notes is not None:
                scores = queries[:, :, -1:] @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
                notes.append(torch.softmax(scores, dim=-1)[:, :, 0])
            hidden = self.think(own, hidden, mixed.transpose(1, 2).reshape(n * new, -1))
        return self.finish(weights.last, hidden).view(n, new, -1), kept

    def _parted(
        self, weights: DecoderWeights, words: torch.Tensor, cache: Cache | Pairs | None, common: int
    ) -> tuple[torch.Tensor, Pairs]:
        """Read the words with which all rows begin once, then the others."""
        first, kept = self(weights, words[:1, :common])
        kept = [(keys.expand(len(words), -1, -1, -1), values.expand(len(words), -1, -1, -1)) for keys, values in kept]
        if isinstance(cache, Cache):
            for (here, _, _), pair in zip(cache.room(common), kept, strict=True):
                here.copy_(torch.stack(pair))
        rest, kept = self(weights, words[:, common:], cache if isinstance(cache, Cache) else kept)
        return torch.cat([first.expand(len(words), -1, -1), rest], dim=1), kept

    def _whole(self, name: str) -> str:
        """Return the name of the matrix of which a parameter is a part, or its own."""
        for parts, whole in self.joined:
            for part in parts:
                if name.endswith(part):
                    return name.removesuffix(part) + whole
        return name

    @abstractmethod
    def prepare(self, outer: dict[str, torch.Tensor], inner: dict[str, torch.Tensor]) -> tuple[Any, list[Any], Any]:
        """Return what `embed` reads, the weights of each layer, and those of the last norm.

        Args:
            outer: weights outside of layers, by name.
            inner: those of all layers, (layers, ...), by the name within a layer.
        """

    @abstractmethod
    def embed(self, weights: Any, words: torch.Tensor, places: torch.Tensor | slice) -> torch.Tensor:
        """Return hidden states of words, (n, words, numbers)."""

    @abstractmethod
    def project(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Return queries, keys and values of a layer side by side: (rows, numbers) -> (rows, 3 * width)."""

    def turns(self, places: torch.Tensor | slice) -> Any:
        """Return what `turn` needs to know of places, int64 (n, words), or a slice for those of all rows."""
        return None

    def turn(self, weights: Any, asked: torch.Tensor, turns: Any) -> torch.Tensor:
        """Make queries and keys know their places: queries, keys and values, (n, words, 3 * width)."""
        return asked

    @abstractmethod
    def think(self, weights: Any, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Add the attention's output (rows, width), and that of the layer's perceptron, to (rows, numbers)."""

    @abstractmethod
    def finish(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Normalise the last hidden states: (rows, numbers) -> (rows, width)."""


class LlamaDecoder(Decoder):
    """Llama and Qwen: rotated queries and keys (in Qwen normalised before), root-mean-square norms, gated units.

    A hidden state x is held as (x, -x). Its mean is 0 and its variance the mean square of x, so that torch's layer
    norm, which is one operation where its root-mean-square norm is seven, scales x as the latter would. Queries and
    keys are complex numbers, whose real and imaginary parts lie side by side and not in two halves: turning is a
    product.
    """

    joined = (
        (("q_proj.weight", "k_proj.weight"), "asked"),
        (("gate_proj.weight", "up_proj.weight"), "gated"),
        (("input_layernorm.weight", "post_attention_layernorm.weight"), "norms"),
    )

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        config = model.config
        self.epsilon, size = config.rms_norm_eps, config.head_dim
        rates = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(config.max_position_embeddings)[:, None] * rates
        # Complex (places, 3 * width / 2), spelled out for all heads: what is broadcast over short rows is slow. Values
        # stay.
        turns = torch.polar(torch.ones_like(angles), angles).repeat(1, 2 * self.heads)
        self.turned = torch.cat([turns, turns.new_ones(len(turns), self.width // 2)], dim=1)
        self.size, self.both, self.signs = size, (2 * self.width,), torch.tensor([1.0, -1.0])

    def prepare(self, outer: dict[str, torch.Tensor], inner: dict[str, torch.Tensor]) -> tuple[Any, list[Any], Any]:
        """Write what makes hidden states so that it makes both halves."""
        before, after = self._twice(inner["norms"].unflatten(1, (2, -1))).unbind(1)
        asked = torch.cat([self._pairs(inner["self_attn.asked"], 1), inner["self_attn.v_proj.weight"]], dim=1)
        out, down = (self._both(inner[name], 1) for name in ("self_attn.o_proj.weight", "mlp.down_proj.weight"))
        parts = [before, asked.mT, out.mT, after, inner["mlp.gated"].mT, down.mT]
        names = ("self_attn.q_norm.weight", "self_attn.k_norm.weight")  # Qwen's
        parts += [self._pairs(inner[name], 1) for name in names if name in inner]
        words, last = self._both(outer["model.embed_tokens.weight"], 1), self._twice(outer["model.norm.weight"])
        return words, list(zip(*(part.unbind() for part in parts), strict=True)), last

    def _both(self, made: torch.Tensor, dim: int) -> torch.Tensor:
        """Return what makes (x, -x), along a dimension, of what makes x."""
        return (made.unsqueeze(dim) * self.signs.view(-1, *(1,) * (made.ndim - dim))).flatten(dim, dim + 1)

    @staticmethod
    def _twice(scale: torch.Tensor) -> torch.Tensor:
        """Return scales of both halves: (..., width) -> (..., 2 * width)."""
        return scale.unsqueeze(-2).expand(*scale.shape[:-1], 2, -1).flatten(-2)

    def _pairs(self, halves: torch.Tensor, dim: int) -> torch.Tensor:
        """Put the second half of each head's numbers between those of the first."""
        split = halves.unflatten(dim, (-1, 2, self.size // 2))
        return split.transpose(dim + 1, dim + 2).flatten(dim, dim + 2)

    def norm(self, scale: torch.Tensor, both: torch.Tensor) -> torch.Tensor:
        """Scale rows (x, -x) to a mean square of 1, then by weights, twice the same: (rows, 2 * width) to x alone."""
        return torch.layer_norm(both, self.both, scale, None, self.epsilon).narrow(1, 0, self.width)

    def embed(self, weights: Any, words: torch.Tensor, places: torch.Tensor | slice) -> torch.Tensor:
        """Vectors of words."""
        return functional.embedding(words, weights)

    def project(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """All three by one matrix."""
        return torch.mm(self.norm(weights[0], hidden), weights[1])

    def turns(self, places: torch.Tensor | slice) -> Any:
        """Complex numbers of modulus 1."""
        return self.turned[places]

    def turn(self, weights: Any, asked: torch.Tensor, turns: Any) -> torch.Tensor:
        """Turn queries and keys by their places."""
        if len(weights) > 6:
            heads = asked.unflatten(-1, (3, self.heads, self.size))
            parts = zip(weights[6:], heads.unbind(2), strict=False)
            both = [functional.rms_norm(part, (self.size,), scale, self.epsilon) for scale, part in parts]
            asked = torch.stack([*both, heads[:, :, 2]], dim=2)
        pairs = torch.view_as_complex(asked.view(*asked.shape[:2], -1, 2))
        return torch.view_as_real(pairs * turns)

    def think(self, weights: Any, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Gated units."""
        _, _, out, scale, gated, down = weights[:6]
        hidden = torch.addmm(hidden, mixed, out)
        gate, up = torch.mm(self.norm(scale, hidden), gated).chunk(2, dim=1)
        return torch.addmm(hidden, functional.silu(gate) * up, down)

    def finish(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Scale to a mean square of 1."""
        return self.norm(weights, hidden)


class GPT2Decoder(Decoder):
    """GPT-2: vectors of places, layer norms with biases."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.epsilon = model.config.layer_norm_epsilon

    def prepare(self, outer: dict[str, torch.Tensor], inner: dict[str, torch.Tensor]) -> tuple[Any, list[Any], Any]:
        """Nothing is written anew; of a layer, each norm with the matrices that follow it."""
        order = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        parts = [inner[f"{name}.{kind}"].unbind() for name in order for kind in ("weight", "bias")]
        words, places = outer["transformer.wte.weight"], outer["transformer.wpe.weight"]
        last = outer["transformer.ln_f.weight"], outer["transformer.ln_f.bias"]
        return (words, places), list(zip(*parts, strict=True)), last

    def norm(self, scale: torch.Tensor, shift: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Centre and scale rows, then by weights."""
        return functional.layer_norm(rows, rows.shape[-1:], scale, shift, self.epsilon)

    def embed(self, weights: Any, words: torch.Tensor, places: torch.Tensor | slice) -> torch.Tensor:
        """Vectors of words and places."""
        return functional.embedding(words, weights[0]) + weights[1][places]

    def project(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """All three by one matrix."""
        scale, shift, matrix, bias = weights[:4]
        return torch.addmm(bias, self.norm(scale, shift, hidden), matrix)

    def think(self, weights: Any, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Units with the smooth gate of GPT-2."""
        out, bias, scale, shift, up, up_bias, down, down_bias = weights[4:]
        hidden = hidden + torch.addmm(bias, mixed, out)
        rows = torch.addmm(up_bias, self.norm(scale, shift, hidden), up)
        return hidden + torch.addmm(down_bias, functional.gelu(rows, approximate="tanh"), down)

    def finish(self, weights: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Centre and scale."""
        scale, shift = weights
        return self.norm(scale, shift, hidden)
