"""The checkers find what they look for: each mutant of a sound setting breaks one promise, and is told so."""

import dataclasses
import functools
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import theorybench as tb
from theorybench.envs.core.checks.setting import check_setting, check_vector_env
from theorybench.envs.core.environments.vector import VectorEnvironment
from theorybench.envs.core.errors import CheckFailed, OptionError, ParameterError, TheoryBenchError
from theorybench.envs.core.registry import load_module
from theorybench.envs.core.validation import integer

TOYS = load_module(str(Path(__file__).parents[1] / "toys.py"))
Copy, TwoArms = TOYS.Copy, TOYS.TwoArms
MUTANTS = {}


def resized(**sizes):
    """Give the sizes of Copy with some changed."""
    return property(lambda self: Copy.sizes.func(self)._replace(**sizes))


def mutant(message):
    """Collect a broken subclass and what the checker must say about it."""

    def collect(kind):
        globals()[kind.__name__] = kind = dataclasses.dataclass(frozen=True, kw_only=True)(kind)
        MUTANTS[kind] = message
        return kind

    return collect


@mutant("declare an integer >= 1")
class NoActions(Copy):
    sizes = resized(num_actions=0)


@mutant("num_symbols < num_actions")
class FewSymbols(Copy):
    sizes = resized(num_symbols=2)


@mutant("policy_view is 'tree'")
class OddView(Copy):
    policy_view = "tree"


@mutant("the field plain does not know its range")
class PlainField(Copy):
    plain: int = 3


@mutant("the field backend is a keyword of gym.make")
class ReservedField(Copy):
    backend: int = integer(3, 1, 9, "what gym.make_vec calls otherwise")


@mutant("accepts any object")
class Unvalidated(Copy):
    def __post_init__(self):
        pass


@mutant("a batch of no episodes fails")
class NeverEmpty(Copy):
    def observe(self, state):
        observed = super().observe(state)
        return observed.reshape(len(observed), -1)


@mutant("does not enter the fingerprint")
class SameFingerprint(Copy):
    fingerprint = "0123456789abcdef"


@mutant("equal parameters give other `tables`")
class UnseededTables(Copy):
    @functools.cached_property
    def tables(self):
        return super().tables._replace(target=np.random.default_rng().integers(0, 3, (4, 4, self.size)))


@mutant("the dynamics changed `tables`")
class WrittenTables(Copy):
    def initial(self, rng, n, **options):
        self.tables.target[0, 0] = (self.tables.target[0, 0] + 1) % 3
        return super().initial(rng, n, **{**options, "hint": None})


@mutant("initial gives different outputs")
class Remembers(Copy):
    def initial(self, rng, n, **options):
        count = self.__dict__.setdefault("_count", [0])
        count[0] += 1
        state = super().initial(rng, n, **options)
        return state._replace(shown=(state.shown + count[0]) % 4)


@mutant("transition changed its inputs")
class WritesState(Copy):
    def transition(self, state, actions, rng):
        moved = super().transition(state, actions, rng)
        state.prompt[:] = 7
        return moved


@mutant("depends on its neighbours")
class Centres(TwoArms):
    def transition(self, state, actions, rng):
        moved, rewards, terminated = super().transition(state, actions, rng)
        return moved, rewards - rng.xp.mean(rewards), terminated


@mutant("transition returns rewards float32")
class Float32(TwoArms):
    def transition(self, state, actions, rng):
        moved, rewards, terminated = super().transition(state, actions, rng)
        return moved, rng.xp.astype(rewards, rng.xp.float32), terminated


@mutant("a reward that is NaN")
class NaN(TwoArms):
    def transition(self, state, actions, rng):
        moved, rewards, terminated = super().transition(state, actions, rng)
        return moved, rewards / 0 if rng.xp.__name__.startswith("torch") else rewards * np.nan, terminated


@mutant("response_length is 0")
class Hidden(TwoArms):
    sizes = TwoArms.sizes._replace(response_length=0)


@mutant("run longer than the horizon")
class Endless(TwoArms):
    sizes = TwoArms.sizes._replace(response_length=2)

    def transition(self, state, actions, rng):
        moved, rewards, terminated = super().transition(state, actions, rng)
        return moved, rewards, ~terminated

    def observe(self, state):
        tokens = super().observe(state)
        return np.concatenate([tokens, 0 * tokens], axis=1)


@mutant("draw 16 belongs to another step")
class ManyDraws(TwoArms):
    def transition(self, state, actions, rng):
        rng.uniform(16)
        return super().transition(state, actions, rng)


@mutant("observe returns int64")
class WideTokens(Copy):
    def observe(self, state):
        return super().observe(state).astype(np.int64)


@mutant("returns the memory of")
class SharedTokens(TwoArms):
    def initial(self, rng, n, **options):
        state = super().initial(rng, n, **options)
        return state._replace(pulled=rng.xp.astype(state.pulled, rng.xp.int8))

    def observe(self, state):
        return state.pulled[:, None]


@mutant("a response has padding before a token")
class FromTheRight(Copy):
    def observe(self, state):
        tokens = super().observe(state).copy()
        tokens[:, 2:] = tokens[:, :1:-1]
        return tokens


@mutant("must append token a \\+ 1")
class OtherToken(Copy):
    def transition(self, state, actions, rng):
        return super().transition(state, (actions + 1) % 3, rng)


@mutant("a prompt holds a symbol outside")
class OddPrompt(Copy):
    prompt_symbols = range(5, 7)


@mutant("episodes begin with 4 response tokens")
class GivesAway(Copy):
    def initial(self, rng, n, **options):
        return super().initial(rng, n, **{**options, "hint": 0 * rng.keys + 4})


@mutant("expected leading axis 384")
class ScalarField(Copy):
    def initial(self, rng, n, **options):
        return super().initial(rng, n, **options)._replace(goal=np.int64(4))


@mutant("prompt index lies outside")
class FarPrompts(Copy):
    sizes = resized(num_prompts=20)

    def draw_prompts(self, rng):
        return rng.integers(15, 50)


@mutant("no legal action")
class Stuck(Copy):
    def action_mask(self, state):
        return super().action_mask(state) & (state.length[:, None] < 1)


@mutant("action_mask returns int8")
class IntegerMask(Copy):
    def action_mask(self, state):
        return super().action_mask(state).astype(np.int8)


@mutant("a declared stage or hint is refused")
class FewerStages(Copy):
    sizes = resized(num_stages=5)

    def validate_options(self, stage, hint):
        if stage is not None and (stage > self.size).any():
            raise OptionError("stage", int(stage.max()), "at most size")


@mutant("NumPy and torch differ in rewards")
class Reduction(TwoArms):
    """The order of a floating sum differs on every processor; exp agrees on some."""

    def transition(self, state, actions, rng):
        moved, rewards, terminated = super().transition(state, actions, rng)
        return moved, rewards * (rng.uniform(1)[:, None] ** 2 / rng.xp.arange(3.0, 30.0)).sum(1), terminated


@mutant("rows of reference_probs are no distributions")
class Unnormalised(Copy):
    def reference_probs(self, observations):
        return 2 * super().reference_probs(observations)


@mutant("reference_depends_on is 'position'")
class SaysPosition(Copy):
    reference_depends_on = "position"


@mutant("features must return finite float64")
class FlatFeatures(Copy):
    def features(self, observations):
        return np.zeros((len(observations), 3))


@mutant("a replayed prompt begins another episode")
class FreshContent(Copy):
    def initial(self, rng, n, **options):
        state = super().initial(rng, n, **options)
        return state._replace(shown=rng.xp.stack([rng.integers(0, 4), rng.integers(1, 4)], axis=1))


@mutant("a global random generator was used")
class GlobalRandom(TwoArms):
    def initial(self, rng, n, **options):
        np.random.random()  # noqa: NPY002
        return super().initial(rng, n, **options)


@pytest.mark.parametrize("kind", MUTANTS, ids=lambda kind: kind.__name__)
def test_a_broken_setting_is_told_what_is_wrong(kind):
    with pytest.raises(CheckFailed, match=MUTANTS[kind]) as caught:
        check_setting(kind())
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, TheoryBenchError)


def test_the_sound_settings_pass_at_other_parameters():
    for setting in (Copy(size=2), Copy(size=7, order="backward", strict=True, instance=10_001), TwoArms(good=0)):
        check_setting(setting, seed=3)


def test_what_is_no_setting_is_refused():
    with pytest.raises(CheckFailed, match="pass an instance"):
        check_setting(Copy)


def test_a_class_inside_of_a_function_is_told_to_move():
    class Local(TwoArms):
        pass

    with pytest.raises(CheckFailed, match="define its class in a module"):
        check_setting(Local())


def test_a_broken_vector_environment_is_told_what_is_wrong(monkeypatch):
    step, reset = VectorEnvironment.step, VectorEnvironment.reset

    def mutated(method, change):
        def call(self, *args, **kwargs):
            returned = list(method(self, *args, **kwargs))
            return tuple(change(self, returned) or returned)

        return call

    def late(self, returned):
        returned[1] = returned[1] + 1.0

    def truncates(self, returned):
        returned[3] = returned[2]
        returned[2] = ~returned[2] & returned[2]

    def forgets(self, returned):
        returned[-1].pop("final_obs", None)

    def shares(self, returned):
        returned[-1]["prompt"] = self.batch.state.prompt

    def another_mask(self, returned):
        returned[-1]["action_mask"] = ~returned[-1]["action_mask"]

    def reuses(self, returned):
        held = self.__dict__.setdefault("held", returned[0].copy())
        held[:] = returned[0]
        returned[0] = held

    for change, message in (
        (late, "rewards differ"),
        (truncates, "terminated differ"),
        (forgets, "'final_obs'] is missing"),
        (shares, r"info\['prompt'\] differs"),
        (another_mask, "'action_mask'] differs"),
        (reuses, "wrote into arrays that an earlier call returned"),
    ):
        with monkeypatch.context() as patch, pytest.raises(CheckFailed, match=message):
            patch.setattr(VectorEnvironment, "step", mutated(step, change))
            check_vector_env(gym.make_vec("Toy/Copy-v0", num_envs=4))
    with monkeypatch.context() as patch, pytest.raises(CheckFailed, match="at reset: observations differ"):
        patch.setattr(VectorEnvironment, "reset", lambda self, seed=None, **rest: reset(self, seed=3, **rest))
        check_vector_env(gym.make_vec("Toy/Copy-v0", num_envs=4))
    with pytest.raises(CheckFailed, match="no native vector environment"):
        check_vector_env(gym.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(CheckFailed, match="no spec"):
        check_vector_env(None)


def test_a_table_of_another_shape_is_no_policy():
    setting = gym.make("TheoryBench/TreeMarkovChain-v0").unwrapped.setting
    view = tb.View.of(setting)
    for shape in ((view.rows + 1, view.num_actions), (view.rows, view.num_actions + 1), (view.rows,)):
        with pytest.raises(ParameterError, match=r"table\.shape"):
            tb.TablePolicy(view, np.full(shape, 0.5))
