"""A causal language model as a policy: what oracles score, and what roll-outs sample from."""

import copy
from typing import Any

import numpy as np
import torch

from theorybench.agents.language.models import SHAPES, setting_of_config
from theorybench.agents.language.vocabulary import Vocabulary
from theorybench.agents.softmax import softmax
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.setting import Setting

#: Words that are read at a time, to bound memory.
WORDS = 2**16


class LanguagePolicy(Policy):
    """The next word of a model of a setting, among the words that are legal actions.

    Equal observations are read once, those of equal length together, without padding.

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
        return cls(shape, model.config.to_dict(), weights.copy())

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
            self._setting = setting_of_config(self.model.config)
        return self._setting

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Return the probabilities of actions, float64 (n, num_actions)."""
        setting = self.setting
        distinct, place = np.unique(observations, axis=0, return_inverse=True)
        logits = next_word_logits(self.model, setting, distinct)
        if type(setting).action_mask is not Setting.action_mask:
            legal = setting.reference_probs(distinct) > 0
            logits = np.where(legal | ~legal.any(axis=1, keepdims=True), logits, -np.inf)
        return softmax(logits)[place.ravel()]

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


def next_word_logits(model: Any, setting: Setting, observations: np.ndarray) -> np.ndarray:
    """Return what a causal model says of each action after each observation, float64 (n, num_actions).

    Args:
        model: any causal model whose words are numbered as those of the setting's tokenizer.
        setting: the setting.
        observations: integer (n, tokens).
    """
    vocabulary = Vocabulary(setting)
    prompts, (responses, said) = vocabulary.prompts(observations), vocabulary.responses(observations)
    logits = np.empty((len(observations), setting.num_actions))
    for length in np.unique(said):
        here = np.flatnonzero(said == length)
        words = np.hstack([prompts[here], responses[here, :length]])
        size = max(1, WORDS // words.shape[1])
        for start in range(0, len(here), size):
            part = torch.from_numpy(words[start : start + size]).to(model.device)
            with torch.no_grad():
                output = model(part, logits_to_keep=1, use_cache=False)
            found = output.logits[:, -1, 1 : setting.num_actions + 1]
            logits[here[start : start + size]] = found.double().cpu().numpy()
    return logits
