"""A setting as a language task: prompts as text, rewards for completions, and data sets, all metered.

They come from the vector environments that an agent is given: each reward, label or comparison is an episode there and
counts against the budget.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from theorybench.agents.api.budget import batch_of
from theorybench.agents.api.rollout import Episodes, collect, sampler, waves
from theorybench.agents.language.turns import refuse_turns
from theorybench.agents.language.vocabulary import Vocabulary
from theorybench.envs.core.environments.batch import Batch
from theorybench.envs.core.environments.language import answer, begin, padded
from theorybench.envs.core.errors import ParameterError
from theorybench.envs.core.policy import Policy, SettingPolicy
from theorybench.envs.core.streams import PROMPT_LIMIT


class LanguageTask:
    """The language task of vector environments.

    Args:
        envs: of TheoryBench, possibly metered; seeded here.
        seed: of their streams, and of the prompts and responses that are drawn here.

    Attributes:
        setting: the setting.
        vocabulary: its words.

    A completion contains the actions only, not the environment's replies; where the prompt contains the state it is a
    plan, made before the first action. `theorybench.agents.language.turns` writes such episodes as a model reads them.
    """

    def __init__(self, envs: Any, seed: int) -> None:
        self._batch: Batch = batch_of(envs)
        if self._batch.device is not None:
            raise ParameterError("backend", "torch", "'numpy' for language tasks", "Make the environments without it.")
        self.setting = self._batch.setting
        self.vocabulary = Vocabulary(self.setting)
        self._batch.seed(seed)
        self._rng = np.random.default_rng([seed, 1])

    def draw(self, count: int) -> np.ndarray:
        """Draw prompt indices, int64 (count,)."""
        return self._rng.integers(self.setting.num_prompts or PROMPT_LIMIT, size=count)

    def prompts(self, indices: Any, *, stage: int | None = None, hint: int | None = None) -> list[str]:
        """Return prompts as text; the words of a hint follow the mark, and the response continues them.

        Args:
            indices: int (n,), prompt indices.
            stage: of the ladder; None for the full task.
            hint: response words that are given.

        Raises:
            OptionError: a prompt, stage or hint that the setting does not have.
        """
        observations = begin(self.setting, indices, 0, stage, hint).observe()
        words, (responses, said) = self.vocabulary.prompts(observations), self.vocabulary.responses(observations)
        rows = zip(words, responses, said, strict=True)
        return [self.vocabulary.text([*prompt, *response[:count]]) for prompt, response, count in rows]

    def rewards(
        self, indices: Any, completions: Sequence[Any], *, stage: int | None = None, hint: int | None = None
    ) -> np.ndarray:
        """Judge completions, each an episode of the budget: float64 (n,).

        Args:
            indices: int (n,), prompt indices.
            completions: n sequences of word numbers, or texts; in preference settings n pairs of them. A response ends
                at a word that is no action, or at the end of the text.
            stage: of the ladder; None for the full task.
            hint: response words that are given, and are not part of the completions.

        Raises:
            BudgetExhausted: fewer episodes are left than a wave of environments plays; that wave has not begun.
            ParameterError: completions that are neither numbers nor words, or not one for each prompt.
        """
        indices = np.asarray(indices, np.int64)
        if len(completions) != len(indices):
            raise ParameterError("completions", len(completions), f"{len(indices)}, one for each prompt")
        pair = (2,) if self._batch.pairs else ()
        tokens, rewards = padded(self._numbers(completions), (len(indices), *pair)), np.empty(len(indices))
        self._batch.forget_options()  # what is not named would stay as it was
        for numbers, options in waves(self._batch, len(indices), prompts=indices, stage=stage, hint=hint):
            self._batch.reset(options)
            rewards[numbers] = answer(self._batch, tokens[numbers], options.rows)
        return rewards

    def _numbers(self, completions: Sequence[Any]) -> Sequence[Any]:
        """Read texts, or pairs of them; leave numbers as they are."""
        if len(completions) and isinstance(completions[0], str):
            return [self.vocabulary.tokens(text) for text in completions]
        if self._batch.pairs and len(completions) and isinstance(completions[0][0], str):
            return [[self.vocabulary.tokens(text) for text in pair] for pair in completions]
        return completions

    def episodes(self, count: int, policy: Policy | None = None, **options: Any) -> Episodes:
        """Play episodes of a policy, by default the one that learning starts from; all of them are charged.

        Args:
            count: of episodes.
            policy: any object with `probs`.
            options: prompts, stage and hint, as `rollout` takes them.
        """
        actor = SettingPolicy(self.setting, "initial") if policy is None else policy
        return collect(self._batch, sampler(self._batch, actor, self._rng), count, **options)

    def texts(self, episodes: Episodes) -> tuple[list[str], list[Any]]:
        """Write the prompts and the completions of episodes; in preference settings completions are pairs.

        Raises:
            ParameterError: the environment replies, or its prompt contains the state; see `turns`.
        """
        refuse_turns(self.setting)
        write = self.vocabulary.text
        prompts = [write(row) for row in self.vocabulary.prompts(episodes.observations[:, 0])]
        rows = zip(episodes.actions + 1, episodes.lengths, strict=True)
        if self._batch.pairs:
            return prompts, [tuple(write(side) for side in words[:length].T) for words, length in rows]
        return prompts, [write(words[:length]) for words, length in rows]

    def pairs(self, count: int, policy: Policy | None = None) -> dict[str, list[str]]:
        """Return preference pairs with the columns `prompt`, `chosen` and `rejected`.

        In preference settings each costs an episode. In others two responses to a prompt are drawn, which costs two;
        where both earn the same there is nothing to prefer, and the pair is left out.

        Args:
            count: of pairs that are drawn.
            policy: gives the responses; by default the one that learning starts from.

        Raises:
            ParameterError: as `texts` does, before anything is charged.
        """
        refuse_turns(self.setting)
        if self._batch.pairs:
            episodes = self.episodes(count, policy)
            (prompts, pairs), margins = self.texts(episodes), episodes.rewards
        else:
            episodes = self.episodes(2 * count, policy, prompts=np.repeat(self.draw(count), 2))
            (prompts, said), margins = self.texts(episodes), episodes.rewards[::2] - episodes.rewards[1::2]
            prompts, pairs = prompts[::2], list(zip(said[::2], said[1::2], strict=True))
        each = zip(prompts, pairs, margins, strict=True)
        rows = [(prompt, *(pair if margin > 0 else pair[::-1])) for prompt, pair, margin in each if margin]
        return {name: [row[i] for row in rows] for i, name in enumerate(("prompt", "chosen", "rejected"))}

    def labels(self, count: int, policy: Policy | None = None) -> dict[str, list[Any]]:
        """Return responses with the columns `prompt`, `completion` and `label`: whether it earned anything, or won.

        Each costs an episode; in preference settings an episode gives two.

        Raises:
            ParameterError: as `texts` does, before anything is charged.
        """
        refuse_turns(self.setting)
        episodes = self.episodes(count, policy)
        prompts, said = self.texts(episodes)
        good = episodes.rewards > 0
        if self._batch.pairs:
            prompts, said = [x for x in prompts for _ in "ab"], [text for pair in said for text in pair]
            good = np.stack([good, ~good], axis=1).ravel()
        return {"prompt": prompts, "completion": said, "label": good.tolist()}

    def demonstrations(self, count: int, policy: Policy | None = None, *, good: bool = True) -> dict[str, list[str]]:
        """Return responses with the columns `prompt` and `completion`; where `good`, only those that earned something.

        Each costs an episode.
        """
        rows = self.labels(count, policy)
        kept = [i for i, label in enumerate(rows["label"]) if label or not good]
        return {name: [rows[name][i] for i in kept] for name in ("prompt", "completion")}
