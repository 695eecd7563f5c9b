"""What both settings of the family are asked for with parameters other than the defaults, and what they refuse."""

import gymnasium as gym
import numpy as np
import pytest

from theorybench.envs.core.checks.setting import check_setting, check_vector_env
from theorybench.envs.core.errors import ParameterError

TREE, CHAIN = "TheoryBench/TreeMarkovChain-v0", "TheoryBench/MetastableChain-v0"
VARIANTS = {
    "pool": (TREE, {"num_questions": 5, "pass_k": 4, "train_tasks": (1,)}),
    "shortest": (TREE, {"L": 2, "M0": 1, "num_tasks": 1, "instance": 3}),
    "two-words": (
        TREE,
        {"L": 11, "M0": 7, "M": 3, "C": 2, "num_tasks": 3, "instance": 1, "train_tasks": (0, 2)},
    ),
    "board": (TREE, {"L": 8, "M0": 6, "M": 6, "num_tasks": 6, "instance": 10_000}),
    "short chain": (CHAIN, {"K": 2, "M": 2, "H": 4, "eps": 0.9, "instance": 7}),
    "steps back": (CHAIN, {"K": 3, "M": 3, "H": 8, "two_way": True, "instance": 10_001}),
}
WIDE = {"L": 16, "M0": 126, "M": 126, "num_tasks": 3, "instance": 4}
REFUSED = [
    (TREE, "L", {"L": 8}),
    (TREE, "M", {"M": 6}),
    (TREE, "C", {"C": 2}),
    (TREE, "num_tasks", {"num_tasks": 1}),
    (TREE, "L", {"L": 1, "instance": 0}),
    (TREE, "M", {"M": 1, "instance": 0}),
    (TREE, "C", {"C": 3, "instance": 0}),
    (TREE, "num_tasks", {"num_tasks": 3, "instance": 0}),
    (TREE, "train_tasks", {"train_tasks": [2]}),
    (TREE, "train_tasks", {"train_tasks": []}),
    (TREE, "train_tasks", {"train_tasks": [0, 0]}),
    (TREE, "low_weight", {"low_weight": 0.0}),
    (TREE, "low_weight", {"low_weight": float("nan")}),
    (TREE, "pass_k", {"pass_k": 0}),
    (TREE, "pass_k", {"pass_k": 513}),
    (TREE, "num_questions", {"num_questions": -1}),
    (TREE, "instance", {"instance": "paper"}),
    (TREE, "instance", {"instance": -1}),
    (CHAIN, "K", {"K": 1}),
    (CHAIN, "K", {"K": 33}),
    (CHAIN, "M", {"M": 1}),
    (CHAIN, "M", {"M": 65}),
    (CHAIN, "eps", {"eps": 0.0}),
    (CHAIN, "eps", {"eps": 1.0}),
    (CHAIN, "two_way", {"two_way": 1}),
    (CHAIN, "H", {"H": 5}),
    (CHAIN, "H", {"H": 2049}),
    (CHAIN, "instance", {"instance": "canonical"}),
    (CHAIN, "eps", {"eps": 0.001}),
]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_checkers_pass(name):
    id, parameters = VARIANTS[name]
    envs = gym.make_vec(id, num_envs=5, **parameters)
    check_setting(envs.unwrapped.setting)
    check_vector_env(envs)


@pytest.mark.parametrize("name", VARIANTS)
def test_torch_walks_the_same_paths(name):
    id, parameters = VARIANTS[name]
    ours, torches = (gym.make_vec(id, num_envs=33, backend=b, **parameters) for b in ("numpy", "torch"))
    rng, setting = np.random.default_rng(0), ours.unwrapped.setting
    here, there = ours.reset(seed=1)[:1], torches.reset(seed=1)[:1]
    for _ in range(2 * setting.horizon + 1):
        for a, b in zip(here, there, strict=True):
            np.testing.assert_array_equal(a, b.numpy())
        actions = rng.integers(0, setting.num_actions, 33)
        here, there = ours.step(actions)[:4], torches.step(actions)[:4]


@pytest.mark.parametrize(("id", "field", "parameters"), REFUSED)
def test_refused_parameters_name_themselves(id, field, parameters):
    with pytest.raises(ParameterError, match=field) as raised:
        gym.make(id, **parameters)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("id", "parameters"), [(TREE, WIDE), VARIANTS["board"], (CHAIN, {}), (CHAIN, {"K": 8, "H": 100, "two_way": True})]
)
def test_text_fits_a_terminal(id, parameters):
    env = gym.make(id, render_mode="ansi", **parameters)
    observation, _ = env.reset(seed=0)
    rng, over = np.random.default_rng(0), False
    while not over:
        action = int(env.unwrapped.reference_policy.sample(observation[None], rng)[0])
        observation, _, over, _, _ = env.step(action)
        assert max(map(len, env.render().splitlines())) <= 80
