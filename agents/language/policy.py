"""Causal language models as policies."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from theorybench.agents.language.decoding import decoder_of
from theorybench.agents.language.decoding.decoder import Decoder, DecoderWeights
from theorybench.agents.language.models import SHAPES, setting_of_config
from theorybench.agents.language.reader import WORDS, Reader
from theorybench.agents.language.vocabulary import Vocabulary, setting_of
from theorybench.agents.policies.networks.tokens import Attention
from theorybench.envs.core.errors import ParameterError
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
        policy.read_by(decoder_of(model), setting_of_config(model.config))
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

    def attention(self, observations: np.ndarray) -> list[Attention]:
        """Return the attention of the last word, by layer, to the prompt's words, the mark and the response."""
        decoder, weights = decoder_of(self.model), self._reader[1]

        def look(words: torch.Tensor) -> list[torch.Tensor]:
            notes: list[torch.Tensor] = []
            decoder(weights, words, notes=notes)
            return notes

        return looked(self.setting, observations, look)

    def read_by(self, decoder: Decoder, setting: Setting) -> None:
        """Read with a decoder that is there, of this model's shape and size."""
        self._decoder, self._setting = decoder, setting

    @property
    def _reader(self) -> tuple[Reader, DecoderWeights]:
        if not hasattr(self, "_read_by"):
            if not hasattr(self, "_decoder"):
                self.read_by(decoder_of(self.model), self.setting)
            weights = self._decoder.weights(torch.from_numpy(self.weights))
            self._read_by = Reader.of(Vocabulary(self.setting), self._decoder, weights), weights
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

    def attention(self, observations: np.ndarray) -> list[Attention]:
        """Return the attention of the last word, by layer, to the prompt's words, the mark and the response."""
        used = self.model.config._attn_implementation

        def look(words: torch.Tensor) -> list[torch.Tensor]:
            output = self.model(words.to(self.model.device), output_attentions=True, use_cache=False)
            return [layer[:, :, -1].float().cpu() for layer in output.attentions]

        try:
            self.model.set_attn_implementation("eager")  # the others never make the weights
            return looked(self.setting, observations, look)
        finally:
            self.model.set_attn_implementation(used)

    def _read(self, words: torch.Tensor, cache: Any) -> tuple[torch.Tensor, Any]:
        output = self.model(words.to(self.model.device), past_key_values=cache, use_cache=True, logits_to_keep=1)
        return output.logits[:, -1].float().cpu(), output.past_key_values

    @staticmethod
    def _choose(cache: Any, rows: torch.Tensor) -> Any:
        cache.batch_select_indices(rows)
        return cache


@torch.no_grad()
def looked(
    setting: Setting, observations: np.ndarray, look: Callable[[torch.Tensor], list[torch.Tensor]]
) -> list[Attention]:
    """Return what a model's last word attends to, by layer.

    Args:
        setting: the setting.
        observations: (n, tokens).
        look: words, int64 (m, words), to the attention of the last one, (m, heads, words) for each layer.
    """
    vocabulary = Vocabulary(setting)
    said, lengths = vocabulary.responses(observations)
    words, layers = np.hstack([vocabulary.prompts(observations), said]), list[np.ndarray]()
    for length in np.unique(lengths):
        (rows,), end = np.nonzero(lengths == length), vocabulary.prompt_words + int(length)
        for part in np.array_split(rows, -(-rows.size * end // WORDS)):
            for number, found in enumerate(look(torch.from_numpy(words[part, :end]))):
                if number == len(layers):
                    layers.append(np.zeros((len(words), found.shape[1], words.shape[1])))
                layers[number][part, :, :end] = found.double().numpy()
    return [Attention(f"layer {number + 1}", held) for number, held in enumerate(layers)]


def legal_actions(setting: Setting, observations: np.ndarray) -> np.ndarray:
    """Return which actions are legal after observations (n, tokens), bool (n, num_actions); all where none is."""
    if not setting.has_action_mask:
        return np.ones((len(observations), setting.num_actions), bool)
    legal = setting.reference_probs(observations) > 0
    return legal | ~legal.any(axis=1, keepdims=True)


def masked_softmax(logits: torch.Tensor, legal: np.ndarray | None = None) -> np.ndarray:
    """Return the probabilities of legal actions, float64 (n, num_actions); None where all are."""
    if legal is not None and not legal.all():
        logits = torch.where(torch.from_numpy(legal), logits, -torch.inf)
    probs: np.ndarray = torch.softmax(logits.double(), dim=-1).numpy()
    return probs


def action_logits(
    weights: DecoderWeights, hidden: torch.Tensor, legal: torch.Tensor | None = None, where: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the logits of the words that are actions, where one of them may follow.

    Args:
        weights: of a model.
        hidden: (..., width), what its decoder says.
        legal: bool (..., num_actions); where it is False the logit is to be ignored. None where all are legal.
        where: int64 (...), the row of `hidden` (rows, width) that each one is of; or None.

    Returns:
        (..., num_actions), with what the model appends to its hidden states taken into account.
    """
    head = weights.head
    logits = functional.linear(hidden, head.rows, head.bias)
    if where is not None:
        logits = functional.embedding(where, logits)
    return logits if head.illegal is None or legal is None else logits + (~legal).to(hidden) @ head.illegal.T
