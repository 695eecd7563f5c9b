"""Causal language models as policies."""

import copy
from typing import Any

import numpy as np
import torch

from theorybench.agents.language.decoder import Decoder, Weights
from theorybench.agents.language.models import SHAPES, setting_of_config
from theorybench.agents.language.reader import Reader
from theorybench.agents.language.vocabulary import Vocabulary, setting_of
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.numerics import softmax
from theorybench.envs.core.policy import Policy
from theorybench.envs.core.setting import Setting


class LanguagePolicy(Policy):
    """A model of a setting as a policy: the distribution of its next word, over the words that are legal actions.

    Keys and values of the last observations are kept: if all new observations continue them, as in a rollout or in an
    oracle's forward enumeration, only the new words are read.

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
        found = [name for name, (config, _, _) in SHAPES.items() if isinstance(model.config, config)]
        if not found:
            name, hint = type(model).__name__, "For any other causal model: CausalPolicy(model, setting)."
            raise ParameterError("model", name, "a model of build, load or pretrained", hint)
        weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach().float().cpu().numpy()
        policy = cls(found[0], model.config.to_dict(), weights.copy())
        decoder = Decoder.of(model)
        own = decoder.weights(torch.from_numpy(policy.weights))
        policy._read_by = Reader.of(Vocabulary(setting_of_config(model.config)), decoder, own), own
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
        reader, weights = self._reader
        legal = legal_actions(self.setting, observations)
        return masked_softmax(action_logits(weights, reader(observations), torch.from_numpy(legal)), legal)

    @property
    def _reader(self) -> tuple[Reader, Weights]:
        if not hasattr(self, "_read_by"):
            decoder = Decoder.of(self.model)
            weights = decoder.weights(torch.from_numpy(self.weights))
            self._read_by = Reader.of(Vocabulary(self.setting), decoder, weights), weights
        return self._read_by


class CausalPolicy(Policy):
    """Any causal language model of `transformers` as a policy: its next word, over the words that are legal actions.

    Args:
        model: with the word numbers of the setting's tokenizer; it is not copied, so training changes the policy.
        setting: the setting.

    Raises:
        ParameterError: a model with fewer words than the setting has.
    """

    depends_on = "prefix"

    def __init__(self, model: Any, setting: Setting | str) -> None:
        self.model, self.setting = model, setting_of(setting)
        vocabulary = Vocabulary(self.setting)
        if model.config.vocab_size < vocabulary.size:
            raise ParameterError("model", model.config.vocab_size, f"a model of {vocabulary.size} words or more")
        self._vocabulary = vocabulary

    def probs(self, observations: np.ndarray) -> np.ndarray:
        """Return the probabilities of actions, float64 (n, num_actions)."""
        # The model may have been trained since: what is kept serves the lengths of one call alone.
        reader = Reader(self._vocabulary, self._read, self._choose, 2**10)
        logits = reader(observations)[:, 1 : self.setting.num_actions + 1]
        return masked_softmax(logits, legal_actions(self.setting, observations))

    def _read(self, words: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        output = self.model(words.to(self.model.device), past_key_values=cache, use_cache=True, logits_to_keep=1)
        return output.logits[:, -1].float().cpu(), output.past_key_values

    @staticmethod
    def _choose(cache: Any, rows: torch.Tensor) -> Any:
        cache.batch_select_indices(rows)
        return cache


def legal_actions(setting: Setting, observations: np.ndarray) -> np.ndarray:
    """Return which actions are legal after observations (n, tokens), bool (n, num_actions); all where none is."""
    if not setting.has_action_mask:
        return np.ones((len(observations), setting.num_actions), bool)
    legal = setting.reference_probs(observations) > 0
    return legal | ~legal.any(axis=1, keepdims=True)


def masked_softmax(logits: torch.Tensor, legal: np.ndarray) -> np.ndarray:
    """Return the probabilities of legal actions, float64 (n, num_actions)."""
    return softmax(np.where(legal, logits.double().numpy(), -np.inf))


def action_logits(weights: Weights, hidden: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
    """Return the logits of the words that are actions, where one of them may follow.

    Args:
        weights: of a model, by name.
        hidden: (..., width), what its decoder says.
        legal: bool (..., num_actions); where it is False the logit is to be ignored.

    Returns:
        (..., num_actions), with what the model appends to its hidden states taken into account.
    """
    last = weights["lm_head.weight"][1 : legal.shape[-1] + 1]
    one = torch.ones_like(hidden[..., :1])
    marks = torch.cat([hidden, one, torch.zeros_like(one), (~legal).to(hidden)], dim=-1)
    return marks[..., : last.shape[1]] @ last.T
