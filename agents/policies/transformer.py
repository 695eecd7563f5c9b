"""A small transformer as a policy class; see `network`.

1. The input is a sequence: the prompt's tokens, a mark where the response begins, and the response. The output is read
   at the last token of the response, or at the mark where the response is empty. Every token keeps its place; padding
   is never attended to.
2. Attention is causal and relative: with queries q, keys k, and for each head and distance d a learned vector r_d and a
   learned number b_d, token i attends to token j in proportion to exp(q_i . (k_j + r_{i-j}) / width of a head +
   b_{i-j}) (Shaw et al., arXiv 1803.02155). So what is learnt at one step of a response holds at the next, and what is
   learnt on short prompts holds on long ones.
3. Tokens of the response also have an embedding of their place, 0 at the start, so that what depends on the place can
   be learnt.
4. Each layer is x + attention(norm(x)), then x + perceptron(norm(x)) (Xiong et al., arXiv 2002.04745), the norm being
   the root mean square (arXiv 1910.07467). The last layer is computed only where an output is read. No dropout.
5. As in `mlp`, each matrix averages its n inputs, x -> (1/n) V x with entries of V of standard deviation sqrt(n), so
   that one step size suits any width.
6. Only the last 32 tokens of a longer response are seen.
7. An update reads each response once for all its steps, unless the prompt contains the state or the response is longer
   than 32 tokens.
8. All weights of a run are one flat vector, drawn from the run's own counter stream.
"""

import math
from typing import Any

import numpy as np
import torch

from theorybench.agents.policies.network import WINDOW, NetworkPolicy, NetworkSoftmax
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.streams import uniforms

#: Shape of a matrix, inputs that it averages, standard deviation of what comes out at the start.
Entry = tuple[tuple[int, int], int, float]
#: Hidden units of the perceptrons, for each number of a token.
EXPANSION = 2


class Transformer:
    """A decoder as a pure function of a flat vector of weights.

    Args:
        setting: gives the tokens.
        outputs: numbers that come out.
        width: numbers of each token.
        layers: their number.
        heads: of the attention in each layer, a divisor of the width.

    Raises:
        ParameterError: a width that the heads cannot share.
    """

    def __init__(self, setting: Setting, outputs: int, width: int, layers: int, heads: int) -> None:
        if width % heads:
            raise ParameterError("width", width, f"a multiple of heads = {heads}")
        self.prompt_length, self.window = setting.prompt_length, min(setting.response_length, WINDOW)
        self.places = self.prompt_length + 1 + self.window
        self.mark = setting.num_symbols + 1
        self.layers, self.heads, self.outputs = layers, heads, outputs
        self.size = width // heads
        square, hidden = ((width, width), width, 1.0), EXPANSION * width
        block: dict[str, Entry] = {
            "query": square,
            "key": square,
            "value": square,
            "join": square,
            "distance": ((self.places, width), 1, 1.0),
            "lean": ((self.places, heads), 1, 1.0),
            "up": ((width, hidden), width, 1.0),
            "down": ((hidden, width), hidden, 1.0),
        }
        self.entries: dict[str, Entry] = {
            "token": ((self.mark + 1, width), 1, 1.0),
            "place": ((self.window + 1, width), 1, 0.0),
            **{f"{name} {layer}": entry for layer in range(layers) for name, entry in block.items()},
            "last": ((width, outputs), width, 0.0),
        }
        self.counts = [math.prod(shape) for shape, _, _ in self.entries.values()]

    def start(self, key: int) -> np.ndarray:
        """Return random weights with a last matrix of zeros, float64 (weights,)."""
        draws = uniforms(np.array([key], np.int64), sum(self.counts))[0]
        # Of uniform numbers whose variance is the number of inputs, or 0.
        scales = [deviation * math.sqrt(3.0 * inputs) for _, inputs, deviation in self.entries.values()]
        return np.repeat(scales, self.counts) * (2.0 * draws - 1.0)

    def see(self, observations: np.ndarray) -> np.ndarray:
        """Return what the network is given, float64 (n, places + 1): tokens with the mark, and the answer's place."""
        response = observations[:, self.prompt_length :]
        length = np.count_nonzero(response, axis=1)
        if response.shape[1] > self.window:
            last = np.maximum(length - self.window, 0)[:, None] + np.arange(self.window)
            response = np.take_along_axis(response, last, axis=1)
        seen = np.zeros((len(observations), self.places + 1))
        seen[:, : self.prompt_length] = observations[:, : self.prompt_length]
        seen[:, self.prompt_length] = self.mark
        seen[:, self.prompt_length + 1 : -1] = response
        seen[:, -1] = self.prompt_length + np.minimum(length, self.window)
        return seen

    def __call__(self, weights: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return (..., outputs) for weights of one run and what is seen (..., places + 1)."""
        lead, seen = seen.shape[:-1], seen.reshape(-1, self.places + 1)
        return self._read(weights, seen[:, :-1].long(), seen[:, -1:].long()).reshape(*lead, self.outputs)

    def along(self, weights: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return (..., steps, outputs) for what is seen at the steps of a response (..., steps, places + 1).

        Each response is read once, as it stands at the last step: what stands behind an answer does not change it.
        """
        lead, seen = seen.shape[:-1], seen.reshape(-1, *seen.shape[-2:])
        return self._read(weights, seen[..., :-1].amax(1).long(), seen[..., -1].long()).reshape(*lead, self.outputs)

    def _read(self, weights: torch.Tensor, tokens: torch.Tensor, answers: torch.Tensor) -> torch.Tensor:
        """Return (n, steps, outputs) for tokens (n, places) and the places of answers (n, steps)."""
        parts = zip(self.entries.items(), torch.split(weights, self.counts), strict=True)
        own = {name: part.reshape(shape) / inputs for (name, (shape, inputs, _)), part in parts}
        x = own["token"][tokens] + torch.nn.functional.pad(own["place"], (0, 0, self.prompt_length, 0))
        for layer in range(self.layers):
            block = {name.split()[0]: matrix for name, matrix in own.items() if name.endswith(f" {layer}")}
            asked = torch.arange(self.places).expand(len(x), -1)
            keys, values = (self._split(_norm(x) @ block[name]) for name in ("key", "value"))
            if layer == self.layers - 1:
                asked, x = answers, torch.take_along_dim(x, answers[:, :, None], dim=1)
            attention = self._attention(block, self._split(_norm(x) @ block["query"]), keys, asked, tokens)
            x = x + (attention @ values).transpose(1, 2).flatten(2) @ block["join"]
            x = x + torch.relu(_norm(x) @ block["up"]) @ block["down"]
        return _norm(x) @ own["last"]

    def _split(self, rows: torch.Tensor) -> torch.Tensor:
        """Split among heads: (n, rows, width) -> (n, heads, rows, size)."""
        return rows.unflatten(-1, (self.heads, self.size)).transpose(1, 2)

    def _attention(
        self,
        block: dict[str, torch.Tensor],
        queries: torch.Tensor,
        keys: torch.Tensor,
        asked: torch.Tensor,
        tokens: torch.Tensor,
    ) -> torch.Tensor:
        """Return the attention weights, (n, heads, rows, places), for queries at the places `asked` (n, rows)."""
        back = asked[:, :, None] - torch.arange(self.places)
        vectors = block["distance"].unflatten(-1, (self.heads, self.size)).permute(1, 2, 0)
        relative = queries @ vectors / self.size + block["lean"].T[:, None]  # by distance
        index = back.clamp(min=0)[:, None].expand(-1, self.heads, -1, -1)
        scores = queries @ keys.transpose(-1, -2) / self.size + torch.gather(relative, -1, index)
        seen = (back == 0) | ((back > 0) & (tokens != 0)[:, None])  # itself always, so that no row is empty
        return torch.softmax(torch.where(seen[:, None], scores, -torch.inf), dim=-1)


def _norm(x: torch.Tensor) -> torch.Tensor:
    """Scale the last axis to a mean square of 1."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)


class TransformerPolicy(NetworkPolicy):
    """A policy of a setting, re-weighted by a transformer."""

    network_class = Transformer


class TransformerSoftmax(NetworkSoftmax):
    """The class of transformers."""

    policy_class = TransformerPolicy

    def step_logits(self, parameters: Any, encoded: Any) -> Any:
        """Read each response once, where each step sees all that the step before saw."""
        if self.setting.state_in_prompt or self.setting.response_length > self.network.window:
            return self.logits(parameters, encoded)
        actions = self.setting.num_actions
        return encoded[..., -actions:] + self.network.along(parameters, encoded[..., :-actions])
