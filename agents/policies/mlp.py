"""A small network as a policy class: the policy that training begins from, times what a perceptron adds to its logits.

    ln pi(a | o) = ln pi_start(a | o) + f_w(o)_a - ln Z(o)

1. The last layer of f is 0 at the start, so that training begins exactly at pi_start.
2. Input: the prompt's tokens and the last 32 of the response, the latest first; one-hot, padding being all zeros.
   Longer histories would cost the square of the horizon.
3. Every layer *averages* its n inputs, x -> (1/n) V x, with entries of V of standard deviation sqrt(n) at the start (0
   in the last layer). An optimiser that moves each number by its step size, as Adam does, then moves each unit by
   a few times that, at any width: the step size that suits a table suits a network.
4. The first layer adds a vector of its own for each number of response tokens, of standard deviation 1, and there are
   no other biases. What is learnt at one position then says little about another; a bias of the last layer would repeat
   the first pick of a path at every position, so that a curriculum finds nothing on its second sub-task.
5. All weights of a run are one flat vector, drawn from the run's own counter stream.
"""

import itertools

import numpy as np
import torch

from theorybench.agents.policies.softmax import SMALLEST, NetworkSoftmax
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.policy import Policy, SettingPolicy
from theorybench.envs.core.setting import Setting
from theorybench.envs.core.streams import uniforms

#: Response tokens that a network sees, the last ones.
WINDOW = 32
#: Observations that are passed through a network at a time, to bound memory.
PART = 2**14


class Network:
    """A perceptron with tanh units, as a pure function of a flat vector of weights.

    Args:
        setting: gives the tokens.
        hidden_units: width of the hidden layers.
        hidden_layers: their number.
        outputs: numbers that come out.
    """

    def __init__(self, setting: Setting, hidden_units: int, hidden_layers: int, outputs: int) -> None:
        self.prompt_length, self.positions = setting.prompt_length, setting.response_length
        self.places = self.prompt_length + min(self.positions, WINDOW)
        self.symbols = setting.num_symbols
        sizes = [self.places * self.symbols, *[hidden_units] * hidden_layers, outputs]
        self.shapes = [(self.positions, hidden_units), *itertools.pairwise(sizes)]
        # Of the one-hot inputs one is on at each place; the position picks one row.
        self.fan_in = [1, self.places, *sizes[1:-1]]

    def start(self, key: int) -> np.ndarray:
        """Return random weights with a last layer of zeros, float64 (weights,)."""
        counts = [rows * columns for rows, columns in self.shapes]
        draws = uniforms(np.array([key], np.int64), sum(counts))[0]
        scales = np.sqrt(3.0 * np.array(self.fan_in))  # of uniform numbers whose variance is the fan-in
        scales[-1] = 0.0
        return np.repeat(scales, counts) * (2.0 * draws - 1.0)

    def see(self, observations: np.ndarray) -> np.ndarray:
        """Return what the network is given, float64 (n, places + 1): tokens, then the number of response tokens."""
        response = observations[:, self.prompt_length :]
        length = np.count_nonzero(response, axis=1)
        back = length[:, None] - 1 - np.arange(self.places - self.prompt_length)
        last = np.where(back >= 0, np.take_along_axis(response, np.maximum(back, 0), axis=1), 0)
        return np.concatenate([observations[:, : self.prompt_length], last, length[:, None]], axis=1, dtype=np.float64)

    def __call__(self, weights: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """Return (..., outputs) for weights of one run and what is seen (..., places + 1)."""
        parts = torch.split(weights, [rows * columns for rows, columns in self.shapes])
        by_position, *layers = [part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)]
        values = _one_hot(seen[..., :-1] - 1, self.symbols, weights).flatten(-2) @ layers[0] / self.places
        values = values + _one_hot(seen[..., -1], self.positions, weights) @ by_position
        for layer in layers[1:]:
            values = torch.tanh(values) @ layer / len(layer)
        return values


def _one_hot(numbers: torch.Tensor, count: int, like: torch.Tensor) -> torch.Tensor:
    """Return (..., count) of the type of `like`, all zeros where a number is not in 0..count-1."""
    return (numbers[..., None] == torch.arange(count)).to(like.dtype)


class MLPSoftmax(NetworkSoftmax):
    """The class of perceptrons.

    Args:
        setting: the setting.
        start: "initial" or "reference".
        hidden_units: width of the hidden layers.
        hidden_layers: their number.
    """

    def __init__(self, setting: Setting, start: str = "initial", *, hidden_units: int, hidden_layers: int) -> None:
        super().__init__(setting, start)
        self.sizes = (hidden_units, hidden_layers)
        self.network = Network(setting, *self.sizes, setting.num_actions)
        self.critic = Network(setting, *self.sizes, 1)

    def snapshot(self, parameters: np.ndarray) -> Policy:
        """Return the policy of these weights."""
        return NetworkPolicy(self.setting, self.origin.kind, *self.sizes, parameters)


class NetworkPolicy(SettingPolicy):
    """A policy of a setting, re-weighted by a perceptron.

    Args:
        setting: the setting.
        kind: "reference" or "initial": what is re-weighted.
        hidden_units: width of the hidden layers.
        hidden_layers: their number.
        weights: float64 (weights,), as `Network` reads them.
    """

    def __init__(self, setting: Setting, kind: str, hidden_units: int, hidden_layers: int, weights: np.ndarray) -> None:
        super().__init__(setting, kind)
        self.depends_on = "prefix"
        self.hidden_units, self.hidden_layers, self.weights = hidden_units, hidden_layers, weights

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Return float64 (n, num_actions)."""
        setting = self.setting
        network = Network(setting, self.hidden_units, self.hidden_layers, setting.num_actions)
        weights, probs = torch.from_numpy(self.weights), super().probs(observations)
        table = np.empty((len(observations), setting.num_actions))
        for start in range(0, len(observations), PART):
            part = slice(start, start + PART)
            added = network(weights, torch.from_numpy(network.see(observations[part])))
            table[part] = np.log(np.maximum(probs[part], SMALLEST)) + added.numpy()
        return softmax(table)
