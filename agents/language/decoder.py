"""The forward pass of our language models as a pure function of their weights.

The same computation as in `transformers`, without its overhead: for models of this size modules, hooks and
configurations take several times as long as the arithmetic. Weights have the names that they have in the model; tests
compare outputs and gradients.

Keys and values may be kept from call to call, and rows of them chosen, so that a common prefix of several texts is read
once. Where all texts of a call begin alike with half of their words or more, as short prompts do in long columns, these
are read once too. Illegal words are not masked here: the caller knows which words are actions.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch.nn import functional

#: Keys and values of the words that were read, (n, heads, words, size) each, for every layer.
Cache = list[tuple[torch.Tensor, torch.Tensor]]
Weights = dict[str, torch.Tensor]


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

    def __init__(self, model: Any) -> None:
        config = model.config
        self.layers, self.heads, self.width = config.num_hidden_layers, config.num_attention_heads, config.hidden_size
        named = dict(model.named_parameters())
        self.names, self.shapes = list(named), [weight.shape for weight in named.values()]
        self.counts = [weight.numel() for weight in named.values()]

    @staticmethod
    def of(model: Any) -> "Decoder":
        """Return the decoder of a model."""
        return GPT2Decoder(model) if model.config.model_type.endswith("gpt2") else LlamaDecoder(model)

    def weights(self, flat: torch.Tensor) -> Weights:
        """Return the weights by name, as parts of a flat tensor (weights,) in the order of the model's parameters."""
        parts = zip(self.names, self.shapes, torch.split(flat, self.counts), strict=True)
        return self.joined({name: part.view(shape) for name, shape, part in parts})

    def joined(self, weights: Weights) -> Weights:
        """Add what the forward pass needs to the weights of a model by name."""
        return weights

    def __call__(
        self,
        weights: Weights,
        words: torch.Tensor,
        cache: Cache | None = None,
        notes: list[torch.Tensor] | None = None,
    ) -> tuple[torch.Tensor, Cache]:
        """Read words.

        Args:
            weights: by name.
            words: int64 (n, words), those that follow what is in the cache.
            cache: of the call before, or None.
            notes: where the attention of the last word is noted, (n, heads, words) for each layer, if anywhere.

        Returns:
            The last hidden states, (n, words, width), and the cache with these words.
        """
        common = 0 if cache or notes is not None else common_words(words)
        if 2 * common >= words.shape[1]:  # else reading in two parts costs as much as it saves
            first, cache = self(weights, words[:1, :common])
            size = (len(words), *cache[0][0].shape[1:])
            everywhere = [(keys.expand(size), values.expand(size)) for keys, values in cache]
            rest, kept = self(weights, words[:, common:], everywhere)
            return torch.cat([first.expand(len(words), -1, -1), rest], dim=1), kept
        before = cache[0][0].shape[2] if cache else 0
        length = before + words.shape[1]
        places = torch.arange(before, length)
        hidden, kept = self.embed(weights, words, places), []
        behind = None if words.shape[1] == 1 else places[:, None] < torch.arange(length)
        for layer in range(self.layers):
            queries, keys, values = self.project(weights, layer, hidden, places)
            if cache:
                keys, values = (torch.cat(pair, dim=2) for pair in zip(cache[layer], (keys, values), strict=True))
            kept.append((keys, values))
            scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
            if behind is not None:
                scores = scores.masked_fill(behind, -torch.inf)
            attention = torch.softmax(scores, dim=-1)
            if notes is not None:
                notes.append(attention[:, :, -1])
            mixed = (attention @ values).transpose(1, 2).flatten(2)
            hidden = self.think(weights, layer, hidden, mixed)
        return self.finish(weights, hidden), kept

    @staticmethod
    def split(rows: torch.Tensor, heads: int) -> torch.Tensor:
        """Split among heads: (n, words, heads * size) -> (n, heads, words, size)."""
        return rows.unflatten(-1, (heads, -1)).transpose(1, 2)

    @abstractmethod
    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Return vectors of words, (n, words, width)."""

    @abstractmethod
    def project(
        self, weights: Weights, layer: int, hidden: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries, keys and values of a layer, (n, heads, words, size) each."""

    @abstractmethod
    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Add the attention's output, and that of the layer's perceptron: (n, words, width)."""

    @abstractmethod
    def finish(self, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
        """Normalise the last hidden states."""


class LlamaDecoder(Decoder):
    """Llama and Qwen: rotated queries and keys (in Qwen normalised before), root-mean-square norms, gated units."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        config = model.config
        self.epsilon, size = config.rms_norm_eps, config.head_dim
        rates = config.rope_parameters["rope_theta"] ** (-torch.arange(0, size, 2) / size)
        angles = torch.arange(config.max_position_embeddings)[:, None] * rates.repeat(2)
        self.cosines, self.sines = angles.cos(), angles.sin()
        self.sines[:, : size // 2] *= -1  # the first half of a rotated vector takes away

    def joined(self, weights: Weights) -> Weights:
        """Put the matrices of queries, keys and values side by side."""
        homes = [f"model.layers.{layer}" for layer in range(self.layers)]
        each = {home: [weights[f"{home}.self_attn.{name}_proj.weight"] for name in "qkv"] for home in homes}
        return weights | {f"{home}.qkv": torch.cat(matrices).T for home, matrices in each.items()}

    def norm(self, weights: Weights, name: str, rows: torch.Tensor) -> torch.Tensor:
        """Scale rows to a mean square of 1, then by the weights of that name."""
        return functional.rms_norm(rows, rows.shape[-1:], weights[f"{name}.weight"], self.epsilon)

    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Vectors of words."""
        return functional.embedding(words, weights["model.embed_tokens.weight"])

    def project(
        self, weights: Weights, layer: int, hidden: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rotate queries and keys by their places."""
        home = f"model.layers.{layer}"
        rows = self.norm(weights, f"{home}.input_layernorm", hidden) @ weights[f"{home}.qkv"]
        asked, values = self.split(rows, 3 * self.heads).split([2 * self.heads, self.heads], dim=1)
        if f"{home}.self_attn.q_norm.weight" in weights:
            both = zip("qk", asked.chunk(2, dim=1), strict=True)
            asked = torch.cat([self.norm(weights, f"{home}.self_attn.{name}_norm", own) for name, own in both], dim=1)
        turned = asked * self.cosines[places] + asked.roll(asked.shape[-1] // 2, -1) * self.sines[places]
        return turned[:, : self.heads], turned[:, self.heads :], values

    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Gated units."""
        home = f"model.layers.{layer}"
        hidden = hidden + mixed @ weights[f"{home}.self_attn.o_proj.weight"].T
        rows = self.norm(weights, f"{home}.post_attention_layernorm", hidden)
        gate, up, down = (weights[f"{home}.mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
        return hidden + (functional.silu(rows @ gate.T) * (rows @ up.T)) @ down.T

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
        return rows @ weights[f"transformer.{name}.weight"] + weights[f"transformer.{name}.bias"]

    def embed(self, weights: Weights, words: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """Vectors of words and places."""
        return (
            functional.embedding(words, weights["transformer.wte.weight"]) + weights["transformer.wpe.weight"][places]
        )

    def project(
        self, weights: Weights, layer: int, hidden: torch.Tensor, places: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All three by one matrix."""
        rows = self.linear(weights, f"h.{layer}.attn.c_attn", self.norm(weights, f"h.{layer}.ln_1", hidden))
        queries, keys, values = self.split(rows, 3 * self.heads).chunk(3, dim=1)
        return queries, keys, values

    def think(self, weights: Weights, layer: int, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        """Units with the smooth gate of GPT-2."""
        hidden = hidden + self.linear(weights, f"h.{layer}.attn.c_proj", mixed)
        rows = self.linear(weights, f"h.{layer}.mlp.c_fc", self.norm(weights, f"h.{layer}.ln_2", hidden))
        return hidden + self.linear(weights, f"h.{layer}.mlp.c_proj", functional.gelu(rows, approximate="tanh"))

    def finish(self, weights: Weights, hidden: torch.Tensor) -> torch.Tensor:
        """Centre and scale."""
        return self.norm(weights, "ln_f", hidden)
