"""The one idea: a Setting is written once, as validated parameters and pure, batched dynamics.

The single environment, the native vector environment, the prompts and judge of language-model trainers and the
renderings are derived from it.
"""

import dataclasses
import functools
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from theorybench.envs.core.arrays import smallest_integer
from theorybench.envs.core.dynamics import Sizes
from theorybench.envs.core.errors import OptionError, ParameterError
from theorybench.envs.core.streams import PROMPT_LIMIT, Stream, root_key
from theorybench.envs.core.validation import FIRST_SCORING_INSTANCE, validate_fields
from theorybench.envs.core.views import Local, View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from theorybench.envs.core.environments.render import Scene

State = Any  # a NamedTuple of arrays with leading axis n, one of whose fields is `prompt`


class NoTables(NamedTuple):
    """The tables of a setting whose dynamics need none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting(ABC):
    """Parameters and dynamics of one family of Markov decision processes with a terminal judgement.

    Subclasses are frozen dataclasses whose fields are declared with `theorybench.envs.core.validation` and whose
    values are JSON. Dynamics are pure and batched: `initial`, `transition`, `observe` and `action_mask` take and
    return a State, a NamedTuple of arrays with leading axis n (one field is `prompt`, int64). They use integer
    arithmetic, gathers, comparisons and + - x / on `tables`, never exp, log or a floating reduction, so that NumPy
    and torch give the same bits.

    Attributes:
        version: raised whenever dynamics change.
        track: "reasoning", "curriculum" or "preference": the table of the leaderboard it counts in.
        feedback: "reward"; "preference" where an action is a pair of responses and the reward is +1/2 if the first is
            better, else -1/2; "label" where the reward is +1/2 for a response that is labelled good, else -1/2.
        policy_view: the view of the observation that tabular agents use unless told otherwise.
        reference_depends_on: what the reference policy depends on: "prefix", "state" or "position".
        state_in_prompt: whether the prompt's tokens change with the actions, because they show what is left of it.
    """

    version: ClassVar[int] = 0
    track: ClassVar[str] = "reasoning"
    feedback: ClassVar[str] = "reward"
    policy_view: ClassVar[str] = "prefix"
    reference_depends_on: ClassVar[str] = "prefix"
    state_in_prompt: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Validate the parameters.

        Raises:
            ParameterError: names the parameter, its value and its range.
        """
        validate_fields(self)
        self.validate()

    def validate(self) -> None:  # noqa: B027
        """Check parameters against each other; raise ParameterError."""

    # What a setting declares.

    @property
    @abstractmethod
    def sizes(self) -> Sizes:
        """Numbers of actions, symbols, tokens, steps, prompts and stages; make it a cached property."""

    @property
    def prompt_symbols(self) -> range:
        """The symbols that prompts are made of."""
        return range(self.num_actions if self.num_symbols > self.num_actions else 0, self.num_symbols)

    @property
    def local(self) -> Local | None:
        """What the view "local" reads; None where the setting has no such view."""
        return None

    def state_view(self) -> View:
        """Return the view "state" of a setting whose states can be listed.

        Raises:
            ParameterError: this setting has no such view.
        """
        raise ParameterError("view", "state", f"a view that {type(self).__name__} has")

    # Dynamics.

    @functools.cached_property
    def tables(self) -> Any:
        """The instance: a NamedTuple of NumPy arrays, hashed into the fingerprint."""
        return NoTables()

    @abstractmethod
    def initial(self, rng: Stream, n: int, *, prompts: Any = None, stage: Any = None, hint: Any = None) -> State:
        """Begin n episodes.

        Args:
            rng: streams of the n episodes.
            n: number of episodes.
            prompts: int64 (n,) prompt indices, or None to draw them with `draw_prompts`.
            stage: int64 (n,) in 1..num_stages, or None for the full task.
            hint: int64 (n,) in 0..max_hint, or None for no hint.
        """

    @abstractmethod
    def transition(self, state: State, actions: Any, rng: Stream) -> tuple[State, Any, Any]:
        """Move n episodes by one action each.

        Args:
            state: the State.
            actions: int64 (n,), or (n, 2) for pairs; every value of the action space.
            rng: streams of this step.

        Returns:
            The next State, rewards float64 (n,), terminated bool (n,).
        """

    @abstractmethod
    def observe(self, state: State) -> Any:
        """Return tokens (n, prompt_length + response_length) of type `observation_dtype`, 0 being padding."""

    def action_mask(self, state: State) -> Any:
        """Return legal actions, bool (n, num_actions), or None where all always are.

        The reference's support is the legal actions: what policies that are restricted to them rely on.
        """
        return None

    def validate_options(self, stage: np.ndarray | None, hint: np.ndarray | None) -> None:
        """Check stages and hints against each other: each hint is shorter than its stage, unless overridden.

        Raises:
            OptionError: a hint that leaves nothing to do.
        """
        if hint is None:
            return
        steps = np.broadcast_to(self.num_stages if stage is None else stage, hint.shape)
        for h, s in zip(hint[hint >= steps][:1], steps[hint >= steps][:1], strict=True):
            raise OptionError("hint", int(h), f"0..{s - 1} at stage {s}", "Name a later stage or a shorter hint.")

    def draw_prompts(self, rng: Stream) -> Any:
        """Draw one prompt index for each episode, int64 (n,), with draw 15 of the step."""
        return rng.integers(15, self.num_prompts or PROMPT_LIMIT)

    # Policies that are public.

    @abstractmethod
    def reference_probs(self, observations: np.ndarray) -> np.ndarray:
        """The base model pi_ref: observations (n, tokens) to float64 (n, num_actions)."""

    def initial_probs(self, observations: np.ndarray) -> np.ndarray:
        """Where agents start and what offline data is drawn from; the reference unless overridden."""
        return self.reference_probs(observations)

    def features(self, observations: np.ndarray) -> np.ndarray:
        """Features phi(x, y) of the linear-softmax class, float64 (n, num_actions, d).

        Raises:
            ParameterError: this setting has no linear class.
        """
        raise ParameterError("policy", "linear", f"a view, since {type(self).__name__} has no features")

    def symbol_name(self, symbol: int) -> str:
        """Name a symbol in renderings; its number unless overridden."""
        return str(symbol)

    def render_text(self, scene: "Scene") -> str:
        """Describe an environment in lines of at most 80 columns (`ansi`); its tokens unless overridden."""
        from theorybench.envs.core.environments.render import token_text

        return token_text(self, scene)

    def render_picture(self, figure: Any, scene: "Scene") -> None:
        """Draw an environment on an empty matplotlib Figure and set its size (`rgb_array`).

        It shows token boxes unless overridden.
        """
        from theorybench.envs.core.environments.render import token_picture

        token_picture(self, figure, scene)

    def policy_picture(self, policies: Mapping[str, Any]) -> "Figure":
        """Draw policies side by side, where the setting has a picture of what a policy does.

        Args:
            policies: any objects with `probs`, by name.

        Returns:
            A matplotlib Figure; `theorybench.envs.core.environments.render.figure_svg` writes it as SVG.

        Raises:
            ParameterError: this setting has no such picture.
        """
        raise ParameterError("setting", type(self).__name__, "one that draws policies, like TreeMarkovChain")

    # Derived.

    def prompt_tokens(self, prompts: Any) -> np.ndarray:
        """Return the tokens of prompts, as language-model trainers take them.

        Args:
            prompts: int (n,) prompt indices.

        Returns:
            Integers (n, prompt_length).

        Raises:
            OptionError: an index that is no prompt.
        """
        from theorybench.envs.core.environments.language import prompt_tokens

        return prompt_tokens(self, prompts)

    def judge(
        self, prompts: Any, completions: Any, *, seed: int = 0, stage: int | None = None, hint: int | None = None
    ) -> np.ndarray:
        """Return the rewards of completions: the verifier (or the labeller of pairs) of language-model trainers.

        Args:
            prompts: int (n,) prompt indices.
            completions: n token sequences, or n pairs of them where actions are pairs; token t is action t - 1. What
                follows the end of the episode is ignored; a completion that stops early or leaves the action tokens
                earns nothing more. The environment's own replies stand not in the completions.
            seed: of the label noise, where there is any.
            stage: rung of the ladder; None for the full task.
            hint: response tokens that are given and stand not in the completions.

        Returns:
            float64 (n,).

        Raises:
            OptionError: a prompt, stage or hint that the setting does not have.
            ParameterError: completions that are no token sequences.
        """
        from theorybench.envs.core.environments.language import judge

        return judge(self, prompts, completions, seed=seed, stage=stage, hint=hint)

    @property
    def num_actions(self) -> int:
        """See `Sizes`."""
        return self.sizes.num_actions

    @property
    def num_symbols(self) -> int:
        """See `Sizes`."""
        return self.sizes.num_symbols

    @property
    def prompt_length(self) -> int:
        """See `Sizes`."""
        return self.sizes.prompt_length

    @property
    def response_length(self) -> int:
        """See `Sizes`."""
        return self.sizes.response_length

    @property
    def horizon(self) -> int:
        """See `Sizes`."""
        return self.sizes.horizon

    @property
    def num_prompts(self) -> int | None:
        """See `Sizes`."""
        return self.sizes.num_prompts

    @property
    def num_stages(self) -> int:
        """See `Sizes`."""
        return self.sizes.num_stages

    @property
    def max_hint(self) -> int:
        """See `Sizes`."""
        return self.sizes.max_hint

    @property
    def num_reply_tokens(self) -> int:
        """See `Sizes`."""
        return self.sizes.num_reply_tokens

    @property
    def name(self) -> str:
        """Class name and version."""
        return f"{type(self).__name__}-v{self.version}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as JSON values."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of name, version, parameters and the instance's arrays: 16 hexadecimal digits."""
        digest = hashlib.sha256(json.dumps([self.name, self.parameters], sort_keys=True).encode())
        for array in self.tables:
            digest.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    @functools.cached_property
    def world(self) -> int:
        """The key from which the content of prompts is made."""
        return root_key(0, "world", self.fingerprint)

    @property
    def split(self) -> str:
        """What the instance is for: "canonical", "tuning" (below 10,000) or "scoring"."""
        instance = getattr(self, "instance", "canonical")
        if instance == "canonical":
            return "canonical"
        return "tuning" if int(instance) < FIRST_SCORING_INSTANCE else "scoring"

    @property
    def observation_dtype(self) -> np.dtype:
        """The smallest integer type that holds every token."""
        return smallest_integer(self.num_symbols)

    def on(self, array: Any) -> Any:
        """Return `tables` on the back end and device of an array (copied once)."""
        if isinstance(array, np.ndarray):
            return self.tables
        import torch

        cache = self.__dict__.setdefault("_tables_on", {})
        if array.device not in cache:
            cache[array.device] = type(self.tables)(*(torch.as_tensor(t, device=array.device) for t in self.tables))
        return cache[array.device]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as parameters, so that workers rebuild tables instead of receiving them."""
        return functools.partial(type(self), **self.parameters), ()
