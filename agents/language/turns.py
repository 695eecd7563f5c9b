"""Episodes of several turns as rows of words, for trainers that know prompts and completions.

A turn is an action and what comes back. There are two kinds:

1. *The environment replies* between actions (`setting.num_reply_tokens`). An episode is one row: its prompt, then
   actions and replies as they came. Replies have the mask 0, so that nobody learns to say them.
2. *The prompt moves* (`setting.state_in_prompt`): each action answers a prompt of its own, the state as it then is. An
   episode is a row for each action: the state, and one word. All rows of an episode earn what it earned.

In both a model says the next word after exactly the words that `LanguagePolicy.probs` reads for that observation, so
that what is sampled, what is trained and what oracles score are one law. Written as one long text, with the new states
as replies, episodes of the second kind would be read with their whole past before every action: that is another policy,
one that the observation does not determine.

A group of episodes is a group of rows at every step. All rows of an episode carry its return, also those after its end
(with the mask 0), so that means and deviations within groups are those of the episodes.
"""

from typing import NamedTuple

import numpy as np

from theorybench.agents.api.rollout import Episodes
from theorybench.agents.language.vocabulary import Vocabulary
from theorybench.envs.core.setting import Setting


class Rows(NamedTuple):
    """Rows of words, as lists: numbers of words differ."""

    prompts: list[list[int]]  # of each row, by number
    completions: list[list[int]]  # what follows it
    masks: list[list[int]]  # of each word of a completion: 1 for an action that was taken, else 0
    log_probs: list[list[float]]  # of each word of a completion in nats; 0 where the mask is 0
    rewards: list[float]  # of each row's episode


def has_turns(setting: Setting) -> bool:
    """Return whether an episode is more than one prompt and one completion."""
    return setting.state_in_prompt or setting.num_reply_tokens > 0


def rows_of_episode(setting: Setting) -> int:
    """Return the rows that each episode fills."""
    return setting.horizon if setting.state_in_prompt else 1


def rows(setting: Setting, episodes: Episodes, group_size: int = 1) -> Rows:
    """Write episodes of single responses as rows.

    Args:
        setting: the setting.
        episodes: groups lie consecutively.
        group_size: episodes that share a prompt.

    Returns:
        Rows, group by group; where the prompt moves step by step within each group, so that any `group_size`
        consecutive ones from the first on belong to one group at one step.
    """
    vocabulary, count, horizon = Vocabulary(setting), len(episodes), setting.horizon
    taken = episodes.taken
    if setting.state_in_prompt:
        # After its end an episode shows its first step again, which no loss counts.
        step = np.where(taken, np.arange(horizon), 0)
        episode = np.arange(count).reshape(-1, 1, group_size)  # (groups, 1, members) against (steps, 1)
        order = np.broadcast_to(episode, (len(episode), horizon, group_size)).ravel()
        steps = np.broadcast_to(np.arange(horizon)[:, None], (len(episode), horizon, group_size)).ravel()
        shown, mask = step[order, steps], taken[order, steps]
        return Rows(
            vocabulary.prompts(episodes.observations[order, shown]).tolist(),
            (episodes.actions[order, shown] + 1)[:, None].tolist(),
            mask.astype(int)[:, None].tolist(),
            np.where(mask, episodes.log_probs[order, shown], 0.0)[:, None].tolist(),
            episodes.rewards[order].tolist(),
        )
    each, last, turn = np.arange(count), episodes.lengths - 1, 1 + setting.num_reply_tokens
    words, said = vocabulary.responses(episodes.observations[each, last])
    words[each, said] = episodes.actions[each, last] + 1
    masks: np.ndarray = np.zeros(words.shape, np.int64)
    log_probs: np.ndarray = np.zeros(words.shape)
    masks[:, : horizon * turn : turn], log_probs[:, : horizon * turn : turn] = taken, episodes.log_probs
    cut = said + 1
    return Rows(
        vocabulary.prompts(episodes.observations[:, 0]).tolist(),
        [row[:length] for row, length in zip(words.tolist(), cut, strict=True)],
        [row[:length] for row, length in zip(masks.tolist(), cut, strict=True)],
        [row[:length] for row, length in zip(log_probs.tolist(), cut, strict=True)],
        episodes.rewards.tolist(),
    )
