"""GPT-2's decoder."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from theorybench.agents.language.decoding.decoder import Decoder


class GPT2Decoder(Decoder):
    """GPT-2: vectors of places, layer norms with biases."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.epsilon = model.config.layer_norm_epsilon

    def prepare(
        self, outer: dict[str, torch.Tensor], inner: dict[str, torch.Tensor]
    ) -> tuple[Any, Sequence[torch.Tensor], Any]:
        """Nothing is written anew; of a layer, each norm with the matrices that follow it."""
        order = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
        parts = [inner[f"{name}.{kind}"] for name in order for kind in ("weight", "bias")]
        words, places = outer["transformer.wte.weight"], outer["transformer.wpe.weight"]
        last = outer["transformer.ln_f.weight"], outer["transformer.ln_f.bias"]
        return (words, places), parts, last

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
