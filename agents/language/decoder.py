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
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch.nn import functional

Weights = dict[str, torch.Tensor]
#: Keys and values of words that were read, (n, heads, words, size) each, for every layer.
Pairs = list[tuple[torch.Tensor, torch.Tensor]]
#: Words whose reading takes about the time that another pass takes for nothing.
PASS = 256


class Tree(NamedTuple):
    """Where the words of rows stand, and what they see, if a row holds several texts."""

    places: torch.Tensor  # int64 (n, words), the place of each word in its text
    seen: torch.Tensor  # bool (n, 1, words, words), which words each one sees


class Cache:
    """Keys and values of words that were read, in memory that is taken ahead.

    Args:
        kept: float32 (layers, 2, n, heads, room for words, size).
        words: that were read.
    """

    def __init__(self, kept: torch.Tensor, words: int = 0) -> None:
        self.kept, self.words = kept, words

    def add(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep those of new words of a layer, (n, heads, words, size) each; return those of all words."""
        end = self.words + keys.shape[2]
        if end > self.kept.shape[4]:
            self.kept = functional.pad(self.kept, (0, 0, 0, 2 * end - self.kept.shape[4]))
        held_keys, held_values = self.kept[layer].narrow(3, 0, end).unbind()
        for held, new in ((held_keys, keys), (held_values, values)):
            held.narrow(2, self.words, keys.shape[2]).copy_(new)
        return held_keys, held_values

    def rows(self, rows: torch.Tensor) -> "Cache":
        """Return the cache of some rows, int64 (m,)."""
        return Cache(self.kept.index_select(2, rows), self.words)


def common_words(words: torch.Tensor) -> int:
    """Return with how many of its words, int64 (n, words), all rows begin, the last one apart; 0 for a single row."""
    if len(words) == 1 or words.shape[1] < 2:
        return 0
    return int((words[:, :-1] == words[0, :-1]).all(dim=0).cumprod(dim=0).sum())


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
        shapes: dict[str, list[int]] = {}
        for name, weight in model.named_parameters():
            whole = self._whole(name)
            if whole in shapes:
                shapes[whole][0] += weight.shape[0]
            else:
                shapes[whole] = list(weight.shape)
        self._names, self._shapes = list(shapes), list(shapes.values())
        self._counts = [math.prod(shape) for shape in self._shapes]

    @staticmethod
    def of(model: Any) -> "Decoder":
        """Return the decoder of a model."""
        return GPT2Decoder(model) if model.config.model_type.endswith("gpt2") else LlamaDecoder(model)

    def weights(self, flat: torch.Tensor) -> Weights:
        """Return the weights by name, as parts of a flat tensor (weights,) in the order of the model's parameters."""
        parts = zip(self._names, self._shapes, torch.split(flat, self._counts), strict=True)
        return {name: part.view(shape) for name, shape, part in parts}

    def cache(self, rows: int, words: int) -> Cache:
        """Return an empty cache for as many texts, with room for as many words of each."""
        return Cache(torch.empty(self.layers, 2, rows, self.heads, words, self.width // self.heads))

    def __call__(
        self,
        weights: Weights,
        words: torch.Tensor,
        cache: Cache | Pairs | None = None,
        tree: Tree | None = None,
        notes: list[torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, Pairs]:
        """Read words.

        Args:
            weights: by name.
            words: int64 (n, words), those that follow what is in the cache.
            cache: keys and values of the words before, to which those of these words are added; or what the call
                before returned, through which gradients go; or None.
            tree: of rows that hold several texts; without a cache.
            notes: where the attention of the last word is noted, (n, heads, words) for each layer, if anywhere.

        Returns:
            The last hidden states, (n, words, width), and the keys and values of all words.
        """
        fresh = not (cache.words if isinstance(cache, Cache) else cache)
        common = common_words(words) if fresh and tree is None and notes is None else 0
        if common * (len(words) - 1) >= PASS and 2 * common >= words.shape[1]:
            return self._parted(weights, words, cache, common)
        before = cache.words if isinstance(cache, Cache) else cache[0][0].shape[2] if cache else 0
        (n, new), length = words.shape, before + words.shape[1]
        places = torch.arange(before, length) if tree is None else tree.places
        seen = None if tree is None else tree.seen
        if before and new > 1:
            seen = places[:, None] >= torch.arange(length)
        hidden, turns, kept = self.embed(weights, words, places).flatten(0, 1), self.turns(places), []
        for layer in range(self.layers):
            asked = self.turn(weights, layer, self.project(weights, layer, hidden).view(n, new, -1), turns)
            queries, keys, values = asked.view(n, new, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind()
            if isinstance(cache, Cache):
                keys, values = cache.add(layer, keys, values)
            elif cache:
                keys, values = (torch.cat(pair, dim=2) for pair in zip(cache[layer], (keys, values), strict=True))
            kept.append((keys, values))
            mixed = functional.scaled_dot_product_attention(
                queries, keys, values, attn_mask=seen, is_causal=seen is None and new > 1
            )
            if notes is not None:
                scores = queries[:, :, -1:] @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
                notes.append(torch.softmax(scores, dim=-1)[:, :, 0])
            hidden = self.think(weights, layer, hidden, mixed.transpose(1, 2).reshape(n * new, -1))
        if isinstance(cache, Cache):
            cache.words = length
        return self.finish(weights, hidden).unflatten(0, (n, new)), kept

    def _parted(
        self, weights: Weights, words: torch.Tensor, cache: Cache | Pairs | None, common: int
    ) -> tuple[torch.Tensor, Pairs]:
        """Read the words with which all rows begin once, then the others."""
        first, kept = self(weights, words[:1, :common])
        kept = [(keys.expand(len(words), -1, -1, -1), values.expand(len(words), -1, -1, -1)) for keys, values in kept]
        if isinstance(cache, Cache):
            for layer, pair in enumerate(kept):
                cache.add(layer, *pair)
            cache.words = common
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
    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return vectors of words, (n, words, width)."""

    @abstractmethod
    def project(self, weights: Weights, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """Return queries, keys and values of a layer side by side: (rows, width) -> (rows, 3 * width)."""

    def turns(self, places: torch.Tensor) -> Any:
        """Return what `turn` needs to know of places, int64 (words,) or (n, words)."""
        return None

    def turn(self, weights: Weights, layer: int, asked: torch.Tensor, turns: Any) -> torch.Tensor:
        """Make queries and keys know their places: queries, keys and values, (n, words, 3 * width)."""
        return asked

    @abstractmethod
    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Add the attention's output, and that of the layer's perceptron: (rows, width)."""

    @abstractmethod
    def finish(self, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
        """Normalise the last hidden states."""


class LlamaDecoder(Decoder):
    """Llama and Qwen: rotated queries and keys (in Qwen normalised before), root-mean-square norms, gated units."""

    joined = (
        (("q_proj.weight", "k_proj.weight", "v_proj.weight"), "qkv"),
        (("gate_proj.weight", "up_proj.weight"), "gated"),
    )

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        config = model.config
        self.epsilon, size = config.rms_norm_eps, config.head_dim
        rates = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(config.max_position_embeddings)[:, None] * rates.repeat(2)
        sines = angles.sin()
        sines[:, : size // 2] *= -1  # the first half of a rotated vector takes away
        # (places, 3 * width), spelled out for all heads: what is broadcast over short rows is slow. Values stay.
        self.cosines, self.sines = angles.cos().repeat(1, 3 * self.heads), sines.repeat(1, 3 * self.heads)
        self.cosines[:, 2 * self.width :], self.sines[:, 2 * self.width :] = 1.0, 0.0
        self.size = size

    def norm(self, weights: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Scale rows to a mean square of 1, then by the weights of that name."""
        return functional.rms_norm(rows, rows.shape[-1:], weights[f"{name}.weight"], self.epsilon)

    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Vectors of words."""
        return functional.embedding(words, weights["model.embed_tokens.weight"])

    def project(self, weights: Weights, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """All three by one matrix."""
        home = f"model.layers.{layer}"
        return functional.linear(
            self.norm(weights, f"{home}.input_layernorm", hidden), weights[f"{home}.self_attn.qkv"]
        )

    def turns(self, places: torch.Tensor) -> Any:
        """Cosines and sines."""
        return self.cosines[places], self.sines[places]

    def turn(self, weights: Weights, layer: int, asked: torch.Tensor, turns: Any) -> torch.Tensor:
        """Rotate queries and keys by their places."""
        home, heads = f"model.layers.{layer}.self_attn", asked.unflatten(-1, (-1, self.size))
        if f"{home}.q_norm.weight" in weights:
            parts = zip("qk", heads.split(self.heads, dim=2), strict=False)
            both = [self.norm(weights, f"{home}.{name}_norm", part) for name, part in parts]
            heads = torch.cat([*both, heads[:, :, 2 * self.heads :]], dim=2)
        cosines, sines = turns
        return torch.addcmul(heads.flatten(2) * cosines, heads.roll(self.size // 2, -1).flatten(2), sines)

    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Gated units."""
        home = f"model.layers.{layer}"
        hidden = torch.addmm(hidden, mixed, weights[f"{home}.self_attn.o_proj.weight"].T)
        rows = self.norm(weights, f"{home}.post_attention_layernorm", hidden)
        gate, up = functional.linear(rows, weights[f"{home}.mlp.gated"]).chunk(2, dim=-1)
        return torch.addmm(hidden, functional.silu(gate) * up, weights[f"{home}.mlp.down_proj.weight"].T)

    def finish(self, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
        """Scale to a mean square of 1."""
        return self.norm(weights, "model.norm", hidden)


class GPT2Decoder(Decoder):
    """GPT-2: vectors of places, layer norms with biases."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.epsilon = model.config.layer_norm_epsilon

    def norm(self, weights: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Centre and scale rows, then by the weights of that name."""
        scale, shift = weights[f"transformer.{name}.weight"], weights[f"transformer.{name}.bias"]
        return functional.layer_norm(rows, rows.shape[-1:], scale, shift, self.epsilon)

    def linear(self, weights: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Multiply rows by a matrix (inputs, outputs) and add its bias."""
        return torch.addmm(weights[f"transformer.{name}.bias"], rows, weights[f"transformer.{name}.weight"])

    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Vectors of words and places."""
        return (
            functional.embedding(words, weights["transformer.wte.weight"]) + weights["transformer.wpe.weight"][places]
        )

    def project(self, weights: Weights, layer: int, hidden: torch.Tensor) -> torch.Tensor:
        """All three by one matrix."""
        return self.linear(weights, f"h.{layer}.attn.c_attn", self.norm(weights, f"h.{layer}.ln_1", hidden))

    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Units with the smooth gate of GPT-2."""
        hidden = hidden + self.linear(weights, f"h.{layer}.attn.c_proj", mixed)
        rows = self.linear(weights, f"h.{layer}.mlp.c_fc", self.norm(weights, f"h.{layer}.ln_2", hidden))
        return hidden + self.linear(weights, f"h.{layer}.mlp.c_proj", functional.gelu(rows, approximate="tanh"))

    def finish(self, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
        """Centre and scale."""
        return self.norm(weights, "ln_f", hidden)
