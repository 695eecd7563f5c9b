"""What a setting declares: the sizes of its observations and episodes."""

from typing import NamedTuple


class Sizes(NamedTuple):
    """The sizes that a setting declares; each stands on the setting under the same name, too.

    Attributes:
        num_actions: the first symbols of the vocabulary.
        num_symbols: size of the vocabulary without padding: actions first, then prompt symbols that are not actions.
        prompt_length: prompt tokens in an observation.
        response_length: response tokens in an observation; 0 where the prompt alone shows the state.
        horizon: the largest number of actions in an episode.
        num_prompts: None where any integer >= 0 is a prompt.
        num_stages: how many easier sub-tasks there are, up to the full task, which is the last.
        max_hint: the largest number of response tokens that `options["hint"]` may give; 0 where hints mean nothing.
        num_reply_tokens: tokens that the environment appends to the response after each action, as a tool does.
    """

    num_actions: int
    num_symbols: int
    prompt_length: int
    response_length: int
    horizon: int
    num_prompts: int | None = None
    num_stages: int = 1
    max_hint: int = 0
    num_reply_tokens: int = 0
