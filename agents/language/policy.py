"""A causal language model as a policy: what oracles score, and what roll-outs sample from."""

import copy
from typing import Any, NamedTuple

import numpy as np
import torch

from theorybench.agents.language.decoder import Cache, Decoder, Weights
from theorybench.agents.language.models import SHAPES, setting_of_config
from theorybench.agents.language.vocabulary import Vocabulary
from theorybench.agents.softmax import softmax
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.setting import Setting

#: Words that are read at a time, and numbers that are kept of them, to bound memory.
WORDS, KEPT = 2**16, 2**26


class _Reading(NamedTuple):
    """What was read: equally long responses.

    Attributes:
        observations: integer (n, tokens), distinct.
        said: words of each response.
        cache: keys and values.
    """

    observations: np.ndarray
    said: int
    cache: Cache


class LanguagePolicy(Policy):
    """The next word of a model of a setting, among the words that are legal actions.

    Equal observations are read once, those of equal length together, without padding. Keys and values of the last
    observations are kept: where all that are asked for continue them, as an oracle's do that goes forward step by step,
    only what is new is read.

    Args:
        shape: of the model, a key of `SHAPES`.
        config: of the model, as JSON.
        weights: float32 (weights,), all parameters of the model in their order.
    """

    depends_on = "prefix"

    def __init__(self, shape: str, config: dict[str, Any], weights: np.ndarray) -> None:
        self.shape, self.config, self.weights = shape, config, np.asarray(weights, np.float32)

    @classmethod
    def of(cls, model: Any) -> "LanguagePolicy":
        """Return the policy of a model as it is now: later training does not change it."""
        shape = next(name for name, (config, _, _) in SHAPES.items() if isinstance(model.config, config))
        weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().float().cpu().numpy()
        policy = cls(shape, model.config.to_dict(), weights.copy())
        decoder = Decoder.of(model)
        policy._read_by = decoder, decoder.weights(torch.from_numpy(policy.weights))
        return policy

    @property
    def model(self) -> Any:
        """The model with these weights, in evaluation mode."""
        if not hasattr(self, "_model"):
            config_class, model_class, _ = SHAPES[self.shape]
            with torch.random.fork_rng(devices=[]):
                model = model_class(config_class.from_dict(copy.deepcopy(self.config)))
            torch.nn.utils.vector_to_parameters(torch.from_numpy(self.weights.copy()), model.parameters())
            self._model = model.eval().requires_grad_(False)
        return self._model

    @property
    def setting(self) -> Setting:
        """The setting that the model was made for."""
        if not hasattr(self, "_setting"):
            self._setting = setting_of_config(SHAPES[self.shape][0].from_dict(copy.deepcopy(self.config)))
        return self._setting

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Return the probabilities of actions, float64 (n, num_actions)."""
        setting = self.setting
        distinct, place = np.unique(observations, axis=0, return_inverse=True)
        masked = type(setting).action_mask is not Setting.action_mask
        legal = setting.reference_probs(distinct) > 0 if masked else np.ones((len(distinct), setting.num_actions), bool)
        logits = np.empty(legal.shape)
        said = Vocabulary(setting).responses(distinct)[1]
        for length in np.unique(said):
            here = np.flatnonzero(said == length)
            logits[here] = self._logits(distinct[here], int(length), legal[here])
        return softmax(np.where(legal | ~legal.any(axis=1, keepdims=True), logits, -np.inf))[place.ravel()]

    def _logits(self, observations: np.ndarray, said: int, legal: np.ndarray) -> np.ndarray:
        """Read distinct observations whose responses have as many words; (n, num_actions)."""
        decoder, weights = self._decoder
        vocabulary = Vocabulary(self.setting)
        cache, begun = self._continued(observations, said)
        words = np.hstack([vocabulary.prompts(observations), vocabulary.responses(observations)[0][:, :said]])
        new = torch.from_numpy(words[:, begun:])
        numbers = words.size * 2 * decoder.layers * decoder.width
        self._reading = None
        with torch.no_grad():
            if numbers <= KEPT and new.numel() <= WORDS:
                hidden, cache = decoder(weights, new, cache)
                last, self._reading = hidden[:, -1], _Reading(observations, said, cache)
            else:
                whole, size = torch.from_numpy(words), max(1, WORDS // words.shape[1])
                last = torch.cat([decoder(weights, part)[0][:, -1] for part in whole.split(size)])
            found = action_logits(weights, last, torch.from_numpy(legal))
        return found.double().numpy()  # type: ignore[no-any-return]

    def _continued(self, observations: np.ndarray, said: int) -> tuple[Cache | None, int]:
        """Return the cache of the last observations and its words where these continue them, else None and 0."""
        reading = getattr(self, "_reading", None)
        if reading is None or reading.said >= said:
            return None, 0
        begun = observations.copy()
        begun[:, self.setting.prompt_length + reading.said :] = 0
        count = len(reading.observations)
        _, number = np.unique(np.vstack([reading.observations, begun]), axis=0, return_inverse=True)
        number = number.ravel()
        row = np.full(number.max() + 1, -1)
        row[number[:count]] = np.arange(count)
        parents = torch.from_numpy(row[number[count:]])
        if bool((parents < 0).any()):
            return None, 0
        if not torch.equal(parents, torch.arange(count)):
            cache = [(keys[parents], values[parents]) for keys, values in reading.cache]
        else:
            cache = reading.cache
        return cache, Vocabulary(self.setting).prompt_words + reading.said

    @property
    def _decoder(self) -> tuple[Decoder, Weights]:
        if not hasattr(self, "_read_by"):
            decoder = Decoder.of(self.model)
            self._read_by = decoder, decoder.weights(torch.from_numpy(self.weights))
        return self._read_by

    def complete(self, observations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample whole responses, word by word with the keys and values of what was read.

        Args:
            observations: integer (n, tokens), of which the prompts are read.
            rng: samples words.

        Returns:
            Tokens, int64 (n, horizon); what the environment replies does not stand between them.
        """
        setting, model = self.setting, self.model
        words = torch.from_numpy(Vocabulary(setting).prompts(observations))
        said, cache = np.zeros((len(words), setting.horizon), np.int64), None
        with torch.no_grad():
            for step in range(setting.horizon):
                output = model(words, past_key_values=cache, use_cache=True, logits_to_keep=1)
                probs = softmax(output.logits[:, -1, 1 : setting.num_actions + 1].double().numpy())
                threshold = rng.random(len(words))[:, None]
                said[:, step] = np.minimum((probs.cumsum(axis=1) <= threshold).sum(axis=1), setting.num_actions - 1) + 1
                words, cache = torch.from_numpy(said[:, step : step + 1]), output.past_key_values
        return said


def action_logits(weights: Weights, hidden: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Return the logits of the words that are actions, where one of them may follow.

    Args:
        weights: of a model, by name.
        hidden: (n, width), what its decoder says.
        legal: bool (n, num_actions); where it is False the logit is to be ignored.

    Returns:
        (n, num_actions), with what the model appends to its hidden states taken into account.
    """
    last = weights["lm_head.weight"][1 : legal.shape[1] + 1]
    marks = torch.cat([torch.ones_like(hidden[:, :1]), torch.zeros_like(hidden[:, :1]), (~legal).to(hidden)], dim=1)
    return torch.cat([hidden, marks], dim=1)[:, : last.shape[1]] @ last.T
